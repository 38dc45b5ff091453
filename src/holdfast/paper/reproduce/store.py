"""Where finished pieces are kept, each under a name made of all that it depends on."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pandas as pd

from holdfast.machinery.versions import versions
from holdfast.paper.piece import Piece
from holdfast.paper.tidy import read_table, write_table

# What takes part in the numbers
_PARTS = (
    "numpy",
    "scipy",
    "numba",
    "pandas",
    "scikit-learn",
    "torch",
    "pyarrow",
)


class Store:
    """Finished pieces in a directory.

    A piece is found again only if its settings and the sources that computed it are the same; so
    an interrupted run goes on where it was, and a change recomputes only what it touches.
    """

    def __init__(
        self, directory: Path, sources: str | None = None, device: str | None = None
    ) -> None:
        """Open the directory for one state of the sources: by default that which is on disk now.

        Workers are told which one: the files may change while a run of the old ones goes on.
        """
        self.directory = directory
        self.sources = sources or _digest_of_sources()
        self.device = device or "cpu"
        directory.mkdir(parents=True, exist_ok=True)

    def path(self, piece: Piece) -> Path:
        """Where the piece is kept."""
        device = f" {self.device}" if piece.model == "network" and self.device != "cpu" else ""
        key = f"{self.sources} {piece.as_text()}{device}"
        return self.directory / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.parquet"

    def has(self, piece: Piece) -> bool:
        """Whether the piece is finished."""
        return self.path(piece).is_file()

    def save(self, piece: Piece, table: pd.DataFrame, seconds: float) -> None:
        """Keep a finished piece, with the versions that made it."""
        about = {"piece": piece.as_text(), "versions": versions(*_PARTS), "seconds": seconds}
        write_table(table, self.path(piece), about)

    def load(self, piece: Piece) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Return a finished piece, and what made it."""
        try:
            return read_table(self.path(piece))
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{self.path(piece)} cannot be read; delete it and run the same command again "
                f"({error})"
            ) from error


def _digest_of_sources() -> str:
    package, shows = Path(__file__).parents[2], Path(__file__).parents[1] / "report"
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if shows not in path.parents:
            digest.update(path.read_bytes())
    return digest.hexdigest()
