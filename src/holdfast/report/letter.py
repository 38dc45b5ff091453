"""A letter to one applicant: what was decided, why, and what would change it, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.actions import ActionSet
from holdfast.files.tables import COMPLAINT, TableFile, open_table
from holdfast.machinery.numerals import numeral
from holdfast.models.encoding.reading import is_missing, plain
from holdfast.recommend import RobustRecourse
from holdfast.recommend.reasons import Constraint
from holdfast.report.parts import (
    Reference,
    are_approved,
    features_that_follow,
    make_reference,
    parts_of_score,
    principal_reasons,
)
from holdfast.report.people import (
    AFTER,
    BEFORE,
    Basis,
    Sample,
    Source,
    are_helped,
    features_of,
    numbers,
    sort_people,
    texts,
    whole_people,
)
from holdfast.report.templating import render_given, render_own
from holdfast.report.words import Words
from holdfast.result.status import Status

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.files.recourse import RecourseFile

MOST_WAYS = 3
_REFERENCE_SAMPLE = 100_000  # approved people, from whom the median one is made


@dataclass(frozen=True)
class LetterSettings:
    """How a letter is to be written.

    Attributes
    ----------
    language : str
        "en" or "de".
    words : Path, optional
        A file with other words.
    lender : str
        Who signs.
    until : date, optional
        Until when the advice applies.
    today : date
        The date of the letter.
    """

    language: str = "en"
    words: Path | None = None
    lender: str = ""
    until: date | None = None
    today: date = field(default_factory=date.today)

    def __post_init__(self) -> None:
        if self.until is not None and self.until < self.today:
            raise ValueError(
                f"until = {self.until} is in the past: the letter is dated {self.today}"
            )


@dataclass(frozen=True)
class Reason:
    """A feature, its value in the application, and that of a typical approved one."""

    label: str
    yours: str
    typical: str


@dataclass(frozen=True)
class Letter:
    """What a letter says; templates read it as `letter`.

    Attributes
    ----------
    language, lender, date, title, greeting, decision, closing : str
    reference_name, reference : str
        The value of the first key column, by which the lender knows the application; empty where
        there is none.
    reasons_heading, reasons_intro, yours, typical, typical_note : str
    reasons : list of Reason
        At most four.
    ways_heading, ways_intro : str
    ways : list of (str, list of str)
        At most three: what each is called, and what it changes.
    sure_heading : str
    sure : list of str
    barriers_heading, barriers_intro, barriers_close : str
    barriers : list of str
        Where there is no way: what is in the way.
    protected : list of str
        Features that nobody may be refused for, or computed from such a one, which cost the person
        much. For the lender: no template gets them.
    """

    language: str
    lender: str
    date: str
    title: str
    greeting: str
    decision: str
    closing: str
    reference_name: str
    reference: str
    reasons_heading: str
    reasons_intro: str
    yours: str
    typical: str
    typical_note: str
    reasons: list[Reason]
    ways_heading: str
    ways_intro: str
    ways: list[tuple[str, list[str]]]
    sure_heading: str
    sure: list[str]
    barriers_heading: str
    barriers_intro: str
    barriers_close: str
    barriers: list[str]
    protected: list[str]


class Whose(NamedTuple):
    """How the lender is told about a person, and how to ask again where no approval was asked for.

    Both are parts of a sentence: "row 17"; "run it again with a guarantee".
    """

    name: str
    again: str


def find_person(
    file: RecourseFile, row: int | None = None, keys: dict[str, str] | None = None
) -> pa.Table:
    """Return all that a file says of one person, found by row number or by key columns."""
    if (row is None) == (not keys):
        raise ValueError("give either a row number or a key to say whose letter it is")
    if row is None:
        row = _row_of(file, keys or {})
    last = -1
    for table in whole_people(pa.Table.from_batches([batch]) for batch in file.batches()):
        last = int(table["row"][len(table) - 1].as_py())
        if row <= last:
            person = table.filter(pc.equal(table["row"], row))
            if len(person):
                return person
            break
    rows = f"rows run from 0 to {last}" if last >= 0 else "it has no rows"
    raise ValueError(f"{file.path} has no row {row}; {rows}")


def _row_of(file: RecourseFile, keys: dict[str, str]) -> int:
    """Find the row number of the one person who has these keys."""
    unknown = [name for name in keys if name not in file.keys]
    if unknown:
        there = ", ".join(file.keys) or "none; give a row number"
        raise ValueError(f"{unknown[0]!r} is not a key column of {file.path}; key columns: {there}")
    rows: dict[int, None] = {}
    for batch in file.batches(["row", *keys]):
        table = pa.Table.from_batches([batch])
        rows |= dict.fromkeys(table["row"].filter(pa.array(_have(table, keys))).to_pylist())
    said = " and ".join(f"{name} = {value}" for name, value in keys.items())
    if not rows:
        raise ValueError(f"nobody in {file.path} has {said}")
    if len(rows) > 1:
        some, more = ", ".join(map(str, [*rows][:5])), " and more" if len(rows) > 5 else ""
        raise ValueError(
            f"{file.path} has {len(rows)} people with {said}, rows {some}{more}: give a row number"
        )
    return next(iter(rows))


def _have(table: pa.Table, keys: dict[str, str]) -> Any:
    mask = np.ones(len(table), dtype=bool)
    for name, wanted in keys.items():
        values = table[name].to_pylist()
        mask &= np.array([wanted in (str(value), numeral(value)) for value in values], dtype=bool)
    return mask


def find_reference(source: Source, table: Path | None = None) -> Reference:
    """Make the median approved applicant: of a table, or of the people in the file."""
    if table is not None:
        return read_reference(source, table)
    sample = Sample(_REFERENCE_SAMPLE)
    columns = ["row", *(BEFORE + name for name in source.file.features)]
    for batch in source.batches("current_validity"):
        lot = sort_people(batch, source.even)
        sample.add(lot.take(lot.is_approved).select(columns))
    drawn = sample.table()
    if drawn is None:
        raise ValueError(
            f"today's model approves nobody in {source.file.path}, so there is nobody to compare "
            "with: give --reference with a table of applicants, such as the training data"
        )
    return make_reference(source.frame(drawn, BEFORE), source.encoding)


def read_reference(basis: Basis, table: Path) -> Reference:
    """Make the median approved applicant of a table."""
    sample, opened = Sample(_REFERENCE_SAMPLE), open_table(table)
    basis = basis.reading(are_texts=opened.are_texts)
    _draw_approved(basis, opened, sample)
    drawn = sample.table()
    if drawn is None:
        raise ValueError(f"today's model approves nobody in {table}: give another --reference")
    return make_reference(basis.frame(drawn), basis.encoding)


def _draw_approved(basis: Basis, opened: TableFile, sample: Sample) -> None:
    wrong = basis.complaints(opened.names)
    if wrong:
        raise ValueError(f"{opened.path} cannot be used as the reference: {'; '.join(wrong)}")
    first = 0
    for batch in opened.batches(32_768, basis.encoding.names):
        table = pa.Table.from_batches([batch])
        rows = pa.array(np.arange(first, first + len(table)))
        table, first = table.append_column("row", rows), first + len(table)
        if COMPLAINT in table.column_names:  # rows that could not be read from their file
            table = table.filter(pc.is_null(table[COMPLAINT])).drop_columns(COMPLAINT)
        mask = are_approved(basis.frame(table), basis.encoding)
        sample.add(table.filter(pa.array(mask)))


def make_letter(
    file: RecourseFile,
    person: pa.Table,
    settings: LetterSettings,
    reference: Path | None = None,
) -> Letter:
    """Write a letter to one person, found by `find_person`; refuse where there is none to write.

    Ways are the options that today's model approves. Where there are none, the letter says what is
    in the way only if it was found out that there is no way; it is refused where the run did not
    ask for an approval.

    Parameters
    ----------
    file : RecourseFile
    person : Table
        All options of the person.
    settings : LetterSettings
    reference : Path, optional
        A table of applicants, of whom those approved are compared with, in place of the people of
        the file.
    """
    row = person["row"][0].as_py()
    whose = Whose(f"row {row}", "run `holdfast recommend` again with a guarantee")
    _refuse_letter(person, whose)
    source = Source.of(file)
    typical = find_reference(source, reference)
    return letter_of(person, source, typical, settings, whose, file.keys)


def letter_of(
    person: pa.Table,
    basis: Basis,
    typical: Reference,
    settings: LetterSettings,
    whose: Whose,
    keys: Sequence[str] = (),
) -> Letter:
    """Write a letter to one person, whatever the advice was given by; see `make_letter`.

    Parameters
    ----------
    person : Table
        All options of the person, as the row function tells them.
    basis : Basis
        Of the estimator that gave the advice.
    typical : Reference
        Who is compared with.
    settings : LetterSettings
    whose : Whose
        How the lender is told about the person, where there is no letter to write.
    keys : sequence of str
        The key columns.
    """
    _refuse_letter(person, whose)
    first, recourse = person.slice(0, 1).to_pylist()[0], basis.recourse
    words = Words.of(settings.language, settings.words, features_of(person, BEFORE))
    before = basis.frame(person.slice(0, 1), BEFORE)
    parts = parts_of_score(basis.encoding, before, typical.row)
    principal = principal_reasons(parts, recourse.actions)
    approved = _approved_options(person, basis)
    ways = _ways(approved, recourse.actions, words)
    if not ways:
        _refuse_without_way(first, basis.even, whose)
    barriers = [] if ways else _barriers(before, recourse, words)
    reasons = _reasons(principal.reasons, first, typical, recourse.actions, words)
    return Letter(
        language=words.language,
        lender=settings.lender,
        date=words.date(settings.today),
        **{name: words.say(name) for name in ("title", "greeting", "decision", "closing")},
        reference_name=words.say("reference_name"),
        reference=_reference(first, keys, recourse.actions),
        **{name: words.say(name) for name in ("reasons_heading", "yours", "typical")},
        reasons_intro=words.say("reasons_intro" if reasons else "reasons_none"),
        typical_note=words.say("typical_note", count=words.number(typical.people)),
        reasons=reasons,
        ways_heading=words.say("ways_heading"),
        ways_intro=words.say("ways_intro_many" if len(ways) > 1 else "ways_intro_one"),
        ways=ways,
        sure_heading=words.say("sure_heading"),
        sure=_sure(approved, basis, words, settings.until) if ways else [],
        barriers_heading=words.say("barriers_heading"),
        barriers_intro=words.say("barriers_intro" if barriers else "barriers_none"),
        barriers_close=words.say("barriers_close"),
        barriers=barriers,
        protected=principal.protected,
    )


def render_letter(letter: Letter, template: Path | None = None) -> str:
    """Return the letter as a page of HTML, by our template or another.

    Templates get all of it but `protected`, which is for the lender.
    """
    told = {each.name: getattr(letter, each.name) for each in fields(letter)}
    del told["protected"]
    shown = SimpleNamespace(**told)
    if template is None:
        return render_own("letter.html", letter=shown)
    return render_given(template, letter=shown)


def _refuse_letter(person: pa.Table, whose: Whose) -> None:
    approved = person["approved"][0].as_py()
    if approved is None:
        reason = person["reason"][0].as_py()
        raise ValueError(f"{whose.name} could not be used, so there is no letter: {reason}")
    if approved:
        raise ValueError(
            f"{whose.name} is approved by today's model, so there is no refusal to write about"
        )


def _refuse_without_way(first: dict[str, Any], even: float, whose: Whose) -> None:
    """Refuse to say that there is no way, unless that is what was found out."""
    if first["option"]:
        least = "" if np.isnan(even) else f" of at least {even:.12g}"
        raise ValueError(
            f"{whose.name}: the run did not ask for an approval, and today's model would still "
            f"refuse what it advises, so there is no letter to write: {whose.again}{least}, the "
            "model's own threshold"
        )
    if first["status"] != Status.INFEASIBLE:
        raise ValueError(
            f"{whose.name}: it is not known whether there is a way, so there is no letter to "
            f"write: {first['reason']}"
        )


def _approved_options(person: pa.Table, basis: Basis) -> pa.Table:
    """Return the options that today's model approves, at most so many as a letter shows."""
    validity = numbers(person["current_validity"])
    mask = are_helped(numbers(person["option"]), texts(person["status"]), validity, basis.even)
    if np.isnan(validity).any() and mask.any():  # no probability says it: the model is asked
        mask[mask] = are_approved(basis.frame(person.filter(pa.array(mask)), AFTER), basis.encoding)
    return person.filter(pa.array(mask)).slice(0, MOST_WAYS)


