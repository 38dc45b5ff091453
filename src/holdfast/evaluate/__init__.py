"""What recourses are worth: by today's model, by the worst of a set, and by later models."""

from holdfast.evaluate.population import PopulationWorst, population_worst_model
from holdfast.evaluate.table import evaluate_recourse

__all__ = [
    "PopulationWorst",
    "evaluate_recourse",
    "population_worst_model",
]
