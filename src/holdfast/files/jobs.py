"""Jobs: what `holdfast recommend` is asked, as one file that can be written and run again."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.actions import ActionSet
from holdfast.files.model_sets import model_set_from_plain, read_model_set
from holdfast.files.models import ModelFile, load_model
from holdfast.files.tables import CSV_SUFFIXES
from holdfast.machinery.complaints import read_all
from holdfast.machinery.plain_files import (
    FileKind,
    check_schema,
    checksum,
    load_plain,
    naming,
    to_yaml,
    write_text,
)
from holdfast.problem import Points

if TYPE_CHECKING:
    from holdfast.recommend import RobustRecourse

JOB = FileKind("a job")
ENGINES = ("local", "spark")
_NEEDED = ("model", "people", "actions", "out", "robust_to")
_FILES = ("model", "people", "actions", "out")


@dataclass(frozen=True)
class Job:
    """What is asked of `holdfast recommend`.

    The names are those of its options, but for `n_options` (--options) and `keys` (--key).
    Paths are as they were given, from the current directory; in a file they are relative to it.

    Examples
    --------
    >>> job = Job("model.skops", "denied.csv", "actions.yaml", "out.parquet", "p=1,radius=0.1")
    >>> job.with_changes(guarantee=0.5).guarantee
    0.5
    """

    model: str = ""
    people: str = ""
    actions: str = ""
    out: str = ""
    robust_to: str | dict[str, Any] = ""
    guarantee: float | None = None
    cost_weight: float | None = None
    points: dict[str, float] | None = None
    guarantee_points: float | None = None
    n_options: int = 1
    loss: str | None = None
    favorable_class: str | int | float | bool | None = None
    keys: list[str] = field(default_factory=list)
    engine: str = "local"

    def with_changes(self, **changes: Any) -> Job:
        """Return the job with some settings changed."""
        return replace(self, **changes)

    @property
    def are_texts(self) -> bool:
        """Whether people came as texts that stand for something else."""
        return Path(self.people).suffix.lower() in CSV_SUFFIXES

    @property
    def goals(self) -> list[float]:
        """What is asked for; exactly one goal can be."""
        said = (self.guarantee, self.cost_weight, self.guarantee_points)
        return [goal for goal in said if goal is not None]

    def missing(self) -> list[str]:
        """Name what has not been said, and must be."""
        return [name for name in _NEEDED if not getattr(self, name)]

    def to_plain(self, near: Path) -> dict[str, Any]:
        """Return the settings for a file in a directory, from which paths are counted."""
        plain: dict[str, Any] = {"holdfast_job": 1}
        defaults = Job()
        for name, value in asdict(self).items():
            if value != getattr(defaults, name):
                plain[name] = _relative(value, near) if self._is_path(name) else value
        return plain

    def write(
        self, path: Path, run: dict[str, Any] | None = None, drafts: Path | None = None
    ) -> None:
        """Write the job as YAML, perhaps with what became of it."""
        content = self.to_plain(path.parent) | ({} if run is None else {"run": run})
        write_text(path, to_yaml(content), drafts)

    def _is_path(self, name: str) -> bool:
        if name == "robust_to":
            return isinstance(self.robust_to, str) and "=" not in self.robust_to
        here = self.engine == "local" or name not in ("people", "out")  # Spark has names of its own
        return name in _FILES and here and "://" not in str(getattr(self, name))


def load_job(path: str | Path) -> tuple[Job, dict[str, Any]]:
    """Read a job, and what became of it where the file is the manifest of a run."""
    path = Path(path)
    content = load_plain(path, JOB)
    text = resources.files("holdfast.files").joinpath("job.schema.json").read_text("utf-8")
    with naming(path):
        check_schema(content, json.loads(text), JOB)
    content.pop("holdfast_job")
    run: dict[str, Any] = content.pop("run", {})
    job = Job(**content)
    paths = {
        each.name: os.path.normpath(_nearby(path) / getattr(job, each.name))
        for each in fields(Job)
        if each.name in content and job._is_path(each.name)
    }
    return replace(job, **paths), run


def asked_job(settings: Path | None, said: dict[str, Any]) -> tuple[Job, dict[str, str]]:
    """Return what a file of settings asks, changed by what is said beside it.

    With it come the checksums that files must have, where the file is the manifest of a run: of
    all that is not said anew.
    """
    job, run = (Job(), {}) if settings is None else load_job(settings)
    job = job.with_changes(**said)
    if job.engine not in ENGINES:
        raise ValueError(f"engine = {job.engine!r} is not known; available: {', '.join(ENGINES)}")
    before: dict[str, str] = run.get("checksums", {})
    kept = {name: digest for name, digest in before.items() if name not in {*said, "out"}}
    return job, kept


@dataclass(frozen=True, eq=False)
class Prepared:
    """A job whose model, action set and set of models have been read."""

    job: Job
    model: ModelFile
    recourse: RobustRecourse
    checksums: dict[str, str]


def prepare(job: Job, n_jobs: int | None = -1) -> Prepared:
    """Read all that a job names, but for the people; all that is wrong is said at once."""
    from holdfast.recommend import RobustRecourse

    favorable_class = None if job.favorable_class is None else str(job.favorable_class)
    model, actions, robust_to, points = read_all(
        lambda: load_model(job.model, favorable_class),
        lambda: ActionSet.load(job.actions),
        lambda: _model_set(job.robust_to),
        lambda: None if job.points is None else Points(**job.points),
    )
    recourse = RobustRecourse(
        model.model,
        robust_to=robust_to,
        actions=actions,
        guarantee=job.guarantee,
        cost_weight=job.cost_weight,
        points=points,
        guarantee_points=job.guarantee_points,
        n_options=job.n_options,
        loss=job.loss,
        favorable_class=model.favorable_class,
        n_jobs=n_jobs,
    )
    checksums = {"model": model.sha256, "actions": checksum(Path(job.actions))}
    if job._is_path("robust_to"):
        checksums["robust_to"] = checksum(Path(str(job.robust_to)))
    return Prepared(job, model, recourse, checksums)


def _model_set(robust_to: str | dict[str, Any]) -> Any:
    if isinstance(robust_to, dict):
        return model_set_from_plain(robust_to)
    return read_model_set(robust_to)


def check_unchanged(before: dict[str, str], now: dict[str, str], where: str) -> None:
    """Refuse files that are not those of an earlier run."""
    changed = [name for name, digest in now.items() if before.get(name, digest) != digest]
    if changed:
        raise ValueError(f"{where}: these files have changed since that run: {', '.join(changed)}")


def _nearby(path: Path) -> Path:
    """Return the directory from which the paths in a file are counted, short where it can be."""
    parent = path.parent
    return parent if parent.resolve() == Path(os.path.abspath(parent)) else parent.resolve()


def _relative(value: Any, near: Path) -> str:
    return os.path.relpath(os.path.realpath(value), os.path.realpath(near))
