"""The paper's experiments, in one command."""

from holdfast.reproduce.command import Order, reproduce
from holdfast.reproduce.plan import TARGETS, make_plan

__all__ = ["TARGETS", "Order", "make_plan", "reproduce"]
