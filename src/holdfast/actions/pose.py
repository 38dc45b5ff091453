"""From an action set in raw units to a discrete problem in encoded columns.

Here the problem is put together. Each rule of an action set goes into it where its kind is treated:

- `ranges`: where a number may go (`lower`, `max_increase`, `direction`, ...) and its `step`;
- `cells` and `reach`: the same where the model bends or bins the number, and `between` where such
  a number has no step;
- `switches`: which level of a category may become which, and its cost;
- `joint`: derived features, together with their parents, and all links among these;
- `arrays`: the costs of numbers, and all other links (`AtMost`, `Follows`, `Linear`);
- `max_changes` is a limit of the problem itself (`discrete.problem`), which the search keeps to
  (`discrete.domains.settle_changes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.actions.action_set import ActionSet
from holdfast.actions.arrays import Arrays, column_names, encode_links
from holdfast.actions.between import relaxed_problem
from holdfast.actions.category import CategoryFeature
from holdfast.actions.cells import find_cells, too_wide
from holdfast.actions.derived import bundles_of
from holdfast.actions.fitness import check_fit, read_action_levels, read_derived
from holdfast.actions.joint import make_joint
from holdfast.actions.number import NumberFeature
from holdfast.actions.posed import Posed
from holdfast.discrete import DiscreteProblem
from holdfast.machinery.numbers import Floats, whole_rows
from holdfast.models.encoding import Curve, Encoded, Encoding, Number
from holdfast.models.encoding.encoding import RefusedByStepError
from holdfast.models.encoding.reading import as_table
from holdfast.problem.losses import Loss
from holdfast.problem.model_set import ModelSet, check_models
from holdfast.problem.problem import RecourseProblem, frozen

if TYPE_CHECKING:
    import pandas as pd

_MOST_NAMES = 8  # in an error


def pose_problem(
    X: Any,
    encoding: Encoding,
    actions: ActionSet,
    *,
    robust_to: ModelSet,
    loss: str | Loss | None = None,
    coef: ArrayLike | None = None,
    intercept: ArrayLike = 0.0,
) -> Posed:
    """State what some people can do as a discrete problem in encoded columns.

    A person with text for a number, with a level that the action set has never seen, or with a
    missing value or a level that the pipeline cannot encode is refused with a reason; the others
    go on.

    Parameters
    ----------
    X : DataFrame or (n, d) array
        The people, in raw units.
    encoding : Encoding
    actions : ActionSet
        It must have a feature for each column that the pipeline uses.
    robust_to : ModelSet
        The models that may come, in encoded columns.
    loss : str or Loss, optional
        By default the one that the classifier was fitted with.
    coef, intercept : optional
        Linear scores in encoded columns, one for each applicant or one for all, in place of the
        classifier's own; needed when that is not linear.

    Examples
    --------
    >>> import pandas as pd
    >>> from holdfast import NormBall
    >>> from holdfast.actions import ActionSet
    >>> table = pd.DataFrame({"x0": [1, 5, 9]})
    >>> actions = ActionSet.from_data(table)
    >>> encoding = Encoding.of(([1.0], -4.0))
    >>> people = pd.DataFrame({"x0": [2, None]})
    >>> posed = pose_problem(people, encoding, actions, robust_to=NormBall(1, 0.1))
    >>> posed.refused
    [(1, 'x0 is missing')]
    >>> posed.problem.step, posed.problem.base.upper.round(3)
    (array([[1.]]), array([[9.]]))
    """
    actions.validate()
    check_fit(encoding, actions)
    frame = encoding.with_floats(as_table(X))
    scores = _scores(encoding, coef, intercept)
    return pose_people(frame, encoding, actions, robust_to, loss, scores)[0]


def pose_people(
    frame: pd.DataFrame,
    encoding: Encoding,
    actions: ActionSet,
    robust_to: ModelSet,
    loss: str | Loss | None,
    scores: tuple[Floats, Floats],
) -> tuple[Posed, Encoded]:
    """Return what `pose_problem` does, of an action set that has been found to fit the pipeline.

    Beside it stands what the pipeline's encoders made of the people.
    """
    bundles = bundles_of(actions.derived, encoding.features)
    joined = {name for bundle in bundles for name in bundle.names}
    encoding = encoding.bending(_levels_that_may_be_missing(encoding, actions) - joined)
    bent, coded = _curves(encoding, actions, joined)
    people, positions, refused, encoded = _usable(frame, encoding, actions, bent)
    cells = find_cells(encoding, bent, encoded) if len(people) else {}
    codes = encoding.ask(coded, encoded)
    joints = [make_joint(bundle, encoding, actions, encoded) for bundle in bundles]
    points = frozen(encoded.points)
    arrays = Arrays(encoding, actions, encoded.reading, points, cells, codes, joints)
    arrays.fill()
    _check_size(robust_to, encoding)
    coef, intercept = _own(scores, positions, len(frame))
    is_shared = np.ndim(coef) == 1 and np.ndim(intercept) == 0
    problem = RecourseProblem.build(
        arrays.points[:1] if is_shared else arrays.points,
        coef,
        intercept,
        robust_to=robust_to,
        feature_costs=arrays.costs,
        loss=encoding.model.loss if loss is None else loss,
    )
    # what was made here needs no reading: only what the model and the action set say
    problem = replace(
        problem,
        X=frozen(arrays.points),
        lower=frozen(arrays.lower),
        upper=frozen(arrays.upper),
        feature_names=column_names(encoding),
        index=people.index,
    )
    discrete = DiscreteProblem(
        base=problem,
        step=arrays.step,
        anchor=arrays.anchor,
        groups=arrays.groups,
        current=arrays.all_current(),
        level_costs=arrays.level_costs,
        max_changes=actions.max_changes,
        fixed_costs=arrays.fixed_costs if arrays.fixed_costs.any() else None,
        level_changes=arrays.level_changes(),
    )
    fixed = {name: why for name, why in encoding.unused.items() if name in actions}
    unseen = "the pipeline was not fitted on it"
    fixed |= {name: unseen for name in actions if name not in encoding.names}
    fixed = {name: why for name, why in fixed.items() if name not in joined}
    posed = Posed(
        problem=discrete,
        relaxed=relaxed_problem(discrete, arrays),
        links=encode_links(arrays),
        people=people,
        positions=positions,
        refused=refused,
        fixed=fixed,
        levels=arrays.levels,
        ranges=arrays.ranges,
        cells=cells,
        encoding=encoding,
        actions=actions,
    )
    return posed, encoded


class _Usable(NamedTuple):
    """Those who can be used, and why others cannot, while they are being read.

    People leave all of these at once; what is left of the first three goes into `Posed`.
    """

    people: pd.DataFrame
    positions: NDArray[np.int64]  # where they stand among all
    refused: list[tuple[int, str]]
    encoded: Encoded

    def without(self, reasons: dict[int, str]) -> _Usable:
        """Leave out some of the people, by position among them, each for its reason."""
        if not reasons:
            return self
        kept = np.ones(len(self.people), dtype=bool)
        kept[list(reasons)] = False
        refused = [*self.refused, *((int(self.positions[k]), why) for k, why in reasons.items())]
        encoded = self.encoded.take(kept)
        return _Usable(self.people.loc[kept], self.positions[kept], sorted(refused), encoded)


def _usable(
    frame: pd.DataFrame, encoding: Encoding, actions: ActionSet, bent: dict[str, NumberFeature]
) -> _Usable:
    """Read and encode people; whoever cannot be is refused with a reason."""
    reading = encoding.read(frame)
    read_action_levels(reading, frame, encoding, actions)
    read_derived(reading, frame, encoding, actions)
    refused = reading.refused()
    positions = np.arange(len(frame))
    if refused:
        positions = np.setdiff1d(positions, [row for row, _ in refused])
    # people are kept, and what becomes of the table later must not reach them
    people = frame.iloc[positions] if refused else frame.copy()
    reading = reading.take(positions) if refused else reading
    try:
        encoded = encoding.encode_reading(people, reading)
    except RefusedByStepError:
        lost = encoding.refusals(people, reading)
        refused = sorted([*refused, *((int(positions[k]), why) for k, why in lost.items())])
        left = np.setdiff1d(np.arange(len(people)), list(lost))
        people, positions, reading = people.iloc[left], positions[left], reading.take(left)
        encoded = encoding.encode_reading(people, reading)
    usable = _Usable(people, positions, refused, encoded)
    usable = usable.without(dict(_not_finite(encoding, encoded)))
    for name, feature in bent.items():
        curve = encoding[name]
        assert isinstance(curve, Curve)
        if curve.is_flat:
            continue
        own = usable.encoded.reading.numbers[name]
        usable = usable.without(too_wide(feature, curve, own))
    return usable


def _not_finite(encoding: Encoding, encoded: Encoded) -> Iterator[tuple[int, str]]:
    """Say of people whom the pipeline encodes as no finite numbers what it cannot encode."""
    for k in np.flatnonzero(~whole_rows(encoded.points)).tolist():
        wrong = np.flatnonzero(~np.isfinite(encoded.points[k]))
        for name, feature in encoding.features.items():
            if isinstance(feature, Curve) and np.isin(wrong, feature.columns).any():
                own = np.intersect1d(wrong, feature.columns)
                value, code = encoded.reading.numbers[name][k], encoded.points[k, own[0]]
                said = f"{name} = {value:g}: the model encodes it as {code:g}"
                yield k, said if np.isfinite(value) else f"{name} is missing"
                break
        else:
            yield k, "the model encodes it as a value that is not finite"


def _levels_that_may_be_missing(encoding: Encoding, actions: ActionSet) -> frozenset[str]:
    """Name the numbers of the pipeline that are categories for people, where it fills gaps.

    What it makes of a gap is then one more level, as of any curve.
    """
    return frozenset(
        name
        for name, raw_feature in encoding.features.items()
        if isinstance(raw_feature, Number)
        and raw_feature.takes_missing
        and isinstance(actions[name], CategoryFeature)
        and not actions[name].stays
    )


def _curves(
    encoding: Encoding, actions: ActionSet, joined: set[str]
) -> tuple[dict[str, NumberFeature], dict[str, Floats]]:
    """Return the curves that may change: numbers, and the levels of those that are categories."""
    bent: dict[str, NumberFeature] = {}
    coded: dict[str, Floats] = {}
    for name, raw_feature in encoding.features.items():
        feature = actions[name]
        if not isinstance(raw_feature, Curve) or feature.stays or name in joined:
            continue
        if isinstance(feature, NumberFeature):
            bent[name] = feature
        else:
            coded[name] = np.array(
                [*feature.levels, *[np.nan] * raw_feature.takes_missing], np.float64
            )
    return bent, coded


def _check_size(robust_to: ModelSet, encoding: Encoding) -> None:
    """Refuse a set of models that has another number of columns than the pipeline makes."""
    check_models(robust_to)
    try:
        robust_to.feature_scale(encoding.n_columns)
    except ValueError as error:
        names = column_names(encoding)
        rest = ", ..." if len(names) > _MOST_NAMES else ""
        raise ValueError(
            f"{error}; the features are the {len(names)} encoded columns: "
            f"{', '.join(names[:_MOST_NAMES])}{rest}"
        ) from None


def _scores(
    encoding: Encoding, coef: ArrayLike | None, intercept: ArrayLike
) -> tuple[Floats, Floats]:
    """Return the linear scores to be used, the classifier's own unless others are given."""
    if coef is not None:
        return np.asarray(coef, dtype=np.float64), np.asarray(intercept, dtype=np.float64)
    return own_scores(encoding)


def own_scores(encoding: Encoding) -> tuple[Floats, Floats]:
    """Return coefficients and intercept of a linear classifier."""
    if encoding.model.kind != "linear":
        raise ValueError(
            f"the classifier is a {encoding.model.kind}, not linear; give coef and intercept "
            "of a linear score around each applicant"
        )
    return encoding.model.coef, encoding.model.intercept  # type: ignore[attr-defined]


def _own(
    scores: tuple[Floats, Floats], positions: NDArray[np.int64], n: int
) -> tuple[Floats, Floats]:
    """Return the scores of those who can be used, where each of n people has one of their own."""
    coef, intercept = scores
    per_row = np.ndim(coef) == 2 and len(coef) == n
    return (
        coef[positions] if per_row else coef,
        intercept[positions] if np.shape(intercept) == (n,) else intercept,
    )
