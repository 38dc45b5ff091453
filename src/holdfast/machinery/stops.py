"""Runs that stop on the way."""


class StoppedError(RuntimeError):
    """A run stopped on the way; what is finished is kept, and the same command goes on.

    Attributes
    ----------
    reason : str
        Why.
    advice : str
        How to go on, at a command line.

    Examples
    --------
    >>> str(StoppedError("the disk is full", "Make room"))
    'the disk is full. Make room'
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(reason, advice)
        self.reason, self.advice = reason, advice

    def __str__(self) -> str:
        """Say why it stopped, and how to go on."""
        return f"{self.reason}. {self.advice}" if self.advice else self.reason
