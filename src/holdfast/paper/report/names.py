"""What things are called on the page."""

from __future__ import annotations

import math

from holdfast.paper.report.results import PUBLISHED, SOUND

DATASETS = {"german": "German Credit", "sba": "Small Business Administration"}
SHORT_DATASETS = {"german": "German", "sba": "SBA"}
MODELS = {"logistic": "logistic regression", "network": "neural network"}
PAPER_ROWS = {
    "algorithm1": "Algorithm 1 (p = 1)",
    "roar_1": "ROAR (p = 1)",
    "algorithm2": "Algorithm 2 (p = ∞)",
    "roar_inf": "ROAR (p = ∞)",
}
METHODS = {
    "exact": "exact",
    "algorithm1": "Algorithm 1",
    "algorithm2": "Algorithm 2",
    "roar": "ROAR",
    "rbr": "RBR",
    "refine": "refined",
    "wachter": "Wachter",
}


def p_name(p: float) -> str:
    """Name an exponent.

    Examples
    --------
    >>> p_name(1.5), p_name(float("inf"))
    ('1.5', '∞')
    """
    return "∞" if math.isinf(p) else f"{p:g}"


def method_name(method: str, p: float = math.nan, variant: str = SOUND) -> str:
    """Name a method with its ball, and its variant where it is not the sound one.

    Examples
    --------
    >>> method_name("roar", 1.0, "as published")
    'ROAR (p = 1), clamped loss'
    >>> method_name("algorithm1", 1.0, "as published")
    'Algorithm 1 (p = 1), as published'
    >>> method_name("rbr")
    'RBR'
    """
    name = METHODS.get(method, method)
    if not math.isnan(p):
        name += f" (p = {p_name(p)})"
    if variant == PUBLISHED:
        return f"{name}, clamped loss" if method == "roar" else f"{name}, as published"
    return f"{name}, {variant}" if variant != SOUND and method != "rbr" else name


def column_name(radius: float, cost_weight: float) -> str:
    """Name a column of a table of prices."""
    return f"radius {radius:g}, cost weight {cost_weight:g}"


def paper_row(method: str, p: float) -> str | None:
    """Return the row of the paper's tables that a method stands in; None where it has none.

    Examples
    --------
    >>> paper_row("exact", 1.0), paper_row("roar", float("inf")), paper_row("exact", 2.0)
    ('algorithm1', 'roar_inf', None)
    """
    ours = {"exact": ("algorithm1", "algorithm2"), "roar": ("roar_1", "roar_inf"),
            "algorithm1": ("algorithm1", None), "algorithm2": (None, "algorithm2"),
            "refine": ("algorithm1", None)}  # fmt: skip
    if method not in ours or p not in (1.0, math.inf):
        return None
    return ours[method][0 if p == 1.0 else 1]
