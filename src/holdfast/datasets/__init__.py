"""Data sets with what a table alone does not say: units, meaning, source and licence."""

from holdfast.datasets.dataset import Column, Dataset
from holdfast.datasets.gaussians import make_gaussians
from holdfast.datasets.german import load_german
from holdfast.datasets.sba import load_sba
from holdfast.datasets.sources import DataAbsent
from holdfast.datasets.south_german import load_south_german

__all__ = [
    "Column",
    "DataAbsent",
    "Dataset",
    "load_german",
    "load_sba",
    "load_south_german",
    "make_gaussians",
]
