"""How Holdfast compiles its kernels, and where it keeps the machine code."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

_PACKAGE = Path(__file__).parent
# Rooms that hold no kernels and that no kernel looks into: a change there leaves machine code valid
# (tests/test_house.py holds them to it).
WITHOUT_KERNELS = {
    "encoding",
    "actions",
    "linearise",
    "radius",
    "recommend",
    "datasets",
    "evaluate",
    "report",
    "reproduce",
    "demo",
    "demo_view",
    "cli",
}


def _cache_directory() -> str:
    """Return a directory named after all sources that kernels are made of.

    numba looks only at the file of a function to see whether its machine code is stale, not at
    the files of the functions and constants that it uses. A directory for each state of all
    these sources is always right.
    """
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        if path.relative_to(_PACKAGE).parts[0].removesuffix(".py") not in WITHOUT_KERNELS:
            digest.update(path.read_bytes())
    home = os.environ.get("NUMBA_CACHE_DIR") or str(_PACKAGE / "__pycache__")
    return str(Path(home) / f"kernels-{digest.hexdigest()[:16]}")


CACHE_DIRECTORY = _cache_directory()


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
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE_DIRECTORY  # read once, when the function is decorated
    try:
        compiled: Callable[..., Any] = numba.njit(
            cache=True, nogil=True, error_model="numpy", **options
        )(function)
    finally:
        config.CACHE_DIR = before
    return compiled
