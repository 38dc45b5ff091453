"""Which additive models are known, and how each is split."""

from __future__ import annotations

from typing import Any

from holdfast.models.additive.boosting import split_boosting
from holdfast.models.additive.model import AdditiveModel
from holdfast.models.additive.scorecard import split_scorecard
from holdfast.models.additive.splines import split_gam


def split_additive(model: Any, where: str = "") -> tuple[Any, Any] | None:
    """Split an additive model into an encoder and a linear classifier; None: it is none.

    What a set of models then is:

    - `interpret.glassbox.ExplainableBoostingClassifier`, of two classes and without interactions:
      the encoder puts each column into its bins, and the coefficients are the bins' scores, so
      that a set changes each score. Missing values and unknown ones have bins of their own. It
      keeps all levels as texts: those that are written as numbers are read as numbers.
    - `pygam.LogisticGAM`, of splines, linear terms and factors: the encoder makes pygam's model
      matrix, and a set changes the weights of its splines, slopes and levels.
    - `optbinning.Scorecard`: the encoder makes weights of evidence, and a set changes the
      weight of each variable, as in a regression on them.
    - `holdfast.models.AdditiveModel`: a set changes its coefficients.

    The model itself is asked afterwards, and compared with what was read.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from holdfast.models import AdditiveModel
    >>> step, classifier = split_additive(AdditiveModel(StandardScaler(), [1.0, 2.0], 3.0))
    >>> step, classifier.coef_, classifier.intercept_
    (StandardScaler(), array([1., 2.]), 3.0)
    """
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(model).__mro__}
    if isinstance(model, AdditiveModel):
        return model.step, model.classifier
    if ("optbinning", "Scorecard") in kinds:
        return split_scorecard(model, where)
    if ("interpret", "ExplainableBoostingClassifier") in kinds:
        found = split_boosting(model, where)
    elif ("pygam", "LogisticGAM") in kinds:
        found = split_gam(model, where)
    else:
        return None
    return found.step, found.classifier
