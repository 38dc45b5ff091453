"""All that the server holds: a model, what people can do, and the people of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.engines.rows import columns_of
from holdfast.files.jobs import Job, prepare
from holdfast.files.people import Columns
from holdfast.recommend import RobustRecourse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.actions import ActionSet
    from holdfast.recommend import Recommendations


@dataclass(frozen=True, eq=False)
class Desk:
    """One model, with all that is asked of it; a request changes nothing of it.

    Attributes
    ----------
    job : Job
        What was asked; `people` and `out` may be empty.
    recourse : RobustRecourse
    columns : Columns
        What is read of each person, from texts as they are typed.
    """

    job: Job
    recourse: RobustRecourse
    columns: Columns

    @classmethod
    def of(cls, job: Job) -> Desk:
        """Read all that a job names."""
        prepared = prepare(job, n_jobs=1)
        recourse = prepared.recourse
        return cls(job, recourse, columns_of(recourse, are_texts=True))

    @property
    def actions(self) -> ActionSet:
        """What people can change."""
        actions: ActionSet = self.recourse.actions
        return actions

    def asking(
        self,
        preferences: Mapping[str, Any] | None = None,
        radius: float | None = None,
        n_options: int = 3,
    ) -> RobustRecourse:
        """Return the estimator as one person wants it: locked, limited, dearer; another size."""
        settings = self.recourse.get_params(deep=False) | {"n_options": n_options}
        if preferences:
            settings["actions"] = self.actions.with_preferences(preferences)  # type: ignore[attr-defined]
        if radius is not None:
            settings["robust_to"] = self.recourse.robust_to.with_radius(radius)
        return RobustRecourse(**settings)

    def recommend(self, people: Any, **asked: Any) -> Recommendations:
        """Advise people, given as the model reads them."""
        return self.asking(**asked).recommend(people)
