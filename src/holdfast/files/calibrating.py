"""`holdfast.calibrate` over files: models, a table with its outcomes, an action set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.actions import ActionSet
from holdfast.actions.feature import suggest
from holdfast.calibration import calibrate
from holdfast.files.models import ModelFile, load_model
from holdfast.files.people import Columns
from holdfast.files.tables import read_frame
from holdfast.models.classes import label_of, spelled
from holdfast.models.encoding import Encoding
from holdfast.models.encoding.reading import plain

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.calibration.sizing import Sizing


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
    favorable : str, optional
        The class that people want, as it is typed.
    """

    model: Path
    table: Path
    target: str
    actions: Path | None = None
    past_models: tuple[Path, ...] = ()
    time: str | None = None
    favorable: str | None = None


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
    ValueError: ...model.json holds coefficients only, and cannot be trained again. Give earlier \
versions of it with --past-models, or the model as a .skops file
    """
    found = load_model(files.model, files.favorable)
    past = [load_model(path, files.favorable) for path in files.past_models]
    if not found.can_retrain and not past:
        raise ValueError(
            f"{files.model} holds coefficients only, and cannot be trained again. Give earlier "
            "versions of it with --past-models, or the model as a .skops file"
        )
    actions = None if files.actions is None else ActionSet.load(files.actions)
    frame = read_frame(files.table)
    for name in [files.target, *([files.time] if files.time is not None else [])]:
        if name not in frame:
            known = suggest(name, [str(column) for column in frame.columns])
            raise ValueError(f"{files.table} has no column {name!r}; {known}")
    frame = frame[frame[files.target].notna()].reset_index(drop=True)
    return calibrate(
        found.model,
        _people(frame, found, files),
        _outcomes(frame[files.target], found, files),
        actions=actions,
        past_models=[version.model for version in past] or None,
        time=None if files.time is None else _when(frame[files.time], files),
        favorable_class=found.favorable_class,
        **settings,
    )


def _people(frame: pd.DataFrame, found: ModelFile, files: Rehearsed) -> pd.DataFrame:
    """Return the columns that the model reads, typed as it knows them; missing ones are NaN."""
    import pyarrow as pa

    encoding = Encoding.of(found.model, favorable_class=found.favorable_class)
    columns = Columns.of(encoding, ActionSet([]))
    problems = [f"there is no column {name!r}" for name in columns.levels if name not in frame]
    if problems:
        raise ValueError("\n".join([f"{files.table} does not fit the model:", *problems]))
    people = columns.frame(pa.Table.from_pandas(frame[list(columns.levels)], preserve_index=False))
    for name in people.columns:
        if people[name].dtype == object and people[name].isna().any():
            people[name] = people[name].where(people[name].notna(), np.nan)
    return people


def _outcomes(column: pd.Series[Any], found: ModelFile, files: Rehearsed) -> Any:
    """Return the outcomes as the model's own labels."""
    classes = [plain(label) for label in found.model.classes_]
    meant: dict[Any, Any] = {}
    for value in column.unique().tolist():
        value = plain(value)
        same = [label for label in classes if type(label) is type(value) and label == value]
        try:
            meant[value] = same[0] if same else label_of(classes, str(value))
        except ValueError:
            raise ValueError(
                f"{files.table}: {files.target} = {value!r} is none of the model's classes, "
                f"{spelled(classes)}"
            ) from None
    kind = object if isinstance(classes[0], str) else type(classes[0])
    return np.array([meant[plain(value)] for value in column.tolist()], dtype=kind)


def _when(column: pd.Series[Any], files: Rehearsed) -> Any:
    import pandas as pd

    if getattr(column.dtype, "kind", "O") in "iufmM":
        return column.to_numpy()
    try:
        return pd.to_datetime(column).to_numpy()
    except (ValueError, TypeError) as error:
        why = str(error).partition("\n")[0]
        raise ValueError(f"{files.table}: {files.time} does not hold dates: {why}") from None
