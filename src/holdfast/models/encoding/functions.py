"""Functions of numpy and scipy that a FunctionTransformer may hold: each bends one column."""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.models.encoding.bends import bender
from holdfast.models.encoding.columns import Back, EncodedColumn, Outline, rescale
from holdfast.models.encoding.imputers import fill

REMEDY = (
    "supported: numpy functions such as log1p, log, sqrt, square, exp, clip; write others as a "
    "transformer with a method holdfast_rules, see holdfast.models.encoding.ColumnRule"
)


def read_function(step: Any, columns: list[EncodedColumn], where: str) -> list[EncodedColumn]:
    """Take a FunctionTransformer; without a function it is how 'passthrough' is kept."""
    function, arguments, keywords = _opened(step)
    if function is None or function is np.positive:
        return columns
    if function is np.negative:
        return [rescale(column, 0.0, -1.0, where) for column in columns]
    if function is np.nan_to_num and not arguments and not keywords.keys() - {"nan", "copy"}:
        return [fill(column, float(keywords.get("nan", 0.0)), where) for column in columns]
    outline = _outline(function, arguments, keywords)
    if outline is None:
        name = getattr(function, "__name__", repr(function))
        raise ValueError(
            f"{where}: FunctionTransformer with the function {name} is not supported; {REMEDY}"
        )
    return bender(lambda step, k: [outline])(step, columns, where)


def _opened(step: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return the function, what is bound before its column, and what is given by name."""
    function, arguments, keywords = step.func, (), dict(step.kw_args or {})
    while isinstance(function, functools.partial):
        arguments = function.args + arguments
        keywords = {**function.keywords, **keywords}
        function = function.func
    return function, arguments, keywords


def _outline(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Outline | None:
    if function is np.clip and not arguments:
        ends = [keywords.pop(name, None) for name in ("a_min", "a_max", "min", "max")]
        ends = [end for end in ends if end is not None]
        return None if keywords else _cut(ends)
    if any(function is f for f in (np.maximum, np.minimum, np.fmax, np.fmin)) and arguments:
        return None if keywords else _cut(list(arguments))
    if (function is np.round or function is np.around) and not arguments:
        return None if keywords.keys() - {"decimals"} else Outline(is_monotone=True)
    if arguments or keywords:
        return None
    known = [outline for other, outline in _known() if other is function]
    return known[0] if known else None


def _cut(ends: list[Any]) -> Outline | None:
    if not all(isinstance(end, numbers.Real) for end in ends):
        return None
    edges = [float(end) for end in ends if math.isfinite(end)]
    has_tails = len(edges) == 2
    return Outline(edges, is_monotone=True, has_flat_tails=has_tails, back=lambda value: [value])


@functools.cache
def _known() -> list[tuple[Any, Outline]]:
    from scipy import special  # late: few pipelines need it

    inverses: list[tuple[Any, tuple[float, ...], Callable[[Any], Any]]] = [
        (np.log, (0.0,), np.exp),
        (np.log2, (0.0,), np.exp2),
        (np.log10, (0.0,), lambda value: 10.0**value),
        (np.log1p, (-1.0,), np.expm1),
        (np.exp, (), np.log),
        (np.exp2, (), np.log2),
        (np.expm1, (), np.log1p),
        (np.sqrt, (0.0,), np.square),
        (np.cbrt, (), lambda value: value**3),
        (np.arcsinh, (), np.sinh),
        (np.sinh, (), np.arcsinh),
        (np.tanh, (), np.arctanh),
        (np.arctan, (), np.tan),
        (special.log1p, (-1.0,), np.expm1),
        (special.expm1, (), np.log1p),
        (special.exp2, (), np.log2),
        (special.cbrt, (), lambda value: value**3),
        (special.expit, (), special.logit),
        (special.logit, (0.0, 1.0), special.expit),
    ]
    known = [
        (function, Outline(edges, is_monotone=True, back=_one(back)))
        for function, edges, back in inverses
    ]
    roots = _one(lambda value: np.sqrt([value, value]) * [-1.0, 1.0])
    sides = _one(lambda value: np.array([-value, value]))
    known += [
        (np.square, Outline((0.0,), is_monotone=True, back=roots)),
        *((f, Outline((0.0,), is_monotone=True, back=sides)) for f in (np.abs, np.fabs)),
        *((f, Outline(is_monotone=True)) for f in (np.floor, np.ceil, np.rint, np.trunc)),
        (np.sign, Outline((0.0,), is_flat=True)),
    ]
    return known


def _one(inverse: Callable[[Any], Any]) -> Back:
    def back(value: float) -> list[float]:
        with np.errstate(all="ignore"):
            found = np.atleast_1d(inverse(np.float64(value)))
        return [float(raw) for raw in found if np.isfinite(raw)]

    return back
