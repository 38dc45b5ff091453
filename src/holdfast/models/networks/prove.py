"""The door to the proof: what is proven of a network, beside what a search finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from holdfast.machinery.numbers import Floats, check_count, read_matrix, whole_rows
from holdfast.machinery.threads import thread_count
from holdfast.models import as_model
from holdfast.models.base import read_encoded
from holdfast.models.network import Network
from holdfast.models.networks.ascent import worst_network
from holdfast.models.networks.last_layer import LastLayerBound
from holdfast.models.networks.prover import Prover
from holdfast.models.networks.torch_threads import one_torch_thread
from holdfast.problem.ball import NormBall
from holdfast.problem.last_layer import LastLayer
from holdfast.result.bracket import Bracket

# Nothing is split where a bracket is narrower than this, relative to the fall of the score.
CLOSED = 1e-3


def prove_network(
    network: Any,
    X: Any,
    robust_to: NormBall | LastLayer,
    *,
    favorable_class: Any = None,
    splits: int = 0,
    device: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = -1,
) -> Bracket:
    """Prove how low a network's score can fall when its parameters change.

    For each point: a score that no network of the set goes below, beside the lowest one that a
    search finds. The truth lies between them.

    Parameters
    ----------
    network : object
        A torch module, a `Network`, an `MLPClassifier`, or a pipeline that ends in one. Linear
        layers with ReLU, tanh or logistic activations; dropout and batch norm are folded in. With
        batch norm the set is a ball around the folded weights and biases (W1, b1, W2, b2, ...),
        which is not one around the module's own parameters. Anything else is refused.
    X : (n, d) array or data frame
        Points, as the network or the pipeline takes them. A row with missing values gets NaN.
    robust_to : NormBall or LastLayer
        A ball around all parameters, for any p; its `scale`, if given, has a number for each
        tensor of parameters, in their order, and 0 holds a tensor fixed. For a `LastLayer` the
        worst case is exact.
    favorable_class : label, optional
        The class of a scikit-learn classifier that people want. Required unless the
        classes are False and True.
    splits : int
        How many ReLUs to split, at most, for each point whose bracket is still open: networks in
        which the ReLU is open and networks in which it is shut are then proven separately. This
        pays off in small networks, and where few layers change; the joint effect of changes in
        several layers stays open.
    device : str, optional
        Where to compute: "cpu", "cuda", ...; by default where the network is.
    random_state : int
        Seed of the search.
    n_jobs : int, optional
        Threads of the search; all processors by default.

    Returns
    -------
    Bracket

    Notes
    -----
    Everything is computed in double precision, and possible rounding errors are subtracted from
    what is proven. The proof is about the network in exact arithmetic: a network that runs in
    single precision adds its own rounding to every score.

    Examples
    --------
    >>> import holdfast, torch
    >>> layers = torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)
    >>> for layer in (layers[0], layers[2]):
    ...     _ = torch.nn.init.ones_(layer.weight), torch.nn.init.zeros_(layer.bias)
    >>> network = torch.nn.Sequential(*layers)
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> bracket = holdfast.prove_network(network, [[2.0, 1.0]], ball)
    >>> bracket.score, bracket.proven_score.round(3), bracket.found_score.round(3)
    (array([6.]), array([5.7]), array([5.7]))
    """
    adapted = as_model(network, favorable_class=favorable_class, device=device, people=X)
    if not isinstance(adapted, Network):
        raise TypeError(
            f"prove_network is for networks, but this is a {adapted.kind} model"
            + ("; its worst case is exact: see robust_to.worst_score" * (adapted.kind == "linear"))
        )
    points = read_matrix("X", read_encoded("X", adapted, X, usable_only=True))
    check_count("splits", splits, least=0)
    bracket = bracket_of(
        adapted, points, robust_to, splits=splits, random_state=random_state, n_jobs=n_jobs
    )
    return replace(bracket, index=X.index if hasattr(X, "columns") else None)


def bracket_of(
    network: Network,
    points: Floats,
    robust_to: NormBall | LastLayer,
    *,
    splits: int = 0,
    random_state: int = 0,
    n_jobs: int | None = -1,
) -> Bracket:
    """Bracket the worst score of each encoded point; NaN where there is none."""
    workers = thread_count(n_jobs)
    there = whole_rows(points)
    score, proven, found = (np.full(len(points), np.nan) for _ in range(3))
    known = points[there]
    if isinstance(robust_to, LastLayer):
        bound = LastLayerBound.of(network, robust_to)
        score[there] = bound.head.network.score(known)
        proven[there], found[there] = bound.prove(known)
        # today's network is one of them, but for rounding
        return Bracket(score, proven, np.minimum(score, found))
    prover = Prover.of(network, robust_to)
    if len(known):
        score[there] = prover.folded.score(known)
        lowest = score[there]
        if prover.network.may_change:
            with one_torch_thread():
                lowest = worst_network(
                    prover.folded, known, robust_to, random_state=random_state, n_jobs=workers
                ).score
        closed = lowest - CLOSED * (score[there] - lowest)
        proven[there], reached = prover.prove(known, splits=splits, enough=closed, n_jobs=workers)
        found[there] = np.minimum(lowest, reached)
    wrong = np.flatnonzero(proven > found)
    if wrong.size:
        raise RuntimeError(
            f"row {wrong[0]}: a network goes below the bound. This is a bug; please report it"
        )
    return Bracket(score, proven, found)
