"""The estimator: a fitted model, a ball, an action set; people in, recommendations out."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from holdfast.actions import ActionSet, Compiled, LinkRows, to_problem
from holdfast.actions.check import check_change
from holdfast.discrete import DiscreteProblem, solve_discrete
from holdfast.discrete.linked import Links, solve_linked
from holdfast.machinery.numbers import check_count, check_kind
from holdfast.models.encoding import Encoding
from holdfast.models.encoding.reading import as_table
from holdfast.problem.ball import NormBall
from holdfast.recommend.features import hold_still, row_links, take_row
from holdfast.recommend.printed import Aim, settle
from holdfast.recommend.recommendations import Recommendations
from holdfast.recommend.ways import Way, other_ways, way_of
from holdfast.result.result import RecourseResult
from holdfast.result.status import sort_proven

if TYPE_CHECKING:
    import pandas as pd


class RobustRecourse(BaseEstimator):  # type: ignore[misc]
    """Recourse that holds for every model of a ball, in raw units, within what people can do.

    The answer is exact: categories, whole numbers, steps and at-most-k are solved by branch and
    bound, and the cheapest change there is comes with its proof.

    Parameters
    ----------
    model : fitted pipeline or classifier
        Scalers and encoders (in a `ColumnTransformer` or in sequence), then a linear classifier.
    robust_to : NormBall
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
    favorable_class : label, optional
        The class that people want. It must be said, unless the classes are False and True.
    n_jobs : int, optional
        As in scikit-learn: -1, the default, takes all processors.

    Examples
    --------
    >>> import holdfast
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> table = pd.DataFrame({"months": [12, 48, 24, 60, 6, 36], "age": [50, 22, 41, 25, 63, 30]})
    >>> model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, [0, 1, 0, 1, 0, 1])
    >>> actions = holdfast.ActionSet.from_data(table)
    >>> actions["age"].immutable = True
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
cheapest way. Every model within a radius of 0.1 of today's then gives you at least 50%. The cost \
is 2.25."
    """

    def __init__(
        self,
        model: Any,
        *,
        robust_to: NormBall,
        actions: ActionSet,
        guarantee: float | None = None,
        cost_weight: float | None = None,
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
        self.n_options = n_options
        self.loss = loss
        self.favorable_class = favorable_class
        self.n_jobs = n_jobs

    def __sklearn_clone__(self) -> RobustRecourse:
        """Copy the settings, and the model as it is fitted: nothing here is fitted again."""
        parameters = self.get_params(deep=False)
        return type(self)(**{name: copy.deepcopy(value) for name, value in parameters.items()})

    def recommend(self, X: Any) -> Recommendations:
        """Recommend what each of the applicants should change.

        Parameters
        ----------
        X : DataFrame or (n, d) array
            People, in raw units, as the model takes them. Who cannot be used gets a reason.

        Returns
        -------
        Recommendations
        """
        check_count("n_options", self.n_options)
        check_kind("actions", self.actions, ActionSet, "begin with ActionSet.from_data")
        X = as_table(X, "applicants")
        encoding = Encoding.of(self.model, favorable_class=self.favorable_class, people=X)
        if encoding.model.kind != "linear":
            raise ValueError(
                f"the classifier is a {encoding.model.kind}, but RobustRecourse needs a linear "
                "one; holdfast.find_recourse takes any model"
            )
        encoding.model.check_guarantee(self.guarantee, encoding.model.choose_loss(self.loss))
        return self._frozen()._recommend(X, encoding)

    def _frozen(self) -> RobustRecourse:
        """Return an estimator of the same model that no later change of a setting reaches."""
        settings = self.get_params(deep=False)
        kept = {name: copy.deepcopy(value) for name, value in settings.items() if name != "model"}
        return type(self)(self.model, **kept)

    def _recommend(self, X: pd.DataFrame, encoding: Encoding) -> Recommendations:
        compiled, answer = self._solve(X, self.actions, encoding)
        base = compiled.problem.problem
        encoding.compare(compiled.people, base.X, base.loss)
        target = None if self.guarantee is None else base.loss.score(self.guarantee)
        score, cutoff = base.score(answer.recourse_array), encoding.model.cutoff
        stays = (answer.recourse_array == base.X).all(axis=1)
        sort_proven(answer.status, stays, answer.worst_case_score, score, cutoff, target)
        ways = []
        for i in range(len(compiled.rows)):
            there = bool(np.isfinite(answer.recourse_array[i]).all())
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
        printed, tables = self._printed(compiled, ways)
        result = Recommendations(self, compiled, answer, printed, tables, X.index)
        self._check(compiled, printed, tables)
        return result

    def _printed(
        self, compiled: Compiled, ways: list[list[Way]]
    ) -> tuple[list[list[Way]], list[pd.DataFrame]]:
        """Settle the ways, option by option, as they are printed."""
        base = compiled.problem.problem
        cutoff = compiled.encoding.model.cutoff
        target = None
        if self.guarantee is not None:
            target = base.loss.score(self.guarantee)
            if target < cutoff and base.loss.score(0.5) == target:  # a tie is no yes
                target = cutoff
        aim = Aim(target, self.cost_weight, cutoff)
        printed: list[list[Way]] = [[] for _ in ways]
        tables = []
        for option in range(max((len(found) for found in ways), default=0)):
            some = {
                i: found[option]
                for i, found in enumerate(ways)
                if len(found) > option == len(printed[i])
            }
            settled, after = settle(compiled, some, aim, partial(self._resolve, compiled))
            tables.append(after)
            for i, way in settled.items():
                printed[i].append(way)
        return printed, tables

    def _resolve(
        self, compiled: Compiled, i: int, held: frozenset[str], margin: float
    ) -> Way | None:
        """Find the way of person i that has a margin of score to spare."""
        alone = hold_still(take_row(compiled.problem, i), compiled, held)
        intercept = alone.problem.intercept - margin * (1.0 + np.abs(alone.problem.intercept))
        intercept.flags.writeable = False
        alone = replace(alone, problem=replace(alone.problem, intercept=intercept))
        links = row_links(compiled.links, i)
        answer = self._answer(alone, links, self.guarantee, self.cost_weight)
        if not np.isfinite(answer.recourse_array[0]).all():
            return None
        return way_of(answer, 0, compiled, i, held)

    def _solve(
        self, X: Any, actions: ActionSet, encoding: Encoding
    ) -> tuple[Compiled, RecourseResult]:
        loss = encoding.model.choose_loss(self.loss)
        compiled = to_problem(X, encoding, actions, robust_to=self.robust_to, loss=loss)
        goal = (self.guarantee, self.cost_weight)
        return compiled, self._answer(compiled.problem, compiled.links, *goal)

    def _answer(
        self,
        problem: DiscreteProblem,
        links: LinkRows,
        guarantee: float | None,
        weight: float | None,
    ) -> RecourseResult:
        """Solve by branch and bound; where links couple features, with a general solver."""
        if not len(links.matrix):
            return solve_discrete(
                problem, cost_weight=weight, guarantee=guarantee, n_jobs=self.n_jobs
            )
        rows = Links(links.matrix, links.lower, links.upper)
        return solve_linked(problem, rows, cost_weight=weight, guarantee=guarantee)

    def _check(self, compiled: Compiled, ways: list[list[Way]], tables: list[pd.DataFrame]) -> None:
        """Check every recommendation once more, in raw units: a violation is a bug, and raises."""
        for option, after in enumerate(tables):
            rows = [i for i, found in enumerate(ways) if len(found) > option]
            points = np.array([ways[i][option].recourse for i in rows])
            compiled.encoding.compare(after, points, compiled.problem.problem.loss)
            for position, i in enumerate(rows):
                wrong = check_change(self.actions, compiled.people.iloc[i], after.iloc[position])
                if wrong:
                    label = compiled.people.index[i]
                    raise RuntimeError(f"row {label}: {'; '.join(wrong)}: a bug, please report it")
