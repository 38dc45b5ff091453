"""From what people have fitted to a `Model`; what is not understood is an error that names it."""

from __future__ import annotations

import copy
import sys
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from holdfast.machinery.extras import need_torch
from holdfast.machinery.numbers import refuse, shown
from holdfast.models.base import BlackBox, LinearModel, Model
from holdfast.models.calibrator import read_calibrator
from holdfast.models.classes import UNSAID, favorable_position
from holdfast.models.encoding.reading import plain
from holdfast.models.encoding.steps import raw_names, understood
from holdfast.models.encoding.unwrap import (
    Threshold,
    Unwrapped,
    is_a,
    is_linear,
    name_of,
    unwrap,
)
from holdfast.models.origin import Origin
from holdfast.models.regressions import as_classifier
from holdfast.problem.losses import LOSSES


def as_model(
    model: Any,
    *,
    favorable_class: Any = None,
    device: str | None = None,
    people: Any = None,
    with_curves: bool = False,
) -> Model:
    """Adapt a fitted model.

    Parameters
    ----------
    model : object
        A `Model`; a pair ``(coef, intercept)``; a fitted scikit-learn classifier of two classes
        or a pipeline that ends in one (linear, `MLPClassifier`, or anything with
        `predict_proba`), also inside a search, a threshold or a calibrator; results of
        statsmodels (`Logit`, `Probit`, `GLM` of the binomial family); an additive model, see
        `holdfast.models.additive.split_additive`; or a torch module: a `Sequential` that ends in
        a linear layer or in a sigmoid (wrap any other one in `holdfast.models.network.Network`
        and say what it returns).
    favorable_class : label, optional
        The class that people want. Required unless the classes are False and True.
    device : str, optional
        Where a network runs; by default where it is.
    people : table, optional
        Rows to count the model's decisions on, should the favourable class have to be asked for.
    with_curves : bool
        Whether to look behind steps that bend or bin a number. Whoever does must know which
        encoded values belong to a raw one: not all of them do.

    Examples
    --------
    >>> from holdfast.models import as_model
    >>> as_model(([1.0, -0.5], -1.0)).kind
    'linear'
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> fitted = LogisticRegression().fit([[0.0], [1.0]], ["paid", "default"])
    >>> as_model(fitted, favorable_class="paid").score([[0.0]]) > 0
    array([ True])
    >>> as_model(fitted)
    Traceback (most recent call last):
        ...
    ValueError: LogisticRegression has the classes 'default' and 'paid': say which of them people \
want: favorable_class='default' or favorable_class='paid'
    """
    if device is not None and not isinstance(device, str):
        refuse("device", device, "the name of one, such as 'cpu' or 'cuda'")
    if isinstance(model, Model):
        _refuse_class(favorable_class)
        if device is not None and model.kind == "network":
            return replace(model, device=device)  # type: ignore[type-var]
        return model
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        _refuse_class(favorable_class)
        return _torch_model(model, device)
    if isinstance(model, tuple):
        _refuse_class(favorable_class)
        if len(model) != 2:
            raise ValueError("a model given by its coefficients must be a pair (coef, intercept)")
        return LinearModel(*model)
    model = as_classifier(model)
    found = _unwrapped(model, with_curves)
    origin = _origin(model, found, favorable_class, people, with_curves)
    adapted = _read(origin, device)
    if origin.calibrator is not None:
        return _decide(adapted, origin, found.threshold)
    if found.threshold is not None:
        return _cut(adapted, origin, found.threshold)
    # an even chance goes to the first class
    even = float(np.nextafter(0.0, 1.0)) if origin.favorable_position == 1 else 0.0
    return replace(adapted, cutoff=even)  # type: ignore[type-var]


def _unwrapped(model: Any, with_curves: bool) -> Unwrapped:
    """Open a model; its calibrator only where all before the classifier is understood as well.

    Otherwise there is no linear score that probabilities could be a function of.
    """
    found = unwrap(model)
    if found.calibrated is None:
        return found
    read = understood(found.steps, with_curves=with_curves)
    return found if read.depth == len(found.steps) else unwrap(model, calibrated=False)


def _refuse_class(favorable_class: Any) -> None:
    if favorable_class is not None:
        raise ValueError(
            f"favorable_class = {favorable_class!r} is only for scikit-learn classifiers; for any "
            "other model, positive scores are the favourable class"
        )


