"""Methods as their authors write them, slow and plain: what ours must agree with."""

from __future__ import annotations

import numpy as np
import torch


def roar_by_torch(point, coef, intercept, ball, cost_weight, tolerance=1e-4):
    """ROAR as its authors write it: one row, torch's own Adam and autograd."""
    start = torch.tensor(point, dtype=torch.float64)
    x = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([x], lr=1e-3)
    before, steps = 1.0, 0
    while True:
        steps += 1
        worst_coef, worst_intercept = first_worst_model(x.detach().numpy(), coef, intercept, ball)
        score = x @ torch.as_tensor(worst_coef) + worst_intercept
        loss = torch.nn.functional.softplus(-score) + cost_weight * torch.dist(x, start, 1)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        price = float(loss.detach())
        if abs(before - price) <= tolerance:
            return x.detach().numpy(), steps
        before = price


def first_worst_model(x, coef, intercept, ball):
    """The worst model; of several for p = 1 that of the first feature, as an argmax gives it."""
    signed = np.append(x, 1.0)
    if ball.p == 1:
        change = np.zeros_like(signed)
        i = int(np.argmax(np.abs(signed)))
        change[i] = 1.0 if signed[i] >= 0 else -1.0
    elif ball.p == 2:
        change = signed / np.linalg.norm(signed)
    else:
        change = np.where(signed >= 0, 1.0, -1.0)
    return coef - ball.radius * change[:-1], intercept - ball.radius * change[-1]
