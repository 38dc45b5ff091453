"""A server as users start it: in a process of its own, on any port that is free."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

SHOWN = "http://127.0.0.1:8765/"  # what our pages show


@contextlib.contextmanager
def serving(options: list[str], folder: Path) -> Iterator[str]:
    """Start `holdfast serve`; give its address as soon as it answers, and stop it with Ctrl-C."""
    command = [sys.executable, "-m", "holdfast", "serve", *options, "--port", "0"]
    with (
        open(folder / "serve.log", "w+") as log,
        subprocess.Popen(
            [*command, *({"--no-browser"} - {*options})],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as server,
    ):
        try:
            said = server.stdout.readline()
            found = re.search(r"http://\S+", said)
            assert found, said + Path(log.name).read_text()
            with urlopen(f"{found[0]}healthz", timeout=60) as answer:
                assert answer.status == 200
            yield found[0]
            server.send_signal(signal.SIGINT)
            assert server.wait(60) == 0, Path(log.name).read_text()
        finally:
            server.kill()
