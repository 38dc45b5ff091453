"""Whether an action set in a file fits a model in another one, and the people in a third."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.actions import ActionSet
from holdfast.actions.category import CategoryFeature
from holdfast.actions.fitness import misfits, read_action_levels, read_derived
from holdfast.actions.number import NumberFeature
from holdfast.files.models import load_model
from holdfast.files.people import PeopleColumns
from holdfast.files.tables import COMPLAINT, open_table
from holdfast.machinery.numbers import Floats, shown
from holdfast.models.calibrator import why_closed
from holdfast.models.encoding import Category, Encoding
from holdfast.models.encoding.reading import Refusal, plain, shorten

if TYPE_CHECKING:
    import pandas as pd

_ROWS = 50_000


@dataclass(frozen=True, eq=False)
class Fitness:
    """What was found.

    Attributes
    ----------
    complaints : list of str
        All that keeps the action set from fitting the model, or the people from being read.
    notes : list of str
        What fits, but may not be meant.
    n_people : int or None
        How many people there are; None where none were given.
    n_unusable : int
        How many of them cannot be advised.
    counts : dict
        For each pair of a feature and what is the matter, how many people have it.
    examples : dict
        For some of these pairs, what the first of the people has.
    """

    complaints: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    n_people: int | None = None
    n_unusable: int = 0
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    examples: dict[tuple[str, str], str] = field(default_factory=dict)

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain texts, numbers and lists."""
        counts = [
            {
                "feature": name,
                "what": what,
                "people": count,
                "example": self.examples.get((name, what)),
            }
            for (name, what), count in self.counts.items()
        ]
        return {
            "fits": not self.complaints,
            "problems": self.complaints,
            "notes": self.notes,
            "people": self.n_people,
            "unusable": self.n_unusable,
            "counts": counts,
        }


def check_fitness(
    actions: str | Path,
    model: str | Path,
    people: str | Path | None = None,
    favorable_class: str | None = None,
) -> Fitness:
    """Check an action set against a model, and against people.

    Files that cannot be read are errors; what does not fit is listed.

    Examples
    --------
    >>> import json, tempfile
    >>> from holdfast.actions import NumberFeature
    >>> folder = Path(tempfile.mkdtemp())
    >>> column = {"name": "months", "coefficient": 0.1}
    >>> model = {"holdfast_model": 1, "classes": [False, True], "intercept": 0, "columns": [column]}
    >>> _ = (folder / "model.json").write_text(json.dumps(model))
    >>> ActionSet([NumberFeature("age")]).save(folder / "actions.yaml")
    >>> check_fitness(folder / "actions.yaml", folder / "model.json").complaints
    ["the action set has no features for the columns ['months']"]
    """
    found = load_model(model, favorable_class)
    given = ActionSet.load(actions)
    table = None if people is None else open_table(people)
    encoding = Encoding.of(found.model, favorable_class=found.favorable_class)
    complaints = list(misfits(encoding, given))
    if encoding.model.kind != "linear":
        why = why_closed(found.model)
        complaints.insert(0, why or f"the classifier is a {encoding.model.kind}, not a linear one")
    notes = _notes(encoding, given)
    if table is None or complaints:
        return Fitness(complaints, notes)
    columns = PeopleColumns.of(encoding, given, are_texts=table.are_texts)
    tally = _Faults(encoding, given)
    total, unusable = 0, 0
    for batch in table.batches(_ROWS):
        if not total:
            complaints += columns.complaints(table.names, _as_table(batch))
            if complaints:
                break
        total += batch.num_rows
        if COMPLAINT in batch.schema.names:
            whole = batch.filter(batch.column(COMPLAINT).is_null())
            broken = batch.num_rows - whole.num_rows
            tally.counts["the file", "a row that cannot be read"] += broken
            unusable, batch = unusable + broken, whole
        unusable += tally.add(columns.frame(_as_table(batch)))
    n_people = None if complaints else total
    return Fitness(complaints, notes, n_people, unusable, dict(tally.counts), tally.examples)


def _as_table(batch: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches([batch])


def _notes(encoding: Encoding, actions: ActionSet) -> list[str]:
    derived = {name for each in actions.derived for name in (each.feature, *each.parents)}
    unread = [name for name in actions if name not in encoding.features and name not in derived]
    notes = []
    if unread:
        notes.append(f"no advice will change what the model does not read: {', '.join(unread)}")
    for name, part in encoding.features.items():
        feature = actions[name] if name in actions else None  # noqa: SIM401  # it is no dict
        if not isinstance(part, Category) or not isinstance(feature, CategoryFeature):
            continue
        foreign = [level for level in feature.levels if level not in part.levels]
        absent = [level for level in part.levels if level not in feature.levels]
        if foreign:
            notes.append(f"{name}: the model does not know the levels {shorten(foreign)}")
        if absent and not feature.stays:
            notes.append(
                f"{name}: the action set lacks the levels {shorten(absent)}; people who have one "
                "of them cannot be advised"
            )
    return notes


class _Faults:
    """What is the matter with how many people; it does not grow with their number."""

    def __init__(self, encoding: Encoding, actions: ActionSet) -> None:
        self.encoding, self.actions = encoding, actions
        self.derived = {each.feature for each in actions.derived}
        self.counts = Counter[tuple[str, str]]()
        self.examples: dict[tuple[str, str], str] = {}

    def add(self, people: pd.DataFrame) -> int:
        """Count some people; return how many of them cannot be advised."""
        reading = self.encoding.read(people)
        read_action_levels(reading, people, self.encoding, self.actions)
        read_derived(reading, people, self.encoding, self.actions)
        for refusals in reading.reasons.values():
            for refusal in refusals:
                what, example = self._sort(refusal)
                self.counts[refusal.name, what] += 1
                if example:
                    self.examples.setdefault((refusal.name, what), example)
        for name in self.encoding.features:
            feature = self.actions[name]
            if isinstance(feature, NumberFeature) and name in reading.numbers and not feature.stays:
                self._count_outside(name, feature, reading.numbers[name])
        return len(reading.reasons)

    def _count_outside(self, name: str, feature: NumberFeature, values: Floats) -> None:
        with np.errstate(invalid="ignore"):
            below, above = values < feature.lowest, values > feature.highest
        for what, mask in (("below its bounds", below), ("above its bounds", above)):
            if mask.any():
                self.counts[name, what] += int(mask.sum())

    def _sort(self, refusal: Refusal) -> tuple[str, str]:
        """Return what is wrong in general, and an example."""
        if refusal.is_missing:
            return "is missing", ""
        # of what is derived, the reason tells more of the person than the value
        if refusal.is_sentence or refusal.name in self.derived:
            return "cannot be used", refusal.words
        return refusal.reason, shown(plain(refusal.value))
