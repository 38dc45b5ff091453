"""Data sets with what a table alone does not say: units, meaning, source and licence."""

from holdfast.datasets.dataset import Column, Dataset
from holdfast.datasets.folds import Fold, german_folds, published_sample, sba_folds
from holdfast.datasets.gaussians import make_gaussians
from holdfast.datasets.german import load_german
from holdfast.datasets.prepare import german_preparation, sba_preparation
from holdfast.datasets.sba import load_sba
from holdfast.datasets.shift import Future, german_future, sba_future
from holdfast.datasets.sources import DataAbsent
from holdfast.datasets.south_german import load_south_german

__all__ = [
    "Column",
    "DataAbsent",
    "Dataset",
    "Fold",
    "Future",
    "german_folds",
    "german_future",
    "german_preparation",
    "load_german",
    "load_sba",
    "load_south_german",
    "make_gaussians",
    "published_sample",
    "sba_folds",
    "sba_future",
    "sba_preparation",
]
