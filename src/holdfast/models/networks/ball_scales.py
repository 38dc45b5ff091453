"""How far each tensor of a network's parameters may change in a ball, relative to the others."""

from __future__ import annotations

import numpy as np

from holdfast.machinery.numbers import check_kind, shown
from holdfast.models.network import Network
from holdfast.problem.ball import NormBall
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.model_set import ModelSet

_LISTED = 20  # tensors that an error names


def tensor_scales(network: Network, robust_to: NormBall) -> tuple[float, ...]:
    """Return the scale of each parameter tensor, in the order of ``module.named_parameters()``.

    A network with the parameters ``W + change`` is in the ball when
    ``|| change / scale ||_p <= radius``, over all parameters together. 0 says that a tensor never
    changes: its scale in the ball is 0, or it has ``requires_grad=False``. For scikit-learn's
    `MLPClassifier` the order is W1, b1, W2, b2, ...

    Parameters
    ----------
    network : Network
    robust_to : NormBall
        Its `scale` has one number for each tensor, or is left out: all ones. Its `intercept` speaks
        of linear models, and must stay True.

    Examples
    --------
    >>> import holdfast, torch
    >>> from holdfast.models.network import Network
    >>> network = Network(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)))
    >>> tensor_scales(network, holdfast.NormBall(p=2, radius=0.5))
    (1.0, 1.0, 1.0, 1.0)
    >>> tensor_scales(network, holdfast.NormBall(p=2, radius=0.5, scale=[0, 0, 1, 0.5]))
    (0.0, 0.0, 1.0, 0.5)
    """
    check_kind("network", network, Network, "make it with holdfast.models.network.Network")
    if isinstance(robust_to, LastLayer):
        raise TypeError(
            "robust_to is a LastLayer, but this is for balls around all parameters of a network; "
            "the worst case of a LastLayer is exact: see worst_last_layer and evaluate_recourse"
        )
    check_kind("robust_to", robust_to, NormBall, "write NormBall(p=..., radius=...)")
    if not (isinstance(robust_to.intercept, (bool, np.bool_)) and robust_to.intercept):
        raise ValueError(
            f"intercept = {shown(robust_to.intercept)} of a NormBall applies to a linear model; "
            "for a network, leave it out: the scale of a bias is the entry of its tensor in scale"
        )
    named = dict(network.module.named_parameters())
    scales = (1.0,) * len(named) if robust_to.scale is None else tuple(robust_to.scale)
    if len(scales) != len(named):
        raise ValueError(
            f"scale has {len(scales)} numbers, but the network has {len(named)} tensors of "
            f"parameters; give one for each, in this order: {_listed(list(named))}"
        )
    return tuple(
        float(scale) if tensor.requires_grad else 0.0
        for scale, tensor in zip(scales, named.values(), strict=True)
    )


def refuse_feature_scale(robust_to: ModelSet) -> None:
    """Refuse a ball that was a linear score's and is now taken for a network's, if it has scales.

    They are those of features there, of tensors here: read as such they would mean something else.
    """
    if isinstance(robust_to, NormBall) and robust_to.scale is not None:
        raise ValueError(
            "the scale of the result's own ball is per feature, but a network's ball has one per "
            "tensor of parameters; pass the network's as robust_to=NormBall(...)"
        )


def _listed(names: list[str]) -> str:
    listed = ", ".join(names[:_LISTED])
    return listed if len(names) <= _LISTED else f"{listed}, ... (module.named_parameters())"
