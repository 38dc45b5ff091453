"""`holdfast.calibrate` over files: models, a table with its outcomes, an action set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.actions import ActionSet
from holdfast.calibration import calibrate
from holdfast.files.models import ModelFile, load_model
from holdfast.files.people import PeopleColumns
from holdfast.files.tables import TableFile, open_table, read_frame
from holdfast.machinery.settings import suggest
from holdfast.models.classes import label_of, spelled
from holdfast.models.encoding import Encoding
from holdfast.models.encoding.reading import plain

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from holdfast.calibration.sizing import Sizing

_ROWS = 1 << 16


@dataclass(frozen=True)
class Rehearsed:
    """The files that a set of models is found from.

    Attributes
    ----------
    model, table : Path
        Today's model, and what it was trained on.
    target : str
        The column of the outcome.
    actions : Path, optional
    past_models : tuple of Path
        Earlier versions, oldest first.
    time : str, optional
        The column that says when each row was seen.
    favorable_class : str, optional
        The class that people want, as it is typed.
    """

    model: Path
    table: Path
    target: str
    actions: Path | None = None
    past_models: tuple[Path, ...] = ()
    time: str | None = None
    favorable_class: str | None = None


def calibrate_files(files: Rehearsed, **settings: Any) -> Sizing:
    """Find the set of models that advice must withstand; see `holdfast.calibrate`.

    Rows without an outcome are left out. The settings are those of `holdfast.calibrate`.

    Examples
    --------
    >>> import json, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> column = {"name": "months", "coefficient": 0.1}
    >>> model = {"holdfast_model": 1, "classes": [False, True], "intercept": 0, "columns": [column]}
    >>> _ = (folder / "model.json").write_text(json.dumps(model))
    >>> calibrate_files(Rehearsed(folder / "model.json", folder / "loans.csv", "default"))
    Traceback (most recent call last):
        ...
    ValueError: ...model.json holds coefficients only, so it cannot be retrained. Give earlier \
versions of it with --past-models, or give the model as a .skops file
    """
    found = load_model(files.model, files.favorable_class)
    past = [load_model(path, files.favorable_class) for path in files.past_models]
    if not found.can_retrain and not past:
        raise ValueError(
            f"{files.model} holds coefficients only, so it cannot be retrained. Give earlier "
            "versions of it with --past-models, or give the model as a .skops file"
        )
    actions = None if files.actions is None else ActionSet.load(files.actions)
    names = [files.target, *([files.time] if files.time is not None else [])]
    table = open_table(files.table)
    for name in names:
        if name not in table.names:
            raise ValueError(f"{files.table} has no column {name!r}; {suggest(name, table.names)}")
    frame = read_frame(files.table, list(dict.fromkeys(names)))  # refuses rows that are broken
    encoding = Encoding.of(found.model, favorable_class=found.favorable_class)
    columns = PeopleColumns.of(encoding, ActionSet([]), are_texts=table.are_texts)
    cells = _cells(table, columns, files)
    outcomes = _outcomes(cells[files.target], found, files, are_texts=table.are_texts)
    seen = np.array([outcome is not None for outcome in outcomes], dtype=bool)
    kind = object if isinstance(found.model.classes_[0], str) else found.model.classes_.dtype
    return calibrate(
        found.model,
        _people(cells.filter(seen), columns),
        np.array([outcome for outcome in outcomes if outcome is not None], dtype=kind),
        actions=actions,
        past_models=[version.model for version in past] or None,
        time=None if files.time is None else _when(frame[files.time][seen], files),
        favorable_class=found.favorable_class,
        **settings,
    )


def _cells(table: TableFile, columns: PeopleColumns, files: Rehearsed) -> pa.Table:
    """Return the columns of the model and of the outcome as they lie in the file."""
    import pyarrow as pa

    names = list(columns.levels)
    complaints = [f"there is no column {name!r}" for name in names if name not in table.names]
    if complaints:
        raise ValueError("\n".join([f"{files.table} does not fit the model:", *complaints]))
    parts = list(table.batches(_ROWS, list(dict.fromkeys([*names, files.target]))))
    if not parts:
        raise ValueError(f"{files.table} has no rows")
    return pa.Table.from_batches(parts)


def _people(cells: pa.Table, columns: PeopleColumns) -> pd.DataFrame:
    """Return people as `recommend` reads them, typed as the model knows them.

    What is missing is NaN, as when a model is trained.
    """
    people = columns.frame(cells)
    for name in people.columns:
        if people[name].dtype == object and people[name].isna().any():
            people[name] = people[name].where(people[name].notna(), np.nan)
    return people


def _outcomes(cells: Any, found: ModelFile, files: Rehearsed, *, are_texts: bool) -> list[Any]:
    """Return the outcomes as the model's own labels, None where there is none."""
    classes = [plain(label) for label in found.model.classes_]
    column = PeopleColumns({files.target: tuple(classes)}, are_texts)
    read = column.column(files.target, cells).tolist()
    meant: dict[Any, Any] = {}
    for value in dict.fromkeys(read):
        if value is None or value != value:
            meant[value] = None
            continue
        same = [label for label in classes if type(label) is type(value) and label == value]
        try:
            meant[value] = same[0] if same else label_of(classes, str(value))
        except ValueError:
            raise ValueError(
                f"{files.table}: {files.target} = {value!r} is not one of the model's classes, "
                f"{spelled(classes)}"
            ) from None
    return [meant[value] for value in read]


def _when(column: pd.Series[Any], files: Rehearsed) -> Any:
    import pandas as pd

    if getattr(column.dtype, "kind", "O") in "iufmM":
        return column.to_numpy()
    try:
        return pd.to_datetime(column).to_numpy()
    except (ValueError, TypeError) as error:
        why = str(error).partition("\n")[0]
        raise ValueError(f"{files.table}: {files.time} does not hold dates: {why}") from None
