"""A piece of an experiment: one method on one fold, for some radii and cost weights."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Piece:
    """What is computed as one, kept as one, and computed again only when its settings change.

    The fields are those of the tidy table (`holdfast.paper.tidy.FIELDS`), except:

    Attributes
    ----------
    p : float or None
        None for a method that takes no ball.
    radii, cost_weights, settings, constraints : tuples
        Every combination of them is run. A method that takes no ball has no cost weights, and is
        judged at all radii.
    guarantee : float or None
        The worst-case validity that is asked for, at the least cost, instead of a cost weight.
    people : str
        Who of the fold: "all" whom the model turns down, those whom the paper's authors "drew" in
        the order of their draw (`holdfast.paper.folds.published_sample`), or these "sorted". The
        order matters where networks are judged as published.
    most_rows : int or None
        Only so many people of those, the first ones.
    shifted : bool
        Whether the data of the future model is at hand; future validity is NaN without it.

    Examples
    --------
    >>> piece = Piece("table1", "german", "logistic", 0, "exact", 1.0, (0.1,), (0.1, 0.01))
    >>> print(piece)
    table1: german, logistic, fold 0, exact p=1
    """

    experiment: str
    dataset: str
    model: str
    fold: int
    method: str
    p: float | None
    radii: tuple[float, ...]
    cost_weights: tuple[float, ...] = ()
    guarantee: float | None = None
    settings: tuple[str, ...] = ("",)
    linearise: str = ""
    constraints: tuple[str, ...] = ("none",)
    judged_p: float = 1.0
    judging: str = "exact"
    people: str = "all"
    most_rows: int | None = None
    shifted: bool = True

    def __str__(self) -> str:
        ball = "" if self.p is None else f" p={self.p:g}"
        asked = "" if self.guarantee is None else f" guarantee={self.guarantee:g}"
        by = f", {self.linearise}" if self.linearise else ""
        return (
            f"{self.experiment}: {self.dataset}, {self.model}{by}, fold {self.fold}, "
            f"{self.method}{ball}{asked}"
        )

    @property
    def world(self) -> tuple[str, str, int]:
        """What pieces share: a data set, a kind of model, a fold."""
        return self.dataset, self.model, self.fold

    def as_text(self) -> str:
        """All settings, always in the same order."""
        return json.dumps(asdict(self), sort_keys=True)


def read_settings(text: str) -> dict[str, Any]:
    """Settings of a method from the text that the table keeps.

    Examples
    --------
    >>> read_settings(""), read_settings('{"epsilon_pe": 0.5}')
    ({}, {'epsilon_pe': 0.5})
    """
    return json.loads(text) if text else {}
