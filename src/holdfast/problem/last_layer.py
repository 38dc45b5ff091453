"""The networks that may come: those in which the last layer alone changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

from numpy.typing import ArrayLike

from holdfast.machinery.numbers import Floats, check_kind, shown
from holdfast.problem.model_set import ModelSet


@dataclass(frozen=True, eq=False)
class LastLayer(ModelSet):
    """All networks in which only the last layer changes, within a set of models of its own.

    The score of such a network is linear in the output of the layers before the last one, the
    embedding of a point. So the worst of these networks is known exactly for each point, whichever
    set it is: what a result says about the worst case is proven. With a ball around all parameters
    it is only bounded from below: see `prove_network`.

    It is for networks: `find_recourse` with the method "refine", `RobustRecourse`, `prove_network`,
    `judge_network` and `evaluate_recourse` take it. Everything else refuses it.

    Parameters
    ----------
    models : NormBall, Ellipsoid or ModelList
        The last layers to allow for: a set over its weights, in their order, the bias last.
        `holdfast.models.networks.last_layer_of` returns what these are today, and
        `holdfast.models.networks.embed` what they multiply.

    Examples
    --------
    >>> import holdfast, torch
    >>> from holdfast.models.networks import worst_last_layer
    >>> from holdfast.models.network import Network
    >>> layers = [torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)]
    >>> for layer in (layers[0], layers[2]):
    ...     _ = torch.nn.init.ones_(layer.weight), torch.nn.init.zeros_(layer.bias)
    >>> network = Network(torch.nn.Sequential(*layers).double())
    >>> robust_to = holdfast.LastLayer(holdfast.NormBall(p=1, radius=0.5))
    >>> robust_to.crowd
    "every network whose last layer is within a radius of 0.5 of today's"
    >>> worst_last_layer(network, [[2.0, 1.0]], robust_to).score  # 3 + 3 - 0.5 * 3
    array([4.5])
    """

    models: ModelSet
    radius: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_kind("models", self.models, ModelSet, "give a NormBall, an Ellipsoid or a ModelList")
        if isinstance(self.models, LastLayer):
            raise TypeError("models is a LastLayer itself; write LastLayer(NormBall(...))")
        object.__setattr__(self, "radius", self.models.radius)

    @property
    def has_size(self) -> bool:  # type: ignore[override]
        """Whether it can be made smaller, down to today's network alone."""
        return self.models.has_size

    @property
    def label(self) -> str:
        """A few words that distinguish it from other sets."""
        return f"last layer: {self.models.label}"

    def crowd_of(self, what: str) -> str:
        """All of its networks, as named in a sentence; they are called nothing else."""
        if self.radius == 0.0:
            return "today's network"
        if not self.has_size:
            return f"{self.models.crowd_of('network')} that differ only in their last layer"
        return self.models.crowd_of("network whose last layer is")

    def with_radius(self, radius: float) -> LastLayer:
        """Return the same set in another size."""
        return LastLayer(self.models.with_radius(radius))

    def over(self, n_inputs: int) -> ModelSet:
        """Return the set of last layers; refuse it if the number of inputs differs."""
        try:
            self.models.feature_scale(n_inputs)
        except ValueError as error:
            raise ValueError(
                f"{shown(self)} does not fit the network, whose last layer has {n_inputs} inputs "
                f"(its features): {error}"
            ) from None
        return self.models

    def require_network(self, kind: str) -> None:
        """Refuse a model of a kind that has no layers."""
        if kind == "linear":
            raise ValueError(
                "robust_to is a LastLayer, but the model is linear and has no earlier layers: "
                f"pass the set itself, robust_to={shown(self.models)}"
            )
        if kind != "network":
            raise ValueError(
                f"robust_to is a LastLayer, but a {kind} model has no layers; it is for networks"
            )

    def feature_scale(self, n_features: int) -> Floats:
        """Refuse: the set is not about features."""
        self._refuse()

    def numbers(self, n_features: int) -> Any:
        """Refuse: there is no network to be seen here."""
        self._refuse()

    def worst_model(
        self, X: ArrayLike, coef: ArrayLike, intercept: ArrayLike
    ) -> tuple[Floats, Floats]:
        """Refuse: `holdfast.models.networks.worst_last_layer` takes the network."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ValueError(
            f"robust_to = {shown(self)} is a set of networks, but this is for linear scores: for "
            "a linear model, pass the set itself; for a network, use find_recourse with "
            "method='refine', holdfast.models.networks.judge_network or worst_last_layer"
        )
