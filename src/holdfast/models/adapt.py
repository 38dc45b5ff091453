"""From what people have fitted to a `Model`; what is not understood is an error that names it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from holdfast._extras import need_torch
from holdfast.models.base import BlackBox, LinearModel, Model


def as_model(model: Any, *, target_class: Any = None, device: str = "cpu") -> Model:
    """Adapt a fitted model.

    Parameters
    ----------
    model : object
        A `Model`; a pair ``(coef, intercept)``; a fitted scikit-learn classifier of two classes
        or a pipeline that ends in one (linear, `MLPClassifier`, or anything with
        `predict_proba`); or a torch module: a `Sequential` that ends in a linear layer or in a
        sigmoid (wrap any other one in `holdfast.models.network.Network` and say what it returns).
    target_class : label, optional
        The wanted class of a scikit-learn classifier; the second of its classes by default.
    device : str
        Where a network runs.

    Examples
    --------
    >>> from holdfast.models import as_model
    >>> as_model(([1.0, -0.5], -1.0)).kind
    'linear'
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> fitted = LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])
    >>> [bool(as_model(fitted, target_class=y).score([[9.0]])[0] > 0) for y in ("no", "yes")]
    [False, True]
    """
    if isinstance(model, Model):
        if target_class is not None:
            raise ValueError("target_class is for scikit-learn models; this one is adapted already")
        return model
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return _torch_model(model, target_class, device)
    if isinstance(model, tuple):
        if len(model) != 2 or target_class is not None:
            raise ValueError("a model given by its numbers is a pair (coef, intercept)")
        return LinearModel(*model)
    if hasattr(model, "steps") and hasattr(model, "named_steps"):
        return _pipeline(model, target_class, device)
    return _estimator(model, None, target_class, device)


def _torch_model(module: Any, target_class: Any, device: str) -> Model:
    from torch import nn

    from holdfast.models.network import Network

    if target_class is not None:
        raise ValueError("target_class is for scikit-learn models; a module's score is its output")
    last = module[-1] if isinstance(module, nn.Sequential) and len(module) else module
    if isinstance(last, nn.Sigmoid):
        return Network(module, output="probability", device=device)
    if isinstance(last, nn.Linear):
        return Network(module, output="logit", device=device)
    raise ValueError(
        f"a {type(module).__name__} that ends in {type(last).__name__} does not say what it "
        "returns; wrap it: holdfast.models.network.Network(module, output='logit' or 'probability')"
    )


def _pipeline(pipeline: Any, target_class: Any, device: str) -> Model:
    if len(pipeline.steps) == 1:
        return _estimator(pipeline.steps[-1][1], None, target_class, device)
    return _estimator(pipeline.steps[-1][1], pipeline[:-1], target_class, device)


def _estimator(estimator: Any, encoder: Any, target_class: Any, device: str) -> Model:
    name = type(estimator).__name__
    if not hasattr(estimator, "predict"):
        raise TypeError(
            f"{name} is no model that is understood: give a fitted scikit-learn classifier or a "
            "pipeline, a torch module, or a pair (coef, intercept)"
        )
    if not hasattr(estimator, "classes_"):
        raise ValueError(f"{name} is not fitted, or is no classifier: it has no classes_")
    sign = _sign(name, list(estimator.classes_), target_class)
    if hasattr(estimator, "coef_") and hasattr(estimator, "intercept_"):
        coef = np.asarray(estimator.coef_, dtype=np.float64)
        if coef.shape[0] != 1:
            raise ValueError(f"{name} has coefficients of shape {coef.shape}, expected (1, d)")
        intercept = float(np.ravel(estimator.intercept_)[0])
        return LinearModel(sign * coef[0], sign * intercept, _loss_of(estimator), encoder)
    if name == "MLPClassifier":
        need_torch("an MLPClassifier")
        from holdfast.models.mlp import network_of_mlp

        return network_of_mlp(estimator, sign, encoder, device)
    if hasattr(estimator, "predict_proba"):
        column = 1 if sign > 0 else 0
        return BlackBox(lambda points: estimator.predict_proba(points)[:, column], encoder)
    raise TypeError(
        f"{name} has neither coefficients nor predict_proba; nothing can be asked of it"
    )


def _sign(name: str, classes: list[Any], target_class: Any) -> float:
    if len(classes) != 2:
        raise ValueError(f"{name} has {len(classes)} classes {classes}; recourse needs exactly 2")
    if target_class is None:
        return 1.0
    if target_class not in classes:
        raise ValueError(f"target_class = {target_class!r} is none of the classes {classes}")
    return 1.0 if target_class == classes[1] else -1.0


def _loss_of(estimator: Any) -> str:
    """Loss that a linear classifier was fitted with: it decides what its scores mean."""
    name, loss = type(estimator).__name__, getattr(estimator, "loss", None)
    if name == "LinearSVC":
        return str(loss)
    if name == "SGDClassifier" and loss in ("hinge", "squared_hinge"):
        return str(loss)
    if name == "SVC":
        return "hinge"
    return "logistic"
