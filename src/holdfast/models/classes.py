"""Labels of classes as people say or type them, and which of them is the favourable one."""

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
    if said is UNSAID:
        known = favorable_position(classes, wanted)
        if known is None:
            raise ValueError(
                "the file does not say which class people want: give --favorable-class; the "
                f"classes are {spelled(classes)}"
            )
        return classes[known]
    known = favorable_position(classes, said)
    if known is None:
        raise ValueError(
            f"the file says that the favourable class is {said!r}, but the classes are "
            f"{spelled(classes)}"
        )
    if wanted is not UNSAID and wanted != said:
        raise ValueError(
            f"the file says that the favourable class is {said!r}, but you say {wanted!r}"
        )
    return classes[known]


def favorable_position(classes: list[Any], said: Any) -> int | None:
    """Return where the favourable class stands: the one that is said, else True beside False.

    None where it is none of them, or must be said. True is not 1, nor False 0: who says so means
    another model.

    Examples
    --------
    >>> favorable_position([0, 1], 0), favorable_position([False, True], UNSAID)
    (0, 1)
    >>> favorable_position([0, 1], UNSAID), favorable_position([0, 1], True)
    (None, None)
    """
    if said is UNSAID:
        return classes.index(True) if all(isinstance(label, bool) for label in classes) else None
    for k, label in enumerate(classes):
        if label == said and isinstance(label, bool) == isinstance(said, bool):
            return k
    return None


def label_of(classes: list[Any], typed: str) -> Any:
    """Return the one class that somebody means by a text.

    Examples
    --------
    >>> label_of([0, 1], "1"), label_of([False, True], "true"), label_of(["bad", "good"], "good")
    (1, True, 'good')
    >>> label_of([0, 1], "good")
    Traceback (most recent call last):
        ...
    ValueError: 'good' is not one of the classes: 0, 1
    """
    meant = [label for label in classes if _reads_as(label, typed)]
    if not meant:
        raise ValueError(f"{typed!r} is not one of the classes: {spelled(classes)}")
    if len(meant) > 1:
        raise ValueError(f"{typed!r} could mean any of the classes {spelled(meant)}; rename one")
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
