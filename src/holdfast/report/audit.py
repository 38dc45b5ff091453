"""Of the advice given earlier: which still holds under another model, and who must be told."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.machinery.plain_files import refuse_input_as_output, replacing
from holdfast.report.intervals import Interval, wilson
from holdfast.report.judging import Judge
from holdfast.report.people import (
    AFTER,
    BEFORE,
    Source,
    are_helped,
    are_refused,
    inputs_of,
    numbers,
    texts,
    whole_people,
)

if TYPE_CHECKING:
    from holdfast.files.models import ModelFile
    from holdfast.files.recourse import RecourseFile

SUFFIXES = (".parquet", ".csv")
_MOST_NAMED = 1000  # rows; the table has them all
_ABOUT = b"holdfast.audit"


@dataclass(frozen=True)
class Audit:
    """What another model makes of the advice.

    Attributes
    ----------
    model, sha256 : str
        The other model; empty where the table does not say it.
    people : int
        How many refused people were given advice.
    options, options_hold : int
        How many options they were shown, and how many of these the other model approves.
    first_holds, some_holds : int
        People whose first option holds; people of whom at least one does.
    approved_now : int
        People whom the other model approves as they are, without any change.
    not_read : int
        Ways that the other model cannot read; they do not hold.
    below_guarantee : int
        Ways that hold, but with a smaller probability than was guaranteed.
    must_be_told : int
        People not approved now who were given a way that no longer holds: any one was to do.
    tell : list of int
        Their row numbers, up to a thousand; the table that is written has them all.
    margin_low, margin_mean : float
        Least and mean margin of all ways; NaN where the model gives no probabilities.
    """

    model: str
    sha256: str
    people: int
    options: int
    options_hold: int
    first_holds: int
    some_holds: int
    approved_now: int
    not_read: int
    below_guarantee: int
    must_be_told: int
    tell: list[int]
    margin_low: float
    margin_mean: float

    @property
    def survival(self) -> Interval:
        """Share of people whose first option holds."""
        return wilson(self.first_holds, self.people)

    def to_plain(self) -> dict[str, Any]:
        """Return it for JSON."""
        from holdfast.machinery.plain import plain_of

        cut = len(self.tell) < self.must_be_told
        return {**plain_of(self), "tell_is_cut": cut, "survival": plain_of(self.survival)}


def audit(file: RecourseFile, model: ModelFile, out: Path | None = None) -> Audit:
    """Judge advice given earlier by another model; write what became of each way, if asked to.

    A way holds if the other model approves whoever follows it. People must be told if the other
    model does not approve them as they are, and they were given a way that no longer holds.

    Parameters
    ----------
    file : RecourseFile
    model : ModelFile
        The other model. It must read no column that the file does not have.
    out : Path, optional
        A table to write, .parquet or .csv: a row for each way. None of what is read may be it.
    """
    if out is not None:
        refuse_input_as_output(out, *inputs_of(file), model.path)
    judge = Judge(model.model, model.favorable_class, are_texts=file.job.are_texts)
    judge.check_columns(file.features)
    source = Source.of(file)
    about = {"model": str(model.path), "sha256": model.sha256}
    tally = _Tally()
    with _writing(out, about) as write:
        for table in whole_people(source.batches("current_validity")):
            judged = _judged(table, judge, source)
            tally.add(judged)
            write(judged)
    return tally.audit(about)


def read_audit(path: Path) -> Audit:
    """Read a table that `audit` wrote, and add it up again."""
    tally, about = _Tally(), dict[str, Any]()
    for table in whole_people(_parts(path, about)):
        tally.add(table)
    return tally.audit(about)


def _parts(path: Path, about: dict[str, Any]) -> Iterator[pa.Table]:
    """Read a table piece by piece; what it says about itself is noted."""
    try:
        for batch in _batches(path, about):
            absent = [name for name in _SCHEMA.names if name not in batch.schema.names]
            if absent:
                raise ValueError(f"it has no column {', '.join(absent)}")
            table = pa.Table.from_batches([batch]).select(_SCHEMA.names).cast(_SCHEMA)
            for name in ("row", "option", "holds", "approved_now", "must_be_told"):
                if table[name].null_count:
                    raise ValueError(f"its column {name} has empty cells")
            yield table
    except (pa.ArrowException, ValueError, OSError) as error:
        raise ValueError(
            f"{path} cannot be read as a table written by `holdfast audit`: {error}"
        ) from None


def _batches(path: Path, about: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix.lower() == ".csv":
        # nothing is guessed from the first cells, and other columns are not looked at
        there = pyarrow.csv.open_csv(path).schema.names
        names = [name for name in _SCHEMA.names if name in there]
        asked = pyarrow.csv.ConvertOptions(column_types=_SCHEMA, include_columns=names)
        yield from pyarrow.csv.open_csv(path, convert_options=asked)
        return
    with pyarrow.parquet.ParquetFile(path) as opened:
        said = (opened.schema_arrow.metadata or {}).get(_ABOUT, b"{}")
        about.update(json.loads(said))
        yield from opened.iter_batches()


_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("option", pa.int64()),
        ("old_probability", pa.float64()),
        ("new_probability", pa.float64()),
        ("guarantee", pa.float64()),
        ("holds", pa.bool_()),
        ("margin", pa.float64()),
        ("approved_now", pa.bool_()),
        ("must_be_told", pa.bool_()),
        ("reason", pa.string()),
    ]
)


def _judged(table: pa.Table, judge: Judge, source: Source) -> pa.Table:
    """Judge all ways of some people, each of whom is there as a whole."""
    advised = table.filter(pa.array(_are_advised(table, source.even)))
    rows = advised["row"].to_numpy()
    after = judge.judge(source.frame(advised, AFTER))
    first, who = np.unique(rows, return_index=True, return_inverse=True)[1:]
    now = judge.judge(source.frame(advised.take(pa.array(first)), BEFORE)).is_approved
    some_fails = np.bincount(who, weights=~after.is_approved, minlength=len(first)) > 0
    told = ~now & some_fails
    margin = after.probability - judge.threshold
    unread = "the other model cannot read this row"
    columns = {
        "row": pa.array(rows, pa.int64()),
        **{name: advised[name] for name in source.keys},
        "option": pc.cast(advised["option"], pa.int64()),
        "old_probability": pc.cast(advised["current_validity"], pa.float64()),
        "new_probability": pa.array(after.probability, pa.float64(), from_pandas=True),
        "guarantee": pa.array([source.guarantee] * len(rows), pa.float64()),
        "holds": pa.array(after.is_approved),
        "margin": pa.array(margin, pa.float64(), from_pandas=True),
        "approved_now": pa.array(now[who]),
        "must_be_told": pa.array(told[who]),
        "reason": pa.array(["" if ok else unread for ok in after.is_read.tolist()], pa.string()),
    }
    return pa.table(columns)


def _are_advised(table: pa.Table, even: float) -> NDArray[np.bool_]:
    """Say which rows are advice for somebody who was refused."""
    option, validity = numbers(table["option"]), numbers(table["current_validity"])
    return are_refused(table) & are_helped(option, texts(table["status"]), validity, even)


_COUNTED = (
    "people",
    "options",
    "options_hold",
    "first_holds",
    "some_holds",
    "approved_now",
    "not_read",
    "below_guarantee",
    "must_be_told",
)


@dataclass
class _Tally:
    counts: dict[str, int] = field(default_factory=dict)
    tell: list[int] = field(default_factory=list)
    margins: int = 0
    margin_sum: float = 0.0
    margin_low: float = float("nan")

    def add(self, table: pa.Table) -> None:
        """Count judged ways of some people."""
        rows, holds = table["row"].to_numpy(), np.asarray(table["holds"])
        now, told = np.asarray(table["approved_now"]), np.asarray(table["must_be_told"])
        first, who = np.unique(rows, return_index=True, return_inverse=True)[1:]
        some = np.bincount(who, weights=holds, minlength=len(first)) > 0
        probability = numbers(table["new_probability"])
        with np.errstate(invalid="ignore"):
            below = holds & (probability < numbers(table["guarantee"]))
        more = {
            "people": len(first),
            "options": len(rows),
            "options_hold": holds.sum(),
            "first_holds": holds[first].sum(),
            "some_holds": some.sum(),
            "approved_now": now[first].sum(),
            "not_read": sum(bool(reason) for reason in table["reason"].to_pylist()),
            "below_guarantee": below.sum(),
            "must_be_told": told[first].sum(),
        }
        for name, count in more.items():
            self.counts[name] = self.counts.get(name, 0) + int(count)
        self.tell = (self.tell + rows[first][told[first]].tolist())[:_MOST_NAMED]
        margin = numbers(table["margin"])
        margin = margin[np.isfinite(margin)]
        if margin.size:
            self.margins += margin.size
            self.margin_sum += float(margin.sum())
            self.margin_low = float(np.fmin(self.margin_low, margin.min()))

    def audit(self, about: dict[str, Any]) -> Audit:
        """Return what has been counted."""
        return Audit(
            model=about.get("model", ""),
            sha256=about.get("sha256", ""),
            **{name: self.counts.get(name, 0) for name in _COUNTED},
            tell=self.tell,
            margin_low=self.margin_low,
            margin_mean=self.margin_sum / self.margins if self.margins else float("nan"),
        )


@contextlib.contextmanager
def _writing(path: Path | None, about: dict[str, Any]) -> Iterator[Callable[[pa.Table], None]]:
    """Give a function that writes tables to a file, which is there as a whole or not at all."""
    if path is None:
        yield lambda table: None
        return
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"out = {path} does not end in one of {', '.join(SUFFIXES)}")
    with replacing(path) as draft, contextlib.ExitStack() as stack:
        writer: list[Any] = []

        def write(table: pa.Table) -> None:
            table = table.replace_schema_metadata({_ABOUT: json.dumps(about).encode()})
            if not writer:
                writer.append(stack.enter_context(_writer(path, draft, table.schema)))
            writer[0].write_table(table)

        yield write
        if not writer:
            write(_SCHEMA.empty_table())
        stack.close()


def _writer(path: Path, draft: Path, schema: pa.Schema) -> Any:
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix.lower() == ".csv":
        return pyarrow.csv.CSVWriter(draft, schema)
    return pyarrow.parquet.ParquetWriter(draft, schema)
