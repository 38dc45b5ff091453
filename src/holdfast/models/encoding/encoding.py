"""The encoding of a fitted pipeline: from raw columns to what its classifier reads, and back."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.machinery.settings import closest
from holdfast.models.encoding.array_encoders import ArrayEncoders
from holdfast.models.encoding.asking import ANY_NUMBER
from holdfast.models.encoding.columns import Affine, EncodedColumn
from holdfast.models.encoding.features import Category, Number, RawFeature, gather
from holdfast.models.encoding.given import Given, with_numpy_numbers
from holdfast.models.encoding.markers import settle_markers
from holdfast.models.encoding.reading import Reading, as_table, floats_for_decimals
from holdfast.models.encoding.steps import raw_names, walk
from holdfast.models.encoding.unwrap import AGREEMENT, unwrap

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.models import Model
    from holdfast.models.origin import Said
    from holdfast.problem.losses import Loss


_MOST_ENTRIES = 20_000_000  # encoded at once, when the pipeline is asked
_MOST_TRIED = 20  # rows of people, until the pipeline takes one


class RefusedByStepError(ValueError):
    """A step of the pipeline refuses rows that it was given."""


class Encoded(NamedTuple):
    """Rows that the encoders of a pipeline have been asked about; not to be written to."""

    reading: Reading
    given: Given
    made: Any  # of them, as the last encoder gave it
    points: Floats  # the same as numbers, (n, d)

    def take(self, which: NDArray[np.bool_]) -> Encoded:
        """Return some of the rows."""
        if which.all():
            return self
        given, made = self.given.take(which), self.made
        made = made[which] if made is not None else None
        return Encoded(self.reading.take(which), given, made, self.points[which])


@dataclass(frozen=True, eq=False)
class Encoding:
    """A fitted pipeline taken apart; make it with `Encoding.of`.

    Attributes
    ----------
    names : list of str
        The raw columns that the pipeline was fitted on; x0, x1, ... if these had no names.
    features : dict
        For each raw column that the classifier feels, its `Number`, `Curve` or `Category`.
    unused : dict
        For each other raw column, why changing it changes nothing.
    model : Model
        The classifier behind the encoders.
    n_columns : int
        How many columns the classifier reads.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
    >>> table = pd.DataFrame({"age": [20, 70, 45], "home": ["own", "rent", "own"], "id": range(3)})
    >>> columns = make_column_transformer(
    ...     (MinMaxScaler(), ["age"]), (OneHotEncoder(), ["home"]), ("drop", ["id"])
    ... )
    >>> pipeline = make_pipeline(columns, LogisticRegression()).fit(table, [False, True, True])
    >>> encoding = Encoding.of(pipeline)
    >>> encoding["age"]
    Number(name='age', column=0, shift=-0.4, scale=0.02, fill=None, indicators=())
    >>> encoding["home"].levels, encoding["home"].columns
    (('own', 'rent'), array([1, 2]))
    >>> encoding.unused
    {'id': 'the classifier reads no column made from it'}
    >>> encoding.encode(table)
    array([[0. , 1. , 0. ],
           [1. , 0. , 1. ],
           [0.5, 1. , 0. ]])
    """

    names: list[str]
    features: dict[str, RawFeature]
    unused: dict[str, str]
    model: Model
    n_columns: int
    _steps: list[Any] = field(repr=False)
    _named: bool = field(repr=False)
    _encoders: ArrayEncoders | None = field(repr=False)  # of the only step; None: ask the step

    @classmethod
    def of(cls, pipeline: Any, *, favorable_class: Any = None, people: Any = None) -> Encoding:
        """Take a fitted pipeline apart, or a classifier alone; what is not understood is an error.

        Parameters
        ----------
        pipeline : object
            A fitted scikit-learn pipeline that ends in a classifier, or a classifier, or a pair
            ``(coef, intercept)`` of numbers.
        favorable_class, people : optional
            See `holdfast.models.as_model`.
        """
        from holdfast.models import as_model  # late: models are read with the steps of this room

        found = unwrap(pipeline)
        steps, where = found.steps, found.where
        model = as_model(pipeline, favorable_class=favorable_class, people=people, with_curves=True)
        coef = getattr(model, "coef", None)
        if coef is None and model.origin is None:
            raise ValueError(
                f"a {model.kind} that is not a fitted classifier or pipeline has no columns that "
                "can be read; holdfast.find_recourse takes any model"
            )
        names, named = raw_names(steps[0] if steps else (where, found.last), coef)
        if not steps and model.feature_names is not None:
            names, named = [str(name) for name in model.feature_names], True
        if steps and model.origin is not None and len(model.origin.steps) == len(steps):
            # all of it has been read already
            parts, count = model.origin.features, model.origin.n_columns
        else:
            columns: list[EncodedColumn] = [
                Affine(j, "the table itself") for j in range(len(names))
            ]
            for label, step in steps:
                columns = walk(step, columns, label)
            parts, count = gather(columns, names), len(columns)
        if coef is not None and len(coef) != count:
            raise ValueError(f"the classifier reads {len(coef)} columns, of {count} encoded")
        features = {feature.name: feature for feature in parts}
        silent = "the classifier reads no column made from it"
        unused = {name: silent for name in names if name not in features}
        transformers = [step for _, step in steps]
        quick = None
        if named and len(transformers) == 1:
            quick = ArrayEncoders.of(transformers[0], names, features, count)
        return cls(names, features, unused, model, count, transformers, named, quick)

    def bending(self, names: frozenset[str]) -> Encoding:
        """Return the encoding with some numbers as curves, of which all columns move together.

        A number and the indicator that tells whether it is missing do, where it can be given.
        """
        features = dict(self.features)
        for name in names:
            number = features[name]
            assert isinstance(number, Number)
            features[name] = number.as_curve()
        return replace(self, features=features) if names else self

    @property
    def is_named(self) -> bool:
        """Whether the pipeline knows its columns by name."""
        return self._named

    def __getitem__(self, name: str) -> RawFeature:
        """Return the number, curve or category of a raw column."""
        if name in self.unused:
            raise ValueError(f"column {name!r} is not used: {self.unused[name]}")
        if name not in self.features:
            raise ValueError(f"column {name!r} is not known; available: {', '.join(self.names)}")
        return self.features[name]

    def read(self, table: Any) -> Reading:
        """Read the columns that are used; each row that cannot be encoded gets its reason."""
        return self._read(self._check(table))

    def _read(self, frame: pd.DataFrame) -> Reading:
        reading = Reading()
        for name, feature in self.features.items():
            if isinstance(feature, Category):
                reading.read_levels(
                    name,
                    frame[name],
                    feature.levels,
                    "the encoder",
                    takes_missing=feature.takes_missing,
                    takes_unknown=feature.unknown is not None,
                )
            else:
                reading.read_number(name, frame[name], takes_missing=feature.takes_missing)
        for feature in self.features.values():
            if isinstance(feature, Category) and feature.takes_missing:
                ask = functools.partial(self._ask_of_one, feature, frame, reading)
                settle_markers(feature, frame[feature.name], reading, ask)
        return reading

    def _ask_of_one(
        self, feature: Category, frame: pd.DataFrame, reading: Reading, row: int
    ) -> Floats | None:
        """Ask how the pipeline encodes the very value of a category in a row; None: not at all.

        An error is raised where the pipeline takes no row to put the value into.
        """
        given = self._taken_row(feature, frame, reading, row)
        value = frame[feature.name].iloc[[row]].set_axis(given.index)
        # Of its own type first, for NA means one thing among booleans and another among objects.
        # Then as an object: a NaN that stands alone is a number, and one beside texts is none.
        for typed in (value, value.astype(object)):
            with contextlib.suppress(RefusedByStepError):
                made = self._transform(self._with(given.table, feature.name, typed))[1]
                codes: Floats = made[0, feature.columns]
                return codes
        return None

    def _taken_row(
        self, feature: Category, frame: pd.DataFrame, reading: Reading, row: int
    ) -> Given:
        """Return a row that the pipeline takes, with a level of a category that it knows.

        What else is in the table should not matter. So numbers and levels that most pipelines take
        are tried before those of people.
        """
        usable = [k for k in (row, *range(len(frame))) if k not in reading.reasons]
        for k in [None, *usable[:_MOST_TRIED]]:
            one = frame.iloc[[row if k is None else k]]
            read = self._anybody() if k is None else reading.take(np.array([k]))
            read.levels[feature.name] = np.zeros(1, dtype=np.int64)
            given = self._give([one], [read])
            with contextlib.suppress(RefusedByStepError):
                self._transform(given.table)
                return given
        raise RefusedByStepError("the pipeline takes none of the rows")

    def _with(self, table: Any, name: str, column: pd.Series[Any]) -> Any:
        """Return a table, or an array, with another column."""
        if self._named:
            return table.assign(**{name: column})
        array = table.astype(object)
        array[:, self.names.index(name)] = column
        return array

    def _anybody(self) -> Reading:
        """Return the reading of somebody whom most pipelines take."""
        reading = Reading()
        for name, feature in self.features.items():
            if isinstance(feature, Category):
                reading.levels[name] = np.zeros(1, dtype=np.int64)
            else:
                reading.numbers[name] = np.full(1, ANY_NUMBER)
        return reading

    def encode(self, table: Any) -> Floats:
        """Return what the pipeline makes of a table: an (n, d) array.

        The pipeline itself is asked, and its answer compared with the rule that was read from it,
        so that nothing misunderstood goes unnoticed. Missing values and levels that the encoder
        has never seen are taken where the pipeline makes numbers of them; otherwise such rows are
        refused, as is text instead of a number: see `read` for a reason for each row.
        """
        return np.array(self.encode_tables([table])[0].points)

    def encode_tables(self, tables: list[Any]) -> list[Encoded]:
        """Encode tables as `encode` does each, and keep all that came up on the way.

        The pipeline is asked once about the rows of all of them.
        """
        frames = [self._check(table) for table in tables]
        readings = [self._read(frame) for frame in frames]
        for frame, reading in zip(frames, readings, strict=True):
            refused = reading.refused()
            if refused:
                row, reason = refused[0]
                more = f" ({len(refused)} such rows)" if len(refused) > 1 else ""
                raise ValueError(f"row {frame.index[row]!r} cannot be encoded: {reason}{more}")
        return self._encode(frames, readings)

    def encode_reading(self, table: pd.DataFrame, reading: Reading) -> Encoded:
        """Encode rows all of which could be read."""
        return self._encode([self._check(table)], [reading])[0]

    def _encode(self, frames: list[pd.DataFrame], readings: list[Reading]) -> list[Encoded]:
        sizes = [len(frame) for frame in frames]
        if not any(sizes):
            none = np.empty((0, self.n_columns))
            pairs = zip(frames, readings, strict=True)
            return [Encoded(r, self._give([frame], [r]), None, none) for frame, r in pairs]
        given = self._give(frames, readings)
        made, points = self._ask(given)
        encoded = Encoded(Reading.joined(readings), given, made, points)
        self._compare(points, encoded.reading)
        place = np.repeat(np.arange(len(frames)), sizes)
        return [encoded.take(place == k) for k in range(len(frames))]

    def _give(self, frames: list[pd.DataFrame], readings: list[Reading]) -> Given:
        return Given.of(frames, readings, self.names, self.features, is_named=self._named)

    def _ask(self, given: Given) -> tuple[Any, Floats]:
        """Return what `_transform` does; from the encoders apart where that is the same."""
        points = None if self._encoders is None else self._encoders.ask(given)
        if self._encoders is None or points is None:
            return self._transform(given.table)
        if not self._encoders.are_same:
            made, theirs = self._transform(given.table)
            self._encoders.compare(points, made)
            return made, theirs
        return points, points

    def _transform(self, raw: Any) -> tuple[Any, Floats]:
        """Return what the encoders make of raw rows, and the same as numbers."""
        made: Any = raw.copy() if self._steps else raw  # a step may write into what it is given
        try:
            for step in self._steps:
                made = step.transform(made)
        except (ValueError, TypeError) as error:
            raise RefusedByStepError(f"{type(step).__name__}: {error}") from error
        values = made.toarray() if hasattr(made, "toarray") else made
        return made, np.ascontiguousarray(values, dtype=np.float64)

    def refusals(self, table: pd.DataFrame, reading: Reading) -> dict[int, str]:
        """Say which rows, all of which could be read, a step of the pipeline itself refuses."""
        frame, found = self._check(table), dict[int, str]()
        raw = self._give([frame], [reading]).table
        waiting = [np.arange(len(frame))]
        while waiting:
            rows = waiting.pop()
            try:
                self._transform(raw.iloc[rows] if self._named else raw[rows])
            except RefusedByStepError as error:
                if len(rows) == 1:
                    found[int(rows[0])] = " ".join(str(error).split())
                else:
                    waiting += np.array_split(rows, 2)
        return found

    def ask(self, values: dict[str, Floats], like: Encoded) -> dict[str, Floats]:
        """Ask the pipeline what it makes of raw values of some curves: an (m, c) array for each.

        All are asked about at once, in rows that are otherwise `like` the first of some people:
        no column depends on another one. NaN where the pipeline refuses a value.
        """
        import pandas as pd

        most = max((len(some) for some in values.values()), default=0)
        widths = {name: len(self[name].columns) for name in values}
        if not most or not len(like.points):  # nobody is there to be like, nor to need it
            return {name: np.zeros((len(some), widths[name])) for name, some in values.items()}
        same = np.zeros(most, dtype=np.int64)
        raw = like.given.table
        rows = raw.iloc[same].copy() if self._named else raw[same].copy()
        for name, some in values.items():
            padded = np.concatenate([some, np.full(most - len(some), some[0] if len(some) else 0)])
            if self._named:
                rows[name] = pd.Series(padded, rows.index)
            else:
                rows[:, self.names.index(name)] = padded
        found = {
            name: np.full((len(v), len(self[name].columns)), np.nan) for name, v in values.items()
        }
        block = max(_MOST_ENTRIES // self.n_columns, 1)
        waiting = [np.arange(k, min(k + block, most)) for k in range(0, most, block)]
        while waiting:
            which = waiting.pop()
            some = rows.iloc[which] if self._named else rows[which]
            try:
                with np.errstate(all="ignore"):  # what cannot be encoded shows in the result
                    points = self._transform(some)[1]
            except RefusedByStepError:  # some value is; the others have an answer
                if len(values) > 1:  # a row holds values of several columns, each with its own
                    for name, codes in found.items():
                        own = which[which < len(codes)]
                        codes[own] = self.ask({name: values[name][own]}, like)[name]
                elif len(which) > 1:
                    waiting += np.array_split(which, 2)
                continue
            for name, codes in found.items():
                asked = which < len(codes)
                codes[which[asked]] = points[np.ix_(asked, self[name].columns)]
        return found

    def decode(self, encoded: Floats) -> pd.DataFrame:
        """Return the raw columns that are used, from encoded rows, up to rounding.

        Curves cannot be read back: several numbers may be encoded as the same.
        """
        import pandas as pd

        result: dict[str, Any] = {}
        for name, feature in self.features.items():
            if isinstance(feature, Number):
                result[name] = feature.decode(encoded[:, feature.column])
            elif isinstance(feature, Category):
                result[name] = feature.decode(encoded[:, feature.columns])
            else:
                raise ValueError(
                    f"column {name!r} cannot be decoded: {feature.where} may encode several "
                    "numbers as the same value"
                )
        return pd.DataFrame(result)

    def compare(
        self, rows: Encoded, points: Floats, loss: Loss, which: NDArray[np.bool_] | None = None
    ) -> None:
        """Compare what the model itself says of rows with what was read out of it.

        `points` are what is computed with in place of ``rows.points``; with a mask `which`, those
        of some of the rows.
        """
        if not len(points) or self.model.origin is None:
            return
        rows = rows if which is None else rows.take(which)
        if self._steps and self.model.origin.hands_on and np.isfinite(points).all():
            self.model.compare_made(rows.made, points, rows.given.index, loss)
        else:
            self.model.compare_people(rows.given.table, points, loss)

    def ask_model(self, people: pd.DataFrame) -> Said:
        """Ask the model itself about rows of a table, in the table's own precision."""
        assert self.model.origin is not None
        frame = self._check(people)
        rows = self._give([frame], [self._read(frame)])
        try:
            return self.model.origin.ask_whole(rows.in_precision_of(frame, self.features).table)
        except (ValueError, TypeError):
            # some steps cannot work with what pandas makes of nullable types
            as_numpy = with_numpy_numbers(frame)
            if as_numpy is frame:
                raise
        return self.model.origin.ask_whole(rows.in_precision_of(as_numpy, self.features).table)

    def accepts(
        self, people: pd.DataFrame, points: Floats, score: Floats, cutoff: float
    ) -> NDArray[np.bool_]:
        """Say whom the model accepts, encoded as `points`; it is asked itself where a hair decides.

        Scores that are computed apart differ by a hair, and so may the decision.
        """
        accepted: NDArray[np.bool_] = score >= cutoff
        if self.model.origin is None:
            return accepted
        which = np.abs(score - cutoff) <= AGREEMENT * (1.0 + self.model.size(points))
        which |= not self.are_exact(people)
        said = self.ask_model(people[which]).accepted if which.any() else None
        if said is not None:
            accepted[which] = said
        return accepted

    def are_exact(self, people: pd.DataFrame) -> bool:
        """Whether the model computes with the numbers of a table in double precision, as we do."""
        columns = zip(people.columns, people.dtypes, strict=True)
        return all(
            isinstance(self.features.get(name), (Category, type(None))) or _is_exact(dtype)
            for name, dtype in columns
        )

    def _check(self, table: Any) -> pd.DataFrame:
        """Return a data frame with the columns of the fit, in their order."""
        if self._named and not hasattr(table, "columns"):
            raise ValueError(
                "the pipeline knows its columns by name: pass a data frame with the columns "
                f"{', '.join(self.names)}"
            )
        frame = as_table(table)
        missing = [name for name in self.names if name not in frame.columns]
        if missing:
            raise ValueError(
                f"X lacks columns of the model: {missing}{self._likely(missing, frame)}"
            )
        frame = self.with_floats(frame)
        return frame if frame.columns.tolist() == self.names else frame[self.names]

    def with_floats(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table with floats in place of exact decimals, where the pipeline takes numbers.

        What its encoders take for categories stays as it is.
        """
        found = {
            name: floats_for_decimals(frame[name])
            for name, feature in self.features.items()
            if not isinstance(feature, Category) and name in frame.columns
            if frame[name].dtype == object
        }
        return frame.assign(**found) if found else frame

    def _likely(self, missing: list[str], frame: pd.DataFrame) -> str:
        """Name columns of a table that may be those that are missing."""
        others = [str(name) for name in frame.columns if name not in self.names]
        found = [(name, closest(name, others)) for name in missing]
        pairs = [f"{name!r} by {close!r}" for name, close in found if close]
        return f"; did you mean {' and '.join(pairs)}?" if pairs else ""

    def _compare(self, encoded: Floats, reading: Reading) -> None:
        if encoded.shape[1] != self.n_columns:
            raise ValueError(f"the pipeline gave {encoded.shape[1]} columns, not {self.n_columns}")
        for name, feature in self.features.items():
            if isinstance(feature, Number):
                moved = feature.scale * reading.filled(feature)
                theirs = encoded[:, feature.column]
                size = np.abs(theirs) + np.abs(moved)  # the sum may cancel
                check_agreement(name, feature.shift + moved, theirs, size)
            elif isinstance(feature, Category):
                theirs = encoded[:, feature.columns]
                check_agreement(name, feature.all_codes.take(reading.levels[name], axis=0), theirs)
            # a curve's values are the pipeline's own; see `holdfast.actions.cells`


def _is_exact(dtype: Any) -> bool:
    """Whether numbers of a type are computed with in double precision.

    numpy computes functions of narrow integers and booleans in half or single precision.
    """
    if not isinstance(dtype, np.dtype):
        return False
    return dtype == np.float64 or (dtype.kind in "iu" and dtype.itemsize >= 4)


def check_agreement(name: str, ours: Floats, theirs: Floats, size: Floats | None = None) -> bool:
    """Refuse what was read of a column where the pipeline encodes it otherwise.

    `size` is how large the numbers are that the codes are computed from, if they are larger than
    the codes. Return whether both are equal to the last bit.
    """
    if np.array_equal(ours, theirs):  # so it is of nearly all categories
        return True
    size = np.abs(theirs) if size is None else size
    wrong = ~(np.abs(ours - theirs) <= AGREEMENT * (1.0 + size))
    if wrong.any():
        where = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"column {name!r} is misread: the pipeline encodes it as {theirs[where]}, not "
            f"as {ours[where]}, in row {where[0]}"
        )
    return False
