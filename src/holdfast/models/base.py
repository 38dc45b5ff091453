"""What every method sees of a model: a score whose positive side is the favourable class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from holdfast.machinery.numbers import Floats, read_floats, whole_rows
from holdfast.machinery.numerals import least_typed
from holdfast.models.encoding.reading import plain
from holdfast.models.origin import Origin, Said, agreement
from holdfast.problem.goal import Goal, check_guarantee
from holdfast.problem.losses import LOSSES, Loss, get_loss
from holdfast.problem.points import Points

_EVEN = float(np.nextafter(0.0, 1.0))  # the least score above an even chance


class Model:
    """A classifier of two classes, as a score: the log-odds of the favourable class.

    Attributes
    ----------
    kind : str
        ``"linear"``, ``"network"`` or ``"black box"``: what methods may ask of it.
    loss : str
        The loss of the score that the model was fitted with, by its name in
        `holdfast.problem.losses`; empty where that is none of ours.
    feature_names : list or None
        The columns that the classifier was fitted on, where it knows them.
    origin : Origin or None
        The fitted object that it was read out of. Recourse is found behind its encoders.
    cutoff : float
        The model accepts from this score on.
    """

    kind: ClassVar[str]
    loss: str = "logistic"
    feature_names: list[Any] | None = None
    origin: Origin | None = None
    cutoff: float = 0.0

    def score(self, X: Floats) -> Floats:
        """Score of each (encoded) point."""
        raise NotImplementedError

    def size(self, X: Floats) -> Floats:
        """How large the terms of each score are: its rounding is relative to them."""
        return np.abs(self.score(X))

    @property
    def knows_scores(self) -> bool:
        """Whether its score is the classifier's own, not one made from a probability."""
        return True

    @property
    def has_threshold(self) -> bool:
        """Whether its cutoff was set, and is not the even chance of any classifier."""
        return abs(self.cutoff) > _EVEN

    def encode(self, X: Any) -> Any:
        """Bring raw points to the space in which recourse is found.

        Columns of a data frame are put into the order that the classifier knows. What comes out
        of a pipeline is a data frame with the names that its encoders give.
        """
        raw = self.in_order(X)
        if self.origin is not None and self.origin.steps:
            return self.origin.encode(raw)
        return raw

    def in_order(self, X: Any) -> Any:
        """Put the columns of a data frame into the order that the model knows."""
        names = self.feature_names
        encoders = [] if self.origin is None else self.origin.steps
        if encoders:
            names = list(getattr(encoders[0][1], "feature_names_in_", [])) or None
        if names is None or not hasattr(X, "columns") or X.columns.tolist() == names:
            return X
        missing = [name for name in names if name not in X.columns]
        # encoders take what they know from a larger table
        known = [*names, self._constant]
        extra = [name for name in X.columns if name not in known and not encoders]
        if missing or extra:
            raise ValueError(
                f"the columns are not those of the model: missing {missing}, unknown {extra}"
            )
        return X[names]

    @property
    def _constant(self) -> str | None:
        """The name of the column of ones, where the model has one, which people need not have."""
        return None if self.origin is None else getattr(self.origin.last, "constant", None)

    def choose_loss(self, said: str | None) -> Loss:
        """Return the loss by which recourse is judged: the one said, or that of the fit."""
        name = type(self).__name__ if self.origin is None else self.origin.name
        calibrator = None if self.origin is None else self.origin.calibrator
        if calibrator is not None:
            if said is not None:
                raise ValueError(
                    f"loss = {said!r}: the probabilities are those of the {calibrator.method} "
                    f"calibrator around {name}, whatever its loss; leave out loss"
                )
            return get_loss(self.loss or "logistic").calibrated(calibrator)
        whole = None if self.origin is None else self.origin.whole
        silent = whole is not None and not hasattr(whole, "predict_proba")
        if said is None and not self.loss:
            fit = [name for name, loss in LOSSES.items() if not (silent and loss.link)]
            raise ValueError(
                f"{name} was fitted with a loss that Holdfast does not know; say which loss to "
                f"judge recourse by, loss = one of {', '.join(fit)}, or fit a LogisticRegression"
            )
        loss = get_loss(self.loss if said is None else said)
        if loss.link is None and whole is not None and not hasattr(whole, "decision_function"):
            raise ValueError(
                f"loss = {loss.name!r} treats the score as a margin, but {name} has no "
                "decision_function to compare it with"
            )
        if silent and loss.link is not None:
            margins = " or ".join(name for name, loss in LOSSES.items() if loss.link is None)
            raise ValueError(
                f"loss = {loss.name!r} turns scores into probabilities, but {name} gives none "
                f"itself: use loss = {margins}, or fit a model that has predict_proba"
            )
        return loss

    def goal(
        self,
        loss: Loss,
        *,
        cost_weight: float | None = None,
        guarantee: float | None = None,
    ) -> Goal:
        """Return what is asked of it, and refuse a guarantee that it would itself refuse."""
        self.check_guarantee(guarantee, loss)
        return self._cut(Goal.of(loss, cost_weight=cost_weight, guarantee=guarantee))

    def goal_of_points(self, loss: Loss, scale: Points, guarantee_points: float) -> Goal:
        """Return what is asked of it in points of a scorecard, and refuse what it would refuse."""
        goal = Goal.of_score(loss, scale.score(loss, guarantee_points))
        enough = self.cutoff - 1e-12 * (1.0 + abs(self.cutoff))
        if self.has_threshold and goal.amount < enough:
            least = float(scale.at(loss, self.cutoff))
            typed = least_typed(least, lambda points: scale.score(loss, points) >= enough)
            raise ValueError(
                f"guarantee_points = {guarantee_points!r} is below the model's own threshold of "
                f"{typed} points, so people would still be refused; ask for at least that"
            )
        return self._cut(goal)

    def _cut(self, goal: Goal) -> Goal:
        """Return what is asked of a model that says yes from its own cutoff on.

        A guarantee of what is a hair below that asks for a yes all the same: a probability that a
        threshold was read from, or an even chance where the model says no to a tie.
        """
        goal = replace(goal, cutoff=self.cutoff)
        if not goal.is_guarantee or goal.amount >= self.cutoff:
            return goal
        is_hair = self.has_threshold or goal.amount == goal.loss.score(0.5)
        return replace(goal, amount=self.cutoff) if is_hair else goal

    def check_guarantee(self, guarantee: float | None, loss: Loss) -> None:
        """Refuse a guarantee that the model's own threshold would still refuse."""
        if guarantee is None or not self.has_threshold:
            return
        if loss.link is None:
            raise ValueError(
                f"the model decides by a threshold of {self.cutoff:g} on a score that is not a "
                "probability and has no loss of its own, so a guarantee would have no meaning"
            )
        least = float(loss.probability(self.cutoff))
        enough = least * (1.0 - 1e-12)
        if check_guarantee(guarantee) < enough:
            typed = least_typed(least, lambda number: enough <= number < 1.0)
            raise ValueError(
                f"guarantee = {guarantee!r} is below the model's own threshold, a probability of "
                f"{typed}, so people would still be refused; ask for at least that"
            )

    def compare_people(self, X: Any, encoded: Any, loss: Loss) -> NDArray[np.bool_] | None:
        """Compare what was read with what the whole model says of people, given in raw columns.

        Rows that are not finite once encoded are passed over. A difference is an error. Returned is
        which of the others it accepts; None where it does not say.
        """
        points = np.asarray(encoded, dtype=np.float64)
        rows = np.flatnonzero(whole_rows(points))
        if self.origin is None or not rows.size:
            return None
        X = self.in_order(X)
        tolerance = agreement(X, encoded)
        labels = X.index[rows] if hasattr(X, "iloc") else rows
        if rows.size < len(points):
            X = X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]
            points = points[rows]
        said = self.origin.ask_whole(X)
        self._compare(said, points, labels, loss, tolerance)
        return said.accepted

    def compare_made(self, made: Any, points: Floats, labels: Any, loss: Loss) -> None:
        """Compare as `compare_people` does, by what the model's own encoders have made of people.

        All are finite, and the model does nothing but hand on what it has made (`Origin.hands_on`).
        """
        if self.origin is not None:
            said = self.origin.ask_made(made)
            self._compare(said, points, labels, loss, agreement(points))

    def compare_points(self, encoded: Any, labels: Any, loss: Loss) -> NDArray[np.bool_] | None:
        """Compare what was read with what the classifier says of encoded points.

        Where nothing is encoded, the whole model is asked. Returned is whom it accepts; None where
        it does not say.
        """
        if self.origin is None or not len(encoded):
            return None
        asked, whole = encoded, not self.origin.steps  # the whole reads what is not encoded
        if whole and self.feature_names is not None:
            import pandas as pd

            asked = pd.DataFrame(encoded, columns=self.feature_names)
        said = self.origin.ask_whole(asked) if whole else self.origin.ask_last(asked)
        self._compare(said, encoded, labels, loss, agreement(encoded))
        return said.accepted

    def _compare(self, said: Said, X: Floats, labels: Any, loss: Loss, tolerance: float) -> None:
        ours = self.score(X)
        near = tolerance * (1.0 + self.size(X))
        pairs: list[tuple[str, Any, Any, Any]] = []
        if said.score is not None and self.knows_scores:
            pairs.append(("a score of", said.score, ours, near))
        if said.probability is not None and loss.link is not None:
            # a steep calibrator makes much of a hair; one of single precision may fall by rounding
            steep = np.abs(loss.probability(ours + near) - loss.probability(ours - near))
            pairs.append(
                ("a probability of", said.probability, loss.probability(ours), near + steep)
            )
        if said.accepted is not None:
            # right at the cutoff a hair decides, and any answer will do
            clear = np.abs(ours - self.cutoff) > near
            decided = np.where(clear, ours >= self.cutoff, said.accepted)
            pairs.append(("the decision", said.accepted, decided, 0.5))
        for what, theirs, read, room in pairs:
            wrong = ~(np.abs(np.subtract(theirs, read, dtype=np.float64)) <= room)
            if wrong.any():
                i = int(np.flatnonzero(wrong)[0])
                self._misread(what, theirs[i], read[i], labels[i], X[i : i + 1], loss)

    def _misread(
        self, what: str, theirs: Any, ours: Any, label: Any, point: Floats, loss: Loss
    ) -> None:
        assert self.origin is not None
        origin = self.origin
        culprit = f"{type(origin.whole).__name__}, which does more than its steps do"
        own = origin.ask_last(point)
        near = 1e-4 * (1.0 + self.size(point))
        pairs = [
            (own.score if self.knows_scores else None, self.score(point)),
            (own.probability if loss.link else None, loss.probability(self.score(point))),
            (own.accepted, reaches_cutoff(self, self.score(point))),
        ]
        far = any(
            bool((np.abs(np.subtract(a, b, dtype=np.float64)) > near).any())
            for a, b in pairs
            if a is not None
        )
        if far or origin.whole is origin.last:
            culprit = f"{origin.where}: {origin.name}" if origin.where else origin.name
        shown = [
            ("yes" if v else "no") if isinstance(v, (bool, np.bool_)) else f"{float(v):.6g}"
            for v in (theirs, ours)
        ]
        raise ValueError(
            f"row {plain(label)!r}: the model itself gives {what} {shown[0]}, but the version "
            f"read from it gives {shown[1]}. Not accounted for: {culprit}. Holdfast gives no "
            "advice for a model that it misreads; holdfast.find_recourse takes any model as "
            "holdfast.models.BlackBox(lambda X: model.predict_proba(X)[:, k])"
        )


