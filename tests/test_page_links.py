"""What a page holds of a person belongs to that person: links, reloads, servers started again."""

from __future__ import annotations

import json
import urllib.parse

import pandas as pd
import pytest

pytest.importorskip("page_visits")
from page_visits import Server, needs_browser, settled
from service_desk import TestClient

from holdfast.demo.files import write_demo
from holdfast.web.app import make_service
from holdfast.web.desk import Desk

ROW = 10  # refused, and somebody else once the table is turned round
ANOTHER = "This page belongs to another table or model; reload it."


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """The demonstration, and beside it the same people the other way round."""
    job = write_demo(tmp_path_factory.mktemp("demo"))
    people = pd.read_parquet(job.people).head(60)
    people.to_parquet(job.people, index=False)
    people[::-1].to_parquet(turned(job).people, index=False)
    return job


def turned(job):
    return job.with_changes(people=job.people.replace("people.", "turned."))


# --- without a browser


@pytest.fixture(scope="module")
def desks(job, tmp_path_factory):
    """A desk, the same again, one of the turned table, and one that asks for more."""
    again = write_demo(tmp_path_factory.mktemp("again")).with_changes(people=job.people)
    jobs = (job, again, turned(job), job.with_changes(guarantee=0.8))
    desks = [Desk.of(each) for each in jobs]
    for desk in desks:
        desk.people.start()
        desk.people.wait_read(60)
    yield desks
    for desk in desks:
        desk.close()


def test_a_fingerprint_is_of_the_content_and_of_the_person(desks):
    one, again, other, surer = desks
    assert one.fingerprint_of(ROW) == again.fingerprint_of(ROW)  # whatever files it came from
    assert one.fingerprint_of(None) == other.fingerprint_of(None)
    assert one.fingerprint_of(ROW) != other.fingerprint_of(ROW) == one.fingerprint_of(59 - ROW)
    assert one.fingerprint_of(None) != surer.fingerprint_of(None)
    with pytest.raises(LookupError, match="there is no row 60"):
        one.fingerprint_of(60)


def asked_of(client, state):
    """The parts of a page and the letter, as the page of a state asks for them."""
    form = {"state": json.dumps(state)}
    parts = [client.post(f"/parts/{part}", json=state) for part in ("person", "sure")]
    return [*parts, client.post("/letter", data=form)]


def client_of(desk):
    return TestClient(make_service(desk), base_url="http://localhost")


def test_a_page_of_another_table_or_model_is_refused(desks):
    one, again, other, surer = desks
    one.people.wait()
    again.people.wait()
    state = {"row": ROW, "values": one.people.person(ROW), "of": one.fingerprint_of(ROW)}
    for desk in (one, again):
        person, sure, letter = asked_of(client_of(desk), state)
        assert person.status_code == letter.status_code == 200
        assert sure.status_code in (200, 503)  # late, should the solvers still be compiled
    for desk in (other, surer):
        for answer in asked_of(client_of(desk), state):
            assert answer.status_code == 409
            assert ANOTHER in answer.text
    gone = {**state, "row": 4000}
    assert {each.status_code for each in asked_of(client_of(one), gone)} == {409}


# --- in a browser


@pytest.fixture(scope="module")
def server(job):
    server = Server(*options_of(job))
    yield server
    server.stop()


def options_of(job):
    return (
        *("--model", job.model, "--actions", job.actions, "--people", job.people),
        *("--robust-to", str(job.robust_to), "--guarantee", str(job.guarantee)),
        *("--key", job.keys[0]),
    )


def shown(page):
    fields = page.locator("[data-value]").evaluate_all("all => all.map(each => each.value)")
    return page.locator("h1").inner_text(), fields, page.locator("#decision").inner_text()


def left_out(page):
    return page.locator("#left-out").inner_text()


def fragment(**held):
    return "#" + urllib.parse.quote(json.dumps(held))


@needs_browser
def test_nobody_gets_the_values_of_another_after_a_restart(page, server, job):
    page.goto(f"/people/{ROW}")
    settled(page).locator(".field [data-lock=duration]").click()
    page.wait_for_selector(".chip >> text=duration locked")
    before = shown(settled(page))
    link = page.url
    server.stop()
    server.options = options_of(turned(job))
    server.start()
    try:
        # what is asked from the old page is refused, and so is its letter
        with page.context.expect_page() as opened:
            page.locator("#letter button").click()
        assert ANOTHER in opened.value.locator("main").inner_text()
        opened.value.close()
        page.locator(".field [data-lock=other_parties]").click()
        page.wait_for_selector(
            "#away.shown >> text=belongs to another table or model", timeout=60_000
        )
        settled(page)
        page.locator("#away button", has_text="Reload").click()
        page.wait_for_selector("#left-out >> text=another person")
        after = shown(settled(page))
        other = page.context.new_page()
        other.goto(f"/people/{ROW}")
        assert after == shown(settled(other))
        assert left_out(other) == ""
        assert after[0] != before[0]
        assert after[1] != before[1]
        assert page.locator(".chip").count() == 0
        other.goto("about:blank")
        other.goto(link)
        assert "another person" in left_out(settled(other))
        assert shown(other) == after
        page.go_back()  # to what was tried with the old one
        page.wait_for_timeout(300)
        assert shown(settled(page)) == after
    finally:
        server.stop()
        server.options = options_of(job)
        server.start()


@needs_browser
@pytest.mark.parametrize(
    ("held", "said", "chips"),
    [
        ({"p": {"nope": {"locked": True}}}, "what was tried with “nope”", []),
        ({"r": -3}, "the size", []),
        ({"r": "large"}, "the size", []),
        ({"p": {"duration": {"locked": "yes", "times": 2}}}, "“duration”", ["duration 2× harder"]),
        ({"p": {"duration": {"avoid": ["a"]}, "age": {"locked": True}}}, "“duration”", ["age"]),
        ({"p": {"savings_status": {"avoid": ["gold"]}}}, "“savings_status”", []),
        ({"p": [1]}, "what was tried", []),
        ({"v": {"nope": "1"}}, "the values", []),
    ],
)
def test_what_is_wrong_in_a_link_is_left_out_and_said(page, held, said, chips):
    page.goto(f"/people/{ROW}")
    plain = shown(settled(page))
    page.goto("about:blank")
    page.goto(f"/people/{ROW}{fragment(**held)}")
    for words in chips:
        page.wait_for_selector(f".chip >> text={words}")
    assert said in left_out(settled(page))
    assert shown(page) == plain
    assert page.locator(".chip").count() == len(chips)
    assert not page.locator("#away.shown").count()
    page.reload()
    assert shown(settled(page)) == plain


@needs_browser
def test_a_link_of_another_model_keeps_what_still_fits(page):
    page.goto(f"/people/{ROW}")
    of = settled(page).locator(".person").get_attribute("data-of").partition(".")[2]
    plain = shown(page)
    values = {"duration": "7"}
    held = fragment(p={"duration": {"locked": True}}, v=values, of=f"0123456789ab.{of}")
    page.goto("about:blank")
    page.goto(f"/people/{ROW}{held}")
    page.wait_for_selector(".chip >> text=duration locked")
    assert "the values" in left_out(settled(page))
    assert shown(page) == plain


@needs_browser
def test_a_refusal_does_not_leave_the_page_busy(page):
    page.goto(f"/people/{ROW}")
    settled(page)
    page.route("**/parts/person", lambda route: route.fulfill(status=422, body="<p>No.</p>"))
    page.locator(".field [data-lock=duration]").click()
    page.wait_for_selector("#away.shown >> text=No.")
    settled(page)
