"""What people type: the fields that are shown to them, and what their texts stand for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import numpy as np

from holdfast.actions import CategoryFeature, NumberFeature
from holdfast.actions.preferences import PreferenceError
from holdfast.machinery.numerals import numeral
from holdfast.machinery.settings import suggest
from holdfast.models.encoding import Encoding
from holdfast.models.encoding.reading import is_missing
from holdfast.report.parts import features_that_follow
from holdfast.web.api import MOST_RADIUS

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.actions import ActionSet
    from holdfast.web.desk import Desk

MOST_OPTIONS = 3
TIMES = (2, 5, 10)  # how much harder somebody may call a change
_LIMITS = ("change_by", "lower", "upper")
_PREFERENCES = ("locked", *_LIMITS, "avoid", "times")


class StateError(ValueError):
    """A request that no page of ours would send: of another model, or made by hand."""


@dataclass(frozen=True)
class FormField:
    """A column of a person, as it is asked for.

    Attributes
    ----------
    key : str
        Names it within a page: "f0".
    name : str
        The column.
    kind : str
        "number", "category"; "derived": computed from others; "kept": the model does not feel it.
    unit, help : str
    levels : list of str
        Of a category, as they are written.
    needed : bool
        Whether the model must know it.
    changes : bool
        Whether anybody can change it.
    locks : bool
        Whether it can be locked: what follows from others changes with them.
    avoidable : list of str
        Of a category that can change: the levels that somebody may not be able to take.
    """

    key: str
    name: str
    kind: str
    unit: str
    help: str
    levels: list[str]
    needed: bool
    changes: bool
    locks: bool
    avoidable: list[str]

    @property
    def label(self) -> str:
        """The name of the column, made readable."""
        return label(self.name)


def label(name: str) -> str:
    """Make the name of a column readable.

    Examples
    --------
    >>> label("credit_amount")
    'credit amount'
    """
    return name.replace("_", " ").strip() or name


def fields_of(desk: Desk) -> list[FormField]:
    """List the fields of a person, in the order of the model."""
    recourse = desk.recourse
    encoding = Encoding.of(recourse.model, favorable_class=recourse.favorable_class)
    return [
        _field(f"f{k}", name, levels, desk.actions, encoding)
        for k, (name, levels) in enumerate(desk.columns.levels.items())
    ]


def _field(
    key: str,
    name: str,
    levels: tuple[Any, ...] | None,
    actions: ActionSet,
    encoding: Encoding,
) -> FormField:
    feature = {each: actions[each] for each in actions}.get(name)
    derived = {each.feature: each.words for each in actions.derived}
    part = encoding.features.get(name)
    linked = {other for link in actions.links for other in link.names}
    parents = {parent for each in actions.derived for parent in each.parents}
    takes_missing = part is None or part.takes_missing
    kind = "number" if levels is None else "category"
    if name in derived:
        kind = "derived"
    elif levels == ():
        kind = "kept"
    changes = feature is not None and not feature.stays and levels != ()
    avoidable = feature.levels if changes and isinstance(feature, CategoryFeature) else ()
    return FormField(
        key=key,
        name=name,
        kind=kind,
        unit=feature.unit if isinstance(feature, NumberFeature) else "",
        help=f"Follows from {derived[name]}" if name in derived else _help(feature),
        levels=[str(level) for level in levels or ()],
        needed=kind in ("number", "category")
        and (not takes_missing or name in linked or name in parents),
        changes=changes,
        locks=changes and name not in features_that_follow(actions),
        avoidable=[str(level) for level in avoidable],
    )


def _help(feature: Any) -> str:
    """Say where advice may take a feature."""
    if feature is None or feature.stays:
        return ""
    if isinstance(feature, CategoryFeature):
        if feature.allowed is not None:
            return f"Can become {', '.join(map(str, feature.allowed))}"
        return {"up": "Can only move up", "down": "Can only move down"}.get(feature.direction, "")
    said = []
    low, high = feature.lowest, feature.highest
    if math.isfinite(low) and math.isfinite(high):
        said.append(f"{numeral(low)} to {numeral(high)}")
    elif math.isfinite(low):
        said.append(f"from {numeral(low)}")
    elif math.isfinite(high):
        said.append(f"up to {numeral(high)}")
    if feature.direction != "any":
        most = feature.max_increase if feature.direction == "up" else feature.max_decrease
        by = "" if most is None else f", by at most {numeral(most)}"
        said.append(f"can only {'rise' if feature.direction == 'up' else 'fall'}{by}")
    else:
        for most, verb in ((feature.max_increase, "rise"), (feature.max_decrease, "fall")):
            if most is not None:
                said.append(f"can {verb} by at most {numeral(most)}")
    if feature.step is not None and feature.step != 1:
        said.append(f"steps of {numeral(feature.step)}")
    text = ", ".join(said)
    return text[:1].upper() + text[1:]


@dataclass(frozen=True)
class Tried:
    """What a page holds of a person, as it was sent.

    Attributes
    ----------
    row : int or None
        The person of the table with whom it began.
    values : dict
        The text of each field.
    preferences : dict
        What the person cannot or would rather not change, by feature.
    radius : float or None
    n_options : int
    of : str
        The fingerprint of what the page was made of: see `Desk.fingerprint_of`.
    wrong : dict
        What is the matter with fields, by name: a column, or "feature.setting".
    refused : dict
        Preferences that the action set does not allow, by feature; `wrong` says why.
    """

    row: int | None = None
    values: dict[str, str] = field(default_factory=dict)
    preferences: dict[str, dict[str, Any]] = field(default_factory=dict)
    radius: float | None = None
    n_options: int = MOST_OPTIONS
    of: str = ""
    wrong: dict[str, str] = field(default_factory=dict)
    refused: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "row": self.row,
            "values": self.values,
            "preferences": self.preferences,
            "radius": self.radius,
            "n_options": self.n_options,
            "of": self.of,
        }

    @property
    def asked(self) -> dict[str, Any]:
        """What `Desk.asking` is told."""
        return {
            "preferences": self.preferences,
            "radius": self.radius,
            "n_options": self.n_options,
        }


def read_state(data: Any, fields: list[FormField], desk: Desk) -> Tried:
    """Read what a page sends; what somebody mistyped is in `wrong`, all else is refused."""
    if not isinstance(data, dict):
        raise StateError("the state must be an object")
    unknown = [key for key in data if key not in Tried().plain]
    if unknown:
        raise StateError(f"the state has an unknown entry, {unknown[0]!r}")
    values = _texts(data.get("values", {}), [each.name for each in fields])
    wrong: dict[str, str] = {}
    said = _preferences(data.get("preferences", {}), fields, desk, wrong)
    preferences, refused = _allowed(said, desk, wrong)
    return Tried(
        row=_row(data.get("row")),
        values=values,
        preferences=preferences,
        radius=_radius(data.get("radius"), desk),
        n_options=_options(data.get("n_options", MOST_OPTIONS)),
        of=_of(data),
        wrong=wrong,
        refused=refused,
    )


def _of(data: dict[str, Any]) -> str:
    if isinstance(data.get("of", ""), str):
        return str(data.get("of", ""))
    raise StateError("of must be a string")


def read_belonging(data: Any) -> tuple[int | None, str]:
    """Read whose page has sent something, and what it was made of; empty where nothing says.

    This comes before all else is read: what belongs to another model makes no sense here.
    """
    if not isinstance(data, dict):
        return None, ""
    return _row(data.get("row")), _of(data)


def _row(value: Any) -> int | None:
    if value is None or (type(value) is int and value >= 0):
        return value
    raise StateError("row must be a whole number, or null")


def _options(value: Any) -> int:
    if type(value) is int and 1 <= value <= MOST_OPTIONS:
        return value
    raise StateError(f"n_options must be a whole number from 1 to {MOST_OPTIONS}")


def _radius(value: Any, desk: Desk) -> float | None:
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 <= value <= MOST_RADIUS
    ):
        raise StateError(f"radius must be a number from 0 to {MOST_RADIUS:g}, or null")
    if not desk.recourse.robust_to.has_size:
        raise StateError("radius must be null: the set of models is a list, which has no size")
    return float(value)


def _texts(values: Any, names: list[str]) -> dict[str, str]:
    if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
        raise StateError("values must be an object of strings")
    for name in values:
        if name not in names:
            raise StateError(f"{name!r} is not a column of this model; {suggest(name, names)}")
    return {name: values.get(name, "") for name in names}


def _preferences(
    given: Any, fields: list[FormField], desk: Desk, wrong: dict[str, str]
) -> dict[str, dict[str, Any]]:
    if not isinstance(given, dict) or not all(isinstance(v, dict) for v in given.values()):
        raise StateError("preferences must be an object of objects")
    known = {each.name: each for each in fields if each.changes}
    read: dict[str, dict[str, Any]] = {}
    for name, settings in given.items():
        if name not in known:
            raise StateError(f"{name!r} cannot change; {suggest(name, known)}")
        mine = {}
        for key, value in settings.items():
            if key not in _PREFERENCES:
                raise StateError(
                    f"{name!r} has no preference {key!r}; {suggest(key, _PREFERENCES)}"
                )
            said = _preference(key, value, known[name], desk)
            if isinstance(said, _Wrong):
                wrong[f"{name}.{key}"] = said.text
            elif said is not None:
                mine[key] = said
        if mine:
            read[name] = mine
    return read


def _allowed(
    said: dict[str, dict[str, Any]], desk: Desk, wrong: dict[str, str]
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Set apart which preferences the action set allows, and which it does not."""
    allowed: dict[str, dict[str, Any]] = {}
    refused: dict[str, dict[str, Any]] = {}
    for name, mine in said.items():
        why = _refused(name, mine, desk)
        for key, value in mine.items():
            (refused if key in why else allowed).setdefault(name, {})[key] = value
        wrong |= {f"{name}.{key}": text for key, text in why.items()}
    return allowed, refused


