"""All figures of a report, computed from a recourse file a batch at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.machinery.plain import plain_of
from holdfast.report.audit import Audit, audit, read_audit
from holdfast.report.changes import Changes, FeatureShare
from holdfast.report.groups import GroupFigures, PeopleGroups, group_column
from holdfast.report.hardest import HardCase, Hardest
from holdfast.report.intervals import Interval, wilson
from holdfast.report.judging import Judge
from holdfast.report.people import (
    BEFORE,
    Lot,
    Sample,
    Source,
    numbers,
    sort_people,
)
from holdfast.report.robustness import Robustness, compare_sizes
from holdfast.report.sketch import Histogram, Sketch

if TYPE_CHECKING:
    from holdfast.files.models import ModelFile
    from holdfast.files.recourse import RecourseFile

SAMPLE = 300  # refused people who are advised anew, to see what robustness costs
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


@dataclass(frozen=True)
class Counts:
    """How many people.

    `people = unusable + approved + refused`, `refused = helped + not_helped + not_known`.

    Attributes
    ----------
    people : int
    unusable : int
        Rows that could not be used.
    approved : int
        By today's model, as they are.
    approved_firmly : int
        By every model of the set, as they are.
    refused : int
        By today's model.
    helped : int
        Refused, with advice that today's model approves.
    not_helped : int
        Refused, and no change that they can make gives what was asked for.
    not_known : int
        Refused, and it is not known whether they can be helped: the run did not ask for a yes, but
        for less than the model's own threshold, or for the least price; or it found no proof.
    why_not : dict
        How many of the last two have which status.
    """

    people: int
    unusable: int
    approved: int
    approved_firmly: int
    refused: int
    helped: int
    not_helped: int
    not_known: int
    why_not: dict[str, int]


@dataclass(frozen=True)
class Costs:
    """What the first advice costs those who can be helped.

    Attributes
    ----------
    mean, median : Interval
        With what they may be off by, should these people be a sample.
    quantiles : dict of float
        By share: 0.1 means that it costs a tenth of the people no more than this. To a
        thousandth.
    histogram : Histogram
    """

    mean: Interval
    median: Interval
    quantiles: dict[str, float]
    histogram: Histogram


@dataclass(frozen=True)
class Summary:
    """All figures of a report.

    Attributes
    ----------
    source : str
        The recourse file.
    counts : Counts
    share_helped : Interval
        Of the refused; the least that it may be, where there are people of whom it is not known.
    costs : Costs
    features : list of FeatureShare
    robustness : Robustness or None
        None where the set of models has no size that could be another one.
    survival : list of Audit
        Under each of the later models given.
    audit : Audit or None
        Read from a table, where one was given.
    lost, dearest : list of HardCase
    group : str or None
        The column that people are grouped by.
    groups : list of GroupFigures
    settings : dict
        What was asked, with versions and checksums.
    """

    source: str
    counts: Counts
    share_helped: Interval
    costs: Costs
    features: list[FeatureShare]
    robustness: Robustness | None
    survival: list[Audit]
    audit: Audit | None
    lost: list[HardCase]
    dearest: list[HardCase]
    group: str | None
    groups: list[GroupFigures]
    settings: dict[str, Any]

    def to_plain(self) -> dict[str, Any]:
        """Return it for JSON."""
        plain: dict[str, Any] = plain_of(self)
        plain["survival"] = [each.to_plain() for each in self.survival]
        plain["audit"] = None if self.audit is None else self.audit.to_plain()
        return plain


def summarise(
    file: RecourseFile,
    group: str | None = None,
    models: Sequence[ModelFile] = (),
    audited: Path | None = None,
) -> Summary:
    """Compute the figures of a report, in memory that does not grow with the file.

    Parameters
    ----------
    file : RecourseFile
    group : str, optional
        A key column, or a column that the model reads, by which to compare people.
    models : sequence of ModelFile
        Later models, under which to see whether the advice still holds.
    audited : Path, optional
        A table that `audit` wrote, to be made a part of the report.
    """
    judges = [
        Judge(each.model, each.favorable_class, are_texts=file.job.are_texts) for each in models
    ]
    for judge in judges:
        judge.check_columns(file.features)
    earlier = None if audited is None else read_audit(audited)
    source = Source.of(file)
    collected = _Collected(source, group)
    sample = collected.sample.table()
    robustness = None
    if sample is not None:
        robustness = compare_sizes(source, source.frame(sample, BEFORE), judges)
    counts = collected.counts()
    return Summary(
        source=Path(file.path).name,
        counts=counts,
        share_helped=wilson(counts.helped, counts.refused),
        costs=_costs(collected.costs),
        features=collected.changes.shares(),
        robustness=robustness,
        survival=[audit(file, each) for each in models],
        audit=earlier,
        lost=collected.hardest.lost(),
        dearest=collected.hardest.dearest(),
        group=group,
        groups=[] if collected.groups is None else collected.groups.figures(),
        settings=_settings(file),
    )


class _Collected:
    """What one pass over the file leaves."""

    def __init__(self, source: Source, group: str | None) -> None:
        self._tally: Counter[str] = Counter()
        self._why_not: Counter[str] = Counter()
        self.costs, self.changes = Sketch(), Changes(source.recourse.actions)
        self.sample, self.hardest = Sample(SAMPLE), Hardest(source)
        self.groups: PeopleGroups | None = None
        if group is not None:
            names = [*source.keys, *(BEFORE + name for name in source.file.features)]
            self.groups = PeopleGroups(group, group_column(group, names, source.keys))
        for table in source.batches(*Hardest.columns):
            self._add(sort_people(table, source.even), source)

    def _add(self, lot: Lot, source: Source) -> None:
        unusable = ~lot.is_approved & ~lot.is_refused
        without = lot.is_refused & ~lot.is_helped
        masks = {
            "unusable": unusable,
            "approved": lot.is_approved,
            "refused": lot.is_refused,
            "helped": lot.is_helped,
            "not_helped": lot.is_lost,
            "not_known": without & ~lot.is_lost,
            "people": np.ones_like(without),
        }
        self._tally.update({name: int(mask.sum()) for name, mask in masks.items()})
        if lot.is_approved.any():
            self._tally["approved_firmly"] += int(source.are_firm(lot.take(lot.is_approved)).sum())
        self._why_not.update(lot.status[without].tolist())
        helped = lot.take(lot.is_helped)
        self.costs.add(numbers(helped["cost"]))
        self.changes.add(helped)
        self.sample.add(lot.take(lot.is_refused))
        self.hardest.add(lot)
        if self.groups is not None:
            self.groups.add(lot)

    def counts(self) -> Counts:
        names = ("people", "unusable", "approved", "approved_firmly", "refused", "helped")
        found = {name: self._tally[name] for name in (*names, "not_helped", "not_known")}
        return Counts(**found, why_not=dict(self._why_not.most_common()))


def _costs(sketch: Sketch) -> Costs:
    quantiles = {f"{share:g}": sketch.quantile(share) for share in QUANTILES}
    return Costs(sketch.mean, sketch.median, quantiles, sketch.histogram())


def _settings(file: RecourseFile) -> dict[str, Any]:
    """Return what was asked, and what became of it, as the manifest has it."""
    return {**file.job.to_plain(file.path.parent), **file.run}
