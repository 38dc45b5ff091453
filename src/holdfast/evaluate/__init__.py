"""What recourses are worth: one tidy table, a row for each recourse and each way to judge it."""

from holdfast.evaluate.population import PopulationWorst, population_worst_model

__all__ = [
    "PopulationWorst",
    "population_worst_model",
]