def _refused(name: str, mine: dict[str, Any], desk: Desk) -> dict[str, str]:
    """Say which preferences of a feature the action set refuses, and why, in plain words."""
    refused = {}
    for key, value in mine.items():
        try:
            desk.actions.with_preferences({name: {key: value}})
        except PreferenceError as error:
            refused[key] = _why_refused(key, value, desk.feature(name), error)
    lower, upper = mine.get("lower"), mine.get("upper")
    if not refused and lower is not None and upper is not None and lower > upper:
        refused["upper"] = f"This is below your lower limit of {numeral(lower)}."
    return refused


def _why_refused(key: str, value: Any, feature: Any, error: PreferenceError) -> str:
    if key == "lower" and value > feature.highest:
        return f"The lender allows at most {numeral(feature.highest)}; lock it to keep it as it is."
    if key == "upper" and value < feature.lowest:
        return (
            f"The lender allows no less than {numeral(feature.lowest)}; lock it to keep it as it "
            "is."
        )
    return f"{error.reason[:1].upper()}{error.reason[1:]}."


@dataclass(frozen=True)
class _Wrong:
    text: str


def _preference(key: str, value: Any, known: FormField, desk: Desk) -> Any:
    """Read one preference: None where nothing is asked, or what is wrong with it."""
    if key == "locked":
        if not isinstance(value, bool):
            raise StateError("locked must be true or false")
        return value or None
    if key == "avoid":
        levels = {str(level): level for level in getattr(desk.actions[known.name], "levels", ())}
        if not isinstance(value, list) or not all(str(each) in levels for each in value):
            raise StateError(f"avoid must be a list of levels of {known.name!r}")
        return [levels[str(each)] for each in value] or None
    number = _number(value)
    if isinstance(number, _Wrong) or number is None:
        return number
    if key == "times":
        return None if number == 1 else number if number > 1 else _Wrong("Must be 1 or more.")
    if known.kind != "number":
        raise StateError(f"{known.name!r} is not a number, so {key} does not apply")
    return _Wrong("Must be 0 or more.") if key == "change_by" and number < 0 else number


