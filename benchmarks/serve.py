"""How long people wait for the page, when many of them use it at the same time.

    python benchmarks/serve.py --users 50 --seconds 60

The demonstration, served by `holdfast serve` in a process of its own, on this machine, which also
runs the users: what they take is in the times. Each user looks at the list, picks one of the
people, locks a feature, limits another one, slides to another size, and asks the service for
programs; then they pick somebody else. As the page does, they ask how reliable an answer is as soon
as it is there. They read for five seconds on average before the next click. A second table has no
pauses: each user asks again as soon as they are answered: then the server is as busy as it
can be, and waiting is most of the time. The floor is /healthz, asked by the same users in the same
run, where nothing is worked out. Solvers are compiled, and everybody in the table is advised,
before the clock starts.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from holdfast.demo.files import write_demo

PAUSE = 5.0  # seconds that somebody reads what a click has brought, on average
FOLLOWS = "how reliable"
LOCKED, LIMITED = "credit_amount", "duration"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    console = Console(width=100)
    console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    people = demo_people()
    with serving() as address:
        asyncio.run(warm_up(address, people))
        for pause in (PAUSE, 0.0):
            crowd = Crowd(address, people, options.seconds, pause)
            asyncio.run(crowd.come(options.users))
            console.print(crowd.table(options.users))


def demo_people() -> list[dict[str, Any]]:
    """Return those who are served, by row."""
    with tempfile.TemporaryDirectory() as folder:
        job = write_demo(Path(folder))
        people = pd.read_parquet(job.people).drop(columns=job.keys)
    listed: list[dict[str, Any]] = people.astype(object).to_dict("records")
    return listed


@contextmanager
def serving() -> Iterator[str]:
    """Start the server; give its address."""
    command = [sys.executable, "-m", "holdfast", "serve", "--demo", "--no-browser", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            said = next(line for line in process.stdout if "http://" in line)
            yield "http://" + said.partition("http://")[2].split("/")[0]
        finally:
            process.terminate()


async def warm_up(address: str, people: list[dict[str, Any]]) -> None:
    """Ask everything of some people, and wait until everybody in the table is advised."""
    async with httpx.AsyncClient(base_url=address, timeout=300.0) as client:
        for row in range(10):
            for kind, ask in clicks(row, people[row]):
                answer = await client.request(**ask)
                while answer.status_code == 503:  # still compiling
                    answer = await client.request(**ask)
                assert answer.status_code == 200, (kind, answer.status_code)


def clicks(row: int, person: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return what a user asks for, one after another, with what it is called in the table.

    What the page asks by itself, FOLLOWS at once.
    """
    state: dict[str, Any] = {
        "row": row,
        "values": {name: str(value) for name, value in person.items()},
        "preferences": {},
        "radius": None,
        "n_options": 3,
    }
    locked = state | {"preferences": {LOCKED: {"locked": True}}}
    limited = state | {"preferences": {LIMITED: {"change_by": 6}}}
    smaller = state | {"radius": 0.5}
    asked = {"people": [person], "n_options": 3}

    def sure(state: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return FOLLOWS, {"method": "POST", "url": "/parts/sure", "json": state}

    return [
        ("floor: /healthz", {"method": "GET", "url": "/healthz"}),
        ("list of people", {"method": "GET", "url": "/people"}),
        ("pick a person", {"method": "GET", "url": f"/people/{row}"}),
        sure(state),
        ("lock a feature", {"method": "POST", "url": "/parts/person", "json": locked}),
        sure(locked),
        ("limit a feature", {"method": "POST", "url": "/parts/person", "json": limited}),
        sure(limited),
        ("slide", {"method": "POST", "url": "/parts/person", "json": smaller}),
        sure(smaller),
        ("/v1/recourse", {"method": "POST", "url": "/v1/recourse", "json": asked}),
    ]


class Crowd:
    """Users who ask for a while, and how long they waited."""

    def __init__(
        self, address: str, people: list[dict[str, Any]], seconds: float, pause: float
    ) -> None:
        self.address, self.people, self.seconds, self.pause = address, people, seconds, pause
        self.waited: dict[str, list[float]] = {}
        self.errors: dict[str, int] = {}

    async def come(self, users: int) -> None:
        """Let all come at the same time, and ask until the time is over."""
        end = time.perf_counter() + self.seconds
        await asyncio.gather(*(self._use(k, end) for k in range(users)))

    async def _use(self, user: int, end: float) -> None:
        rng = np.random.default_rng(user)
        async with httpx.AsyncClient(base_url=self.address, timeout=30.0) as client:
            while True:
                row = int(rng.integers(len(self.people)))
                for kind, ask in clicks(row, self.people[row]):
                    if kind != FOLLOWS:
                        await asyncio.sleep(self.pause * rng.uniform(0.5, 1.5))
                    if time.perf_counter() > end:
                        return
                    await self._click(client, kind, ask)

    async def _click(self, client: httpx.AsyncClient, kind: str, ask: dict[str, Any]) -> None:
        began = time.perf_counter()
        try:
            good = (await client.request(**ask)).status_code == 200
        except httpx.HTTPError:
            good = False
        self.waited.setdefault(kind, []).append(1000.0 * (time.perf_counter() - began))
        self.errors[kind] = self.errors.get(kind, 0) + (not good)

    def table(self, users: int) -> Table:
        """Show it: milliseconds that users waited."""
        every = f"a pause of about {self.pause:g} s" if self.pause else "no pause"
        table = Table(title=f"{users} users for {self.seconds:g} s, {every} between two clicks")
        for name in ("request", "requests", "errors", "median ms", "95 % ms"):
            table.add_column(name, justify="left" if name == "request" else "right")
        said = dict.fromkeys(kind for kind, _ in clicks(0, {}))
        floor, *kinds = [kind for kind in said if kind in self.waited]
        groups = {"all clicks": [k for k in kinds if k != FOLLOWS], "all of these": kinds}
        for kind in (*kinds, *groups, floor):
            which = groups.get(kind, [kind])
            waited = np.concatenate([self.waited[each] for each in which])
            middle, most = np.percentile(waited, [50, 95])
            errors = sum(self.errors[each] for each in which)
            table.add_row(kind, f"{len(waited):,}", str(errors), f"{middle:.0f}", f"{most:.0f}")
        return table


if __name__ == "__main__":
    main()
