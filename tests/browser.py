"""A real browser, without a window: what it makes of a page."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_DARK = "--blink-settings=preferredColorScheme=0"


def run(page: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Open a page, and leave."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory() as profile:
        command = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)


def complaints(page: Path) -> list[str]:
    """What the page writes to the console, and all that it asks for beside itself."""
    done = run(page, "--enable-logging=stderr", "--dump-dom")
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    asked = "page.performance.getEntriesByType('resource').map(each => each.name)"
    return said + list(ask(page, 1000, asked))


def widths(page: Path, width: int) -> tuple[int, int]:
    """How wide the page is, and how wide it may be, in a frame of some pixels."""
    root = "page.document.documentElement"
    wide, room = ask(page, width, f"[{root}.scrollWidth, {root}.clientWidth]")
    return wide, room


def ask(page: Path, width: int, question: str) -> Any:
    """Ask about a page, as it is in a frame of some pixels, in JavaScript."""
    code = (
        "const page = document.getElementById('page').contentWindow;"
        f"document.body.textContent = 'answer ' + JSON.stringify({question}) + ' end';"
    )
    frame = f'<iframe id="page" src="{page.as_uri()}" width="{width}" height="900"'
    with tempfile.TemporaryDirectory() as folder:
        outer = Path(folder) / "outer.html"
        outer.write_text(f'<body onload="{code}">{frame} style="border:0"></iframe></body>')
        done = run(outer, "--allow-file-access-from-files", "--dump-dom")
    found = re.search(r">answer (.*) end<", done.stdout)
    assert found is not None, done.stderr
    return json.loads(html.unescape(found[1]))


def picture(page: Path, out: Path, width: int, height: int, *, dark: bool = False) -> None:
    """Take a picture of the page; a narrow one in a frame, since windows cannot be."""
    flags = [f"--screenshot={out}", f"--window-size={max(width, 500)},{height}"]
    flags += [_DARK] if dark else []
    if width >= 500:
        run(page, *flags)
        return
    with tempfile.TemporaryDirectory() as folder:
        outer = Path(folder) / "outer.html"
        frame = f'<iframe src="{page.as_uri()}" width="{width}" height="{height}"'
        outer.write_text(f'<body style="margin:0">{frame} style="border:0"></iframe>')
        run(outer, *flags)


def printed_pages(page: Path) -> int:
    """How many sheets the page prints on."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "page.pdf"
        run(page, "--no-pdf-header-footer", f"--print-to-pdf={out}")
        return len(re.findall(rb"/Type\s*/Page\b(?!s)", out.read_bytes()))
