"""What was fitted, without its wrappings: encoders, a classifier, its calibrator, a threshold."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.models.additive.split import split_additive
from holdfast.models.regressions import as_classifier

# Rounding apart, what was read and the model must agree; what is misread differs by far more.
AGREEMENT = 1e-9

FittedStep = tuple[str, Any]  # (where it stands, the fitted object)

# How CalibratedClassifierCV may calibrate: each is a function of one score that rises with it.
CALIBRATIONS = ("sigmoid", "isotonic", "temperature")


class Threshold(NamedTuple):
    """The cutoff of a decision, in what a classifier gives for its positive class."""

    value: float
    method: str  # "predict_proba" or "decision_function"
    positive: Any  # None: the second class


class Unwrapped(NamedTuple):
    """A fitted model taken out of searches, frozen and threshold wrappers, and pipelines.

    `calibrated` is what `CalibratedClassifierCV` holds: a classifier and its calibrator.
    """

    steps: list[FittedStep]
    where: str
    last: Any
    threshold: Threshold | None
    calibrated: Any = None


def unwrap(model: Any, *, calibrated: bool = True) -> Unwrapped:
    """Open whatever scikit-learn and its relatives wrap around a classifier.

    Searches (`best_estimator_`), `FrozenEstimator`, `FixedThresholdClassifier`,
    `TunedThresholdClassifierCV`, and pipelines, theirs and those of subclasses such as
    imbalanced-learn's, in any order. The outermost threshold is the one that decides. So is
    `CalibratedClassifierCV` with one calibrator of a linear classifier, unless `calibrated` is
    False; thresholds inside of it decide nothing. Any other one counts as a classifier.

    Statsmodels' results become classifiers here: see `holdfast.models.regressions`. An additive
    model is split into an encoder and a classifier: see `holdfast.models.additive.split_additive`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    >>> search = GridSearchCV(pipeline, {"logisticregression__C": [1.0]}, cv=2)
    >>> found = unwrap(search.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]))
    >>> found.steps, found.last
    ([("step 'standardscaler'", StandardScaler())], LogisticRegression())
    """
    if isinstance(model, type):
        name = model.__name__
        raise TypeError(f"model = {name} is a class; pass a fitted model: {name}().fit(X, y)")
    found = _opened(model, calibrated)
    if found.calibrated is not None and not is_linear(found.last):
        return _opened(model, False)
    return found


def _opened(model: Any, open_calibrated: bool) -> Unwrapped:
    steps: list[FittedStep] = []
    where, threshold, calibrated = "", None, None
    while True:
        if is_a(model, "Pipeline"):
            *before, (name, model) = model.steps
            steps += [(_inside(where, label), step) for label, step in before if not skipped(step)]
            where = _inside(where, name)
            continue
        if open_calibrated and calibrated is None:
            calibrated = calibrated_of(model)
            if calibrated is not None:
                model = calibrated.estimator
                continue
        inner = _inner(model, where)
        if inner is None:
            parts = split_additive(model, where)
            if parts is not None:
                here = f"the terms of {type(model).__name__}"
                steps.append((f"{where}: {here}" if where else here, parts[0]))
                model = parts[1]
            return Unwrapped(steps, where, as_classifier(model), threshold, calibrated)
        if threshold is None and calibrated is None:
            threshold = _threshold(model, inner)
        model = inner


def is_linear(classifier: Any) -> bool:
    """Whether a fitted classifier has coefficients."""
    return hasattr(classifier, "coef_") and hasattr(classifier, "intercept_")


def calibrated_of(model: Any) -> Any:
    """Return the one classifier of a `CalibratedClassifierCV`, with its calibrator.

    None where there is none, or several whose probabilities are averaged, or where it was
    calibrated in a way that is not known.
    """
    if not is_a(model, "CalibratedClassifierCV"):
        return None
    parts = getattr(model, "calibrated_classifiers_", [])
    if len(parts) != 1 or len(parts[0].calibrators) != 1:
        return None
    return parts[0] if parts[0].method in CALIBRATIONS else None


def is_a(model: Any, name: str) -> bool:
    """Whether it is an object of that class of scikit-learn, or of one derived from it."""
    return any(
        kind.__name__ == name and kind.__module__.partition(".")[0] == "sklearn"
        for kind in type(model).__mro__
    )


def name_of(fitted: Any) -> str:
    """Class of a fitted classifier, or of the model that its numbers were taken from."""
    return str(getattr(fitted, "taken_from", type(fitted).__name__))


def skipped(step: Any) -> bool:
    """Whether a step does nothing to those who are judged: 'passthrough', or a resampler."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return True
    return hasattr(step, "fit_resample") and not hasattr(step, "transform")


def thawed(step: Any) -> Any:
    """Return what a `FrozenEstimator` holds; anything else as it is."""
    return step.estimator if is_a(step, "FrozenEstimator") else step


def _inside(where: str, name: str) -> str:
    return f"{where} / step {name!r}" if where else f"step {name!r}"


def _inner(model: Any, where: str) -> Any:
    if is_a(model, "FrozenEstimator"):
        return model.estimator
    if _has_threshold(model):
        return getattr(model, "estimator_", model.estimator)
    if is_a(model, "BaseSearchCV"):
        if not hasattr(model, "best_estimator_"):
            here = f"{where}: " if where else ""
            raise ValueError(
                f"{here}{type(model).__name__} has no best_estimator_: fit it, with refit=True"
            )
        return model.best_estimator_
    return None


def _has_threshold(model: Any) -> bool:
    return is_a(model, "FixedThresholdClassifier") or is_a(model, "TunedThresholdClassifierCV")


def _threshold(model: Any, inner: Any) -> Threshold | None:
    if not _has_threshold(model):
        return None
    method = model.response_method
    if method == "auto":
        method = "predict_proba" if hasattr(inner, "predict_proba") else "decision_function"
    value = getattr(model, "best_threshold_", None)
    if value is None:
        value = getattr(model, "threshold", None)
    if value is None:
        raise ValueError(f"{type(model).__name__} is not fitted: it has no threshold yet")
    if value == "auto":
        value = 0.5 if method == "predict_proba" else 0.0
    scorer = getattr(
        model, "_curve_scorer", None
    )  # a tuned one knows its positive class only there
    positive = model.pos_label if scorer is None else scorer._get_pos_label()
    return Threshold(float(value), method, positive)
