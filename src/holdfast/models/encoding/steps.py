"""Each step of a pipeline in turn, taken apart; what is not understood is an error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.models.encoding.asking import names_in
from holdfast.models.encoding.bends import Reader
from holdfast.models.encoding.columns import Affine, EncodedColumn, rescale
from holdfast.models.encoding.features import Curve, Number, RawFeature, gather
from holdfast.models.encoding.readers import READERS
from holdfast.models.encoding.rules import read_rules
from holdfast.models.encoding.unwrap import FittedStep, is_a, skipped, thawed

UNDERSTOOD = (
    "scikit-learn's scalers, encoders, SimpleImputer and MissingIndicator, KBinsDiscretizer, "
    "Binarizer, power, quantile and spline transformers, powers of single columns, known "
    "functions, selectors, ColumnTransformer, FeatureUnion and Pipeline; optbinning's "
    "BinningProcess; and anything with a method holdfast_rules, see "
    "holdfast.models.encoding.ColumnRule"
)
_MIXES = "each of its columns comes from several raw columns"
_FILLS = "what it fills in depends on other columns; use SimpleImputer"
REASONS = {
    "KNNImputer": _FILLS,
    "IterativeImputer": _FILLS,
    "Normalizer": "it divides each row by its length, which depends on all columns",
    "PCA": _MIXES,
    "TruncatedSVD": _MIXES,
    "OptimalBinning": "it takes one column, not a table; use BinningProcess",
}


def raw_names(first: FittedStep, coef: Any) -> tuple[list[str], bool]:
    """Names of the raw columns, and whether the pipeline knows them."""
    where, step = first
    names = names_in(step) or names_in(_first(step))
    if names is not None:
        return [str(name) for name in names], True
    n = getattr(step, "n_features_in_", None)
    if n is None and hasattr(step, "holdfast_rules"):
        n = len(list(step.holdfast_rules()))
    if n is None:
        if where or coef is None:
            raise ValueError(f"{where or 'the model'}: {type(step).__name__} is not fitted")
        n = len(coef)
    return [f"x{j}" for j in range(n)], False


class Understood(NamedTuple):
    """How many steps, from the first on, are understood, and what they lead to."""

    depth: int
    parts: list[RawFeature]  # the raw columns behind them
    n_columns: int


def understood(steps: list[FittedStep], *, with_curves: bool) -> Understood:
    """Say how many steps, from the first on, are understood, and what raw columns are behind them.

    Each encoded column then comes from one raw column that people can set; without curves, also
    every value between two encoded ones is some raw value.
    """
    if not steps:
        return Understood(0, [], 0)
    parts, width = list[RawFeature](), 0
    names, _ = raw_names(steps[0], None)
    columns: list[EncodedColumn] = [Affine(j, "the table itself") for j in range(len(names))]
    for k, (where, step) in enumerate(steps):
        try:
            columns = walk(step, columns, where)
            found = gather(columns, names)
        except ValueError:
            return Understood(k, parts, width)
        if not with_curves and any(_moves_together(part) for part in found):
            return Understood(k, parts, width)
        parts, width = found, len(columns)
    return Understood(len(steps), parts, width)


def _moves_together(part: RawFeature) -> bool:
    """Whether columns of a raw number can be set neither apart from each other nor to any value."""
    return isinstance(part, Curve) or (isinstance(part, Number) and bool(part.indicators))


def walk(step: Any, columns: list[EncodedColumn], where: str) -> list[EncodedColumn]:
    """Return what a fitted step makes of the columns; `where` says which step it is."""
    if skipped(step):
        return columns
    step = thawed(step)
    name, kind = type(step).__name__, _kind(step)
    reader = read_rules if hasattr(step, "holdfast_rules") else _READERS.get(kind)
    if reader is None:
        reason = REASONS.get(kind, f"supported: {UNDERSTOOD}")
        raise ValueError(f"{where}: {name} is not supported; {reason}")
    expected = getattr(step, "n_features_in_", None)
    if expected is not None and expected != len(columns):
        raise ValueError(f"{where}: fitted on {expected} columns, but it receives {len(columns)}")
    try:
        return reader(step, columns, where)
    except AttributeError as error:
        raise ValueError(f"{where}: {name} is not fitted ({error})") from None


def _kind(step: Any) -> str:
    """Name of a class of a known library; a subclass may do anything, so it is not understood.

    Pipelines are only walked through: what comes out of a derived one is compared.
    """
    if is_a(step, "Pipeline"):
        return "Pipeline"
    kind = type(step)
    return kind.__name__ if kind.__module__.partition(".")[0] in ("sklearn", "optbinning") else ""


def _pipeline(step: Any, columns: list[EncodedColumn], where: str) -> list[EncodedColumn]:
    for name, inner in step.steps:
        columns = walk(inner, columns, f"{where} / step {name!r}")
    return columns


def _column_transformer(step: Any, columns: list[EncodedColumn], where: str) -> list[EncodedColumn]:
    names = getattr(step, "feature_names_in_", None)
    weights = step.transformer_weights or {}
    result: list[EncodedColumn] = []
    readers = dict[str, tuple[Any, list[int]]]()
    for name, inner, selected in step.transformers_:
        if isinstance(inner, str) and inner == "drop":
            continue
        here = f"{where} / transformer {name!r}"
        places = selected_columns(step, selected, here)
        if not places:
            continue
        readers[here] = inner, places
        if names is not None:
            places = _by_name(inner, places, names)
        made = walk(inner, [columns[j] for j in places], here)
        made = _weighed(made, weights.get(name), here)
        out = step.output_indices_[name]
        if (out.start, out.stop) != (len(result), len(result) + len(made)):
            raise ValueError(f"{here}: {len(made)} columns were expected from it, at {len(result)}")
        result += made
    _refuse_overwritten(readers)
    return result


def _refuse_overwritten(readers: dict[str, tuple[Any, list[int]]]) -> None:
    """Refuse a transformer that may write into a column which another one has, or will read.

    Whether it does depends on the types of the table, and so does what the other one reads.
    """
    order = list(readers)
    for k, where in enumerate(order):
        inner, places = readers[where]
        if not _may_write(inner):
            continue
        # those before it have read already, unless they hand on the column itself
        others = [name for name in order[:k] if _may_hand_on(readers[name][0])] + order[k + 1 :]
        for other in others:
            if set(places) & set(readers[other][1]):
                raise ValueError(
                    f"{where} may write into a column that {other} reads too (copy=False); fit "
                    "it with copy=True"
                )


def _may_write(step: Any) -> bool:
    """Whether a fitted step may write into what it is given."""
    if skipped(step):
        return False
    step = thawed(step)
    if is_a(step, "Pipeline"):
        steps = [inner for _, inner in step.steps]
        first = next((k for k, inner in enumerate(steps) if not _may_hand_on(inner)), len(steps))
        return any(_may_write(inner) for inner in steps[: first + 1])
    parts = _parts_of(step)
    return any(map(_may_write, parts)) if parts else getattr(step, "copy", True) is False


def _may_hand_on(step: Any) -> bool:
    """Whether what comes out of a fitted step may be what it was given, and no copy."""
    if skipped(step):
        return True
    step = thawed(step)
    if is_a(step, "Pipeline"):
        return all(_may_hand_on(inner) for _, inner in step.steps)
    parts = _parts_of(step)
    if parts:
        return any(map(_may_hand_on, parts))
    is_identity = type(step).__name__ == "FunctionTransformer" and step.func is None
    return is_identity or getattr(step, "copy", True) is False


def _parts_of(step: Any) -> list[Any]:
    """Return the transformers that a step hands its columns to."""
    parts = getattr(step, "transformers_", None) or getattr(step, "transformer_list", [])
    return [part[1] for part in parts if not (isinstance(part[1], str) and part[1] == "drop")]


def selected_columns(step: Any, selected: Any, where: str) -> list[int]:
    """Positions of the columns that a ColumnTransformer selects, in whatever way it says so."""
    names, n = getattr(step, "feature_names_in_", None), step.n_features_in_
    position = {} if names is None else {name: j for j, name in enumerate(names)}
    if isinstance(selected, slice):
        ends = [selected.start, selected.stop]
        if any(isinstance(end, str) for end in ends):  # by name, the last one included
            start = 0 if ends[0] is None else position[ends[0]]
            stop = n if ends[1] is None else position[ends[1]] + 1
            return list(range(start, stop))[:: selected.step]
        return list(range(n))[selected]
    keys = np.atleast_1d(np.asarray(selected, dtype=object)).tolist()
    if keys and all(isinstance(key, (bool, np.bool_)) for key in keys):
        return [j for j, key in enumerate(keys) if key]
    unknown = [key for key in keys if isinstance(key, str) and key not in position]
    if unknown:
        raise ValueError(f"{where}: it selects columns {unknown} that it was not fitted on")
    return [position[key] if isinstance(key, str) else range(n)[key] for key in keys]


def _by_name(step: Any, places: list[int], names: Any) -> list[int]:
    """Sort columns as a step wants them that looks them up by name."""
    first = _first(step)
    if _kind(first) != "BinningProcess":
        return places
    return [list(names).index(name) for name in first.variable_names]


def _first(step: Any) -> Any:
    """Return the first step that does something."""
    while is_a(thawed(step), "Pipeline"):
        kept = [inner for _, inner in thawed(step).steps if not skipped(inner)]
        if not kept:
            return None
        step = kept[0]
    return thawed(step)


def _weighed(columns: list[EncodedColumn], weight: Any, where: str) -> list[EncodedColumn]:
    if weight is None:
        return columns
    return [rescale(column, 0.0, float(weight), where) for column in columns]


def _feature_union(step: Any, columns: list[EncodedColumn], where: str) -> list[EncodedColumn]:
    weights = step.transformer_weights or {}
    result: list[EncodedColumn] = []
    readers = dict[str, tuple[Any, list[int]]]()
    for name, inner in step.transformer_list:
        if not (isinstance(inner, str) and inner == "drop"):
            here = f"{where} / transformer {name!r}"
            readers[here] = inner, list(range(len(columns)))
            result += _weighed(walk(inner, columns, here), weights.get(name), here)
    _refuse_overwritten(readers)
    return result


_READERS: dict[str, Reader] = {
    **READERS,
    "Pipeline": _pipeline,
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _feature_union,
}
