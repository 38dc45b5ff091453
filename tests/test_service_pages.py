"""The pages without a browser: what they say, and what becomes of requests that make no sense."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from service_desk import TestClient, cells, client_of, denied, german_desk

from holdfast.demo.files import write_demo
from holdfast.report.person import PersonFigures
from holdfast.result.status import Status
from holdfast.web import pages
from holdfast.web.app import make_service
from holdfast.web.desk import Desk
from holdfast.web.forms import Tried, fields_of
from holdfast.web.people import Listed


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (Status.INFEASIBLE, "Refused, nothing helps"),
        (Status.GAP_OPEN, "Refused, not yet known"),
        (Status.NOT_FOUND, "Refused, not yet known"),
        (Status.STILL_REFUSED, "Refused, not yet known"),
    ],
)
def test_only_where_nothing_helps_there_is_no_way(status, said):
    assert pages._decided(Listed(0, {}, status, approved=False)) == said
    assert pages._decided(Listed(0, {}, status, approved=False, is_helped=True)) == "Refused"


def state_of(person: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What a page sends of a person."""
    return {"values": {name: str(value) for name, value in person.items()}, **more}


def ask_part(desk: Any, part: str, **state: Any) -> Any:
    return client_of(desk).post(f"/parts/{part}", json=state)


def why(desk: Any, person: dict[str, Any]) -> str:
    """Why a page says that the decision is as it is."""
    answer = ask_part(desk, "person", **state_of(person))
    return html.unescape(re.search(r'class="why">([^<]*)<', answer.text)[1])


def test_what_is_needed_for_a_yes_is_the_threshold_and_not_the_guarantee():
    person = cells(denied(1))[0]
    given = desk_gives(person)
    assert why(german_desk(), person) == f"Today’s model gives {given}; 50% is needed."
    said = why(german_desk(guarantee=0.9), person)
    assert said == f"Today’s model gives {given}; 50% is needed, and the advice asks for 90%."


def desk_gives(person: dict[str, Any]) -> str:
    import pandas as pd

    return german_desk().recommend(pd.DataFrame([person])).initially(0)


def test_in_points_the_threshold_is_one_too():
    scale = {"points": 600.0, "odds": 50.0, "double": 20.0}
    desk = desk_with(points=scale, guarantee=None, guarantee_points=500.0)
    said = why(desk, cells(denied(1))[0])
    assert re.fullmatch(
        r"Today’s model gives \d+ points; 487.1 points are needed, and the advice asks for 500 "
        r"points\.",
        said,
    )


def desk_with(**settings: Any) -> Desk:
    return Desk.of(german_desk().job.with_changes(**settings))


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demonstration, with everybody advised."""
    desk = Desk.of(write_demo(tmp_path_factory.mktemp("demo")))
    desk.people.start()
    desk.people.wait()
    yield desk
    desk.close()


def visit(desk: Any) -> Any:
    return TestClient(
        make_service(desk), base_url="http://localhost", raise_server_exceptions=False
    )


def test_a_letter_to_a_row_that_is_not_there_is_not_found(demo):
    values = demo.people.person(10)
    state = json.dumps({"row": 4000, "values": values})
    answer = visit(demo).post("/letter", data={"state": state})
    assert answer.status_code == 404
    assert "There is no row 4000; rows run from 0 to 399." in answer.text
    assert "there is no row 4000" in visit(demo).get("/people/4000").text.lower()
    state = json.dumps({"row": 10, "values": values})
    assert visit(demo).post("/letter", data={"state": state}).status_code == 200


def test_that_a_letter_is_about_changed_values_is_said(demo):
    values = demo.people.person(10)
    said = r'id="letter-changed"( hidden)?>'
    page = visit(demo).get("/people/10").text
    assert re.search(said, page)[1]
    part = visit(demo).post("/parts/person", json={"row": 10, "values": values}).text
    assert "changed" not in re.search(r'id="decision" class="([^"]*)"', part)[1]
    changed = {"row": 10, "values": values | {"duration": "54"}}
    part = visit(demo).post("/parts/person", json=changed).text
    assert "changed" in re.search(r'id="decision" class="([^"]*)"', part)[1].split()


class Options(HTMLParser):
    """What each choice of a page stands for, by the name of its field."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: dict[str, list[str | None]] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        told = dict(attrs)
        if tag == "select":
            self.name = told.get("name") or told.get("data-feature")
        if tag == "option":
            self.found.setdefault(self.name, []).append(told.get("value"))
        if told.get("type") == "checkbox":
            self.found.setdefault(told["data-feature"], []).append(told.get("value"))


