"""The estimator: a fitted model, a ball, an action set; people in, recommendations out."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from holdfast._numbers import check_count, check_kind
from holdfast.actions import ActionSet, Compiled, LinkRows, check, to_problem
from holdfast.ball import NormBall
from holdfast.discrete import DiscreteAnswer, DiscreteProblem, solve_discrete
from holdfast.discrete.linked import Links, solve_linked
from holdfast.encoding import Encoding
from holdfast.encoding.reading import as_table
from holdfast.recommend.features import row_links
from holdfast.recommend.recommendations import Recommendations
from holdfast.recommend.ways import Way, other_ways, way_of


class RobustRecourse(BaseEstimator):  # type: ignore[misc]
    """Recourse that holds for every model of a ball, in raw units, within what people can do.

    The answer is exact: categories, whole numbers, steps and at-most-k are solved by branch and
    bound, and the cheapest change there is comes with its proof.

    Parameters
    ----------
    model : fitted pipeline or classifier
        Scalers and encoders (in a `ColumnTransformer` or in sequence), then a linear classifier.
    ball : NormBall
        The models that may come, around the classifier's coefficients in encoded columns.
    actions : ActionSet
        What people can change, in raw units.
    guarantee : float, optional
        Probability of approval that every model of the ball must give. Give this or
        `cost_weight`.
    cost_weight : float, optional
        Minimise ``worst-case loss + cost_weight * cost`` instead.
    n_options : int
        How many ways to recommend to each person; they differ in the features that they change.
    loss : str, optional
        By default the one that the classifier was fitted with.
    target_class : label, optional
        The wanted class; the second of the classes by default.
    threads : int, optional
        All available processors by default.

    Examples
    --------
    >>> import holdfast
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> table = pd.DataFrame({"months": [12, 48, 24, 60, 6, 36], "age": [50, 22, 41, 25, 63, 30]})
    >>> model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, [1, 0, 1, 0, 1, 0])
    >>> actions = holdfast.ActionSet.from_data(table)
    >>> actions["age"].immutable = True
    >>> recourse = holdfast.RobustRecourse(
    ...     model, ball=holdfast.NormBall(p=1, radius=0.1), actions=actions, guarantee=0.5
    ... )
    >>> result = recourse.recommend(table[1:2])
    >>> result.table()[["status", "changes"]].values.tolist()
    [['optimal', 'months 48 → 7']]
    """

    def __init__(
        self,
        model: Any,
        *,
        ball: NormBall,
        actions: ActionSet,
        guarantee: float | None = None,
        cost_weight: float | None = None,
        n_options: int = 1,
        loss: str | None = None,
        target_class: Any = None,
        threads: int | None = None,
    ) -> None:
        self.model = model
        self.ball = ball
        self.actions = actions
        self.guarantee = guarantee
        self.cost_weight = cost_weight
        self.n_options = n_options
        self.loss = loss
        self.target_class = target_class
        self.threads = threads

    def __sklearn_clone__(self) -> RobustRecourse:
        """Copy the settings, and the model as it is fitted: nothing here is fitted again."""
        parameters = self.get_params(deep=False)
        return type(self)(**{name: copy.deepcopy(value) for name, value in parameters.items()})

    def recommend(self, applicants: Any) -> Recommendations:
        """Recommend what each of the applicants should change.

        Parameters
        ----------
        applicants : DataFrame or (n, d) array
            People, in raw units, as the model takes them. Who cannot be used gets a reason.

        Returns
        -------
        Recommendations
        """
        check_count("n_options", self.n_options)
        check_kind("actions", self.actions, ActionSet, "begin with ActionSet.from_data")
        as_table(applicants, "applicants")
        encoding = Encoding.of(self.model, target_class=self.target_class)
        if encoding.model.kind != "linear":
            raise ValueError(
                f"the classifier is a {encoding.model.kind}, but RobustRecourse needs a linear "
                "one; holdfast.find_recourse takes any model"
            )
        compiled, answer = self._solve(applicants, self.actions, encoding)
        ways = []
        for i in range(len(compiled.rows)):
            there = bool(np.isfinite(answer.recourse[i]).all())
            found = [way_of(answer, i, compiled, i)] if there else []
            if found and found[0].features and self.n_options > 1:
                solve = partial(
                    self._answer,
                    links=row_links(compiled.links, i),
                    guarantee=self.guarantee,
                    weight=self.cost_weight,
                )
                found = other_ways(compiled, i, found[0], self.n_options, solve)
            ways.append(found)
        labels = as_table(applicants).index
        result = Recommendations(self, encoding, compiled, answer, ways, labels)
        self._check(compiled, ways, result)
        return result

    def _solve(
        self, applicants: Any, actions: ActionSet, encoding: Encoding
    ) -> tuple[Compiled, DiscreteAnswer]:
        compiled = to_problem(applicants, encoding, actions, ball=self.ball, loss=self.loss)
        goal = (self.guarantee, self.cost_weight)
        return compiled, self._answer(compiled.problem, compiled.links, *goal)

    def _answer(
        self,
        problem: DiscreteProblem,
        links: LinkRows,
        guarantee: float | None,
        weight: float | None,
    ) -> DiscreteAnswer:
        """Solve by branch and bound; where links couple features, with a general solver."""
        if not len(links.matrix):
            return solve_discrete(
                problem, cost_weight=weight, guarantee=guarantee, threads=self.threads
            )
        rows = Links(links.matrix, links.lower, links.upper)
        return solve_linked(problem, rows, cost_weight=weight, guarantee=guarantee)

    def _check(self, compiled: Compiled, ways: list[list[Way]], result: Recommendations) -> None:
        """Check every recommendation once more, in raw units: a violation is a bug, and raises."""
        for option in range(max((len(found) for found in ways), default=0)):
            rows = [i for i, found in enumerate(ways) if len(found) > option]
            after = result.after(option)
            for position, i in enumerate(rows):
                wrong = check(self.actions, compiled.people.iloc[i], after.iloc[position])
                if wrong:
                    label = compiled.people.index[i]
                    raise RuntimeError(f"row {label}: {'; '.join(wrong)}: a bug, please report it")