def _torch_model(module: Any, device: str | None) -> Model:
    from torch import nn

    from holdfast.models.network import Network

    last = module[-1] if isinstance(module, nn.Sequential) and len(module) else module
    if isinstance(last, nn.Sigmoid):
        return Network(module, output="probability", device=device)
    if isinstance(last, nn.Linear):
        return Network(module, output="logit", device=device)
    raise ValueError(
        f"a {type(module).__name__} that ends in {type(last).__name__} does not say what it "
        "returns; wrap it as holdfast.models.network.Network(module, output='logit' or "
        "'probability')"
    )


def _origin(
    whole: Any, found: Unwrapped, favorable_class: Any, people: Any, with_curves: bool
) -> Origin:
    """Check that the classifier can be asked, and find the columns that people can set."""
    where, last = found.where, found.last
    here, name = f"{where}: " if where else "", name_of(last)
    if not hasattr(last, "predict_proba") and not hasattr(last, "decision_function"):
        raise TypeError(
            f"{here}unsupported model type {name}: Holdfast takes a fitted scikit-learn classifier "
            "or a pipeline that ends in one, results of statsmodels' Logit, Probit or binomial "
            "GLM, a torch module, a pair (coef, intercept), or a function of probabilities as "
            "holdfast.models.BlackBox(function)"
        )
    if not hasattr(last, "classes_") and hasattr(last, "fit"):
        raise ValueError(
            f"{here}the model {name} is not fitted, or is not a classifier: it has no classes_"
        )
    classes = [plain(label) for label in getattr(last, "classes_", (0, 1))]
    if len(classes) != 2 or any(np.ndim(label) for label in classes):
        raise ValueError(
            f"{here}{name} has {len(classes)} classes {shown(classes)}; recourse needs exactly 2 "
            "labels"
        )
    position = _favorable(name, classes, favorable_class, whole, people)
    read = understood(found.steps, with_curves=with_curves)
    count = read.depth
    factor = (1.0 if position == 1 else -1.0) * _stretch(last)
    calibrated = found.calibrated
    return Origin(
        whole,
        where,
        last,
        classes,
        position,
        steps=found.steps[:count],
        rest=found.steps[count:],
        factor=factor,
        calibrator=None if calibrated is None else read_calibrator(calibrated, position, factor),
        decides=found.threshold is None and calibrated is None,
        names=raw_names(found.steps[0], None)[0] if count else [],
        features=read.parts,
        n_columns=read.n_columns,
    )


def _favorable(name: str, classes: list[Any], said: Any, whole: Any, people: Any) -> int:
    """Return the position of the favourable class."""
    said = plain(said)
    if np.ndim(said):
        refuse("favorable_class", said, "one label")
    known = favorable_position(classes, UNSAID if said is None else said)
    if known is not None:
        return known
    counts = _counts(classes, whole, people)
    named = " and ".join(f"{label!r}{count}" for label, count in zip(classes, counts, strict=True))
    ask = " or ".join(f"favorable_class={label!r}" for label in classes)
    if said is None:
        raise ValueError(f"{name} has the classes {named}: say which of them people want: {ask}")
    raise ValueError(f"favorable_class = {said!r} is not one of the classes {named}: use {ask}")


def _counts(classes: list[Any], whole: Any, people: Any) -> list[str]:
    """Say how many of the people the model gives each class to."""
    if people is None or not hasattr(whole, "predict"):
        return ["", ""]
    try:
        given = np.asarray(whole.predict(copy.deepcopy(people)))  # steps may write into it
    except (TypeError, ValueError):  # rows that cannot be judged are somebody else's error
        return ["", ""]
    first, second = (int(np.sum(given == label)) for label in classes)
    return [f" (which it gives to {first} of the {len(given)} people)", f" (to {second} of them)"]


def _stretch(last: Any) -> float:
    """Return the log-odds for a unit of the decision function.

    Two classes fitted as "multinomial" have the probabilities softmax(-s, s): log-odds of 2 s.
    """
    return 2.0 if getattr(last, "multi_class", None) == "multinomial" else 1.0


