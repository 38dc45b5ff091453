"""What is recommended to people whom a network judges: proven row by row, not the cheapest."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, cast

from holdfast.problem.ball import NormBall
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.model_set import ModelSet
from holdfast.recommend.networks import NetworkQuestion, find_network_advice
from holdfast.recommend.opposing import Opposing
from holdfast.recommend.reasons import Release
from holdfast.recommend.recommendations import Recommendations
from holdfast.recommend.sizes import NoSizes, SizeCurve
from holdfast.recommend.staircase import Staircase
from holdfast.result.bracket import Bracket

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.models.network import Network


class ProvenRecommendations(Recommendations):
    """Recommendations for a network: what every network of the set gives them is proven.

    They come out of a search, so a cheaper way may exist, and where none was found there may be
    one: whatever rests on the cheapest way of all is refused by name.

    Examples
    --------
    >>> import holdfast
    >>> import pandas as pd
    >>> from sklearn.neural_network import MLPClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> table = pd.DataFrame({"months": [12, 48, 24, 60, 6, 36], "age": [50, 22, 41, 25, 63, 30]})
    >>> network = MLPClassifier((4,), solver="lbfgs", alpha=1.0, random_state=0)
    >>> model = make_pipeline(StandardScaler(), network).fit(table, [0, 1, 0, 1, 0, 1])
    >>> recourse = holdfast.RobustRecourse(
    ...     model,
    ...     favorable_class=0,
    ...     robust_to=holdfast.NormBall(p=1, radius=0.1),
    ...     actions=holdfast.ActionSet.from_data(table, immutable=["age"]),
    ...     guarantee=0.5,
    ... )
    >>> result = recourse.recommend(table[1:2])
    >>> str(result.status[0]), bool(result.bracket.proven_validity[0] >= 0.5)
    ('proven valid', True)
    """

    @classmethod
    def of(cls, question: NetworkQuestion, people: pd.DataFrame) -> ProvenRecommendations:
        """Recommend something to everybody."""
        return cls(question, find_network_advice(question, people), people.index)

    @cached_property
    def bracket(self) -> Bracket:
        """What is proven of each row of `after`, and the worst network that a search finds."""
        from holdfast.models.networks.prove import bracket_of

        ways, _, points = self._advised.options[0]
        network = cast("Network", self._question.encoding.model)
        models = cast("NormBall | LastLayer", self.robust_to)
        found = bracket_of(network, points.points(), models, n_jobs=self._question.n_jobs)
        labels = self.labels.take(self._advised.positions[ways.who])
        bracket = replace(found, proven_score=ways.worst_case_score.copy(), index=labels)
        for values in (bracket.score, bracket.proven_score, bracket.found_score):
            values.flags.writeable = False  # it is made once
        return bracket

    @property
    def crowd(self) -> str:
        """All networks of the set, as named in a sentence."""
        return self.robust_to.crowd_of("network")

    def frontier(self, label: Any, n_points: int = 25) -> Staircase:
        """Refuse: it is made of the cheapest ways of all."""
        _refuse("frontier", "ask for one guarantee at a time, using with_settings(guarantee=...)")

    def opposing(
        self, label: Any, robust_to: ModelSet | None = None, option: int = 1
    ) -> Opposing | None:
        """Refuse: it is the worst of linear models."""
        _refuse("opposing", "see bracket, or search with holdfast.models.networks")

    def sizes(self, label: Any, n_points: int = 25, at_least: float = 0.0) -> SizeCurve:
        """Refuse: it is made of the cheapest ways of all."""
        _refuse("sizes", "ask for one size at a time, using with_settings(robust_to=...)", NoSizes)

    def releases(self, label: Any) -> list[Release]:
        """Refuse: nothing is proven to be impossible."""
        _refuse("releases", "for a network, it is never proven that nothing helps")

    def reachable(self, label: Any) -> tuple[float, float]:
        """Refuse: nothing is proven to be out of reach."""
        _refuse("reachable", "to_frame shows the most that was proven for any change tried")


def _refuse(what: str, instead: str, error: type[ValueError] = ValueError) -> NoReturn:
    raise error(
        f"{what} relies on proofs for linear models, but the classifier is a network: {instead}"
    )