@dataclass(frozen=True, eq=False)
class LinearModel(Model):
    """A linear score: coefficients and an intercept.

    Examples
    --------
    >>> from holdfast.models import LinearModel
    >>> LinearModel([1.0, -0.5], -1.0).score([[2.0, 1.0]])
    array([0.5])
    """

    coef: Any
    intercept: Any = 0.0
    loss: str = "logistic"
    feature_names: list[Any] | None = None
    origin: Origin | None = None
    cutoff: float = 0.0
    kind = "linear"

    def __post_init__(self) -> None:
        if self.feature_names is None and hasattr(self.coef, "index") and hasattr(self.coef, "loc"):
            object.__setattr__(self, "feature_names", list(self.coef.index))  # a pandas series
        coef, intercept = (read_floats(v, getattr(self, v)) for v in ("coef", "intercept"))
        if coef.ndim == 2 and len(coef) == 1:  # as scikit-learn has it
            coef = coef[0]
        if coef.ndim != 1 or intercept.size != 1:
            raise ValueError(
                f"coef has shape {coef.shape} and intercept {intercept.shape}; expected (d,) and "
                "one number"
            )
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise ValueError("coef and intercept must be finite numbers")
        coef.flags.writeable = False
        object.__setattr__(self, "coef", coef)
        object.__setattr__(self, "intercept", float(intercept.reshape(-1)[0]))
        if self.feature_names is not None:
            object.__setattr__(self, "feature_names", list(self.feature_names))

    def score(self, X: ArrayLike) -> Floats:
        """Score of each (encoded) point."""
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.coef + self.intercept)

    def size(self, X: ArrayLike) -> Floats:
        """How large the terms of each score are."""
        points, size = np.asarray(X, dtype=np.float64), np.abs(self.coef)
        # a few rows at a time: to fetch memory takes longer than to compute
        blocks = range(0, max(len(points), 1), _ROWS_AT_ONCE)
        terms = [np.abs(points[k : k + _ROWS_AT_ONCE]) @ size for k in blocks]
        return np.asarray(np.concatenate(terms) + abs(self.intercept))


