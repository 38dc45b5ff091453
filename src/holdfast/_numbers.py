"""Two names that every room uses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EPS = 2.220446049250313e-16
