"""Compiled row loops on several threads: kernels release the GIL, rows never share anything."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# Below this many rows of some microseconds each a thread costs more than it brings.
_LEAST_ROWS = 256


def thread_count(threads: int | None) -> int:
    """Read the argument `threads`: None means all processors that this process may use."""
    if threads is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads = {threads!r} is not allowed; it must be a whole number >= 1")
    return threads


def over_rows(
    kernel: Callable[..., Any],
    n: int,
    threads: int,
    *arguments: Any,
    private: Callable[[], Any] = tuple,
    least_rows: int = _LEAST_ROWS,
) -> None:
    """Call ``kernel(private(), *arguments, begin, end)`` on ranges that cover rows 0 to n.

    `private` makes the buffers that each thread keeps to itself; no thread gets fewer than
    `least_rows` rows.
    """
    pieces = max(1, min(threads, n // least_rows))
    if pieces == 1:
        kernel(private(), *arguments, 0, n)
        return
    edges = [n * k // pieces for k in range(pieces + 1)]
    with ThreadPoolExecutor(pieces) as pool:
        runs = [
            pool.submit(kernel, private(), *arguments, begin, end)
            for begin, end in itertools.pairwise(edges)
        ]
        for run in runs:
            run.result()
