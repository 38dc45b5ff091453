"""A figure to be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Picture(NamedTuple):
    """A figure with what is said below it."""

    name: str
    title: str
    caption: str
    figure: Figure
