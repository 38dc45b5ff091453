"""What an earlier run has left: whose it is, and whether it did just this."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from holdfast.files.jobs import Job, load_job
from holdfast.machinery.versions import versions

# What an answer may depend on.
PARTS = ("numpy", "numba", "pandas", "pyarrow", "scikit-learn", "scipy")


@dataclass(frozen=True)
class Finished:
    """What a run came to.

    Attributes
    ----------
    out : str
    manifest : Path
    people : int
    statuses : dict
        How many people have each status.
    was_done : bool
        Whether an earlier run had done it all.
    seconds : dict
        How long it took to read, to solve and to write, summed over processes, and in all.
    """

    out: str
    manifest: Path
    people: int
    statuses: dict[str, int]
    was_done: bool
    seconds: dict[str, float]


class Output(NamedTuple):
    """Where a run writes, whichever engine runs it: a file, a directory or a table."""

    name: str
    local: Path | None  # where it is on this machine, if it is
    exists: Callable[[], bool]
    checksum: Callable[[], str | None]  # of what is on this machine

    def beside(self, ending: str) -> Path:
        """Return a path beside it; in the current directory, where it is not on this machine."""
        place = self.local or Path(PurePosixPath(self.name).name)
        return place.with_name(f"{place.name}{ending}")


def finished_before(job: Job, checksums: dict[str, str], out: Output) -> Finished | None:
    """Return what an earlier run came to, if it has done just this; refuse to write over others."""
    manifest = out.beside(".yaml")
    if not out.exists():
        return None
    if not manifest.exists():
        if out.beside(".work").exists():
            return None  # killed just before the manifest was written
        raise ValueError(
            f"{out.name} already exists and was not written by holdfast; choose another --out"
        )
    before, run = load_job(manifest)
    old = run.get("checksums", {})
    _refuse_other(before, old, job, checksums, out.local or manifest)
    if "people" not in checksums:
        raise ValueError(
            f"{out.name} already exists, and it is impossible to tell whether {job.people} has "
            "changed since it was written; choose another --out, or delete it"
        )
    if old.get("out") != out.checksum():
        raise ValueError(
            f"{out.name} was changed after the run that wrote it; choose another --out"
        )
    counts = run["counts"]
    return Finished(out.name, manifest, counts["people"], counts["status"], True, {})


def claim(work: Path, job: Job, checksums: dict[str, str]) -> None:
    """Say in the directory of work whose it is; refuse one of another job."""
    note = work / "job.yaml"
    releases = versions(*PARTS)
    if not note.exists():
        job.write(note, {"checksums": checksums, "versions": releases})
        return
    before, run = load_job(note)
    _refuse_other(before, run.get("checksums", {}), job, checksums, work)
    then = run.get("versions", releases)
    other = [f"{name} {then.get(name)}" for name in releases if then.get(name) != releases[name]]
    if other:
        raise ValueError(
            f"{work} was started with other versions ({', '.join(other)}), which may give "
            "different results; delete it and run the same command again"
        )


def _refuse_other(
    before: Job, old: dict[str, str], job: Job, new: dict[str, str], where: Path
) -> None:
    """Refuse other settings, or another input, in the same place."""
    place = where.parent
    then, now = before.to_plain(place), job.to_plain(place)
    differ = [
        f"{name} was {then.get(name)!r}, and is now {now.get(name)!r}"
        for name in dict.fromkeys([*then, *now])
        if then.get(name) != now.get(name)
    ]
    differ += [f"the file of {name} has changed" for name in new if old.get(name) != new[name]]
    if differ:
        listed = "\n".join(f"  {each}" for each in differ)
        raise ValueError(
            f"{where} belongs to another run:\n{listed}\nChoose another --out, or delete it"
        )


def record_of(
    job: Job, checksums: dict[str, str], people: int, statuses: dict[str, int]
) -> dict[str, Any]:
    """Return what the manifest tells of a run."""
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "engine": job.engine,
        "checksums": checksums,
        "counts": {"people": people, "status": statuses},
        "versions": versions(*PARTS),
    }
