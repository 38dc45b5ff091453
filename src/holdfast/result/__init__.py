"""What is known about a recourse: its status, price, bound, gap, and the sentence that says so."""

from holdfast.result.result import Certificate, RecourseResult
from holdfast.result.status import MethodStatus, Status

__all__ = ["Certificate", "MethodStatus", "RecourseResult", "Status"]
