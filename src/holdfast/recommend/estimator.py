"""The estimator: a fitted model, a set of models, an action set; people in, recommendations out."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from sklearn.base import BaseEstimator

from holdfast.actions import ActionSet
from holdfast.actions.fitness import check_fit
from holdfast.machinery.numbers import check_count, check_kind, shown
from holdfast.models import Model
from holdfast.models.calibrator import why_closed
from holdfast.models.encoding import Encoding
from holdfast.models.encoding.reading import as_table
from holdfast.problem.goal import Goal
from holdfast.problem.model_set import ModelSet
from holdfast.problem.points import Points
from holdfast.recommend.advised import find_advice
from holdfast.recommend.memory import ModelMemory
from holdfast.recommend.networks import NetworkQuestion
from holdfast.recommend.oracle import NetworkOracle
from holdfast.recommend.proven import ProvenRecommendations
from holdfast.recommend.question import Question
from holdfast.recommend.recommendations import Recommendations

if TYPE_CHECKING:
    from holdfast.models.network import Network


class RobustRecourse(BaseEstimator):  # type: ignore[misc]
    """Recourse that holds for every model in a set, in raw units, within what people can do.

    For a linear classifier the answer is exact: categories, whole numbers, steps and `max_changes`
    are solved by branch and bound, and the cheapest change comes with its proof; where a proof
    leaves something open, the status and the gap say so. For a network the answer is searched for,
    within the same constraints: what every network of the set gives it is proven, but a cheaper one
    may exist.

    Parameters
    ----------
    model : fitted pipeline or classifier
        Scalers and encoders (in a `ColumnTransformer` or in sequence), then a linear classifier
        or an `MLPClassifier`; docs/models.md lists all that is read.
    robust_to : NormBall, Ellipsoid, ModelList or LastLayer
        The future models to allow for, around the classifier's coefficients in encoded columns. For
        a network, a `NormBall` around all of its parameters, or a `LastLayer`.
    actions : ActionSet
        What people can change, in raw units.
    guarantee : float, optional
        Probability of approval that every model of the set must give. Give this,
        `guarantee_points` or `cost_weight`. Behind a calibrator it is the calibrated probability.
    cost_weight : float, optional
        Minimise ``worst-case loss + cost_weight * cost`` instead; not for a network.
    points : Points, optional
        The scale of a scorecard; people are then told points instead of chances.
    guarantee_points : float, optional
        Points that every model of the set must give.
    n_options : int
        How many ways to recommend to each person; they change different features. Only one for a
        network.
    loss : str, optional
        By default the one that the classifier was fitted with.
    favorable_class : label, optional
        The class that people want. Required unless the classes are False and True.
    n_jobs : int, optional
        As in scikit-learn: -1, the default, uses all processors.

    Examples
    --------
    >>> import holdfast
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> table = pd.DataFrame({"months": [12, 48, 24, 60, 6, 36], "age": [50, 22, 41, 25, 63, 30]})
    >>> model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, [0, 1, 0, 1, 0, 1])
    >>> actions = holdfast.ActionSet.from_data(table, immutable=["age"])
    >>> recourse = holdfast.RobustRecourse(
    ...     model,
    ...     favorable_class=0,  # 1 means default
    ...     robust_to=holdfast.NormBall(p=1, radius=0.1),
    ...     actions=actions,
    ...     guarantee=0.5,
    ... )
    >>> result = recourse.recommend(table[1:2])
    >>> result.to_frame()[["status", "changes"]].values.tolist()
    [['optimal', 'months from 48 to 7']]
    >>> result.explain(1)
    "Today's model gives you a chance of 16%. Change months from 48 to 7. This is provably the \
cheapest way. Every model within a radius of 0.1 of today's then gives you a chance of at \
least 50%. The cost \
is 2.25."
    """

    def __init__(
        self,
        model: Any,
        *,
        robust_to: ModelSet,
        actions: ActionSet,
        guarantee: float | None = None,
        cost_weight: float | None = None,
        points: Points | None = None,
        guarantee_points: float | None = None,
        n_options: int = 1,
        loss: str | None = None,
        favorable_class: Any = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.model = model
        self.robust_to = robust_to
        self.actions = actions
        self.guarantee = guarantee
        self.cost_weight = cost_weight
        self.points = points
        self.guarantee_points = guarantee_points
        self.n_options = n_options
        self.loss = loss
        self.favorable_class = favorable_class
        self.n_jobs = n_jobs

    @cached_property
    def _memory(self) -> ModelMemory:
        return ModelMemory()

    def __sklearn_clone__(self) -> RobustRecourse:
        """Copy the settings, and the model as it is fitted: nothing here is fitted again."""
        parameters = self.get_params(deep=False)
        return type(self)(**{name: copy.deepcopy(value) for name, value in parameters.items()})

    def with_settings(self, **settings: Any) -> RobustRecourse:
        """Return a copy with some settings changed; a model that was read is not read again.

        Examples
        --------
        >>> import holdfast
        >>> import pandas as pd
        >>> from sklearn.linear_model import LogisticRegression
        >>> table = pd.DataFrame({"months": [12.0, 48.0, 24.0, 60.0, 6.0, 36.0]})
        >>> recourse = holdfast.RobustRecourse(
        ...     LogisticRegression().fit(table, [True, False, True, False, True, False]),
        ...     robust_to=holdfast.NormBall(p=1, radius=0.1),
        ...     actions=holdfast.ActionSet.from_data(table),
        ...     guarantee=0.5,
        ... )
        >>> surer = recourse.with_settings(guarantee=0.9)
        >>> [str(each.recommend(table[1:2]).status[0]) for each in (recourse, surer)]
        ['optimal', 'optimal']
        """
        other = type(self)(**(self.get_params(deep=False) | settings))
        other._memory = self._memory
        return other

    def recommend(self, X: Any) -> Recommendations:
        """Recommend what each of the applicants should change.

        Parameters
        ----------
        X : DataFrame or (n, d) array
            People, in raw units, as the model takes them. A row that cannot be used gets a reason
            instead.

        Returns
        -------
        Recommendations
        """
        check_count("n_options", self.n_options)
        check_kind("actions", self.actions, ActionSet, "start with ActionSet.from_data")
        given, X = X, as_table(X, "X")
        encoding = self._memory.read(self.model, self.favorable_class, X)
        if encoding.is_named and not hasattr(given, "columns"):
            raise ValueError(
                "X is an array, but the model knows its columns by name: pass a data frame with "
                f"the columns {', '.join(encoding.names)}"
            )
        X = encoding.with_floats(X)
        kind = encoding.model.kind
        if kind not in ("linear", "network"):
            raise ValueError(
                why_closed(self.model)
                or f"the classifier is a {kind}, but RobustRecourse needs a linear model or a "
                "network; holdfast.find_recourse takes any model"
            )
        question = self._question(encoding)
        if isinstance(question, NetworkQuestion):
            return ProvenRecommendations.of(question, X)
        return Recommendations(question, find_advice(question, X, self.n_options), X.index)

    def _question(self, encoding: Encoding) -> Question:
        """Return what is asked, which no later change of a setting reaches."""
        if encoding.model.kind == "network":
            self._refuse_for_network()
        goal = self._goal(encoding.model)
        # what is copied is checked: lists and dicts inside may have been changed by hand
        actions, robust_to = copy.deepcopy((self.actions, self.robust_to))
        check_fit(encoding, actions)
        asked = (
            encoding,
            actions,
            robust_to,
            goal,
            self.n_jobs,
            self.points,
            self.guarantee_points,
        )
        if encoding.model.kind == "linear":
            return Question(*asked)
        network = cast("Network", encoding.model)
        return NetworkQuestion(*asked, oracle=NetworkOracle.of(network, robust_to))

    def _refuse_for_network(self) -> None:
        """Refuse what only a linear model can be asked."""
        if self.cost_weight is not None:
            raise ValueError(
                f"cost_weight = {shown(self.cost_weight)}: for a network, RobustRecourse proves a "
                "guarantee: pass one, such as guarantee=0.5. To weigh cost against loss, use "
                "holdfast.find_recourse with method='refine'"
            )
        if self.n_options > 1:
            raise ValueError(
                f"n_options = {shown(self.n_options)}: for a network, only one way is searched "
                "for. To get another, fix in the action set what should stay as it is, and ask "
                "again"
            )

    def _goal(self, model: Model) -> Goal:
        loss = model.choose_loss(self.loss)
        if self.points is not None:
            check_kind("points", self.points, Points, "write Points(600, odds=50, double=20)")
            self.points.at(loss, 0.0)  # refuses scores that are no log-odds
        if self.guarantee_points is None:
            return model.goal(loss, cost_weight=self.cost_weight, guarantee=self.guarantee)
        if self.points is None:
            raise ValueError(
                f"guarantee_points = {shown(self.guarantee_points)}: define the scale as well: "
                "points=holdfast.Points(600, odds=50, double=20), or for an optbinning scorecard "
                "points=holdfast.models.additive.points_of(scorecard)"
            )
        if self.guarantee is not None or self.cost_weight is not None:
            raise ValueError(
                f"guarantee_points = {shown(self.guarantee_points)}, guarantee = "
                f"{shown(self.guarantee)} and cost_weight = {shown(self.cost_weight)}: give "
                "exactly one of them"
            )
        return model.goal_of_points(loss, self.points, self.guarantee_points)
