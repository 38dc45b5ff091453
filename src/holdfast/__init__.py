"""Holdfast: robust algorithmic recourse, provably optimal for linear models."""

from typing import TYPE_CHECKING, Any

from holdfast import sets
from holdfast.actions import ActionSet
from holdfast.calibration import calibrate
from holdfast.continuous.frontier import frontier
from holdfast.continuous.solve import solve
from holdfast.machinery.extras import need_torch
from holdfast.machinery.versions import VERSION
from holdfast.methods import find_recourse
from holdfast.problem import Ellipsoid, LastLayer, ModelList, NormBall, Points
from holdfast.result import RecourseResult, Status

if TYPE_CHECKING:
    from holdfast.models.networks.prove import prove_network
    from holdfast.recommend import RobustRecourse

__version__ = VERSION

__all__ = [
    "ActionSet",
    "Ellipsoid",
    "LastLayer",
    "ModelList",
    "NormBall",
    "Points",
    "RecourseResult",
    "RobustRecourse",
    "Status",
    "calibrate",
    "find_recourse",
    "frontier",
    "prove_network",
    "sets",
    "solve",
]


def __dir__() -> list[str]:
    """List what is loaded late too, so that it is completed where people type."""
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> Any:
    """Load what needs scikit-learn or torch when it is asked for: these are slow to import."""
    if name == "RobustRecourse":
        from holdfast.recommend import RobustRecourse

        return RobustRecourse
    if name == "prove_network":
        need_torch("prove_network")
        from holdfast.models.networks.prove import prove_network

        return prove_network
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