def _read(origin: Origin, device: str | None) -> Model:
    """Return the classifier as a model of the columns that people can set."""
    last, name = origin.last, origin.name
    first = origin.rest[0][1] if origin.rest else last
    # behind encoders that are understood columns go by position
    names = None if origin.steps else list(getattr(first, "feature_names_in_", [])) or None
    if not origin.rest and is_linear(last):
        coef, intercept = _coefficients(name, last)
        factor = origin.factor
        return LinearModel(factor * coef, factor * intercept, _loss_of(last), names, origin)
    if not origin.rest and is_a(last, "MLPClassifier"):
        need_torch("an MLPClassifier")
        from holdfast.models.mlp import network_of_mlp

        return network_of_mlp(origin, names, device)
    inner = list(getattr(first, "feature_names_in_", [])) or None
    if hasattr(last, "predict_proba") and not _margin(last):

        def probability(X: Any) -> Any:
            return origin.ask_last(X).probability

        return BlackBox(probability, "probability", "logistic", names or inner, origin)

    def score(X: Any) -> Any:
        return origin.ask_last(X).score

    return BlackBox(score, "score", _loss_of(last), names or inner, origin)


def _decide(model: Model, origin: Origin, threshold: Threshold | None) -> Model:
    """Put the decision of a calibrated model, or of a threshold around it, into the model."""
    assert origin.calibrator is not None
    positive = 1
    if threshold is not None and threshold.positive is not None:
        positive = origin.classes.index(plain(threshold.positive))
    cutoff = origin.calibrator.cutoff(threshold, positive)
    return replace(model, cutoff=cutoff)  # type: ignore[type-var]


def _cut(model: Model, origin: Origin, threshold: Threshold) -> Model:
    """Put the threshold of a decision into the model, as the score from which on it accepts."""
    positive = origin.classes[1] if threshold.positive is None else plain(threshold.positive)
    towards = 1.0 if positive == origin.classes[origin.favorable_position] else -1.0
    if threshold.method == "predict_proba":
        if _margin(origin.last):
            raise ValueError(
                f"{type(origin.whole).__name__} has a threshold on the probabilities of "
                f"{origin.name}, which decides by a margin: put the threshold on the margin "
                "instead, response_method='decision_function'"
            )
        if not 0.0 < threshold.value < 1.0:
            raise ValueError(
                f"{type(origin.whole).__name__} has the threshold {threshold.value}: it decides "
                "the same for everybody, so no change helps"
            )
        cutoff = towards * float(special.logit(threshold.value))
    else:
        # the decision function is that of the second class, whichever is called positive
        of_positive = 1.0 if positive == origin.classes[1] else -1.0
        cutoff = origin.factor * of_positive * threshold.value
    if towards < 0.0:  # the positive class begins at the threshold: ours ends before it
        cutoff = float(np.nextafter(cutoff, np.inf))
    loss = LOSSES.get(model.loss)
    if loss is None or loss.link is not None:
        return replace(model, cutoff=cutoff)  # type: ignore[type-var]
    # a margin is no probability: count it from the threshold, where the decision is
    origin = replace(origin, cutoff=cutoff)
    if isinstance(model, LinearModel):
        return replace(model, intercept=model.intercept - cutoff, origin=origin)
    return _read(origin, None)


def _margin(last: Any) -> bool:
    """Whether its decision is by a margin, whatever probabilities it makes of that."""
    return is_a(last, "BaseSVC")


def _coefficients(name: str, estimator: Any) -> tuple[Any, float]:
    coef = estimator.coef_
    if hasattr(coef, "toarray"):
        coef = coef.toarray()
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    if coef.shape[0] != 1:
        raise ValueError(f"{name} has coefficients of shape {coef.shape}, expected (1, d)")
    return coef[0], float(np.ravel(estimator.intercept_)[0])


# The loss that each was fitted with, by class, or by class and its own `loss`.
_LOSSES: dict[Any, str] = {
    "LogisticRegression": "logistic",
    "LogisticRegressionCV": "logistic",
    "LinearDiscriminantAnalysis": "logistic",
    "LinearScore": "logistic",
    "SVC": "hinge",
    "NuSVC": "hinge",
    ("LinearSVC", "hinge"): "hinge",
    ("LinearSVC", "squared_hinge"): "squared_hinge",
    ("SGDClassifier", "log_loss"): "logistic",
    ("SGDClassifier", "hinge"): "hinge",
    ("SGDClassifier", "squared_hinge"): "squared_hinge",
    ("StatsmodelsResults", "logistic"): "logistic",
    ("StatsmodelsResults", "probit"): "probit",
}


def _loss_of(estimator: Any) -> str:
    """Loss that a classifier was fitted with: it decides what its scores mean.

    Empty where we have no such loss: then it must be said.
    """
    loss = getattr(estimator, "loss", None)
    for kind in type(estimator).__mro__:
        known = _LOSSES.get(kind.__name__) or _LOSSES.get((kind.__name__, loss))
        if known:
            return known
    return ""
