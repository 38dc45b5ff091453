"""What a solver brings back; everything else is worked out from it, in one place for all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.result.prover import RowProver


class Found(NamedTuple):
    """What a solver found, a row each.

    Attributes
    ----------
    recourse : (n, d) array
        NaN in rows without one.
    outcome : (n,) array
        The `Outcome` of each row. EXHAUSTED with a bound of inf: it is proven that there is no
        recourse; with another bound, it is not.
    lower_bound : (n,) array
        Nothing is better than that.
    multiplier : (n,) array or None
        What the last bit of worst-case score cost, for a whole unit of it.
    reachable_validity, reachable_radius : (n,) arrays or None
        For rows without a recourse: what could be had instead.
    levels : (n, groups) array or None
        The level that each category takes; -1 without a recourse.
    nodes : (n,) array or None
        Parts of the problem that were looked at.
    prover : RowProver or None
        What proves the rows again when somebody asks; None where no line bounds them.
    """

    recourse: Floats
    outcome: NDArray[np.int8]
    lower_bound: Floats
    multiplier: Floats | None = None
    reachable_validity: Floats | None = None
    reachable_radius: Floats | None = None
    levels: NDArray[np.int64] | None = None
    nodes: NDArray[np.int64] | None = None
    prover: RowProver | None = None
