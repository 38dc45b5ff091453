"""What recourses are worth: one tidy table, a row for each recourse and each way to judge it."""

from holdfast.evaluate.population import PopulationWorst, population_worst_model
from holdfast.evaluate.tidy import COLUMNS, KEYS, check_table, read_table, write_table

__all__ = [
    "COLUMNS",
    "KEYS",
    "PopulationWorst",
    "check_table",
    "population_worst_model",
    "read_table",
    "write_table",
]
