"""How Holdfast compiles its kernels, and where it keeps the machine code."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import numba
from numba.core import event

_PACKAGE = Path(__file__).parents[1]
# Rooms that hold no kernels and that no kernel looks into: a change there leaves machine code valid
# (tests/test_house.py holds them to it).
WITHOUT_KERNELS = {
    "actions",
    "radius",
    "recommend",
    "datasets",
    "evaluate",
    "paper/report",
    "paper/reproduce",
    "demo",
    "cli",
}


def rooms_of(path: Path) -> set[str]:
    """Return the room that a source belongs to, and the room within that room, if any."""
    place = path.relative_to(_PACKAGE).with_suffix("").parts
    return {place[0], "/".join(place[:2])}


def _state_of_sources() -> str:
    """Return a name for the state of all sources that kernels are made of.

    numba looks only at the file of a function to see whether its machine code is stale, not at
    the files of the functions and constants that it uses. A directory for each state of all
    these sources is always right.
    """
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        if not rooms_of(path) & WITHOUT_KERNELS:
            digest.update(path.read_bytes())
    return f"kernels-{digest.hexdigest()[:16]}"


def _homes() -> list[Path]:
    """List where machine code may be kept, best first."""
    said = os.environ.get("NUMBA_CACHE_DIR")
    homes = [Path(said)] if said else []
    homes.append(_PACKAGE / "__pycache__")
    with contextlib.suppress(RuntimeError):  # a user without a home
        homes.append(_user_cache() / "holdfast")
    return homes


def _user_cache() -> Path:
    """Return where programs keep what they can make again, for this user."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def first_writable(homes: Iterable[Path], name: str) -> str | None:
    """Make the directory `name` in the first of the homes that allows it; None: in none.

    It is tried out by writing: what a file system says of permissions may be wrong.
    """
    for home in homes:
        directory = home / name
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=directory).close()
        except OSError:
            continue
        return str(directory)
    return None


# None: nothing can be kept, and every process compiles for itself
CACHE_DIRECTORY = first_writable(_homes(), _state_of_sources())


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function`, keep the machine code on disk, and release the GIL while it runs.

    Division follows IEEE rules (1/0 is inf), and no re-ordering of sums is allowed, so that a row
    gives the same bits in any batch and on any number of threads.
    """
    return _compiled(function, {})


def summing_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a `kernel` that may form its sums in an order that suits the processor.

    The order is settled when it is compiled: a row still gives the same bits in any batch, though
    not on any processor.
    """
    return _compiled(function, {"fastmath": {"reassoc", "nsz"}})


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    options = {"nogil": True, "error_model": "numpy", **options}
    if CACHE_DIRECTORY is not None:
        try:
            kept = _kept(function, options, CACHE_DIRECTORY)
        except RuntimeError:  # numba found no place at all
            kept = None
        if kept is not None:
            return kept
    compiled: Callable[..., Any] = numba.njit(**options)(function)
    return compiled


def _kept(
    function: Callable[..., Any], options: dict[str, Any], directory: str
) -> Callable[..., Any] | None:
    """Compile with the machine code kept in `directory`; None if numba would keep it elsewhere.

    Where a directory cannot be written after all, numba turns to others, which do not have the
    state of the sources in their name: stale machine code would run.
    """
    config: Any = numba.config
    before = config.CACHE_DIR, getattr(config, "CACHE_LOCATOR_CLASSES", "")
    # read once, when the function is decorated
    config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = directory, ""
    try:
        compiled: Any = numba.njit(cache=True, **options)(function)
    finally:
        config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = before
    if config.DISABLE_JIT or Path(directory) in Path(compiled.stats.cache_path).parents:
        return cast(Callable[..., Any], compiled)
    return None


class _Notice(event.Listener):
    """Says once, when the first kernel is compiled because it is not on disk, why that takes long.

    Without a word the first call looks as if it hung. ``HOLDFAST_QUIET=1`` in the environment
    keeps it silent.
    """

    def __init__(self) -> None:
        self.said = bool(os.environ.get("HOLDFAST_QUIET"))

    def on_start(self, event: Any) -> None:
        module = str(event.data["dispatcher"].py_func.__module__)
        if self.said or module.partition(".")[0] != "holdfast":
            return
        self.said = True
        if sys.stderr is not None:
            print(_notice(), file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


def _notice() -> str:
    if CACHE_DIRECTORY is not None:
        return "Holdfast is compiling its solvers for this machine, once: up to a minute or two."
    return (
        "Holdfast is compiling its solvers: up to a minute or two, in every process, because no "
        "directory to keep them in can be written; set NUMBA_CACHE_DIR to one that can."
    )


event.register("numba:compile", _Notice())  # type: ignore[no-untyped-call]