_ROWS_AT_ONCE = 256

# A probability of exactly 0 or 1 has no log-odds; a forest gives many.
_LEAST_PROBABILITY = 1e-12


@dataclass(frozen=True, eq=False)
class BlackBox(Model):
    """Any function from points to the probability of the favourable class, or to its score.

    Probabilities are kept within 1e-12 of 0 and 1, so that their log-odds are finite.

    Examples
    --------
    >>> import numpy as np
    >>> from holdfast.models import BlackBox
    >>> box = BlackBox(lambda points: np.full(len(points), 0.5))
    >>> box.score(np.zeros((2, 3)))
    array([0., 0.])
    """

    function: Callable[[Any], ArrayLike]
    output: str = "probability"
    loss: str = "logistic"
    feature_names: list[Any] | None = None
    origin: Origin | None = None
    cutoff: float = 0.0
    kind = "black box"

    def __post_init__(self) -> None:
        if self.output not in ("probability", "score"):
            raise ValueError(f"output = {self.output!r} is not allowed: 'probability' or 'score'")

    @property
    def knows_scores(self) -> bool:
        """Whether its score is the classifier's own, not one made from a probability."""
        return self.output == "score"

    def score(self, X: ArrayLike) -> Floats:
        """Score of each (encoded) point."""
        array = np.asarray(X, dtype=np.float64)
        given: Any = array
        if self.feature_names is not None:  # it was fitted on a data frame, and asks for one
            import pandas as pd

            given = pd.DataFrame(array, columns=self.feature_names)
        try:
            said = np.asarray(self.function(given), dtype=np.float64)
        except ValueError as error:
            why = " ".join(str(error).split())
            raise ValueError(
                f"the model cannot be evaluated at some points around those given: {why}. A step "
                "may be defined for some values only (a logarithm, for example): give bounds, or "
                "let it clip its values"
            ) from None
        if said.shape != array.shape[:1]:
            raise ValueError(f"the model gave an array of shape {said.shape} for {array.shape}")
        if self.output == "score":
            if not np.isfinite(said).all():
                raise ValueError("the model gave scores that are not finite")
            return said
        if not ((said >= 0.0) & (said <= 1.0)).all():
            raise ValueError("the model gave probabilities outside [0, 1]")
        return np.asarray(
            special.logit(np.clip(said, _LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY))
        )


