"""Named methods behind one signature: the exact one, and others to compare it with."""

from holdfast.methods.base import Method
from holdfast.methods.catalogue import METHODS
from holdfast.methods.door import find_recourse, list_methods

__all__ = ["METHODS", "Method", "find_recourse", "list_methods"]
