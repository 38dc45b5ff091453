"""What one sees while it runs: how much is done, what is running, how long is left."""

from __future__ import annotations

import time

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from holdfast.paper.piece import Piece
from holdfast.paper.reproduce.runner import Event, effort

_QUIET_SECONDS = 15.0  # between lines where there is no terminal


class Display:
    """A bar and a line for each worker; plain lines where the output is not a terminal."""

    def __init__(self, pieces: list[Piece], console: Console) -> None:
        self._console = console
        self._total = sum(effort(piece) for piece in pieces)
        self._count, self._finished, self._done = len(pieces), 0, 0.0
        self._running: dict[int, Piece] = {}
        self._begun = self._last = time.perf_counter()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
        )
        self._task = self._bar.add_task("", total=self._total, left="")
        self._live = Live(console=console, get_renderable=self._picture, refresh_per_second=4)
        self.failed: list[tuple[Piece, str]] = []

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def tell(self, event: Event) -> None:
        """Take note of what a worker says."""
        if event.kind == "compiling":
            self._console.print("compiling, once only ...")
            return
        if event.kind == "begun":
            self._running[event.worker] = event.piece
            return
        self._running.pop(event.worker, None)
        self._finished += 1
        self._done += effort(event.piece)
        if event.kind == "failed":
            self.failed.append((event.piece, event.why))
            self._console.print(Text(f"failed: {event.piece}: {event.why}", style="red"))
        self._bar.update(
            self._task,
            completed=self._done,
            description=f"{self._finished} of {self._count} pieces",
            left=self._left(),
        )
        now = time.perf_counter()
        if not self._console.is_terminal and now - self._last >= _QUIET_SECONDS:
            self._last = now
            left = self._left()
            done = f"{self._finished} of {self._count} pieces{', ' if left else ''}{left}"
            self._console.print(f"{done}; last: {event.piece}", soft_wrap=True)

    def _left(self) -> str:
        """Say how long is left, as far as the pieces that are done can tell."""
        spent = time.perf_counter() - self._begun
        if self._done < 0.02 * self._total:
            return ""
        left = spent / self._done * (self._total - self._done)
        return f"about {left:.0f} s left" if left < 100 else f"about {left / 60:.0f} min left"

    def _picture(self) -> Group:
        running = [Text(f"  {piece}", style="dim") for piece in self._running.values()]
        return Group(self._bar, *running)
