"""scikit-learn's `MLPClassifier` as the same network in torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from holdfast.models.network import Network
from holdfast.models.origin import Origin

_ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "logistic": nn.Sigmoid, "identity": nn.Identity}


def network_of_mlp(origin: Origin, names: list[Any] | None, device: str | None) -> Network:
    """Copy a fitted classifier's weights; its output is the logit before the last sigmoid."""
    estimator = origin.last
    layers: list[nn.Module] = []
    last = len(estimator.coefs_) - 1
    for k, (weight, bias) in enumerate(zip(estimator.coefs_, estimator.intercepts_, strict=True)):
        layer = nn.Linear(weight.shape[0], weight.shape[1], dtype=torch.float64)
        turn = origin.factor if k == last else 1.0
        with torch.no_grad():
            layer.weight.copy_(torch.as_tensor(turn * weight.T))
            layer.bias.copy_(torch.as_tensor(turn * bias))
        layers.append(layer)
        if k < last:
            layers.append(_ACTIVATIONS[estimator.activation]())
    return Network(nn.Sequential(*layers), "logit", device, names, origin)
