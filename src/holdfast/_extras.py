"""What is installed only on request."""

from __future__ import annotations

import importlib


def need_torch(who: str) -> None:
    """Say how to get torch where it is missing.

    Examples
    --------
    >>> need_torch("wachter")
    """
    try:
        importlib.import_module("torch")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{who} needs torch; install it with: pip install 'holdfast[networks]'"
        ) from error
