"""Runs that stop on the way."""


class StoppedError(RuntimeError):
    """A run stopped on the way; what is finished is kept, and the same command goes on."""
