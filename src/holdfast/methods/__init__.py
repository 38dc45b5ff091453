"""Named methods behind one signature: exact, the paper's two algorithms, and their opponents."""

from holdfast.methods.base import Method
from holdfast.methods.catalogue import METHODS
from holdfast.methods.door import find_recourse, list_methods

__all__ = ["METHODS", "Method", "find_recourse", "list_methods"]
