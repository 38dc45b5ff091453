"""A fitted scikit-learn pipeline, taken apart: what each raw column becomes for the classifier."""

from holdfast.models.encoding.encoding import Encoded, Encoding
from holdfast.models.encoding.features import Category, Curve, Number

__all__ = ["Category", "Curve", "Encoded", "Encoding", "Number"]
