"""From what people have fitted to a `Model`; what is not understood is an error that names it."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from holdfast._extras import need_torch
from holdfast._numbers import refuse
from holdfast.models.base import BlackBox, LinearModel, Model


def as_model(model: Any, *, target_class: Any = None, device: str | None = None) -> Model:
    """Adapt a fitted model.

    Parameters
    ----------
    model : object
        A `Model`; a pair ``(coef, intercept)``; a fitted scikit-learn classifier of two classes
        or a pipeline that ends in one (linear, `MLPClassifier`, or anything with
        `predict_proba`), or a search over such, whose `best_estimator_` is taken; or a torch
        module: a `Sequential` that ends in a linear layer or in a sigmoid (wrap any other one in
        `holdfast.models.network.Network` and say what it returns).
    target_class : label, optional
        The wanted class of a scikit-learn classifier; the second of its classes by default.
    device : str, optional
        Where a network runs; by default where it is.

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
    if device is not None and not isinstance(device, str):
        refuse("device", device, "the name of one, such as 'cpu' or 'cuda'")
    if isinstance(model, Model):
        _refuse_target(target_class)
        if device is not None and model.kind == "network":
            return replace(model, device=device)  # type: ignore[type-var]
        return model
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return _torch_model(model, target_class, device)
    if isinstance(model, tuple):
        _refuse_target(target_class)
        if len(model) != 2:
            raise ValueError("a model given by its numbers is a pair (coef, intercept)")
        return LinearModel(*model)
    model = getattr(model, "best_estimator_", model)
    if hasattr(model, "steps") and hasattr(model, "named_steps"):
        return _pipeline(model, target_class, device)
    return _estimator(model, None, target_class, device)


def _refuse_target(target_class: Any) -> None:
    if target_class is not None:
        raise ValueError(
            f"target_class = {target_class!r} is for scikit-learn classifiers; any other model's "
            "positive scores are the wanted class"
        )


def _torch_model(module: Any, target_class: Any, device: str | None) -> Model:
    from torch import nn

    from holdfast.models.network import Network

    _refuse_target(target_class)
    last = module[-1] if isinstance(module, nn.Sequential) and len(module) else module
    if isinstance(last, nn.Sigmoid):
        return Network(module, output="probability", device=device)
    if isinstance(last, nn.Linear):
        return Network(module, output="logit", device=device)
    raise ValueError(
        f"a {type(module).__name__} that ends in {type(last).__name__} does not say what it "
        "returns; wrap it: holdfast.models.network.Network(module, output='logit' or 'probability')"
    )


def _pipeline(pipeline: Any, target_class: Any, device: str | None) -> Model:
    if len(pipeline.steps) == 1:
        return _estimator(pipeline.steps[-1][1], None, target_class, device)
    return _estimator(pipeline.steps[-1][1], pipeline[:-1], target_class, device)


def _estimator(estimator: Any, encoder: Any, target_class: Any, device: str | None) -> Model:
    name = type(estimator).__name__
    can = hasattr(estimator, "predict_proba")
    if not can and not hasattr(estimator, "decision_function"):
        raise TypeError(
            f"{name} is no model that is understood: give a fitted scikit-learn classifier or a "
            "pipeline, a torch module, a pair (coef, intercept), or a function of probabilities "
            "as holdfast.models.BlackBox(function)"
        )
    if not hasattr(estimator, "classes_"):
        if hasattr(estimator, "fit"):
            raise ValueError(
                f"the model {name} is not fitted, or no classifier: it has no classes_"
            )
        _refuse_target(target_class)
        return BlackBox(lambda points: np.asarray(estimator.predict_proba(points))[:, 1], encoder)
    sign = _sign(name, list(estimator.classes_), target_class)
    names = list(getattr(estimator, "feature_names_in_", [])) or None
    if encoder is not None:
        names = None  # the encoders speak for themselves
    if hasattr(estimator, "coef_") and hasattr(estimator, "intercept_"):
        coef, intercept = _coefficients(name, estimator)
        return LinearModel(sign * coef, sign * intercept, _loss_of(estimator), encoder, names)
    if name == "MLPClassifier":
        need_torch("an MLPClassifier")
        from holdfast.models.mlp import network_of_mlp

        return network_of_mlp(estimator, sign, encoder, names, device)
    if can:
        column = 1 if sign > 0 else 0
        return BlackBox(lambda points: estimator.predict_proba(points)[:, column], encoder, names)
    raise TypeError(f"{name} has neither coefficients nor predict_proba: nothing can be asked")


def _coefficients(name: str, estimator: Any) -> tuple[Any, float]:
    coef = estimator.coef_
    if hasattr(coef, "toarray"):
        coef = coef.toarray()
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    if coef.shape[0] != 1:
        raise ValueError(f"{name} has coefficients of shape {coef.shape}, expected (1, d)")
    return coef[0], float(np.ravel(estimator.intercept_)[0])


def _sign(name: str, classes: list[Any], target_class: Any) -> float:
    if len(classes) != 2:
        raise ValueError(f"{name} has {len(classes)} classes {classes}; recourse needs exactly 2")
    if target_class is None:
        return 1.0
    if target_class not in classes:
        raise ValueError(f"target_class = {target_class!r} is none of the classes {classes}")
    return 1.0 if target_class == classes[1] else -1.0


# The loss that each was fitted with, by class, or by class and its own `loss`.
_LOSSES: dict[Any, str] = {
    "LogisticRegression": "logistic",
    "LogisticRegressionCV": "logistic",
    "LinearDiscriminantAnalysis": "logistic",
    "SVC": "hinge",
    "NuSVC": "hinge",
    ("LinearSVC", "hinge"): "hinge",
    ("LinearSVC", "squared_hinge"): "squared_hinge",
    ("SGDClassifier", "log_loss"): "logistic",
    ("SGDClassifier", "hinge"): "hinge",
    ("SGDClassifier", "squared_hinge"): "squared_hinge",
}


def _loss_of(estimator: Any) -> str:
    """Loss that a linear classifier was fitted with: it decides what its scores mean.

    Empty where we have no such loss: then it must be said.
    """
    name = type(estimator).__name__
    return _LOSSES.get(name) or _LOSSES.get((name, getattr(estimator, "loss", None)), "")
