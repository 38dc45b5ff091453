"""Compiled row loops on several threads: kernels release the GIL, rows never share anything."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import refuse_number

# Below this many rows of some microseconds each a thread costs more than it brings.
_LEAST_ROWS = 256
# Python hears Ctrl-C only between two calls of a kernel: so many seconds each.
_PIECE_SECONDS = 0.05
# A piece grows by no more than this at once: the first rows may have been easy.
_MOST_GROWTH = 8.0


_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Let solvers that are called within run for so many seconds in all: then a TimeoutError.

    Examples
    --------
    >>> with limited(0.0):
    ...     check_time()
    Traceback (most recent call last):
        ...
    TimeoutError: there was no answer in time
    """
    before = _deadline.set(min(_deadline.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.reset(before)


def time_left() -> float:
    """Return how many seconds are left; inf where there is no limit."""
    return _deadline.get() - time.monotonic()


def check_time() -> None:
    """Raise where no time is left."""
    if time_left() <= 0.0:
        raise TimeoutError("there was no answer in time")


def thread_count(n_jobs: int | None) -> int:
    """Read the argument `n_jobs`, as scikit-learn does: -1 is all processors, None is one.

    -2 is all but one, and so on.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool) and n_jobs < 0:
        return max(1, _processors() + 1 + int(n_jobs))
    is_whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, (bool, np.bool_))
    if not is_whole or not 0 < n_jobs < 2**20:
        refuse_number("n_jobs", n_jobs, "a number of processors, -1 for all, or None for one")
    return int(n_jobs)


def _processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def over_rows(
    kernel: Callable[..., Any],
    n: int,
    threads: int,
    *arguments: Any,
    private: Callable[[], Any] = tuple,
    least_rows: int = _LEAST_ROWS,
    stop: NDArray[np.int8] | None = None,
) -> None:
    """Call ``kernel(private(), *arguments, begin, end)`` on ranges that cover rows 0 to n.

    `private` makes the buffers that each thread keeps to itself; no thread is started for fewer
    than `least_rows` rows. The ranges are short in time, so that Ctrl-C is heard soon. Where a
    single row may take long, the kernel looks at ``stop[0]``, one of its arguments, and gives up
    when that is not 0: nobody sees what it has written by then.
    """
    check_time()
    workers = max(1, min(threads, n // least_rows))
    ranges = _Ranges(n, workers, max(1, least_rows // 8))
    if workers == 1 and stop is None:
        _work(kernel, private(), arguments, ranges, None)
        return
    # Compiled here, on no rows: a thread that compiles would be waited for.
    first = private()
    kernel(first, *arguments, 0, 0)
    pool, runs = _pool(os.getpid()), []
    try:
        for number in range(workers):
            own = private() if number else first
            runs.append(pool.submit(_work, kernel, own, arguments, ranges, stop))
        while wait(runs, timeout=0.2).not_done:  # some systems wake nobody who waits for ever
            check_time()
    except BaseException:
        ranges.close()
        if stop is not None:
            stop[0] = 1
        wait(runs)  # for the pieces under way
        raise
    for run in runs:
        run.result()


@functools.cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the threads of this process, which wait for work: to start one takes a while.

    A process that was forked has none of the threads of the one that it comes from.
    """
    return ThreadPoolExecutor(max(64, _processors()), thread_name_prefix="holdfast")


class _Ranges:
    """Hands out ranges of rows to several threads until there are none left."""

    def __init__(self, n: int, workers: int, first: int) -> None:
        self.first, self._n, self._workers = first, n, workers
        self._next, self._lock = 0, threading.Lock()

    def take(self, wanted: int) -> tuple[int, int]:
        """Return the next range: as wanted, shorter near the end, so that all threads end alike."""
        with self._lock:
            begin = self._next
            share = -(-(self._n - begin) // (2 * self._workers)) if self._workers > 1 else self._n
            self._next = min(self._n, begin + max(1, min(wanted, share)))
            return begin, self._next

    def close(self) -> None:
        """Hand out nothing more."""
        with self._lock:
            self._next = self._n


def _work(
    kernel: Callable[..., Any],
    own: Any,
    arguments: tuple[Any, ...],
    ranges: _Ranges,
    stop: NDArray[np.int8] | None,
) -> None:
    """Take ranges until there are none; the clock decides on their length, never on answers."""
    size = ranges.first
    begin, end = ranges.take(size)
    try:
        if end == begin:
            kernel(own, *arguments, 0, 0)
        while begin < end:
            check_time()
            started = time.perf_counter()
            kernel(own, *arguments, begin, end)
            spent = time.perf_counter() - started
            growth = min(_PIECE_SECONDS / max(spent, 1e-9), _MOST_GROWTH)
            size = max(1, int((end - begin) * growth))
            begin, end = ranges.take(size)
    except BaseException:
        ranges.close()
        if stop is not None:
            stop[0] = 1
        raise
