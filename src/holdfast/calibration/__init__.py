"""How large a set of models must be, found by rehearsing what happens when a model is retrained."""

from holdfast.calibration.calibrate import calibrate
from holdfast.calibration.sizing import Sizing

__all__ = ["Sizing", "calibrate"]
