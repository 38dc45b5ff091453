"""A fitted scikit-learn pipeline, taken apart: what each raw column becomes for the classifier."""

from holdfast.encoding.encoding import Encoding
from holdfast.encoding.features import Category, Number

__all__ = ["Category", "Encoding", "Number"]
