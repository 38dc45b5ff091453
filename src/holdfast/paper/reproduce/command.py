"""`holdfast reproduce`: plan, run what is missing, gather the one table, and show it."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from holdfast.datasets.sources import DataAbsent
from holdfast.machinery.threads import thread_count
from holdfast.paper.piece import Piece
from holdfast.paper.report import write_report
from holdfast.paper.reproduce.display import Display
from holdfast.paper.reproduce.plan import QUICK, Size, plan_pieces
from holdfast.paper.reproduce.runner import Workbench, run_pieces
from holdfast.paper.reproduce.store import Store
from holdfast.paper.tidy import write_table
from holdfast.paper.world import DATASETS, SEED, load_folds, load_futures


@dataclass(frozen=True)
class Order:
    """What was asked for on the command line.

    Attributes
    ----------
    targets : sequence of str
        Names of `TARGETS`.
    out : Path
        Directory for the pieces, the table, the tables and figures, and index.html.
    data : Path or None
        Directory of the data files; see `holdfast.datasets`.
    folds : sequence of int or None
        Which of the five; all by default.
    jobs : int
        Processes; -1 is one for each available processor.
    device : str or None
        Where networks run.
    quick : bool
        A true but smaller run.
    """

    targets: Sequence[str] = ("all",)
    out: Path = Path("reproduction")
    data: Path | None = None
    folds: Sequence[int] | None = None
    jobs: int = -1
    device: str | None = None
    quick: bool = False

    @property
    def size(self) -> Size:
        """How much is run."""
        size = QUICK if self.quick else Size()
        return size if self.folds is None else replace(size, folds=tuple(self.folds))


def reproduce(order: Order, console: Console | None = None) -> int:
    """Reproduce parts of the paper; return the exit code: 1 if anything failed.

    Pieces that are finished already, by this run or an earlier one, are not computed again.
    """
    console = console or Console(stderr=True, markup=False, highlight=False)
    begin = time.perf_counter()
    asked = plan_pieces(order.targets, order.size)
    _check(order)
    absent = _absent(order.data)
    plan = _with_data(asked, absent)
    store = Store(order.out / "pieces", device=order.device)
    missing = [piece for piece in plan if not store.has(piece)]
    console.print(f"{len(plan)} pieces, {len(plan) - len(missing)} of them already finished")
    for each in absent:
        console.print(f"not run, data missing: {each['what']}: {each['why']}", style="yellow")
    bench = Workbench(store.directory, store.sources, order.data, order.device)
    with Display(missing, console) as display:
        try:
            if missing:
                run_pieces(missing, bench, _workers(order, missing), display.tell)
        except KeyboardInterrupt:
            kept = sum(store.has(piece) for piece in plan)
            console.print(
                f"interrupted: {kept} of {len(plan)} pieces are kept; run the same command to "
                "continue"
            )
            return 130
    failed = [*display.failed, *_unfinished(plan, store, display)]
    for piece, why in failed[len(display.failed) :]:
        console.print(f"failed: {piece}: {why}", style="red")
    everything = _with_data(plan_pieces(["all"], order.size), absent)
    left = [piece for piece in everything if piece not in plan and not store.has(piece)]
    table, made_by = _gather(store, everything)
    about = {
        **_about(order, absent),
        "holdfast": made_by["holdfast"],
        "versions": made_by,
        "seconds": time.perf_counter() - begin,
        "absent": absent,
        "failed": [{"piece": str(piece), "why": why} for piece, why in failed],
        "not_run": [str(piece) for piece in left],
    }
    results = order.out / "results.parquet"
    write_table(table, results, about)
    page = write_report(results, order.out)
    console.print(f"{page} ({time.perf_counter() - begin:.0f} s)")
    if failed:
        console.print(f"{len(failed)} pieces failed; the page says which", style="red")
        return 1
    return 0


def _unfinished(plan: list[Piece], store: Store, display: Display) -> list[tuple[Piece, str]]:
    """Return the pieces that nobody said had failed, and that are not there all the same."""
    told = {piece for piece, _ in display.failed}
    why = "not finished: its process died or was killed; run the same command to continue"
    return [(piece, why) for piece in plan if piece not in told and not store.has(piece)]


def _workers(order: Order, missing: list[Piece]) -> int:
    return min(thread_count(order.jobs), len(missing))


def _absent(directory: Path | None) -> list[dict[str, Any]]:
    """Say which data is not to be had, today's or the shifted one."""
    absent = []
    for dataset in DATASETS:
        try:
            load_folds(dataset, directory)
        except DataAbsent as error:
            absent.append({"what": dataset, "why": str(error)})
            continue
        try:
            load_futures(dataset, directory, False)
        except DataAbsent as error:
            absent.append({"what": f"{dataset}, shifted", "why": str(error)})
    return absent


def _with_data(plan: list[Piece], absent: list[dict[str, Any]]) -> list[Piece]:
    """Leave out what has no data, and the future of what has no shifted data."""
    names = {each["what"] for each in absent}
    return [
        replace(piece, shifted=f"{piece.dataset}, shifted" not in names)
        for piece in plan
        if piece.dataset not in names
    ]


def _check(order: Order) -> None:
    """Refuse what cannot be had, before anything is computed."""
    thread_count(order.jobs)
    if order.data is not None and not order.data.is_dir():
        raise ValueError(
            f"--data {order.data} is not a directory; give the one with the data files"
        )
    if order.device is not None:
        from holdfast.models.network import usable_device

        usable_device(order.device)


def _gather(store: Store, plan: list[Piece]) -> tuple[pd.DataFrame, dict[str, str]]:
    """Put together all pieces that are finished, and the versions that made them."""
    loaded = [store.load(piece) for piece in plan if store.has(piece)]
    if not loaded:
        raise ValueError("no piece could be finished; the messages above say why")
    found: dict[str, set[str]] = {}
    for _, about in loaded:
        for name, version in about["versions"].items():
            found.setdefault(name, set()).add(version)
    # several where a run went on after something had been installed anew
    made_by = {name: ", ".join(sorted(each)) for name, each in found.items()}
    return pd.concat([table for table, _ in loaded], ignore_index=True), made_by


def _about(order: Order, absent: list[dict[str, Any]]) -> dict[str, Any]:
    size, missing = order.size, {each["what"] for each in absent}
    there = [name for name in DATASETS if name not in missing]
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{thread_count(-1)} cores, {platform.machine()}, {platform.system()}",
        "settings": {
            "targets": list(order.targets),
            "quick": order.quick,
            "folds": list(size.folds),
            "seed": SEED,
            "device": order.device or "cpu",
            "jobs": order.jobs,
            "cost_weights": size.cost_weights,
            "most_rows": size.most_rows,
            "most_network_rows": size.most_network_rows,
            "features": {name: len(load_folds(name, order.data)[0].names) for name in there},
        },
    }
