"""The paper that Holdfast grew from: its data, its algorithms as written, its tables and figures.

Everything that belongs to this one paper lives here: Kyaw, Kayastha and Jabbari, *Optimal Robust
Recourse with L^p-Bounded Model Change*. The wing imports the product; nothing in the product
imports it. What repeats a flaw of published code, for the sake of the published figures, has "as
published" in its name.

- The data. `prepare`: from the raw tables to the paper's columns. `folds`: its five folds, and the
  people whom its authors drew. `shift`: the shifted tables, which future models are trained on.
- The methods. `algorithm1` (p = 1) and `algorithm2` (p = inf): the paper's Algorithms 1 and 2.
  `roar_as_published`, `rbr_as_published`: its opponents with the faults of their public code
  (`bceloss`: one that Algorithm 1 and ROAR share). `lime_as_published`: its linear scores for
  networks. `catalogue`: all of them by name.
- The networks. `training`: the paper's network. `worst_network_as_published` and
  `worst_network_steps`: how its authors look for the worst network, behind Tables 2 and 3.
- The experiments. `world`: a fold with its models and its denied people. `piece`: one method on one
  fold, the unit of work. `constraints`: whole categories and little ageing, of its figures on
  feasibility. `judging`: what models make of a recourse. `changes`: how many features it changes
  (sparsity). `run`: from a piece to rows. `tidy`: the one table of all rows, and its fields.
- `reproduce`, the command. `plan`: which pieces Tables 1 to 3 and the figures are made of.
  `runner`: processes. `store`: what is finished is kept. `display`, `command`.
- `report`, from that table alone to what is shown. `prices`: Tables 1 to 3. `subsets`: parts of the
  people, as its authors took them. `trapped`: the one person on whom a clamped loss is stuck.
  `frontiers`, `sparsity`, `feasibility`: its figures. `exactness`, `norms`, `optimality`, `proof`,
  `times`: ours beside them. `paper` and `paper.yaml`: the figures that it prints. `page` shows all.

Examples
--------
>>> import holdfast
>>> from holdfast.paper import Algorithm2
>>> ball = holdfast.NormBall(p=float("inf"), radius=0.1)
>>> model = ([1.0, -0.5], -1.0)
>>> found = holdfast.find_recourse(
...     [[0.0, 2.0]], model, Algorithm2(), robust_to=ball, cost_weight=0.1
... )
>>> found.method, str(found.status[0])
('algorithm2', 'optimal')
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.paper.algorithm1 import Algorithm1, Algorithm1AsPublished
    from holdfast.paper.algorithm2 import Algorithm2
    from holdfast.paper.folds import german_folds, sba_folds
    from holdfast.paper.lime_as_published import LimeAsPublished
    from holdfast.paper.rbr_as_published import RobustBayesianAsPublished
    from holdfast.paper.roar_as_published import RoarAsPublished
    from holdfast.paper.training import train_network
    from holdfast.paper.worst_network_as_published import published_worst_network

# Loaded when asked for: some need scikit-learn or torch, which are slow to import
_ROOMS = {
    "Algorithm1": "algorithm1",
    "Algorithm1AsPublished": "algorithm1",
    "Algorithm2": "algorithm2",
    "LimeAsPublished": "lime_as_published",
    "RoarAsPublished": "roar_as_published",
    "RobustBayesianAsPublished": "rbr_as_published",
    "german_folds": "folds",
    "published_worst_network": "worst_network_as_published",
    "sba_folds": "folds",
    "train_network": "training",
}

__all__ = [
    "Algorithm1",
    "Algorithm1AsPublished",
    "Algorithm2",
    "LimeAsPublished",
    "RoarAsPublished",
    "RobustBayesianAsPublished",
    "german_folds",
    "published_worst_network",
    "sba_folds",
    "train_network",
]


def __getattr__(name: str) -> Any:
    """Load what is asked for."""
    if name in _ROOMS:
        return getattr(import_module(f"holdfast.paper.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'holdfast.paper' has no attribute {name!r}")
