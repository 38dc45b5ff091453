"""What is installed only on request."""

from __future__ import annotations

from importlib.util import find_spec


def need(extra: str, who: str, *packages: str) -> None:
    """Say how to get the packages of an extra where one of them is missing.

    Examples
    --------
    >>> need("plots", "a figure", "math")
    >>> need("plots", "a figure", "no_such_package")
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: a figure needs no_such_package; install it with: pip install ...
    """
    for package in packages:
        if find_spec(package) is None:
            raise ModuleNotFoundError(
                f"{who} needs {package}; install it with: pip install 'holdfast[{extra}]'"
            )


def need_torch(who: str) -> None:
    """Say how to get torch where it is missing.

    Examples
    --------
    >>> need_torch("wachter")
    """
    need("networks", who, "torch")
