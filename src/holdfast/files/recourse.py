"""What a run has left: the table of advice, and its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.files.jobs import Job, Prepared, check_unchanged, load_job, prepare
from holdfast.files.models import ModelFile, load_model
from holdfast.files.tables import TableFile, open_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from holdfast.recommend import RobustRecourse


def manifest_of(path: str | Path) -> Path:
    """Return where the manifest of a table of advice lies.

    Examples
    --------
    >>> manifest_of("recourse.parquet").name
    'recourse.parquet.yaml'
    """
    path = Path(path)
    return path.with_name(f"{path.name}.yaml")


@dataclass(frozen=True, eq=False)
class RecourseFile:
    """The advice that a run gave, with all that it rests on; make it with `RecourseFile.open`.

    Attributes
    ----------
    path : Path
    job : Job
        What was asked.
    run : dict
        What became of it: checksums, counts, versions, times.
    """

    path: Path
    job: Job
    run: dict[str, Any]
    table: TableFile

    @classmethod
    def open(cls, path: str | Path) -> RecourseFile:
        """Open what a run has left; what was changed since is refused."""
        path, manifest = Path(path), manifest_of(path)
        table = open_table(path)
        if table.are_texts:
            raise ValueError(
                f"{path}: a CSV file does not say which cells are numbers; run `holdfast "
                "recommend` with --out advice.parquet and use that file"
            )
        if "row" not in table.names or "status" not in table.names:
            raise ValueError(f"{path} was not written by `holdfast recommend`")
        if not manifest.exists():
            raise FileNotFoundError(
                f"{path} lacks its manifest: {manifest.name} must be beside it, as the run left it"
            )
        job, run = load_job(manifest)
        known = run.get("checksums", {}).get("out")
        if known is not None and table.checksum() != known:
            raise ValueError(
                f"{path} was changed after the run that wrote it, so it is not what the run "
                "advised. Use the file as the run left it, or run `holdfast recommend` again"
            )
        return cls(path, job, run, table)

    @property
    def keys(self) -> list[str]:
        """The key columns."""
        return list(self.job.keys)

    @property
    def features(self) -> list[str]:
        """The features of people, of which there are columns person.NAME and recourse.NAME."""
        start = "person."
        return [name.removeprefix(start) for name in self.table.names if name.startswith(start)]

    def batches(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read it, some tens of thousands of rows at a time."""
        return self.table.batches(32_768, columns)

    def frame(self, columns: list[str] | None = None) -> pd.DataFrame:
        """Read it all."""
        import pyarrow as pa

        batches = list(self.batches(columns))
        empty = pa.table({name: [] for name in columns or self.table.names})
        frame: pd.DataFrame = (pa.Table.from_batches(batches) if batches else empty).to_pandas()
        return frame

    @cached_property
    def prepared(self) -> Prepared:
        """The job with its files read; they must be those of the run."""
        prepared = prepare(self.job)
        check_unchanged(self.run.get("checksums", {}), prepared.checksums, str(self.path))
        return prepared

    def recourse(self) -> RobustRecourse:
        """Return the estimator that gave the advice."""
        return self.prepared.recourse

    def model_file(self) -> ModelFile:
        """Return the model that the advice was given for."""
        return self.prepared.model

    def later_model(self, path: Path, favorable_class: str | None = None) -> tuple[ModelFile, bool]:
        """Read another model, and say whether its class that people want is that of the run.

        So it is only where nobody says it, as typed or in the file of that model.
        """
        if favorable_class is not None:
            return load_model(path, favorable_class), False
        wanted = self.model_file().favorable_class
        found: ModelFile | ValueError
        try:
            found = load_model(path)
            if found.favorable_class == wanted or str(found.favorable_class) == str(wanted):
                return found, False
        except ValueError as error:
            found = error
        try:
            return load_model(path, str(wanted)), True
        except ValueError:  # its file says another class, or it has none that is called so
            if isinstance(found, ValueError):
                raise found from None
            return found, False
