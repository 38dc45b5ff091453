"""What a letter says, in a language, with what a lender says in other words."""

from __future__ import annotations

import string
from collections.abc import Iterable
from datetime import date
from importlib import resources
from pathlib import Path
from typing import Any

from holdfast.machinery.numerals import numeral
from holdfast.machinery.plain_files import FileKind, check_schema, load_plain, naming
from holdfast.machinery.settings import suggest
from holdfast.models.encoding.reading import is_missing, plain

LANGUAGES = ("en", "de")
_KIND = FileKind("a file of words")
_TABLES = ("units", "labels", "values", "months")


class Words:
    """The words of a language, some of them perhaps replaced.

    Examples
    --------
    >>> from datetime import date
    >>> words = Words.of("de")
    >>> words.number(12500.5), words.date(date(2027, 3, 31)), words.measured(1, "months")
    ('12.500,5', '31. März 2027', '1 Monat')
    """

    def __init__(self, language: str, content: dict[str, Any]) -> None:
        self.language, self._content = language, content

    @classmethod
    def of(cls, language: str, path: Path | None = None, features: Iterable[str] = ()) -> Words:
        """Return the words of a language, with those of a file in the place of ours.

        Parameters
        ----------
        language : str
            "en" or "de".
        path : Path, optional
            A YAML or JSON file with entries to replace.
        features : iterable of str
            The columns that labels and values may be given for.
        """
        if language not in LANGUAGES:
            raise ValueError(
                f"language = {language!r} is not available; choose one of {' and '.join(LANGUAGES)}"
            )
        own = _own(language)
        if path is None:
            return cls(language, own)
        given = load_plain(path, _KIND)
        with naming(path):
            check_schema(given, _schema(own), _KIND)
            _check_names(given, list(features))
            _check_places(given, own)
        merged = own | {name: text for name, text in given.items() if name not in _TABLES}
        for name in ("units", "labels", "values"):
            merged[name] = {**own[name], **given.get(name, {})}
        return cls(language, merged | ({"months": given["months"]} if "months" in given else {}))

    def say(self, name: str, **values: str) -> str:
        """Return a sentence, filled in."""
        return str(self._content[name]).format(**values)

    def label(self, feature: str) -> str:
        """Return what a feature is called: as the lender says, or its name made readable."""
        readable = feature.replace("_", " ").strip()
        return str(self._content["labels"].get(feature, readable[:1].upper() + readable[1:]))

    def value(self, feature: str, value: Any, unit: str = "", *, with_unit: bool = True) -> str:
        """Return a value of a feature, with its unit or without."""
        value = plain(value)
        if is_missing(value):
            return self.say("not_given")
        said = self._content["values"].get(feature, {}).get(str(value))
        if said is not None:
            return str(said)
        if isinstance(value, bool):
            return self.say("yes" if value else "no")
        return self.measured(value, unit) if with_unit else self._amount(value, unit)

    def measured(self, value: Any, unit: str) -> str:
        """Return a number with its unit, or a text."""
        written = self._amount(value, unit)
        if not unit or isinstance(value, str):
            return written
        forms = self._content["units"].get(unit, unit)
        if isinstance(forms, dict):
            forms = forms["one" if value == 1 else "many"]
        return f"{written}{'' if forms.startswith('%') and self.language == 'en' else ' '}{forms}"

    def _amount(self, value: Any, unit: str) -> str:
        """Write a number; what has a unit is no year, and has its thousands set apart."""
        written = self.number(value)
        if isinstance(value, str) or not unit or not 1_000 <= abs(value) < 10_000:
            return written
        point: str = self._content["decimal_point"]
        whole, *rest = written.split(point)
        return point.join([f"{whole[:-3]}{self._content['thousands']}{whole[-3:]}", *rest])

    def number(self, value: Any) -> str:
        """Write a number to its last digit; a text stays as it is."""
        if isinstance(value, str):
            return value
        swap = {",": self._content["thousands"], ".": self._content["decimal_point"]}
        return "".join(swap.get(sign, sign) for sign in numeral(value))

    def date(self, day: date) -> str:
        """Write a date."""
        month = self._content["months"][day.month - 1]
        return self.say("date", day=str(day.day), month=month, year=str(day.year))


def _own(language: str) -> dict[str, Any]:
    import yaml

    text = (
        resources.files("holdfast.report").joinpath("words", f"{language}.yaml").read_text("utf-8")
    )
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def _schema(own: dict[str, Any]) -> dict[str, Any]:
    """Return what a file of words must look like: no names but ours, and texts for them."""
    text = {"type": "string", "minLength": 1}
    texts = {"type": "object", "additionalProperties": text}
    forms = {
        "type": "object",
        "properties": {"one": text, "many": text},
        "required": ["one", "many"],
        "additionalProperties": False,
    }
    properties: dict[str, Any] = {name: text for name in own if name not in _TABLES}
    properties["thousands"] = {"type": "string"}
    properties["labels"] = texts
    properties["values"] = {"type": "object", "additionalProperties": texts}
    properties["units"] = {"type": "object", "additionalProperties": {"anyOf": [text, forms]}}
    properties["months"] = {"type": "array", "items": text, "minItems": 12, "maxItems": 12}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _check_names(given: dict[str, Any], features: list[str]) -> None:
    tables = [(name, given.get(name, {})) for name in ("labels", "values", "units")]
    tables += [(f"values.{name}", levels) for name, levels in given.get("values", {}).items()]
    for place, table in tables:
        for name in table:
            if not isinstance(name, str):
                raise ValueError(f"{place}: the name {name!r} is not a string; put it in quotes")
            if place in ("labels", "values") and name not in features:
                raise ValueError(
                    f"{place}: {name!r} is not a column that the model reads; "
                    f"{suggest(name, features)}"
                )


def _check_places(given: dict[str, Any], own: dict[str, Any]) -> None:
    """Refuse sentences with a place to fill in that there is not; it may be left out."""
    for name, text in given.items():
        if name in _TABLES:
            continue
        try:
            parsed = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ValueError(
                f"{name}: {error}; to write a brace, double it: {{{{ or }}}}"
            ) from None
        known = [field for _, field, _, _ in string.Formatter().parse(own[name]) if field]
        for _, field, form, turn in parsed:
            if field is not None and (field not in known or form or turn):
                places = " and ".join(f"{{{each}}}" for each in known) or "none"
                raise ValueError(
                    f"{name}: {{{field}}} cannot be filled in; available placeholders: {places}"
                )
