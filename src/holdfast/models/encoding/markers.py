"""What stands for a missing level: pipelines tell None, NaN and pandas' NA from each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.machinery.numbers import Floats
from holdfast.models.encoding.features import Category
from holdfast.models.encoding.reading import Reading
from holdfast.models.encoding.unwrap import AGREEMENT

if TYPE_CHECKING:
    import pandas as pd


def settle_markers(
    feature: Category,
    column: pd.Series[Any],
    reading: Reading,
    ask: Callable[[int], Floats | None],
) -> None:
    """Read as unknown, or refuse, what stands for a missing level but not for the pipeline.

    An encoder may take NaN for missing, and None for a level of its own or for an unknown one.
    What it refuses is read as missing all the same: nobody gets another answer for it. `ask` says
    how the pipeline encodes the very value in a row, or None where it refuses it; an error that it
    raises says that it cannot be asked.
    """
    places, count = reading.levels[feature.name], len(feature.levels)
    rows = np.flatnonzero(places == count)
    if not rows.size:
        return
    # as encoders see them: in an array of numbers all are NaN
    markers = np.asarray(column.iloc[rows]).tolist()
    kinds = [type(marker) for marker in markers]
    for kind in dict.fromkeys(kinds):
        own = [int(row) for row, its in zip(rows, kinds, strict=True) if its is kind]
        own = [row for row in own if row not in reading.reasons]
        if kind is type(feature.missing_as) or not own:
            continue
        try:
            codes = ask(own[0])
        except ValueError:
            said = f"{feature.name} is missing, and the pipeline cannot be asked what that means"
            for row in own:
                reading.note(row, feature.name, said)
            continue
        if codes is None or _are_alike(codes, feature.missing):
            continue
        if _are_alike(codes, feature.unknown):
            places[own] = count + 1
            continue
        marker = markers[kinds.index(kind)]
        for row in own:
            reading.note(
                row,
                feature.name,
                f"{feature.name} = {marker!r}: the model takes {feature.missing_as!r} for missing, "
                f"and {marker!r} for something else; write {feature.missing_as!r} instead",
            )


def _are_alike(codes: Floats, known: Floats | None) -> bool:
    return known is not None and bool(np.allclose(codes, known, rtol=AGREEMENT, atol=AGREEMENT))
