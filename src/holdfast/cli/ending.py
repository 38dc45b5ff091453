"""How a command ends: what the exit codes mean, and that no traceback reaches a user."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import typer

from holdfast.machinery.stops import StoppedError


class Ending(IntEnum):
    """Exit codes.

    Examples
    --------
    >>> int(Ending.ATTENTION)
    1
    """

    DONE = 0
    ATTENTION = 1  # done, but something was found that somebody must see
    WRONG = 2  # the command or its input; nothing was written
    STOPPED = 3  # on the way: the same command goes on
    BUG = 70
    INTERRUPTED = 130


_TRACEBACK = "HOLDFAST_TRACEBACK"


def ends_well(command: Callable[..., Any]) -> Callable[..., None]:
    """Turn what a command raises into a message and an exit code; it may return an `Ending`."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            ending = command(*args, **kwargs)
        except (ValueError, ModuleNotFoundError, OSError, StoppedError) as error:
            if isinstance(error, BrokenPipeError):  # who reads has seen enough
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(Ending.DONE) from None
            say(_message(error))
            stopped = isinstance(error, StoppedError)
            raise typer.Exit(Ending.STOPPED if stopped else Ending.WRONG) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if os.environ.get(_TRACEBACK):
                raise
            say(
                f"this should not happen ({type(error).__name__}: {error}). This is a bug: please "
                f"report it, with the traceback that {_TRACEBACK}=1 in the environment shows"
            )
            raise typer.Exit(Ending.BUG) from None
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(Ending.INTERRUPTED) from None
        if ending:
            raise typer.Exit(int(ending))

    return run


def _message(error: Exception) -> str:
    """Return what is wrong, without a number that only programs need."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def say(message: str) -> None:
    """Tell whoever typed the command something, beside its output."""
    print(f"holdfast: {message}", file=sys.stderr)
