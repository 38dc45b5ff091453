"""What a person can change, in raw units, by the name of each feature."""

from holdfast.actions.action_set import ActionSet
from holdfast.actions.category import CategoryFeature
from holdfast.actions.check import check, raw_cost
from holdfast.actions.compile import to_problem
from holdfast.actions.compiled import Compiled
from holdfast.actions.decode import decode
from holdfast.actions.derived import Product, Ratio
from holdfast.actions.links import AtMost, Follows, Linear
from holdfast.actions.number import NumberFeature
from holdfast.actions.preferences import Preference

__all__ = [
    "ActionSet",
    "AtMost",
    "CategoryFeature",
    "Compiled",
    "Follows",
    "Linear",
    "NumberFeature",
    "Preference",
    "Product",
    "Ratio",
    "check",
    "decode",
    "raw_cost",
    "to_problem",
]
