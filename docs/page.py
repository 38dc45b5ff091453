"""Take the screenshot of the page that the README shows.

    python docs/page.py

It needs Chromium, and `pip install 'holdfast[serve]' playwright`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).parent / "images" / "page.png"
ROW = 10  # of the demonstration: somebody with three ways
SIZE = {"width": 1280, "height": 900}


def main() -> None:
    command = [sys.executable, "-m", "holdfast", "serve", "--demo", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+/", server.stdout.readline())
            assert address is not None
            take(f"{address[0]}people/{ROW}")
        finally:
            server.terminate()
    print(PICTURE)


def take(page_address: str) -> None:
    """Open the page, wait until all of it is there, and take its picture."""
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=SIZE, device_scale_factor=1.25)
        page.goto(page_address)
        page.wait_for_selector("#sure svg.chart", timeout=120_000)
        time.sleep(1.0)  # fonts
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
