"""Plain gradient recourse: Wachter, Mittelstadt and Russell (2018), on the model itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holdfast.machinery.extras import need_torch
from holdfast.machinery.numbers import check_count, check_positive
from holdfast.methods.base import Method, Proposal, Task, all_converged
from holdfast.models import LinearModel, Model
from holdfast.result import MethodStatus

if TYPE_CHECKING:
    from torch import Tensor

# Adam's own constants, as everywhere
_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class Wachter(Method):
    """Adam on the point itself, from where it stands; today's model only.

    It minimises ``log(1 + exp(-score)) + cost_weight * cost`` under the true model, not its
    surrogate, and knows nothing of the ball. A row stops when a step changes its price by no
    more than `tolerance`. Bounds are honoured by clamping after every step.

    Examples
    --------
    >>> import holdfast
    >>> ball = holdfast.NormBall(p=1, radius=0.0)
    >>> model = ([1.0, -0.5], -1.0)
    >>> found = holdfast.find_recourse(
    ...     [[0.0, 2.0]], model, "wachter", robust_to=ball, cost_weight=0.1, learning_rate=0.01
    ... )
    >>> bool(0.0 <= found.gap[0] < 0.01)
    True
    """

    name = "wachter"
    any_set = True  # none of them, in truth: the set only judges it
    summary = "gradient descent (Adam) on the point, under today's model alone"
    guarantees = "none: not robust, and a local optimum for networks"
    kinds = ("linear", "network")
    honours_bounds = True

    learning_rate: float = 1e-2
    tolerance: float = 1e-6
    max_steps: int = 5_000

    def __post_init__(self) -> None:
        check_positive("learning_rate", self.learning_rate)
        check_positive("tolerance", self.tolerance, or_zero=True)
        check_count("max_steps", self.max_steps)

    def run(self, task: Task) -> Proposal:
        """Descend all rows together; each stops for itself."""
        need_torch(self.name)
        import torch

        problem = task.problem
        score, tensor = _score_of(task.model)
        shape = problem.X.shape
        start, cost, lower, upper = (
            tensor(np.broadcast_to(values, shape).copy())
            for values in (problem.X, problem.feature_costs, problem.lower, problem.upper)
        )
        cost = task.goal.amount * cost

        def price(x: Tensor, rows: Tensor) -> Tensor:
            moved = torch.abs(x - start[rows])
            loss = torch.nn.functional.softplus(-score(x))
            return loss + torch.sum(cost[rows] * moved, dim=1)

        point, steps = start.clone(), torch.zeros(len(start), dtype=torch.int64)
        running = torch.arange(len(start), device=start.device)
        x, before = start.clone(), torch.full_like(start[:, 0], torch.inf)
        mean, square = torch.zeros_like(start), torch.zeros_like(start)
        for t in range(1, self.max_steps + 1):
            if not len(running):
                break
            x.requires_grad_()
            now = price(x, running)
            (slope,) = torch.autograd.grad(now.sum(), x)
            now, x = now.detach(), x.detach()
            going = (now - before).abs() > self.tolerance
            point[running] = x
            # whoever has stopped leaves the batch; the rest is packed together
            running, x, before, slope = running[going], x[going], now[going], slope[going]
            mean = _BETA1 * mean[going] + (1.0 - _BETA1) * slope
            square = _BETA2 * square[going] + (1.0 - _BETA2) * slope**2
            size = self.learning_rate / (1.0 - _BETA1**t)
            x = x - size * mean / ((square / (1.0 - _BETA2**t)).sqrt() + _EPS)
            x = torch.clamp(x, lower[running], upper[running])
            steps[running.cpu()] = t
        point[running] = x
        status = all_converged(len(start))
        status[running.cpu().numpy()] = MethodStatus.STEP_LIMIT
        # the network's own, coarser numbers may round a bound away
        recourse = point.double().cpu().numpy()
        return Proposal(np.clip(recourse, problem.lower, problem.upper), status, steps.numpy())


def _score_of(model: Model) -> tuple[Callable[[Tensor], Tensor], Callable[..., Tensor]]:
    """Return the score of a tensor of points, and how to make one."""
    import torch

    from holdfast.models.network import Network

    if isinstance(model, Network):
        return model.logits, model.tensor
    assert isinstance(model, LinearModel)
    coef, intercept = torch.tensor(model.coef), model.intercept
    return lambda x: x @ coef + intercept, torch.tensor
