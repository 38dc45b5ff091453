"""The list of people, as it is asked for and shown, without a browser."""

from __future__ import annotations

import itertools
import re

import pandas as pd
import pytest
from service_desk import TestClient, german_desk

from holdfast.demo.files import write_demo
from holdfast.web import pages
from holdfast.web.app import make_service
from holdfast.web.desk import Desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """The demonstration on a scale of points, with people whose names have accents."""
    job = write_demo(tmp_path_factory.mktemp("list"))
    people = pd.read_parquet(job.people).head(80)
    people["applicant"] = [f"Nguyễn {k}" if k % 2 else f"Müller {k}" for k in range(len(people))]
    people.loc[7, "duration"] = None
    people.to_parquet(job.people, index=False)
    scale = {"points": 600.0, "odds": 50.0, "double": 20.0}
    desk = Desk.of(job.with_changes(points=scale))
    desk.people.start()
    desk.people.wait()
    yield desk
    desk.close()


@pytest.fixture(scope="module")
def client(desk):
    service = make_service(desk)
    return TestClient(service, base_url="http://localhost", raise_server_exceptions=False)


def test_a_page_with_a_very_long_number_is_the_first(client):
    answer = client.post("/people", data={"go": f"cost {'9' * 5000}"})
    assert answer.status_code == 200
    assert "Page 1 of" in answer.text


def test_sorting_by_decision_is_by_the_words_shown(desk):
    everybody = desk.people.page("status", size=1000).people
    words = [word for word, _ in itertools.groupby(map(pages._decided, everybody))]
    order = [
        *("Refused", "Refused, not yet known", "Refused, nothing helps"),
        *("Approved, may not last", "Approved", "Cannot be used"),
    ]
    assert words == [word for word in order if word in words]
    assert len(words) >= 4


def test_the_list_gives_points_as_the_page_of_a_person_does(client, desk):
    shown = re.findall(r'<td class="n">([^<]*)</td>', client.get("/people?sort=row").text)
    figure = re.search(r'class="figure">([^<]*)<', client.get("/people/0").text)[1]
    assert shown[0] == figure
    assert figure.endswith(" points")
    assert shown[7] == ""  # who cannot be used


def test_people_are_found_with_and_without_accents(desk):
    for wanted in ("nguyen", "Nguyễn", "NGUYỄN", "muller", "MÜLLER"):
        assert desk.people.page("row", wanted).found == 40
    assert desk.people.page("row", "nguyên x").found == 0


def test_head_is_answered_where_get_is(client):
    for path in ("/people", "/people/0", "/new", "/healthz", "/v1/model", "/static/page.css"):
        got, headed = client.get(path), client.head(path)
        assert headed.status_code == got.status_code == 200
        assert headed.headers["content-type"] == got.headers["content-type"]
        assert headed.content == b""
    assert client.head("/v1/recourse").status_code == 405


def test_the_page_that_asks_for_a_token_has_its_style():
    service = make_service(german_desk(), token="secret")
    client = TestClient(service, base_url="http://localhost")
    refused = client.get("/new")
    assert refused.status_code == 401
    for path in re.findall(r'(?:href|src)="(/(?:static/|report)[^"]+)"', refused.text):
        assert client.get(path.replace("&amp;", "&")).status_code == 200
    for path in ("/static/../new", "/static/%2e%2e/new", "/people", "/report.css/"):
        assert client.get(path).status_code in (401, 404)
