"""The paper's experiments, in one command."""

from holdfast.paper.reproduce.command import Order, reproduce
from holdfast.paper.reproduce.plan import TARGETS, plan_pieces

__all__ = ["TARGETS", "Order", "plan_pieces", "reproduce"]
