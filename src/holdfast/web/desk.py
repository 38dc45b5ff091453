"""All that the server holds: a model, what people can do, and the people of a table."""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from holdfast.engines.local import read_job
from holdfast.engines.rows import RowFunction, columns_of
from holdfast.files.jobs import Job, check_unchanged, prepare
from holdfast.files.people import PeopleColumns, text_of
from holdfast.machinery.meanwhile import meanwhile
from holdfast.machinery.threads import thread_count
from holdfast.models.encoding.reading import is_missing
from holdfast.recommend import RobustRecourse
from holdfast.report.parts import features_that_follow
from holdfast.report.people import basis_of
from holdfast.report.person import (
    PersonFigures,
    SureFigures,
    how_sure,
    look_at,
)
from holdfast.web.helpers import Helpers
from holdfast.web.made_once import MadeOnce
from holdfast.web.people import People, RunState

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.actions import ActionSet
    from holdfast.files.recourse import RecourseFile
    from holdfast.recommend import Recommendations
    from holdfast.report import LetterSettings, Summary
    from holdfast.report.parts import Reference


def own_threshold(job: Job) -> float:
    """Return the probability from which on the model of a job approves."""
    even = basis_of(prepare(job, n_jobs=1).recourse).even
    return 0.5 if math.isnan(even) else even  # so a yes is called where there are no probabilities


def _refuse_what_cannot_be_asked(recourse: RobustRecourse, columns: PeopleColumns) -> None:
    """Refuse a goal, a set of models or actions that do not fit the model, before anybody asks."""
    import pyarrow as pa

    recourse.recommend(
        columns.frame(pa.table({n: pa.array([], pa.string()) for n in columns.levels}))
    )
    even = basis_of(recourse).even
    if recourse.guarantee is not None and recourse.guarantee < even:
        raise ValueError(
            f"guarantee = {recourse.guarantee:.12g} is below the threshold of today's model, "
            f"{even:.12g}: the page looks for an approval, so ask for at least that"
        )


def _fingerprint(recourse: RobustRecourse) -> str:
    """Name all that answers rest on by its content: files of the same model can differ."""
    import joblib

    asked = recourse.get_params(deep=False)
    return str(joblib.hash([asked[name] for name in sorted(asked) if name != "n_jobs"]))[:12]