def _number(value: Any) -> Any:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise StateError(f"{value!r} is not a number")
    try:
        number = math.nan if "_" in str(value) else float(value)
    except (ValueError, OverflowError):
        number = math.nan
    return number if math.isfinite(number) else _Wrong(not_a_number(str(value)))


def not_a_number(text: str) -> str:
    """Say that a text is no number, and what may be the matter with it."""
    shown = text if len(text) <= 20 else f"{text[:19]}…"
    hint = " Write decimals with a point, and no thousands separators." if "," in text else ""
    return f"“{shown}” is not a number.{hint}"


def short_numeral(value: float) -> str:
    """Write what is computed, and typed by nobody, to six digits.

    Examples
    --------
    >>> short_numeral(1 / 3), short_numeral(36.0), short_numeral(1234567.0)
    ('0.333333', '36', '1,234,570')
    """
    return numeral(float(f"{value:.6g}"))


@dataclass(frozen=True)
class Typed:
    """A person, as typed.

    Attributes
    ----------
    people : DataFrame or None
        The one person, as the model reads them; None where that is not possible yet.
    missing : list of str
        Needed fields that are empty.
    wrong : dict
        What is the matter with fields, by column.
    derived : dict
        What is computed from other fields, as it is written.
    """

    people: pd.DataFrame | None
    missing: list[str]
    wrong: dict[str, str]
    derived: dict[str, str]


