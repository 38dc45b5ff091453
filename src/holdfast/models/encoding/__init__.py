"""A fitted scikit-learn pipeline, taken apart: what each raw column becomes for the classifier."""

from holdfast.models.encoding.encoding import Encoded, Encoding
from holdfast.models.encoding.features import Category, Curve, Number
from holdfast.models.encoding.rules import ColumnRule

__all__ = ["Category", "ColumnRule", "Curve", "Encoded", "Encoding", "Number"]
