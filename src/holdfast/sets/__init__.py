"""Sets of models, made from a fitted model and its data, or from other models.

Examples
--------
>>> import numpy as np
>>> from sklearn.linear_model import LogisticRegression
>>> import holdfast
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(300, 2))
>>> model = LogisticRegression().fit(X, X @ [1.0, -1.0] + rng.normal(size=300) > 0)
>>> holdfast.sets.fisher(model, X, radius=2.0)
Ellipsoid(<3 x 3 covariance>, radius=2)
"""

from holdfast.sets.from_data import (
    bootstrap,
    ellipsoid_from_models,
    fisher,
    from_models,
    rashomon,
    sandwich,
)

__all__ = ["bootstrap", "ellipsoid_from_models", "fisher", "from_models", "rashomon", "sandwich"]