def read_person(values: Mapping[str, str], fields: list[FormField], desk: Desk) -> Typed:
    """Read the texts of one person."""
    texts = {each.name: values.get(each.name, "") for each in fields}
    people = desk.read(texts)
    missing, wrong = [], {}
    for each in fields:
        value = people[each.name].iloc[0]
        if each.kind not in ("number", "category"):
            continue
        if is_missing(value):
            missing += [each.name] if each.needed else []
        elif each.kind == "number" and (isinstance(value, str) or not math.isfinite(value)):
            wrong[each.name] = not_a_number(texts[each.name].strip())
    if missing or wrong:
        return Typed(None, missing, wrong, {})
    derived = {}
    for each_derived in desk.actions.derived:
        columns = {name: people[name].to_numpy(dtype=np.float64) for name in each_derived.parents}
        value = float(each_derived.value(columns)[0])
        people[each_derived.feature] = [value]
        derived[each_derived.feature] = short_numeral(value) if math.isfinite(value) else ""
    return Typed(people, [], {}, derived)


@dataclass(frozen=True)
class Chip:
    """One thing that was tried, which can be taken back.

    `key` and `level` say what to remove: a preference of a feature, or a level that it avoids; the
    radius where there is no feature.
    """

    feature: str
    key: str
    level: str
    words: str


def chips_of(state: Tried, fields: list[FormField]) -> list[Chip]:
    """List what was tried, in words."""
    chips = []
    for each in fields:
        refused = state.refused.get(each.name, {})
        tried = state.preferences.get(each.name, {}) | refused
        unit = f" {each.unit}" if each.unit else ""
        said = {
            "locked": "locked",
            "change_by": "by at most {}" + unit,
            "lower": "not below {}" + unit,
            "upper": "not above {}" + unit,
            "times": "{}× harder",
        }
        for key, words in said.items():
            if key in tried:
                number = "" if key == "locked" else numeral(tried[key])
                words += " (not possible)" if key in refused else ""
                chips.append(Chip(each.name, key, "", f"{each.label} {words.format(number)}"))
        for level in tried.get("avoid", ()):
            words = f"{each.label} not {level}"
            chips.append(Chip(each.name, "avoid", str(level), words))
    if state.radius is not None:
        chips.append(Chip("", "radius", "", f"size {numeral(state.radius)}"))
    return chips


def read_form(body: bytes) -> dict[str, str]:
    """Read a form as browsers send it; of a field that is there twice, the last."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise StateError("the form cannot be read") from None
    return dict(pairs)
