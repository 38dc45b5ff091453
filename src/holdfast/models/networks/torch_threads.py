"""torch with one thread for each caller: pieces of work that are small are better side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_LOCK = threading.Lock()
_callers = 0
_usual = 1


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch use one thread in each of ours meanwhile, and as many as before afterwards.

    torch's own threads wait for each other after every step, busily: on small tensors, and on
    machines that have other work, that takes many times the time of the steps themselves.
    """
    global _callers, _usual
    with _LOCK:
        if _callers == 0:
            _usual = torch.get_num_threads()
            torch.set_num_threads(1)
        _callers += 1
    try:
        yield
    finally:
        with _LOCK:
            _callers -= 1
            if _callers == 0:
                torch.set_num_threads(_usual)
