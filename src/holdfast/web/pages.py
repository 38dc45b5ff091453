"""The pages: what was asked is read, the library is called, and its figures are shown."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, Query
from fastapi import Path as PathParameter
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request

from holdfast.machinery.numerals import at_least, below, numeral, points_down
from holdfast.problem.points import Points
from holdfast.recommend import RobustRecourse
from holdfast.report.charts import STYLE
from holdfast.report.figures import count_text, figure
from holdfast.report.letter import LetterSettings
from holdfast.report.page import report_style, write_report_body
from holdfast.report.person import PersonFigures, WayFigures, sure_chart
from holdfast.result.status import Status
from holdfast.web.desk import Desk
from holdfast.web.forms import (
    TIMES,
    FormField,
    StateError,
    Tried,
    chips_of,
    fields_of,
    label,
    read_belonging,
    read_form,
    read_person,
    read_state,
    short_numeral,
)
from holdfast.web.people import SORTS, Listed, People, RunProgress, RunState
from holdfast.web.safety import SafeRoute, content_policy, too_busy
from holdfast.web.slider import Stop, stops_of

_STATIC = Path(__file__).parent / "static"
_MOST_SEARCHED, _MOST_LENDER = 200, 80  # letters
_PAGES = (
    ("people", "/people", "People"),
    ("new", "/new", "New person"),
    ("overview", "/overview", "Overview"),
)


def percent(share: float) -> str:
    """Write a share as a length in a drawing.

    Examples
    --------
    >>> percent(0.375), percent(1.2)
    ('37.50%', '100.00%')
    """
    return f"{100.0 * min(max(share, 0.0), 1.0):.2f}%"


def cost(value: float) -> str:
    """Write a cost, or a part of one, so that those below one another can be compared.

    Examples
    --------
    >>> cost(1.0), cost(0.9437), cost(0.0021), cost(1468.4)
    ('1.00', '0.94', '0.0021', '1,468')
    """
    return f"{value:.2f}" if 0.01 <= value < 1000.0 or value == 0.0 else figure(value)


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("holdfast.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {
        "percent": percent,
        "cost": cost,
        "harder": TIMES,
        "label": label,
        "numeral": numeral,
        "counted": count_text,
        "version": _version(),
    }
    templates.filters["as_json"] = lambda value: json.dumps(value, allow_nan=False)
    return templates


def _version() -> str:
    """Name the content of the static files: browsers keep them for ever under that name."""
    files = sorted(path for path in _STATIC.iterdir() if path.is_file())
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def render(name: str, **values: Any) -> str:
    """Fill in a template."""
    return _templates().get_template(name).render(**values)


_TITLES = {
    404: "Page not found",
    405: "Not possible here",
    401: "A token is needed",
    503: "Busy",
    504: "This took too long",
}


PageLinks = tuple[tuple[str, str, str], ...]  # name, address and title of pages


def pages_of(desk: Desk) -> PageLinks:
    """List the pages that there are."""
    return _PAGES if desk.people is not None else _PAGES[1:2]


def error_page(pages: PageLinks, status: int, message: str, *, is_part: bool) -> str:
    """Say what was wrong: as a page, or as the text that a page shows in its last line.

    Examples
    --------
    >>> error_page((), 503, "too many requests are waiting", is_part=True)
    '<p>Too many requests are waiting.</p>'
    """
    sentence = _sentence(message)
    if is_part:
        return render("error_part.html", sentence=sentence)
    title = _TITLES.get(status, "This did not work")
    shown = {"title": title, "sentence": sentence, "pages": pages}
    return render("error.html", **shown, here="", asked="")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


@dataclass(frozen=True)
class Decision:
    """The decision in words: of which kind it is, in a word, as a figure, and why."""

    kind: str
    word: str
    figure: str
    why: str

    @property
    def said(self) -> str:
        """All of it in one sentence, for those who hear it."""
        return f"{self.word}: {self.why[:1].lower()}{self.why[1:]}"


def _verdict(person: PersonFigures, recourse: RobustRecourse) -> Decision:
    if person.approved is None:
        return Decision("unusable", "Cannot be used", "", f"{person.complaint}.")
    why = (
        f"Today’s model gives {person.gives}"
        if person.gives
        else "This is what today’s model decided"
    )
    if person.gives:
        why += f"; {_needed(person.threshold, recourse.points)} needed"
    if person.gives and person.wanted and _asks_for_more(recourse, person.threshold):
        why += f", and the advice asks for {person.wanted}"
    if not person.approved:
        return Decision("refused", "Refused", person.gives, f"{why}.")
    if person.status is not Status.ALREADY_VALID and person.ways and person.is_robust:
        why += f", but {_doubt(person.status)}"
    return Decision("approved", "Approved", person.gives, f"{why}.")


def _doubt(status: Status) -> str:
    """Say why somebody whom today's model approves is advised all the same."""
    if status in (Status.PROVEN_VALID, Status.NOT_VALID):  # of networks no more is known
        return "it is not proven that all models that the advice allows for would too"
    return "some of the models that the advice allows for would not give what it asks for"


