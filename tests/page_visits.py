"""`holdfast serve` as a process of its own, and a real browser in front of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the page needs fastapi: pip install 'holdfast[serve]'")
pytest.importorskip("uvicorn", reason="the page needs uvicorn: pip install 'holdfast[serve]'")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="these tests drive a browser with playwright"
)

CHROMIUM = shutil.which("chromium")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic"]


class Server:
    """The demonstration, or other files, on a port that stays when it is started again."""

    def __init__(self, *options: str) -> None:
        self.options = options or ("--demo",)
        self.port, self._process = 0, None
        self.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "holdfast", "serve", *self.options, "--no-browser"]
        self._process = subprocess.Popen(
            [*command, "--port", str(self.port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        threading.Thread(target=self._listen, args=[self._process.stderr], daemon=True).start()
        for line in self._process.stdout:
            if "http://" in line:
                self.port = int(line.partition("http://")[2].partition("/")[0].rpartition(":")[2])
                return
        raise RuntimeError(f"holdfast serve has ended: {''.join(self.said)}")

    def _listen(self, stream: Any) -> None:
        """Read what it logs, or it would wait for a reader one day."""
        self.said.extend(stream)

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(30)


def launch(driver: Any) -> Any:
    """Start the browser, without a window."""
    return driver.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)


def settled(page):
    """Wait until all that was asked is answered."""
    page.wait_for_selector(".answer[aria-busy=false]")
    return page
