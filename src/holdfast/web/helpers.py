"""Processes that work answers out, so that nobody waits for what another person asked.

Python works at one thing at a time in each process, whatever its threads.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
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
        self._lock, self._is_closed = threading.Lock(), False

    @property
    def are_ready(self) -> bool:
        """Whether there are helpers."""
        return self._pool is not None

    def start(self) -> None:
        """Start them, and return when they are ready."""
        from multiprocessing import get_context

        if self.count < 2:
            return
        context = get_context("spawn")
        pool = ProcessPoolExecutor(self.count, context, _begin, (self._make, self._given))
        try:
            for future in [pool.submit(_is_there) for _ in range(self.count)]:
                future.result()
        except BrokenExecutor:  # nobody can start processes here: this one does it all
            _end(pool)
            return
        with self._lock:
            if not self._is_closed:
                self._pool = pool
                return
        _end(pool)

    def close(self) -> None:
        """End them."""
        with self._lock:
            pool, self._pool, self._is_closed = self._pool, None, True
        if pool is not None:
            _end(pool)

    def ask(self, desk: Any, question: Callable[..., Any], *given: Any) -> Any:
        """Return what a question comes to: a function of a module, whose first argument is a desk.

        Should a helper be killed, it is worked out here, and others are started.
        """
        pool, left = self._pool, time_left()
        if pool is None:
            return question(desk, *given)
        try:
            future = pool.submit(_answer, question, given, left)
            return future.result(left + _GRACE if math.isfinite(left) else None)
        except BrokenExecutor:
            self._begin_again(pool)
            return question(desk, *given)

    def _begin_again(self, broken: ProcessPoolExecutor) -> None:
        with self._lock:
            if self._pool is not broken:
                return
            self._pool = None
        _end(broken)
        threading.Thread(target=self.start, name="helpers", daemon=True).start()


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