def _reference(first: dict[str, Any], keys: Sequence[str], actions: ActionSet) -> str:
    """Return the first key that does not say what is protected."""
    protected = actions.protected_names
    for name in keys:
        if name not in protected:
            return "" if first[name] is None else str(first[name])  # a name, not an amount
    return ""


def _reasons(
    names: list[str],
    first: dict[str, Any],
    typical: Reference,
    actions: ActionSet,
    words: Words,
) -> list[Reason]:
    reasons = []
    for name in names:
        values = (first[BEFORE + name], typical.row[name].iloc[0])
        yours, other = (words.value(name, value, _unit(actions, name)) for value in values)
        reasons.append(Reason(words.label(name), yours, other))
    return reasons


def _unit(actions: ActionSet, name: str) -> str:
    unit: str = getattr(actions[name], "unit", "") if name in actions else ""
    return unit


def _ways(approved: pa.Table, actions: ActionSet, words: Words) -> list[tuple[str, list[str]]]:
    ways: list[tuple[str, list[str]]] = []
    follow, protected = features_that_follow(actions), actions.protected_names
    # what is computed from something protected follows by itself, and need not be named
    told = [name for name in features_of(approved, AFTER) if name not in protected]
    for option in approved.to_pylist():
        names = [name for name in told if _is_changed(option, name)]
        names.sort(key=lambda name: name in follow)
        lines = [_change(option, name, name in follow, actions, words) for name in names]
        ways.append((words.say("way_name", number=str(len(ways) + 1)), lines))
    return ways


