"""The paper's experiments, in one command."""

from holdfast.paper.reproduce.command import Order, reproduce
from holdfast.paper.reproduce.plan import TARGETS, make_plan

__all__ = ["TARGETS", "Order", "make_plan", "reproduce"]
