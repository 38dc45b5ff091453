"""Processes that work answers out, so that nobody waits for what another person asked.

Python works at one thing at a time in each process, whatever its threads.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor
from typing import Any

from holdfast.machinery.meanwhile import meanwhile
from holdfast.machinery.processes import begin_work
from holdfast.machinery.threads import limited, time_left

_GRACE = 2.0  # seconds that a helper gets to say that its time is up


class Helpers:
    """Some processes that can answer; before they are there, whoever asks works it out.

    Parameters
    ----------
    count : int
        How many; none are started for one.
    make : callable
        Makes what questions are put to, in each process, of `given`.
    given : tuple
    """

    def __init__(self, count: int, make: Callable[..., Any], given: tuple[Any, ...]) -> None:
        self.count, self._make, self._given = count, make, given
        self._pool: ProcessPoolExecutor | None = None
        self._lock, self._is_closed, self._is_ready = threading.Lock(), False, False

    def start(self) -> None:
        """Start them, and return when they are ready."""
        from multiprocessing import get_context

        with self._lock:
            if self.count < 2 or self._is_closed or self._pool is not None:
                return
            context = get_context("spawn")
            given = (self._make, self._given)
            pool = self._pool = ProcessPoolExecutor(self.count, context, _begin, given)
        try:
            for future in [pool.submit(_is_there) for _ in range(self.count)]:
                future.result()
        except (BrokenExecutor, CancelledError, RuntimeError):
            self._lose(pool)  # nobody can start processes here, or wants them: this one does it all
        else:
            self._is_ready = True

    def close(self) -> None:
        """End them."""
        self._is_closed = True
        if self._pool is not None:
            self._lose(self._pool)

    def _lose(self, pool: ProcessPoolExecutor) -> bool:
        """End some helpers, unless somebody has done so already."""
        with self._lock:
            if self._pool is not pool:
                return False
            self._pool, self._is_ready = None, False
        _end(pool)
        return True

    def ask(self, desk: Any, question: Callable[..., Any], *given: Any) -> Any:
        """Return what a question comes to: a function of a module, whose first argument is a desk.

        Should a helper be killed, it is worked out here, and others are started.
        """
        pool, left = self._pool, time_left()
        if pool is None or not self._is_ready:
            return question(desk, *given)
        try:
            future = pool.submit(_answer, question, given, left)
        except RuntimeError:  # they have been ended this very moment
            return question(desk, *given)
        try:
            return future.result(left + _GRACE if math.isfinite(left) else None)
        except (BrokenExecutor, CancelledError):
            if self._lose(pool):
                threading.Thread(target=self.start, name="helpers", daemon=True).start()
            return question(desk, *given)


def _end(pool: ProcessPoolExecutor) -> None:
    working = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in working:
        with contextlib.suppress(OSError):
            process.kill()


_mine: Any = None


def _begin(make: Callable[..., Any], given: tuple[Any, ...]) -> None:
    global _mine
    begin_work()
    meanwhile.begin()  # for kernels that nobody has needed so far
    _mine = make(*given)


def _is_there() -> None:
    """Do nothing, a while longer than it takes to start: so that each process is asked once."""
    threading.Event().wait(0.2)


def _answer(question: Callable[..., Any], given: tuple[Any, ...], left: float) -> Any:
    with limited(left):
        return question(_mine, *given)