def _is_changed(option: dict[str, Any], name: str) -> bool:
    before, after = option[BEFORE + name], option[AFTER + name]
    if is_missing(before) or is_missing(after):
        return is_missing(before) != is_missing(after)
    return bool(before != after)


def _change(
    option: dict[str, Any], name: str, follows: bool, actions: ActionSet, words: Words
) -> str:
    unit, before, after = _unit(actions, name), option[BEFORE + name], option[AFTER + name]
    if any(each.feature == name for each in actions.derived):  # nobody types all of its digits
        before, after = (v if is_missing(v) else float(f"{v:.6g}") for v in (before, after))
    said = {"label": words.label(name), "after": words.value(name, after, unit)}
    if is_missing(before):
        return words.say("change_given", **said)
    said["before"] = words.value(name, before, unit, with_unit=False)  # it is said once
    return words.say("change_follows" if follows else "change", **said)


def _sure(approved: pa.Table, basis: Basis, words: Words, until: date | None) -> list[str]:
    models, guarantee = basis.recourse.robust_to, basis.recourse.guarantee
    is_set = not models.has_size or models.radius > 0.0
    worst = numbers(approved["worst_case_validity"])
    # without probabilities, only a guarantee says that all of the models approve
    holds = (worst >= basis.even).all() if np.isfinite(worst).all() else guarantee is not None
    sentences = [words.say("sure_updates" if is_set and holds else "sure_today")]
    if until is None:
        return [*sentences, words.say("sure_no_date")]
    return [*sentences, words.say("sure_until", date=words.date(until))]


def _barriers(person: pd.DataFrame, recourse: RobustRecourse, words: Words) -> list[str]:
    """Say what is in the way of somebody whom nothing helps: what would cost least to lift."""
    protected = recourse.actions.protected_names
    for release in recourse.recommend(person).releases(person.index[0]):
        if not any(each.feature in protected for each in release.constraints):
            return [_barrier(each, recourse.actions, words) for each in release.constraints]
    return []


def _barrier(constraint: Constraint, actions: ActionSet, words: Words) -> str:
    name, setting = constraint.feature, constraint.setting
    if name is None:
        return words.say("barrier_max_changes")
    label, feature = words.label(name), actions[name]
    if setting == "direction":
        return words.say(f"barrier_{feature.direction}", label=label)
    if setting in ("moves", "allowed"):
        return words.say("barrier_moves", label=label)
    if setting == "immutable":
        return words.say("barrier_immutable", label=label)
    value = words.measured(plain(getattr(feature, setting)), _unit(actions, name))
    return words.say(f"barrier_{setting}", label=label, value=value)