def _needed(threshold: float, points: Points | None) -> str:
    """Write from where on today's model approves, in what it is told to give.

    Examples
    --------
    >>> _needed(0.5, None), _needed(0.34273, None), _needed(0.5, Points(600, odds=50, double=20))
    ('50% is', '34.27% is', '487.1 points are')
    """
    if points is None:
        return f"{100.0 * threshold:.4g}% is"
    return f"{_points_at(threshold, points):.4g} points are"


def _points_at(probability: float, points: Points) -> float:
    return float(points.of(math.log(probability / (1.0 - probability))))


def _asks_for_more(recourse: RobustRecourse, threshold: float) -> bool:
    """Whether the advice asks for another thing than what today's model needs for a yes."""
    asked, needed = recourse.guarantee, threshold
    if recourse.guarantee_points is not None and recourse.points is not None:
        asked, needed = recourse.guarantee_points, _points_at(threshold, recourse.points)
    return asked is not None and not math.isclose(asked, needed, rel_tol=1e-9)


async def _form(request: Request) -> dict[str, str]:
    """Read a form of ours; forms that hold files are not among them."""
    try:
        return read_form(await request.body())
    except StateError as error:
        raise HTTPException(400, str(error)) from None


FormFields = Annotated[dict[str, str], Depends(_form)]
Sort = Literal["row", "cost", "-cost", "status"]


def make_pages(desk: Desk) -> APIRouter:
    """Return the pages."""
    router = APIRouter(route_class=SafeRoute, default_response_class=HTMLResponse)
    office = _Office(desk, fields_of(desk))

    @router.get("/")
    def home() -> RedirectResponse:
        return RedirectResponse("/new" if desk.people is None else "/people", 303)

    @router.get("/report.css")
    def style() -> Response:
        return Response(f"{STYLE}{report_style()}", media_type="text/css")

    @router.get("/people")
    def people(sort: Sort = "cost", page: Annotated[int, Query(ge=1, le=10**9)] = 1) -> str:
        return office.people_page(sort, "", page)

    @router.post("/people")
    def search(form: FormFields) -> str:
        sort, number = form.get("sort", "cost"), 1
        if "go" in form:  # a heading, or another page of what was found
            sort, _, wanted = form["go"].partition(" ")
            is_number = wanted.isascii() and wanted.isdigit() and len(wanted) < 10
            number = int(wanted) if is_number else 1
        if sort not in SORTS:
            raise HTTPException(422, f"people cannot be sorted by {sort!r}")
        return office.people_page(sort, form.get("search", "")[:_MOST_SEARCHED], number)

    @router.get("/people/{row}")
    def person(row: Annotated[int, PathParameter(ge=0, le=10**12)]) -> str:
        return office.picked_page(row)

    @router.get("/new")
    def new() -> str:
        values = {each.name: "" for each in office.fields}
        return office.person_page(Tried(values=values), ["New person"], "new")

    @router.get("/overview")
    def overview(group: str = "") -> str:
        return office.overview_page(group or None)

    @router.post("/parts/person")
    def part_person(data: Annotated[Any, Body()]) -> str:
        return render("part_person.html", **office.person(office.read(data)))

    @router.post("/parts/sure")
    def part_sure(data: Annotated[Any, Body()]) -> str:
        return office.sure_part(office.read(data))

    @router.post("/letter")
    def letter(form: FormFields) -> HTMLResponse:
        return office.letter(form)

    return router


