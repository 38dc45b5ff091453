"""The paper's network, trained as its authors trained it."""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import nn

from holdfast.machinery.numbers import (
    check_count,
    check_positive,
    check_random_state,
    read_floats,
    read_matrix,
    refuse,
)
from holdfast.models.network import Network

HIDDEN = (50, 100, 200)


def train_network(
    X: ArrayLike,
    approved: ArrayLike,
    *,
    hidden: tuple[int, ...] = HIDDEN,
    epochs: int = 100,
    learning_rate: float = 1e-3,
    random_state: int = 0,
    device: str | None = None,
) -> Network:
    """Train a network of ReLU layers on full batches with Adam and cross-entropy.

    The defaults are the paper's: 50, 100 and 200 units, 100 epochs, learning rate 1e-3. The
    weights are drawn and trained on the processor, whatever the device that they go to in the
    end, so that the same seed gives the same network everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(200, 2))
    >>> network = train_network(points, points[:, 0] > 0, epochs=30)
    >>> bool(((network.score(points) > 0) == (points[:, 0] > 0)).mean() > 0.9)
    True
    """
    check_count("epochs", epochs, least=0)
    check_positive("learning_rate", learning_rate)
    check_random_state(random_state)
    if not isinstance(hidden, (tuple, list)):
        refuse("hidden", hidden, "the numbers of units, such as (50, 100)")
    for units in hidden:
        check_count("hidden", units)
    numbers, wanted = read_matrix("X", X), read_floats("approved", approved)
    if wanted.shape != numbers.shape[:1] or not ((wanted >= 0.0) & (wanted <= 1.0)).all():
        raise ValueError(
            f"approved has shape {wanted.shape}, expected ({len(numbers)},): for each point 0 or 1"
        )
    x = torch.as_tensor(numbers, dtype=torch.float32)
    y = torch.as_tensor(wanted, dtype=torch.float32)
    sizes = (x.shape[1], *hidden, 1)
    # PyTorch's layers draw their first weights from the global generator only
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_state)
        layers: list[nn.Module] = []
        for k in range(len(sizes) - 1):
            layers += [nn.Linear(sizes[k], sizes[k + 1]), nn.ReLU()]
    module = nn.Sequential(*layers[:-1])
    optimiser = torch.optim.Adam(module.parameters(), lr=learning_rate)
    cross_entropy = nn.BCEWithLogitsLoss()
    for _ in range(epochs):
        optimiser.zero_grad()
        cross_entropy(module(x)[:, 0], y).backward()
        optimiser.step()
    return Network(module, "logit", device)
