"""The one table of an experiment: what its columns mean, and how it is kept.

A row is one recourse under one way of judging it. Everything that is shown (tables, figures, pages)
is read from this table, and the table says in its own metadata what made it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

_TEXT, _NUMBER, _WHOLE, _FLAG = "category", "float64", "int64", "bool"
_ABOUT = b"holdfast"


class Field(NamedTuple):
    """What stands in a column."""

    dtype: str
    meaning: str


# What tells a row from all others ...
_KEYS = {
    "experiment": Field(_TEXT, "which part of the reproduction: table1, frontiers, proof, ..."),
    "dataset": Field(_TEXT, "german or sba"),
    "model": Field(_TEXT, "logistic or network"),
    "fold": Field(_WHOLE, "from 0"),
    "instance": Field(_WHOLE, "the person: position among the denied of the fold, from 0"),
    "method": Field(_TEXT, "as `holdfast methods` lists them, the paper's own among them"),
    "settings": Field(_TEXT, "of the method where they are not its defaults, as JSON"),
    "linearise": Field(_TEXT, "what made a network linear; empty for linear models"),
    "p": Field(_NUMBER, "exponent of the ball the method was given; NaN where it takes none"),
    "radius": Field(_NUMBER, "of the ball (also of the one it is judged by)"),
    "cost_weight": Field(_NUMBER, "NaN where the method takes none"),
    "guarantee": Field(_NUMBER, "worst-case validity that was asked for; NaN where none was"),
    "constraints": Field(_TEXT, "none, after (post-processed) or inside (the optimisation)"),
    "judged_p": Field(_NUMBER, "exponent of the ball it is judged by"),
    "judging": Field(_TEXT, "exact (linear), search or proof (networks, one ball), as_published"),
}
# ... and what was found out about it
_VALUES = {
    "drawn": Field(_FLAG, "whether the person is in the sample that the paper's authors drew"),
    "cost": Field(_NUMBER, "sum of |changes|, in scaled units"),
    "price": Field(_NUMBER, "worst-case loss + cost_weight * cost; NaN without a cost weight"),
    "current_validity": Field(_NUMBER, "probability of approval by today's model"),
    "worst_case_validity": Field(
        _NUMBER, "... by the worst model of the ball for it (networks: the worst found)"
    ),
    "proven_validity": Field(
        _NUMBER, "... that every model of the ball gives at least; NaN where none was sought"
    ),
    "population_validity": Field(
        _NUMBER, "... by one worst model for the whole fold; of networks, in one ball"
    ),
    "future_validity": Field(_NUMBER, "... by the model retrained on the shifted data"),
    "future_validity_as_published": Field(
        _NUMBER, "the same, the shifted data prepared as the authors did"
    ),
    "changed_additive": Field(_NUMBER, "features changed by at least 0.01 in scaled units"),
    "changed_multiplicative": Field(_NUMBER, "features changed by at least 1 % of their value"),
    "seconds": Field(_NUMBER, "of the method, per recourse, linearisation included"),
    "gap": Field(_NUMBER, "price minus its proven lower bound; NaN where nothing is proven"),
    "status": Field(_TEXT, "what the certificate says: optimal, gap open, ..."),
    "method_status": Field(_TEXT, "what the method says of its own run"),
}
FIELDS: dict[str, Field] = {**_KEYS, **_VALUES}
KEYS = list(_KEYS)


def check_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with its columns in order and of the right types; refuse any other.

    Examples
    --------
    >>> import pandas as pd
    >>> check_table(pd.DataFrame({"price": [1.0]}))
    Traceback (most recent call last):
    ...
    ValueError: the table lacks the columns experiment, dataset, model, fold, instance, method, ...
    """
    missing = [name for name in FIELDS if name not in table]
    unknown = [str(name) for name in table if name not in FIELDS]
    if missing:
        shown = ", ".join(missing[:6]) + (", ..." if len(missing) > 6 else "")
        raise ValueError(f"the table lacks the columns {shown}")
    if unknown:
        raise ValueError(f"the table has unknown columns: {', '.join(unknown)}")
    table = table[list(FIELDS)].astype({name: field.dtype for name, field in FIELDS.items()})
    if table.duplicated(KEYS).any():
        twice = table.loc[table.duplicated(KEYS), KEYS].iloc[0].to_dict()
        raise ValueError(f"the table has the same row twice: {twice}")
    return table


def write_table(table: pd.DataFrame, path: str | Path, about: dict[str, Any]) -> None:
    """Write the table as Parquet, atomically, with what is said `about` it (plain JSON) inside."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow = pa.Table.from_pandas(check_table(table), preserve_index=False)
    metadata = {**(arrow.schema.metadata or {}), _ABOUT: json.dumps(about).encode()}
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        pq.write_table(arrow.replace_schema_metadata(metadata), unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_table(path: str | Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read a table and what is said about it."""
    import pyarrow.parquet as pq

    arrow = pq.read_table(path)
    about = (arrow.schema.metadata or {}).get(_ABOUT)
    if about is None:
        raise ValueError(f"{path} is not a table written by holdfast: it has no description")
    return check_table(arrow.to_pandas()), json.loads(about)
