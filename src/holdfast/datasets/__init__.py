"""Data sets with what a table alone does not say: units, meaning, source and licence."""

from holdfast.datasets.german import Dataset, load_german

__all__ = ["Dataset", "load_german"]