def reaches_cutoff(model: Model, scores: Floats) -> NDArray[np.bool_]:
    """Say which scores are enough; NaN is not one of them.

    Where rounding decides, the model itself may say otherwise: `Model.compare_people`,
    `Model.compare_points` and `Encoding.accepts` ask it.
    """
    return np.asarray(scores >= model.cutoff)


def read_encoded(name: str, model: Model, table: Any, *, usable_only: bool = False) -> Any:
    """Encode a table, or say which argument cannot be encoded, and why.

    With `usable_only` a row that cannot be encoded (a level never seen, text for a number) becomes
    missing, and does not affect the others.
    """
    try:
        return model.encode(table)
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        encoded = _usable_rows(model, table) if usable_only and hasattr(table, "iloc") else None
        if encoded is not None:
            return encoded
        why = " ".join(str(error).split())
        raise ValueError(f"{name} cannot be encoded: {why}") from None


def _usable_rows(model: Model, table: Any) -> Any:
    """Encode the rows that can be, found by halving; None where there are none."""
    import pandas as pd

    parts: list[Any] = []
    rows: list[int] = []

    def encode(begin: int, end: int) -> None:
        try:
            parts.append(model.encode(table.iloc[begin:end]))
            rows.extend(range(begin, end))
        except (TypeError, ValueError, AttributeError, IndexError):
            if end - begin > 1:
                middle = (begin + end) // 2
                encode(begin, middle)
                encode(middle, end)

    encode(0, len(table))
    if not parts:
        return None
    found = pd.concat(parts).set_axis(rows, axis=0)
    return found.reindex(range(len(table))).set_axis(table.index, axis=0)
