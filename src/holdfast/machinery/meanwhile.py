"""Answers while the solvers compile: kernels run as plain Python until their machine code is there.

A first call otherwise waits for the compiler, some fifteen seconds. As Python, one person takes a
tenth of a second; a table of people does not pay. So it is for services, who ask for it.
"""

from __future__ import annotations

import math
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np

from holdfast.machinery.threads import check_time, time_left


class _Here(threading.local):
    """What a thread is at."""

    is_compiler = False
    is_inside = False


class Meanwhile:
    """Compiles kernels in a thread of its own, and lets them run as Python until they are done."""

    def __init__(self) -> None:
        self.is_on = False
        self.forget()

    def forget(self) -> None:
        """Begin anew: a process that was forked does not have the thread that compiles."""
        self._work: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._asked: dict[Any, Future[Any]] = {}
        self._lock = threading.Lock()
        self._here = _Here()

    def begin(self) -> None:
        """From now on, kernels that are not compiled yet run as Python."""
        self.is_on = True

    def wait(self) -> None:
        """Wait until all that has been asked for is compiled, whether or not that fails."""
        while waiting := [each for each in list(self._asked.values()) if not each.done()]:
            for future in waiting:
                future.exception()

    @property
    def is_compiling(self) -> bool:
        """Whether something is being compiled."""
        return any(not future.done() for future in list(self._asked.values()))

    @property
    def is_compiler(self) -> bool:
        """Whether this is the thread that compiles: it waits for the compiler, as ever."""
        return self._here.is_compiler

    @property
    def is_inside(self) -> bool:
        """Whether this thread is within a kernel that runs as Python."""
        return self._here.is_inside

    def later(self, key: Any, work: Callable[[], Any]) -> Future[Any]:
        """Have something compiled, once for each key."""
        with self._lock:
            if not self._asked:  # nobody waits for it at the end of the program
                threading.Thread(target=self._compile, name="compiler", daemon=True).start()
            if key not in self._asked:
                self._asked[key] = Future()
                self._work.put((self._asked[key], work))
            return self._asked[key]

    def _compile(self) -> None:
        self._here.is_compiler = True
        while True:
            future, work = self._work.get()
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

    def stand_in(self, kernel: Any, kinds: tuple[Any, ...]) -> Callable[..., Any]:
        """Have a kernel compiled for arguments of some kinds; return what answers until then."""
        compiled = self.later((kernel, kinds), lambda: kernel.compile(kinds))
        in_python = self.in_python(kernel)

        def answer(*args: Any) -> Any:
            try:
                return in_python(*args)
            except ArithmeticError:  # compiled, a division by zero is infinite, as is exp(1000)
                return awaited(compiled)(*args)

        return answer

    def in_python(self, kernel: Any) -> Callable[..., Any]:
        """Return a kernel as plain Python, with all that it calls."""
        python: Callable[..., Any] = kernel.py_func

        def run(*args: Any) -> Any:
            self._here.is_inside = True
            try:
                with np.errstate(all="ignore"):
                    return python(*args)
            finally:
                self._here.is_inside = False

        return run


def awaited(future: Future[Any]) -> Any:
    """Return what has been compiled, if it is in time; see `limited`."""
    left = time_left()
    try:
        return future.result(max(left, 0.0) if math.isfinite(left) else None)
    except TimeoutError:
        check_time()
        raise


meanwhile = Meanwhile()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=meanwhile.forget)
