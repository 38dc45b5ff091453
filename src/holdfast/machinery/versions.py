"""The version of this package, and those of whatever takes part in an answer."""

from __future__ import annotations

import platform
from importlib import metadata

VERSION = "0.1.0"  # read by pyproject.toml too


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of Python, of this package, and of others where they are installed.

    Examples
    --------
    >>> sorted(versions("numpy", "no-such-package"))
    ['holdfast', 'numpy', 'python']
    """
    found = {"python": platform.python_version(), "holdfast": "not installed"}  # run from sources
    for name in ("holdfast", *packages):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
