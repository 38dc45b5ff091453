"""Steps that bend or cut numbers: for each of their columns, where it jumps; no values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from holdfast.models.encoding.asking import at_missing, push
from holdfast.models.encoding.columns import (
    Affine,
    Back,
    Bent,
    Coded,
    EncodedColumn,
    Flag,
    Outline,
    bend,
    refuse_missing,
)

Reader = Callable[[Any, list[EncodedColumn], str], list[EncodedColumn]]


def bender(outlines: Callable[[Any, int], list[Outline]]) -> Reader:
    """Make the reader of a step from the outlines of what comes of its k-th column, in order."""

    def read(step: Any, columns: list[EncodedColumn], where: str) -> list[EncodedColumn]:
        gone = at_missing(step, len(columns))
        result: list[EncodedColumn] = []
        for k, column in enumerate(columns):
            made = outlines(step, k)
            place = slice(len(result), len(result) + len(made))
            if isinstance(column, (Coded, Flag)):
                result += push(step, columns, k, place, where)
                continue
            known = refuse_missing(column) if gone is None else column
            takes = gone is not None and bool(np.isfinite(gone[place]).all())
            result += [bend(known, where, outline, takes_missing=takes) for outline in made]
        return result

    return read


def _k_bins(step: Any, k: int) -> list[Outline]:
    width = 1 if step.encode == "ordinal" else int(step.n_bins_[k])
    edges = np.asarray(step.bin_edges_[k][1:-1], dtype=np.float64)
    if step.dtype is np.float32:  # what is rounded to an edge is beyond it
        near = edges.astype(np.float32)
        above = np.where(near < edges, np.nextafter(near, np.float32(np.inf)), near)
        below = np.nextafter(above, np.float32(-np.inf))
        edges = 0.5 * (below.astype(np.float64) + above.astype(np.float64))
    return [Outline(edges, is_flat=True)] * width


def _binarizer(step: Any, k: int) -> list[Outline]:
    return [Outline([step.threshold], is_flat=True)]


def _clipped(step: Any, k: int) -> list[Outline]:
    shift, scale = float(step.min_[k]), float(step.scale_[k])

    def back(value: float) -> list[float]:
        return [(value - shift) / scale]

    edges = [edge for end in step.feature_range for edge in back(end)]
    return [Outline(edges, is_monotone=True, has_flat_tails=True, back=back)]


def _asked_back(step: Any, k: int) -> Back:
    """Return the inverse of a step in its k-th column, as it says itself."""

    def back(value: float) -> Iterable[float]:
        row = np.zeros((1, step.n_features_in_))
        row[0, k] = value
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            raw = float(np.asarray(step.inverse_transform(row))[0, k])
        return [raw] if np.isfinite(raw) else []

    return back


def _power(step: Any, k: int) -> list[Outline]:
    return [Outline(is_monotone=True, back=_asked_back(step, k))]


def _quantile(step: Any, k: int) -> list[Outline]:
    # it jumps at values that many people share, and ends at the first and the last
    quantiles = step.quantiles_[:, k]
    shared = quantiles[1:][np.diff(quantiles) == 0.0]
    edges = {float(edge) for edge in (*shared, quantiles[0], quantiles[-1])}
    back = _asked_back(step, k)
    return [Outline(sorted(edges), is_monotone=True, has_flat_tails=True, back=back)]


def _spline(step: Any, k: int) -> list[Outline]:
    knots = step.bsplines_[k].t
    inner = knots[step.degree : len(knots) - step.degree]
    is_constant = step.extrapolation == "constant"
    width = step.n_features_out_ // step.n_features_in_
    if step.degree == 0:
        return [Outline(inner, is_flat=is_constant)] * width
    return [Outline(inner[[0, -1]], has_flat_tails=is_constant)] * width


def _polynomial(step: Any, columns: list[EncodedColumn], where: str) -> list[EncodedColumn]:
    """Take powers of single columns; what multiplies two raw columns is not understood."""
    if at_missing(step, len(columns)) is None:
        columns = [refuse_missing(column) for column in columns]
    result: list[EncodedColumn] = []
    for j, powers in enumerate(step.powers_):
        factors = np.flatnonzero(powers)
        if not len(factors):
            result.append(_bias(columns[0], where))
        elif powers.sum() == 1:
            result.append(columns[factors[0]])
        elif len(factors) == 1 and isinstance(columns[factors[0]], (Coded, Flag)):
            result += push(step, columns, int(factors[0]), slice(j, j + 1), where)
        else:
            chosen = [columns[k] for k in factors]
            names = getattr(step, "feature_names_in_", [f"x{k}" for k in range(len(powers))])
            result.append(_product(chosen, [names[k] for k in factors], int(powers.sum()), where))
    return result


def _bias(column: EncodedColumn, where: str) -> Flag:
    """Return the column of ones; it goes with the first column, as it comes from none."""
    takes = column.missing is not None if isinstance(column, Coded) else column.takes_missing
    return Flag(column.raw, where, 1.0, 1.0 if takes else None)


def _product(columns: list[EncodedColumn], names: list[Any], degree: int, where: str) -> Bent:
    first = columns[0]
    if len(columns) == 1:

        def back(value: float) -> list[float]:
            return _roots(value, degree)

        return bend(first, where, Outline([0.0], is_monotone=True, back=back))
    numbers = [column for column in columns if isinstance(column, (Affine, Bent))]
    if len(numbers) < len(columns) or any(column.raw != first.raw for column in columns):
        raise ValueError(
            f"{where}: PolynomialFeatures multiplies {' by '.join(map(str, names))}; columns made "
            "from two raw columns are not supported"
        )
    parts = [bend(column, where, Outline()) for column in numbers]
    fills = [part.fill for part in parts if part.fill is not None]
    return Bent(
        first.raw,
        where,
        edges=tuple(sorted({edge for part in parts for edge in part.edges})),
        is_flat=all(part.is_flat for part in parts),
        has_flat_tails=all(part.is_flat or part.has_flat_tails for part in parts),
        takes_missing=all(part.takes_missing for part in parts),
        fill=fills[0] if fills else None,
        specials=tuple(sorted({code for part in parts for code in part.specials})),
        refuses_missing=any(part.refuses_missing for part in parts),
    )


def _roots(value: float, degree: int) -> list[float]:
    root = abs(value) ** (1.0 / degree)
    if degree % 2:
        return [float(np.copysign(root, value))]
    return [-root, root] if value >= 0.0 else []


READERS: dict[str, Reader] = {
    "KBinsDiscretizer": bender(_k_bins),
    "Binarizer": bender(_binarizer),
    "PowerTransformer": bender(_power),
    "QuantileTransformer": bender(_quantile),
    "SplineTransformer": bender(_spline),
    "PolynomialFeatures": _polynomial,
}
clipped = bender(_clipped)
