"""What a person can change, in raw units, by the name of each feature."""

from holdfast.actions.action_set import ActionSet
from holdfast.actions.category import CategoryFeature
from holdfast.actions.check import check, raw_cost
from holdfast.actions.decode import decode
from holdfast.actions.derived import Product, Ratio
from holdfast.actions.links import AtMost, Follows, Linear
from holdfast.actions.number import NumberFeature
from holdfast.actions.pose import pose_problem
from holdfast.actions.posed import Posed
from holdfast.actions.preferences import Preference

__all__ = [
    "ActionSet",
    "AtMost",
    "CategoryFeature",
    "Follows",
    "Linear",
    "NumberFeature",
    "Posed",
    "Preference",
    "Product",
    "Ratio",
    "check",
    "decode",
    "pose_problem",
    "raw_cost",
]
