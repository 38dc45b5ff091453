"""The nearest point of a ball, in Euclidean distance, for every row of a tensor."""

from __future__ import annotations

import torch
from torch import Tensor


def project_l1(rows: Tensor, radius: float) -> Tensor:
    """Project each row onto the L1 ball, exactly, by sorting.

    Outside the ball the nearest point is ``sign(v) * max(|v| - t, 0)``, with the one threshold
    ``t`` that brings its norm to the radius.

    Examples
    --------
    >>> import torch
    >>> project_l1(torch.tensor([[3.0, 1.0], [0.2, -0.1]]), 1.0)
    tensor([[ 1.0000,  0.0000],
            [ 0.2000, -0.1000]])
    """
    if radius == 0.0:
        return torch.zeros_like(rows)
    size = rows.abs()
    descending = size.sort(dim=1, descending=True).values
    count = torch.arange(1, rows.shape[1] + 1, dtype=rows.dtype, device=rows.device)
    # the threshold if exactly the k largest entries stay; k is right while the k-th one does
    thresholds = (descending.cumsum(dim=1) - radius) / count
    kept = (descending > thresholds).sum(dim=1, keepdim=True).clamp_min(1)
    threshold = thresholds.gather(1, kept - 1)
    nearest = rows.sign() * (size - threshold).clamp_min(0.0)
    return torch.where(size.sum(dim=1, keepdim=True) <= radius, rows, nearest)


def project_l2(rows: Tensor, radius: float) -> Tensor:
    """Project each row onto the L2 ball.

    Examples
    --------
    >>> import torch
    >>> project_l2(torch.tensor([[3.0, 4.0], [0.5, 0.0]]), 1.0)
    tensor([[0.6000, 0.8000],
            [0.5000, 0.0000]])
    """
    norm = rows.norm(dim=1, keepdim=True)
    return torch.where(norm <= radius, rows, rows * (radius / norm))


def project_linf(rows: Tensor, radius: float) -> Tensor:
    """Project each row onto the L-infinity ball.

    Examples
    --------
    >>> import torch
    >>> project_linf(torch.tensor([[3.0, -0.5]]), 1.0)
    tensor([[ 1.0000, -0.5000]])
    """
    return rows.clamp(-radius, radius)
