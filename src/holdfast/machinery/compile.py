"""How Holdfast compiles its kernels, and where it keeps the machine code."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import numba
from numba.core import event

from holdfast.machinery.kernel_cache import KernelCache
from holdfast.machinery.whole import Choice, Kernel

PACKAGE = Path(__file__).parents[1]
_SHOW_EVERY, _WORTH_SAYING = 0.5, 2.0  # seconds
# "from holdfast.a.b import c, d", the names in brackets or not; and "import holdfast.a.b"
_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+holdfast([.\w]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)"
    rb"|import[ \t]+holdfast([.\w]*))",
    re.MULTILINE,
)
_DECORATED = re.compile(rb"^@\w*kernel$", re.MULTILINE)


def kernel_sources(package: Path) -> dict[Path, bytes]:
    """Return the sources that machine code depends on, in order.

    Those that hold kernels, and all that these import, directly or not: kernels take functions and
    constants from there. The paper's count too: handed its settings, an entry point of the product
    is compiled with the paper's loss in it (`holdfast.paper.roar_as_published`).
    """
    texts = {path: path.read_bytes() for path in package.rglob("*.py")}
    todo = [path for path, text in texts.items() if _DECORATED.search(text)]
    found: dict[Path, bytes] = {}
    while todo:
        path = todo.pop()
        if path in texts and path not in found:
            found[path] = texts[path]
            todo += _imported(package, texts[path])
    return dict(sorted(found.items()))


def _imported(package: Path, text: bytes) -> list[Path]:
    """List the files that a source may import from the package; not all of them need exist."""
    files = []
    for module, names, plain in _IMPORT.findall(text):
        place = package.joinpath(*(module or plain).decode().split(".")[1:])
        files += [place.with_suffix(".py"), place / "__init__.py"]
        for name in re.findall(rb"\w+", names):
            files += [place / f"{name.decode()}.py", place / name.decode() / "__init__.py"]
    return files


def _state_of_sources() -> str:
    """Return a name for the state of all sources that kernels are made of.

    numba looks only at the file of a function to see whether its machine code is stale, not at
    the files of the functions and constants that it uses. A directory for each state of all
    these sources is always right.
    """
    digest = hashlib.sha256()
    for text in kernel_sources(PACKAGE).values():
        digest.update(text)
    return f"kernels-{digest.hexdigest()[:16]}"


def _homes() -> list[Path]:
    """List where machine code may be kept, best first."""
    said = os.environ.get("NUMBA_CACHE_DIR")
    homes = [Path(said)] if said else []
    homes.append(PACKAGE / "__pycache__")
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


def _shipped(name: str) -> str | None:
    """Return the directory that the user has named, if machine code of these sources is in it.

    It may be one that nobody can write: what is compiled beyond is then not kept.
    """
    said = os.environ.get("NUMBA_CACHE_DIR")
    directory = Path(said or ".").absolute() / name
    return str(directory) if said and any(directory.glob("holdfast.*")) else None


_STATE = _state_of_sources()
# None: nothing can be kept, and every process compiles for itself
CACHE_DIRECTORY = _shipped(_STATE) or first_writable(_homes(), _STATE)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function`, and release the GIL while it runs.

    Where it is called from Python, its machine code is kept on disk, with all that it calls.
    Division follows IEEE rules (1/0 is inf), and no re-ordering of sums is allowed, so that a row
    gives the same bits in any batch and on any number of threads.
    """
    return _compiled(function, {})


def viewing_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a `kernel` that makes no arrays: it works on those that it is given, and their views.

    Nobody counts who holds an array: that took half of the time of the discrete search, whose
    kernels are small. So it must never return an array to Python, nor to a plain `kernel`.
    """
    return _compiled(function, {"_nrt": False})


def choice(position: int) -> Callable[[Callable[..., Any]], Any]:
    """Make a name for several kernels: the class of one argument tells which.

    That is a struct or a named tuple.

    The function that is decorated only says what they have in common; versions are added with
    ``@name.of(Kind)`` above ``@kernel``.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        return Choice(function, position)

    return decorate