@dataclass(frozen=True)
class _Office:
    """A desk, and the fields that people fill in there."""

    desk: Desk
    fields: list[FormField]

    def read(self, data: Any) -> Tried:
        """Read what a page sends."""
        try:
            self._refuse_strange(*read_belonging(data))
            return read_state(data, self.fields, self.desk)
        except StateError as error:
            raise HTTPException(422, f"{error}; press Start again") from None

    def _refuse_strange(self, row: int | None, of: str) -> None:
        """Refuse a page that was made of another table, or of another model."""
        if not of:
            return
        if row is not None and self.desk.people is not None and self.desk.people.total is None:
            raise too_busy("the table of people is still being read")
        try:
            belongs = self.desk.fingerprint_of(row) == of
        except LookupError:
            belongs = False
        if not belongs:
            raise HTTPException(409, "this page belongs to another table or model; reload it")

    @property
    def frame(self) -> dict[str, Any]:
        """What every page shows."""
        return {"pages": pages_of(self.desk), "asked": Path(self.desk.job.model).name}

    def people_page(self, sort: str, search: str, number: int) -> str:
        """Show the people of the table, as far as they have been read and advised."""
        people = self._people()
        progress = people.progress
        try:
            page = people.page(sort, search, number)
        except LookupError:
            page = None
        return render(
            "people.html",
            **self.frame,
            here="people",
            page=page,
            progress=_progress(progress),
            is_ready=progress.state in (RunState.FINISHED, RunState.FAILED),
            placeholder=", ".join([*map(label, self.desk.job.keys), "row, advice"]),
            decided=_decided,
            known_as=known_as,
            chance=self._chance,
        )

    def picked_page(self, row: int) -> str:
        """Show a person of the table."""
        people = self._people()
        try:
            values, keys, complaint = people.person(row), people.keys(row), people.complaint(row)
        except LookupError as error:
            raise self._absent(error, row) from None
        if complaint:
            raise HTTPException(422, f"row {row} could not be read from its file: {complaint}")
        return self.person_page(Tried(row=row, values=values), known_as(row, keys), "people")

    def overview_page(self, group: str | None) -> str:
        """Show the report on the people of the table."""
        self._people()
        try:
            summary = self.desk.overview(group)
        except LookupError as error:
            raise self._absent(error) from None
        except ValueError as error:
            raise HTTPException(404, str(error)) from None
        body = Markup(write_report_body(summary))
        named = {"body": body, "group": group or "", "groupable": self.desk.groupable()}
        return render("overview.html", **self.frame, here="overview", **named)

    def letter(self, form: dict[str, str]) -> HTMLResponse:
        """Write a letter to a person."""
        row = None
        try:
            state = self.read(json.loads(form.get("state", "null")))
            row = state.row
            settings = LetterSettings(
                language=form.get("language", "en"),
                lender=form.get("lender", "")[:_MOST_LENDER] or self.desk.lender,
                until=date.fromisoformat(form["until"]) if form.get("until") else None,
            )
            if state.wrong:
                raise ValueError(next(iter(state.wrong.values())))
            page = self.desk.letter(
                state.values,
                settings,
                row=row,
                preferences=state.preferences,
                radius=state.radius,
            )
        except (ValueError, RecursionError) as error:
            raise HTTPException(422, str(error)) from None
        except LookupError as error:
            raise self._absent(error, row) from None
        style = page.partition("<style>")[2].partition("</style>")[0]
        return HTMLResponse(page, headers={"Content-Security-Policy": content_policy(style)})

    def _people(self) -> People:
        if self.desk.people is None:
            raise HTTPException(
                404,
                "there is no table of people: start `holdfast serve` with --people, or enter a "
                "person by hand",
            )
        return self.desk.people

    def _absent(self, error: LookupError, row: int | None = None) -> HTTPException:
        """Say of what was not there whether it never will be, or only is not there yet."""
        people = self._people()
        if row is not None and people.total is not None and not 0 <= row < people.total:
            return HTTPException(404, str(error))
        if people.progress.state is RunState.FAILED:
            return HTTPException(500, str(error))
        return too_busy(str(error))

    def _chance(self, person: Listed) -> str:
        """Write what today's model gives a person of the list."""
        if math.isfinite(person.initial_points):
            return points_down(person.initial_points)
        return at_least(person.initial_validity) if math.isfinite(person.initial_validity) else ""

    def person_page(self, state: Tried, names: list[str], here: str) -> str:
        """Show a person, and what they can do."""
        return render(
            "person.html",
            **self.frame,
            **self.person(state),
            here=here,
            names=names,
            fields=self.fields,
            state=replace(state, of=self.desk.fingerprint_of(state.row)),
        )

    def person(self, state: Tried) -> dict[str, Any]:
        """Return all that is shown of the answer to a person."""
        typed = read_person(state.values, self.fields, self.desk)
        wrong = {**typed.wrong, **state.wrong}
        shown = {
            "changed": self._is_changed(state),
            "chips": chips_of(state, self.fields),
            "preferences": state.preferences,
            "wrong": wrong,
            "derived": {
                each.name: typed.derived.get(each.name) or "–"
                for each in self.fields
                if each.kind == "derived"
            },
            "has_size": self.desk.recourse.robust_to.has_size,
            "lockable": {each.name for each in self.fields if each.locks},
        }
        if wrong or typed.people is None:
            return shown | self._unread(wrong, len(typed.missing))
        person = self.desk.look_at(typed.people, **state.asked)
        derived = {each.feature for each in self.desk.actions.derived}
        ways = [_shortened(way, derived) for way in person.ways if way.changes]
        efforts = [change.effort for way in ways for change in way.changes]
        radius = person.reachable_radius
        return shown | {
            "person": person,
            "verdict": _verdict(person, self.desk.recourse),
            "ways": ways,
            "most": max(efforts, default=0.0),
            "title": _title(person, len(ways)),
            "smaller": None if not math.isfinite(radius) else below(radius),
            "show_ways": True,
            "waiting": "",
            "can_write": person.approved is False and (ways or person.status is Status.INFEASIBLE),
            "can_slide": person.approved is not None and bool(person.wanted or ways),
        }

    def _is_changed(self, state: Tried) -> bool:
        """Whether a page has begun with somebody of the table, and shows other values now."""
        if state.row is None or self.desk.people is None:
            return False
        try:
            return not self.desk.is_row(state.row, state.values)
        except LookupError:  # nobody to compare with yet
            return False

    def sure_part(self, state: Tried) -> str:
        """Show how sure the advice is, and what it would cost to be surer."""
        typed = read_person(state.values, self.fields, self.desk)
        if state.wrong or typed.people is None:
            raise HTTPException(422, "there is no answer to assess yet: fill in the fields first")
        usual = self.desk.recourse.robust_to
        try:
            sure = self.desk.how_sure(typed.people, **state.asked)
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        if sure.curve is None:
            return render("sure.html", sure=sure, stops=[], sentence=_sentence)
        stops = stops_of(sure.curve, usual.radius, sure.radius)
        costs = [_cost_at(stop) for stop in stops]
        place = [stop.radius for stop in stops].index(sure.radius) if stops else 0
        if stops and sure.way is not None:  # which the curve may know only roughly
            costs[place] = cost(sure.way.cost)
        said = [text if text in _WITHOUT_COST else f"cost {text}" for text in costs]
        return render(
            "sure.html",
            sure=sure,
            stops=stops,
            place=place,
            costs=costs,
            said=said,
            sentence=_sentence,
            chart=Markup(sure_chart(sure)),
        )

    def _unread(self, wrong: dict[str, str], missing: int) -> dict[str, Any]:
        """Show that there is no answer yet."""
        if wrong:
            many = count_text(len(wrong), "field needs", "fields need")
            why = "The answer shown is for the previous values." if not missing else ""
            verdict = Decision(
                "unread", f"{many} another look", "", why or "See the marked fields."
            )
        else:
            many = f"{count_text(missing, 'field')} to go"
            verdict = Decision("unread", many, "", "The decision appears when all are filled in.")
        return {
            "person": None,
            "verdict": verdict,
            "ways": [],
            "most": 0.0,
            "title": "",
            "smaller": None,
            "show_ways": not wrong,
            "waiting": "Ways to get approved appear here.",
            "can_write": False,
            "can_slide": False,
        }


