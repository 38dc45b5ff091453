"""Processes that work for another one."""

from __future__ import annotations

import os
import signal
import threading


def begin_work() -> None:
    """Begin a process that works; it does not outlive the one that started it."""
    import pyarrow as pa
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # that is for the one who waits
    threadpool_limits(1)  # there are as many processes as processors
    pa.set_cpu_count(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    from multiprocessing import parent_process
    from multiprocessing.connection import wait as wait_for

    parent = parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)
