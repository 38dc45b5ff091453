"""Labels of classes as people type them, and which of them is the favourable one."""

from __future__ import annotations

from typing import Any, Final

from holdfast.models.encoding.reading import shorten


class _Unsaid:
    def __repr__(self) -> str:
        return "not said"


UNSAID: Final = _Unsaid()  # None could be a label


def favorable_of(classes: list[Any], said: Any, typed: str | None) -> Any:
    """Return the favourable class, from what a file says and what somebody typed.

    Examples
    --------
    >>> favorable_of([0, 1], UNSAID, "0")
    0
    >>> favorable_of([False, True], UNSAID, None)
    True
    >>> favorable_of([0, 1], 1, "0")
    Traceback (most recent call last):
        ...
    ValueError: the file says that the favourable class is 1, but you say 0
    """
    wanted = UNSAID if typed is None else label_of(classes, typed)
    if said is not UNSAID:
        known = [label for label in classes if type(label) is type(said) and label == said]
        if not known:
            raise ValueError(
                f"the file says that the favourable class is {said!r}, but the classes are "
                f"{spelled(classes)}"
            )
        if wanted is not UNSAID and wanted != said:
            raise ValueError(
                f"the file says that the favourable class is {said!r}, but you say {wanted!r}"
            )
        return known[0]
    if wanted is not UNSAID:
        return wanted
    if all(isinstance(label, bool) for label in classes):
        return True
    raise ValueError(
        "the file does not say which class people want: give --favorable; the classes are "
        f"{spelled(classes)}"
    )


def label_of(classes: list[Any], typed: str) -> Any:
    """Return the one class that somebody means by a text.

    Examples
    --------
    >>> label_of([0, 1], "1"), label_of([False, True], "true"), label_of(["bad", "good"], "good")
    (1, True, 'good')
    >>> label_of([0, 1], "good")
    Traceback (most recent call last):
        ...
    ValueError: 'good' is none of the classes: 0, 1
    """
    meant = [label for label in classes if _reads_as(label, typed)]
    if not meant:
        raise ValueError(f"{typed!r} is none of the classes: {spelled(classes)}")
    if len(meant) > 1:
        raise ValueError(f"{typed!r} may be any of the classes {spelled(meant)}; rename one")
    return meant[0]


def spelled(classes: list[Any]) -> str:
    """Spell out labels so that texts and numbers are told apart.

    Examples
    --------
    >>> spelled([0, "0"])
    "0, '0'"
    """
    return shorten(classes)


def _reads_as(label: Any, typed: str) -> bool:
    if isinstance(label, str):
        return label == typed
    if isinstance(label, bool):
        return typed.lower() == str(label).lower()
    try:
        return bool(float(typed) == label)
    except ValueError:
        return False