def summing_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a `kernel` that may form its sums in an order that suits the processor.

    The order is settled when it is compiled: a row still gives the same bits in any batch, though
    not on any processor.
    """
    return _compiled(function, {"fastmath": {"reassoc", "nsz"}})


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    config: Any = numba.config
    if config.DISABLE_JIT:
        return function
    # _nrt is said in any case: a function inherits what is not said from whoever calls it first
    said = {"nopython": True, "nogil": True, "error_model": "numpy", "_nrt": True}
    options = {"boundscheck": None, **said, **options}
    compiled = Kernel(function, targetoptions=options)
    if CACHE_DIRECTORY is not None:
        _keep(compiled, CACHE_DIRECTORY)
    return cast(Callable[..., Any], compiled)


def _keep(compiled: Any, directory: str) -> None:
    """Keep the machine code in `directory`, and nowhere else, whatever numba has been told."""
    config: Any = numba.config
    before = getattr(config, "CACHE_LOCATOR_CLASSES", "")
    config.CACHE_LOCATOR_CLASSES = ""  # read once, here
    try:
        compiled._cache = KernelCache(compiled.py_func, directory)
    finally:
        config.CACHE_LOCATOR_CLASSES = before


class Notice(event.Listener):
    """Says that kernels are compiled, why that takes long, how far it is, and when it is done.

    Without a word the first call looks as if it hung. How far it is, is shown on terminals only.
    ``HOLDFAST_QUIET=1`` in the environment keeps it silent.
    """

    def __init__(self) -> None:
        self._is_quiet = os.environ.get("HOLDFAST_QUIET", "0") not in ("", "0")
        self._is_first, self._depth, self._count, self._width = True, 0, 0, 0
        self._began = self._shown = 0.0

    def on_start(self, event: Any) -> None:
        """Count a kernel; the first is an entry point, and those within it are its parts."""
        if self._is_quiet or not _is_ours(event):
            return
        now = time.monotonic()
        if self._depth == 0:
            self._count, self._began, self._shown = 0, now, now
        if self._is_first:
            self._is_first = False
            _say(_notice() + "\n")
        self._depth += 1
        self._count += 1
        if now - self._shown >= _SHOW_EVERY and _is_terminal():
            self._shown = now
            self._show(f"  {self._count} functions, {now - self._began:.0f} s ...")

    def on_end(self, event: Any) -> None:
        """Close the line where an entry point took long enough to be waited for."""
        if self._is_quiet or self._depth == 0 or not _is_ours(event):
            return
        self._depth -= 1
        spent = time.monotonic() - self._began
        if self._depth == 0:
            self._show("")
            if spent >= _WORTH_SAYING:
                _say(f"  ... {self._count} functions compiled in {spent:.0f} s.\n")

    def _show(self, text: str) -> None:
        """Write over the line that was shown last."""
        if text or self._width:
            _say(f"\r{text.ljust(self._width)}" if text else f"\r{' ' * self._width}\r")
        self._width = len(text)


def _is_ours(event: Any) -> bool:
    module = str(event.data["dispatcher"].py_func.__module__)
    return module.partition(".")[0] == "holdfast"


def _is_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except (OSError, ValueError):  # closed
        return False


def _say(text: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # nobody listens any more
            sys.stderr.write(text)
            sys.stderr.flush()


def _notice() -> str:
    if CACHE_DIRECTORY is not None:
        return (
            "Holdfast is compiling its solvers and will keep them for next time; this takes up to "
            "half a minute."
        )
    return (
        "Holdfast is compiling its solvers: this takes up to half a minute in every process, "
        "because there is no writable directory to keep them in. Set NUMBA_CACHE_DIR to one."
    )


event.register("numba:compile", Notice())  # type: ignore[no-untyped-call]