def _shortened(way: WayFigures, derived: set[str]) -> WayFigures:
    """Write what is computed from other values to six digits, where those tell it apart."""
    changes = []
    for each in way.changes:
        if each.name in derived:
            before, after = _shorten(each.before), _shorten(each.after)
            each = each if before == after else replace(each, before=before, after=after)
        changes.append(each)
    return replace(way, changes=changes)


def _shorten(text: str) -> str:
    try:
        return short_numeral(float(text.replace(",", "")))
    except ValueError:  # it is not given
        return text


_WITHOUT_COST = ("not possible", "not known")


def _cost_at(stop: Stop) -> str:
    """Write what a size costs, and whether it is known only roughly."""
    if math.isnan(stop.cost):  # where nobody has looked, or the search was given up
        return "not known"
    if not math.isfinite(stop.cost):
        return "not possible"
    return cost(stop.cost) if stop.is_exact else f"about {figure(stop.cost)}"


def known_as(row: int, keys: Mapping[str, str]) -> list[str]:
    """Name somebody of the table: by keys, where there are any, and by the row.

    Examples
    --------
    >>> known_as(10, {"applicant": "255", "branch_code": ""}), known_as(10, {})
    (['Applicant 255', 'row 10'], ['Row 10'])
    """
    known = [f"{label(name)} {value}" for name, value in keys.items() if value]
    first, *others = [*known, f"row {row}"]
    return [f"{first[:1].upper()}{first[1:]}", *others]