@dataclass(frozen=True, eq=False)
class Desk:
    """One model, with all that is asked of it; a request changes nothing of it.

    Attributes
    ----------
    job : Job
        What was asked; `people` and `out` may be empty.
    recourse : RobustRecourse
    columns : PeopleColumns
        What is read of each person, from texts as they are typed.
    people : People or None
        Those of the table; None without one.
    reference : Path or None
        A table of applicants, of whom those approved are compared with in letters.
    lender : str
        Who signs letters.
    fingerprint : str
        Of the model, the actions, and all else that answers rest on, but for the people.
    """

    job: Job
    recourse: RobustRecourse
    columns: PeopleColumns
    people: People | None = None
    reference: Path | None = None
    lender: str = ""
    fingerprint: str = ""
    _made: MadeOnce = field(default_factory=MadeOnce, repr=False)

    @functools.cached_property
    def _helpers(self) -> Helpers:
        given = (self.job, self.recourse, self.columns)
        return Helpers(thread_count(-1), Desk, given)

    @classmethod
    def of(
        cls,
        job: Job,
        *,
        expected: Mapping[str, str] | None = None,
        reference: Path | None = None,
        lender: str = "",
    ) -> Desk:
        """Read all that a job names; its people are read and advised once `start` is called.

        Parameters
        ----------
        job : Job
        expected : mapping, optional
            Checksums of files that must be as they were.
        reference : Path, optional
        lender : str
        """
        people, known = None, dict(expected or {})
        if job.people:
            rows, prepared, table = read_job(job)
            people = People(job, rows, table, known)
        else:
            prepared = prepare(job, n_jobs=1)
        check_unchanged(known, prepared.checksums, "the settings")
        recourse = prepared.recourse
        columns = columns_of(recourse, are_texts=True)
        _refuse_what_cannot_be_asked(recourse, columns)
        desk = cls(job, recourse, columns, people, reference, lender, _fingerprint(recourse))
        if reference is not None:
            desk.typical()  # a wrong table is said at once
        return desk

    def start(self) -> None:
        """Begin to read and to advise the people of the table; start helpers."""
        if self.people is not None:
            self.people.start()
            threading.Thread(target=self._look_over, name="overview", daemon=True).start()
        threading.Thread(target=self._prepare, name="helpers", daemon=True).start()

    def _look_over(self) -> None:
        """Have made what the first who ask would wait for."""
        assert self.people is not None
        self.people.wait()
        if self.people.progress.state is RunState.FINISHED:
            for make in (self.overview, self.typical):
                with contextlib.suppress(Exception):  # who asks is told; or all was closed
                    make()

    def _prepare(self) -> None:
        """Have compiled what nearly everybody asks, and then start processes that find it so."""
        import pandas as pd

        person = pd.DataFrame([self.somebody()])
        with contextlib.suppress(ValueError):  # there may be nobody like that
            _look_at(self, person, {})
            _how_sure(self, person, {})
            hard = self.recourse.with_settings(actions=self._locked(), n_options=1)
            look_at(hard.recommend(person), person.index[0])
        meanwhile.wait()
        self._helpers.start()

    def _locked(self) -> ActionSet:
        """Return an action set of which nothing may be changed, though somebody might allow it."""
        actions = copy.deepcopy(self.actions)
        follow = features_that_follow(actions)
        for name in actions:
            if name not in follow:
                actions[name].immutable = True
        return actions

    def feature(self, name: str) -> Any:
        """Return what can be done about a column; None where the action set does not know it."""
        return next((self.actions[each] for each in self.actions if each == name), None)

    def somebody(self) -> dict[str, Any]:
        """Return a person of the middle of every range, and of the first level."""
        person: dict[str, Any] = {}
        for name, levels in self.columns.levels.items():
            person[name] = levels[0] if levels else None
            if levels is None:
                feature = self.feature(name)
                ends = (getattr(feature, "lower", None), getattr(feature, "upper", None))
                known = [end for end in ends if end is not None]
                middle = sum(known) / len(known) if known else 0.0
                person[name] = round(middle) if getattr(feature, "integer", False) else middle
        return person

    def close(self) -> None:
        """Stop what goes on in the background, and delete what it has written."""
        self._helpers.close()
        if self.people is not None:
            self.people.close()

    def fingerprint_of(self, row: int | None) -> str:
        """Return what a page of a person belongs to: of the table, of this row as it is now.

        It is the fingerprint of the desk, and after a point that of the row, its keys among it. A
        LookupError says that there is no such row.
        """
        if row is None:
            return self.fingerprint
        if self.people is None:
            raise LookupError("there is no table of people")
        return f"{self.fingerprint}.{self.people.fingerprint(row)}"

    def look_at(self, people: pd.DataFrame, **asked: Any) -> PersonFigures:
        """Return all that is shown of a person; see `asking` for what may be asked."""
        figures: PersonFigures = self.ask(_look_at, people, asked)
        return figures

    def how_sure(self, people: pd.DataFrame, **asked: Any) -> SureFigures:
        """Return how sure the advice of a person is."""
        figures: SureFigures = self.ask(_how_sure, people, asked)
        return figures

    def ask(self, question: Callable[..., Any], *given: Any) -> Any:
        """Have a question answered by a helper, or here; see `Helpers.ask`."""
        return self._helpers.ask(self, question, *given)

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
        settings: dict[str, Any] = {"n_options": n_options}
        if preferences:
            settings["actions"] = self.actions.with_preferences(preferences)
        if radius is not None:
            settings["robust_to"] = self.recourse.robust_to.with_radius(radius)
        return self.recourse.with_settings(**settings)

    def recommend(self, people: Any, **asked: Any) -> Recommendations:
        """Advise people, given as the model reads them."""
        return self.asking(**asked).recommend(people)

    def typical(self) -> Reference:
        """Return the typical approved applicant, with whom letters compare; made once.

        It is that of the reference table, else of the people of the table; a ValueError says why
        there is none.
        """
        return cast("Reference", self._made.get("the typical applicant", self._find_typical))

    def _find_typical(self) -> Reference:
        from holdfast.report.letter import find_reference, read_reference
        from holdfast.report.people import Source

        if self.reference is not None:
            return read_reference(basis_of(self.recourse), self.reference)
        if self.people is None:
            raise ValueError(
                "a letter compares the person with approved applicants, and there are none: "
                "start `holdfast serve` with --people, or with --reference and a table of "
                "applicants, such as the training data"
            )
        return find_reference(Source.of(self.people.finished()))

    def letter(
        self,
        values: Mapping[str, str],
        settings: LetterSettings,
        *,
        row: int | None = None,
        preferences: Mapping[str, Any] | None = None,
        radius: float | None = None,
    ) -> str:
        """Return a letter as a page of HTML; a ValueError says why there is none to write.

        Parameters
        ----------
        values : mapping
            What the model reads of the person, as it is typed.
        settings : LetterSettings
        row : int, optional
            The person of the table with whom it began: the letter bears their keys, unless the
            values are no longer theirs.
        preferences, radius
            What the person tried, as in `asking`.
        """
        import pyarrow as pa

        from holdfast.report.letter import MOST_WAYS, Whose, letter_of, render_letter

        texts = {name: values.get(name) for name in self.columns.levels}
        texts |= self._derived(texts)
        cells: dict[str, Any] = {
            name: pa.array([text], pa.string()) for name, text in texts.items()
        }
        keys: list[str] = []
        if row is not None and self.people is not None and self.is_row(row, values):
            known = self.people.keys(row)
            keys = list(known)
            cells = {name: pa.array([known[name]], pa.string()) for name in keys} | cells
        table = pa.table(cells)
        asking = self.asking(preferences, radius, MOST_WAYS)
        told = RowFunction(asking, self.columns, table.schema, tuple(keys))(table)
        whose = Whose("this person", "start `holdfast serve` again with --guarantee")
        typical = self.typical()
        return render_letter(letter_of(told, basis_of(asking), typical, settings, whose, keys))

    def is_row(self, row: int, values: Mapping[str, str]) -> bool:
        """Whether what was typed are the values of a row of the table, whatever way of writing.

        A LookupError says that there is no such row, or that it has not been read yet.
        """
        if self.people is None:
            raise LookupError("there is no table of people: start `holdfast serve` with --people")
        typed, known = self.read(values), self.read(self.people.person(row))
        follow = {each.feature for each in self.actions.derived}
        pairs = [
            (typed[name].iloc[0], known[name].iloc[0])
            for name in self.columns.levels
            if name not in follow
        ]
        return all(a == b or (is_missing(a) and is_missing(b)) for a, b in pairs)

    def read(self, texts: Mapping[str, str | None]) -> pd.DataFrame:
        """Read one person from texts."""
        import pyarrow as pa

        cells = {name: pa.array([texts.get(name)], pa.string()) for name in self.columns.levels}
        return self.columns.frame(pa.table(cells))

    def _derived(self, texts: Mapping[str, str | None]) -> dict[str, str]:
        """Return what follows from other values of a person, as it would be typed."""
        if not self.actions.derived:
            return {}
        typed, found = self.read(texts), {}
        for each in self.actions.derived:
            parents = typed[list(each.parents)]
            if all(isinstance(value, float) for value in parents.iloc[0]):
                columns = {name: parents[name].to_numpy() for name in parents}
                found[each.feature] = text_of(each.value(columns)[0], None)
        return found

    def groupable(self) -> list[str]:
        """Name the columns that the overview can compare people by: those with few values."""
        if self.people is None:
            return []
        return cast("list[str]", self._made.get("the list of columns", self.people.groupable))

    def overview(self, group: str | None = None) -> Summary:
        """Return the figures of the report on the people of the table; made once for each group.

        They are made as soon as the run is finished. A LookupError says that there are none yet;
        a ValueError, that people cannot be compared by this column.
        """
        if self.people is None:
            raise LookupError("there is no table of people: start `holdfast serve` with --people")
        file = self.people.finished()
        if group is not None and group not in self.groupable():
            raise ValueError(f"people cannot be compared by {group!r}")
        name = "the overview" if group is None else f"the overview by {group}"
        return cast("Summary", self._made.get(name, lambda: self._summarise(file, group)))

    def _summarise(self, file: RecourseFile, group: str | None) -> Summary:
        from holdfast.report import summarise

        # the file lies where nobody needs to know of it; the table is what people know
        told = {**self.job.to_plain(Path.cwd()), **file.run}
        return replace(summarise(file, group), source=Path(self.job.people).name, settings=told)


def _look_at(desk: Desk, people: pd.DataFrame, asked: dict[str, Any]) -> PersonFigures:
    return look_at(desk.recommend(people, **asked), people.index[0])


def _how_sure(desk: Desk, people: pd.DataFrame, asked: dict[str, Any]) -> SureFigures:
    models = desk.recourse.robust_to
    usual = models.radius if models.has_size else 0.0
    return how_sure(desk.asking(**asked), people, usual)
