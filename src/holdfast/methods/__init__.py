"""Named methods behind one signature: exact, the paper's two algorithms, and their opponents."""

from holdfast.methods import exact
from holdfast.methods.base import METHODS, Method
from holdfast.methods.door import find_recourse, list_methods

__all__ = ["METHODS", "Method", "exact", "find_recourse", "list_methods"]