def _progress(progress: RunProgress) -> str:
    """Say how far the run over the people is."""
    if progress.state is RunState.FAILED:
        return f"There is no advice for the list: {progress.reason}."
    if progress.total is None:
        return "The table is being read."
    if progress.state is RunState.RUNNING:
        many = f"{progress.done:,} of {count_text(progress.total, 'person', 'people')}"
        return f"Advice is ready for {many}. The list will be sorted when all of it is ready."
    return ""


def _decided(person: Listed) -> str:
    """Say in a word or two what was decided, and whether something helps."""
    if person.status is None:
        return "…"
    if person.approved is None:
        return "Cannot be used"
    if person.approved:
        return "Approved" if person.status is Status.ALREADY_VALID else "Approved, may not last"
    if person.is_helped:
        return "Refused"
    # only of these is it known that nothing helps; for others nothing was found, or proven
    is_hopeless = person.status is Status.INFEASIBLE
    return "Refused, nothing helps" if is_hopeless else "Refused, not yet known"


def _title(person: PersonFigures, n_ways: int) -> str:
    if n_ways:
        return "What would help" if not person.approved else "What would make it last"
    if person.status is Status.ALREADY_VALID:
        return "Nothing to do"
    return "What stands in the way" if person.status is Status.INFEASIBLE else "What would help"