def test_blanks_in_a_level_are_kept(demo):
    """Of a choice without a value, browsers take the text, and only one of its blanks."""
    fields = fields_of(demo)
    place = next(k for k, each in enumerate(fields) if each.name == "savings_status")
    odd = [" Private", "two  blanks", "end "]
    fields[place] = replace(fields[place], levels=odd, avoidable=odd)
    values = demo.people.person(10) | {"savings_status": "three   blanks"}
    office = pages._Office(demo, fields)
    page = render_form(office, values)
    found = Options(page).found
    assert found["savings_status"][:4] == [*odd, "three   blanks"]
    assert found["savings_status"][4:7] == odd  # the boxes
    assert all(None not in each for each in found.values())


def render_form(office: Any, values: dict[str, str]) -> str:
    return office.person_page(Tried(row=10, values=values), ["Somebody"], "people")


def test_how_sure_it_is_for_a_row_that_cannot_be_used_is_a_sentence(demo):
    values = demo.people.person(10) | {"employment": "astronaut"}
    answer = visit(demo).post("/parts/sure", json={"row": 10, "values": values})
    assert answer.status_code == 422
    assert "astronaut" in html.unescape(answer.text)


def test_what_follows_keeps_its_unit(demo):
    """A page replaces the text of the output by that of the answer: the unit stands beside it."""
    fields = fields_of(demo)
    place = next(k for k, each in enumerate(fields) if each.name == "credit_amount")
    fields[place] = replace(fields[place], kind="derived", unit="DM a month")
    office = pages._Office(demo, fields)
    page = render_form(office, demo.people.person(10))
    shown = re.search(r'data-derived="credit_amount">([^<]*)</output>(.*)', page)
    assert "DM a month" in shown[2]
    part = pages.render("part_person.html", **office.person(Tried(values=demo.people.person(10))))
    assert re.search(r'data-name="credit_amount">([^<]*)</li>', part)[1] == shown[1] == "–"


def test_without_a_table_no_page_links_to_one(demo):
    alone = visit(german_desk()).get("/nothing").text
    assert 'href="/new"' in alone
    assert 'href="/people"' not in alone
    assert 'href="/overview"' not in alone
    assert 'href="/people"' in visit(demo).get("/nothing").text


def test_people_go_by_their_keys_before_their_rows(demo):
    (somebody,) = demo.people.page("row", number=11, size=1).people
    name = f"Applicant {somebody.keys['applicant']}"
    listed = visit(demo).get("/people?sort=row").text
    assert f'id="row-10">{name}</a> <small>row 10</small>' in listed
    page = visit(demo).get("/people/10").text
    assert f"<h1>{name} <small>row 10</small></h1>" in page
    assert f"<title>{name} –" in page


def test_what_the_models_allowed_for_give_is_said_only_where_there_are_others():
    """Of somebody approved who may not stay so; of networks, no more than is known."""
    figures = {"approved": True, "threshold": 0.5, "wanted": "50%", "gives": "52%", "summary": ""}
    way = object()  # it is only asked whether there is one
    some = ", but some of the models that the advice allows for would not give what it asks for."
    unknown = ", but it is not proven that all models that the advice allows for would too."
    for is_robust, status, said in (
        (True, Status.OPTIMAL, some),
        (True, Status.GAP_OPEN, some),
        (True, Status.PROVEN_VALID, unknown),
        (True, Status.NOT_VALID, unknown),
        (False, Status.OPTIMAL, "."),
    ):
        person = PersonFigures(**figures, is_robust=is_robust, status=status, ways=[way])
        why = pages._verdict(person, german_desk().recourse).why
        assert why == f"Today’s model gives 52%; 50% is needed{said}"
