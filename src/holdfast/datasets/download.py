"""A download that can be taken up again where it broke off."""

from __future__ import annotations

import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path

_CHUNK = 1 << 16
_TIMEOUT_SECONDS = 30


def resume(url: str, part: Path) -> None:
    """Download `url` into `part`, going on from what is there already.

    When the connection breaks, what has come stays in `part` for the next try. Nothing is said of
    whether the content is right: the caller compares checksums.
    """
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url)
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink()  # it holds more than there is: no beginning of this file
        raise
    with response:
        goes_on = response.status == HTTPStatus.PARTIAL_CONTENT
        expected = response.headers.get("Content-Length")
        with part.open("ab" if goes_on else "wb") as file:
            before = file.tell() if goes_on else 0
            while chunk := response.read(_CHUNK):
                file.write(chunk)
            came = file.tell() - before
    if expected is not None and came < int(expected):
        raise ConnectionError(f"the connection closed after {came} of {expected} bytes")
