"""Run pieces on several processes, keep each as it is finished, and say what is going on."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import queue
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from holdfast.machinery.compile import CACHE_DIRECTORY
from holdfast.paper.piece import Piece
from holdfast.paper.reproduce.store import Store
from holdfast.paper.run import run_piece


class Event(NamedTuple):
    """What a worker has to say of a piece: it began, it is done, or it failed and why."""

    kind: str  # "compiling", "begun", "done" or "failed"
    piece: Piece
    worker: int
    why: str = ""


@dataclass(frozen=True)
class Workbench:
    """What every worker needs to know."""

    store: Path
    sources: str
    data: Path | None
    device: str | None


Tell = Callable[[Event], None]
_SECONDS_OF_METHODS = {
    "algorithm1": 0.005,
    "algorithm1_as_published": 0.005,
    "rbr": 0.02,
    "refine": 0.02,
}
_SECONDS_OF_PROOF, _SECONDS_OF_GUARANTEE = 0.005, 0.15


def run_pieces(pieces: list[Piece], bench: Workbench, workers: int, tell: Tell) -> None:
    """Run all pieces; those that share a model go to one worker, one after the other."""
    batches = [list(batch) for _, batch in groupby(sorted(pieces, key=_batch), key=_batch)]
    batches.sort(key=lambda batch: -sum(effort(piece) for piece in batch))
    if workers == 1:
        with threadpool_limits(1):
            for batch in batches:
                _work(batch, bench, tell)
        return
    with _one_thread_each():
        _run_in_processes(batches, bench, workers, tell)


def effort(piece: Piece) -> float:
    """Seconds that a piece takes, roughly: for the order of work and the time that is left."""
    runs = len(piece.settings) * max(1, len(piece.cost_weights)) * len(piece.radii)
    rows = runs * (piece.most_rows or 30)
    if piece.guarantee is not None:
        return 0.05 + rows * _SECONDS_OF_GUARANTEE
    if piece.judging == "proof":  # of recourses that the frontiers have just found
        return 0.05 + rows * _SECONDS_OF_PROOF
    each = _SECONDS_OF_METHODS.get(piece.method, 0.0005)
    if piece.model == "network":
        each += 0.04 if piece.judging == "as_published" and piece.p != 1.0 else 0.002
    return 0.05 + rows * each


def _batch(piece: Piece) -> tuple[str, str, int, str, str]:
    # the same recourses are judged in both, and a worker remembers those that it found
    together = "frontiers" if piece.experiment == "proof" else piece.experiment
    return (*piece.world, piece.linearise, together)


def _work(batch: list[Piece], bench: Workbench, tell: Tell) -> None:
    """Run pieces one after the other; one that fails does not stop the others."""
    if any(piece.model == "network" for piece in batch):
        import torch

        torch.set_num_threads(1)  # more would round differently, and the processes share the cores
    store, worker = Store(bench.store, bench.sources, bench.device), os.getpid()
    for piece in batch:
        tell(Event("begun", piece, worker))
        begin = time.perf_counter()
        try:
            table = run_piece(piece, bench.data, bench.device)
            store.save(piece, table, time.perf_counter() - begin)
        except Exception as error:
            why = "".join(traceback.format_exception_only(error)).strip()
            where = traceback.extract_tb(error.__traceback__)[-1]
            tell(Event("failed", piece, worker, f"{why} ({where.name}, line {where.lineno})"))
        else:
            tell(Event("done", piece, worker))


_messages: Any = None  # of this worker, to the process that started it


def _begin(messages: Any) -> None:
    global _messages
    _messages = messages


def _work_and_tell(batch: list[Piece], bench: Workbench) -> None:
    with threadpool_limits(1):
        _work(batch, bench, _messages.put)


def _run_in_processes(
    batches: list[list[Piece]], bench: Workbench, workers: int, tell: Tell
) -> None:
    context = multiprocessing.get_context("spawn")  # torch and numba do not survive a fork
    messages = context.Queue()
    pool = ProcessPoolExecutor(workers, context, _begin, (messages,))
    try:
        _compile(pool, [piece for batch in batches for piece in batch], bench, tell)
        running = {pool.submit(_work_and_tell, batch, bench) for batch in batches}
        while running:
            try:
                tell(messages.get(timeout=0.5))
            except queue.Empty:
                done = {future for future in running if future.done()}
                running -= done
                for future in done:
                    future.result()
        while not messages.empty():
            tell(messages.get())
    except BrokenProcessPool:
        return  # a worker died: whoever asked finds out which pieces are not there
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _compile(pool: ProcessPoolExecutor, pieces: list[Piece], bench: Workbench, tell: Tell) -> None:
    """Compile what the pieces need, unless it was done before: each kind of them in one worker."""
    small = one_of_each_kind(pieces)
    digest = hashlib.sha256(" ".join(sorted(map(str, small))).encode()).hexdigest()[:16]
    mark = None if CACHE_DIRECTORY is None else Path(CACHE_DIRECTORY) / f"compiled-{digest}"
    if mark is not None and mark.exists():
        return
    tell(Event("compiling", small[0], 0))
    for future in [pool.submit(_try, piece, bench) for piece in small]:
        future.result()
    if mark is not None:
        mark.touch()


def one_of_each_kind(pieces: list[Piece]) -> list[Piece]:
    """Return a small piece for each kind of kernels, those that take longest to compile first.

    Examples
    --------
    >>> from holdfast.paper.reproduce.plan import plan_pieces
    >>> [piece.method for piece in one_of_each_kind(plan_pieces(["table1"]))][-2:]
    ['roar', 'roar_as_published']
    """
    kinds: dict[tuple[object, ...], Piece] = {}
    for piece in pieces:
        few = {name: getattr(piece, name)[:1] for name in ("radii", "cost_weights", "settings")}
        small, inside = replace(piece, most_rows=1, **few), "inside" in piece.constraints
        kind: tuple[object, ...] = (piece.method, piece.p, inside)
        if piece.model == "network":  # judged by other kernels, whatever the method
            small = replace(small, constraints=("none",))
            refined = (piece.method == "refine", piece.guarantee is not None)
            kind = (*refined, piece.judging, piece.judged_p)
        kinds.setdefault(kind, small)
    return sorted(kinds.values(), key=lambda piece: "inside" not in piece.constraints)


def _try(piece: Piece, bench: Workbench) -> None:
    """Run a piece for the sake of what it compiles."""
    try:
        run_piece(piece, bench.data, bench.device)
    except Exception:
        return  # it is said when the piece itself is run


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Make the libraries of new processes use one thread: the processes share the cores.

    Nor does each of them say that it compiles: that is said once, here.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "HOLDFAST_QUIET")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
