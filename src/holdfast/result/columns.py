"""What the numbers that are told of every answer are called, in all tables that have them."""

from __future__ import annotations

PROVEN = ("cost", "price", "lower_bound", "gap")
VALIDITIES = ("worst_case_validity", "current_validity", "initial_validity")
POINTS = ("worst_case_points", "current_points", "initial_points")  # the same, on a scale of points
