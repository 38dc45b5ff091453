"""Where a model begins to say yes: the nearest such point on the way to people it approved of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.models import Model
from holdfast.models.base import reaches_cutoff

# After a scan in steps of a hundredth this many halvings reach the resolution of a double.
_HALVINGS = 46
# Points that are handed to the model at once, in numbers: bounds the memory.
_SCORED_AT_ONCE = 4_000_000


def approves(model: Model, points: Floats) -> NDArray[np.bool_]:
    """Say which points the model gives the wanted class."""
    n, d = points.shape
    wanted = np.empty(n, dtype=bool)
    chunk = max(1, _SCORED_AT_ONCE // d)
    for begin in range(0, n, chunk):
        piece = points[begin : begin + chunk].copy()  # torch warns of frozen arrays
        wanted[begin : begin + chunk] = reaches_cutoff(model, model.score(piece))
    return wanted


def nearest_candidates(points: Floats, approved: Floats, count: int) -> Floats:
    """Return, for each point, the approved ones that are nearest in L1, in order: (n, k, d)."""
    count = min(count, len(approved))
    chosen = np.empty((len(points), count), dtype=np.intp)
    for i, point in enumerate(points):
        distance = np.abs(approved - point).sum(axis=1)
        chosen[i] = np.argsort(distance, kind="stable")[:count]
    return approved[chosen]


def nearest_boundary(model: Model, points: Floats, candidates: Floats, scan: int) -> Floats:
    """Return the nearest point (L1), on the segments to the candidates, that the model approves.

    Each segment is scanned (`scan_segments`) for the first point that the model approves, which
    is then moved back to the boundary by halving; all segments of all rows at once, less those
    that cannot be the nearest any more.

    Parameters
    ----------
    model : Model
    points : (n, d) array
    candidates : (n, k, d) array
        Approved points, k for each row.
    scan : int
        Number of equal steps of each scan.

    Examples
    --------
    >>> import numpy as np
    >>> from holdfast.models import LinearModel
    >>> model = LinearModel([1.0, 1.0], -2.0)
    >>> candidates = np.array([[[4.0, 0.0], [2.0, 2.0]]])
    >>> nearest_boundary(model, np.zeros((1, 2)), candidates, 100).round(6)
    array([[2., 0.]])
    """
    length = lengths(points, candidates)
    no, yes = scan_segments(model, points, candidates, scan)
    for _ in range(_HALVINGS):
        alive = np.isfinite(yes) & (yes > no) & _may_be_nearest(no, yes, length)
        rows, columns = np.nonzero(alive)
        if not rows.size:
            break
        share = 0.5 * (no[rows, columns] + yes[rows, columns])
        wanted = approves(model, _along(points, candidates, rows, columns, share[:, None]))
        yes[rows[wanted], columns[wanted]] = share[wanted]
        no[rows[~wanted], columns[~wanted]] = share[~wanted]
    return nearest_of(points, candidates, yes)


def scan_segments(
    model: Model, points: Floats, candidates: Floats, scan: int
) -> tuple[Floats, Floats]:
    """Return the last refused and the first approved share of each segment, in so many steps.

    A segment that is known not to be the nearest is left as it is: its approved share is inf.
    """
    n, k, _ = candidates.shape
    length = lengths(points, candidates)
    no, yes = np.zeros((n, k)), np.full((n, k), np.inf)
    yes[approves(model, points)] = 0.0  # whoever is approved of stays
    for step in range(1, scan + 1):
        rows, columns = np.nonzero(np.isinf(yes) & _may_be_nearest(no, yes, length))
        if not rows.size:
            break
        share = step / scan
        wanted = approves(model, _along(points, candidates, rows, columns, share))
        wanted |= step == scan  # that the candidates are approved is known
        yes[rows[wanted], columns[wanted]] = share
        no[rows[~wanted], columns[~wanted]] = share
    return no, yes


def nearest_of(points: Floats, candidates: Floats, yes: Floats) -> Floats:
    """Return the nearest (L1) of the points at these shares of the segments."""
    rows = np.arange(len(points))
    nearest = _at_most(yes, lengths(points, candidates)).argmin(axis=1)
    return _along(points, candidates, rows, nearest, yes[rows, nearest][:, None])


def lengths(points: Floats, candidates: Floats) -> Floats:
    """Return the length (L1) of each segment."""
    return np.asarray(np.abs(candidates - points[:, None, :]).sum(axis=2))


def _may_be_nearest(no: Floats, yes: Floats, length: Floats) -> NDArray[np.bool_]:
    """Say which segments may still cross nearer than the nearest crossing that is known."""
    known = _at_most(yes, length).min(axis=1, keepdims=True)
    return np.asarray(no * length <= known)


def _at_most(yes: Floats, length: Floats) -> Floats:
    return np.multiply(yes, length, out=np.full_like(yes, np.inf), where=np.isfinite(yes))


def _along(
    points: Floats,
    candidates: Floats,
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    share: float | Floats,
) -> Floats:
    """Return the points at these shares of the way to the candidates; the ends are exact."""
    start, end = points[rows], candidates[rows, columns]
    return np.asarray(np.where(share == 1.0, end, start + share * (end - start)))
