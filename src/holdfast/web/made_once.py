"""What is made once, and takes long: nobody waits for it longer than a request may take."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from holdfast.machinery.threads import time_left


class MadeOnce:
    """Things by name; each is made on a thread of its own, so that none waits for another.

    What could not be made is tried again when somebody asks again.

    Examples
    --------
    >>> made = MadeOnce()
    >>> made.get("the answer", lambda: 6 * 7), made.get("the answer", lambda: 0)
    (42, 42)
    """

    def __init__(self) -> None:
        self._lock, self._made = threading.Lock(), dict[str, Future[Any]]()

    def get(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a thing, made now or before; a LookupError says that it is not there in time."""
        future, left = self._begin(name, make), time_left()
        wait([future], None if math.isinf(left) else max(left, 0.0))
        if not future.done():
            raise LookupError(f"{name} is still being prepared")
        return future.result()

    def _begin(self, name: str, make: Callable[[], Any]) -> Future[Any]:
        with self._lock:
            known = self._made.get(name)
            if known is not None and not (known.done() and known.exception()):
                return known
            future = self._made[name] = Future[Any]()
        threading.Thread(target=_make, args=[future, make], name=name, daemon=True).start()
        return future


def _make(future: Future[Any], make: Callable[[], Any]) -> None:
    try:
        future.set_result(make())
    except BaseException as error:
        future.set_exception(error)
