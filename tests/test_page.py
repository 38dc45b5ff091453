"""The page in a real browser: all that the page promises to people, tried as they would."""

from __future__ import annotations

import json
import re
import urllib.parse

import pytest

pytest.importorskip("page_visits")
from page_visits import Server, needs_browser, settled

from holdfast.demo.files import write_demo
from holdfast.report.person import how_sure, look_at
from holdfast.web import pages
from holdfast.web.desk import Desk

pytestmark = needs_browser

REFUSED, SHAKY, APPROVED = 10, 11, 3  # rows of the demonstration
CAN_CHANGE = ("duration", "credit_amount", "age", "savings_status", "other_parties")


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    desk = Desk.of(write_demo(tmp_path_factory.mktemp("demo")))
    desk.people.start()  # without helpers, which nobody asks here
    desk.people.wait()
    yield desk
    desk.close()


@pytest.fixture
def visit(server, browser):
    """Open a page in a context of its own; no test leaves a complaint in the console."""
    contexts, complaints = [], []

    def open_page(path, allowed="", **settings):
        context = browser.new_context(base_url=server.address, **settings)
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()

        def complain(message):
            # busy, as servers are while solvers compile: the page asks again by itself
            known = [each for each in (allowed, "status of 503") if each]
            if message.type in ("error", "warning") and not any(k in message.text for k in known):
                complaints.append(message.text)

        page.on("console", complain)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def text(page, query):
    return " ".join(page.locator(query).inner_text().split())


def texts(page, query):
    return [" ".join(each.split()) for each in page.locator(query).all_inner_texts()]


def lock(page, name):
    page.locator(f".field [data-lock={name}]").click()
    return settled(page)


def limit(page, name, key, value):
    """Limit what may become of a number."""
    box = page.locator(f"[data-limits={name}]")
    if not box.evaluate("each => each.open"):
        box.locator("summary").click()
    box.locator(f"[data-key={key}]").fill(value)
    box.locator(f"[data-key={key}]").press("Enter")
    return settled(page)


def figures(desk, row, **asked):
    """What Python says of a person of the table."""
    return look_at(desk.recommend(person(desk, row), **asked), 0)


def person(desk, row):
    cells = {name: [value] for name, value in desk.people.person(row).items()}
    import pyarrow as pa

    return desk.columns.frame(pa.table(cells))


def shown_ways(page):
    """The ways of a page: cost, changes, and what they get somebody."""
    return [
        {
            "cost": text(way, ".cost b"),
            "moves": [
                (*names, effort)
                for names, effort in zip(
                    zip(texts(way, "tbody th"), texts(way, ".move"), strict=True),
                    texts(way, ".work .n"),
                    strict=True,
                )
            ],
            "after": texts(way, ".after p b"),
            "proof": text(way, ".proof"),
        }
        for way in page.locator(".way").all()
    ]


def told_ways(told):
    """The same as Python says it."""
    return [
        {
            "cost": pages.cost(way.cost),
            "moves": [
                (
                    change.name.replace("_", " "),
                    f"{change.before} → to {change.after} {change.unit}".strip(),
                    pages.cost(change.effort),
                )
                for change in way.changes
            ],
            "after": [way.current, way.worst_case],
            "proof": f"{way.proof} {way.afterwards}",
        }
        for way in told.ways
    ]


# --- pick


def named(person):
    return f"Applicant {person.keys['applicant']}"


def test_people_are_sorted_by_cost_and_searched_without_a_trace(visit, desk):
    page = visit("/people")
    page.wait_for_selector("#people[data-ready=true]")
    first = desk.people.page("cost").people
    assert texts(page, ".people td.who a") == [named(each) for each in first]
    assert texts(page, ".people td.cost") == [pages.cost(each.cost) for each in first]
    heading = page.locator("th", has_text="Cost")
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.locator("a").click()
    page.wait_for_url("**sort=-cost**")
    assert heading.get_attribute("aria-sort") == "descending"
    dearest = desk.people.page("-cost").people
    assert texts(page, ".people td.cost") == [pages.cost(each.cost) for each in dearest]

    page.locator("#wanted").fill("guarantor")
    page.locator("#wanted").press("Enter")
    page.wait_for_selector("#people[data-searched=true]")
    found = desk.people.page("-cost", "guarantor")
    assert f"{found.found} people found" in text(page, ".progress")
    assert texts(page, ".people td.who a") == [named(each) for each in found.people]
    page.locator("#next").click()
    page.wait_for_selector("text=Page 2 of")
    second = desk.people.page("-cost", "guarantor", 2)
    assert texts(page, ".people td.who a") == [named(each) for each in second.people]
    assert "guarantor" not in page.url
    page.locator(".people td.who a").first.click()
    page.wait_for_url(f"**/people/{second.people[0].row}")
    assert text(page, "h1") == f"{named(second.people[0])} row {second.people[0].row}"


def test_nobody_found_is_said(visit):
    page = visit("/people")
    page.locator("#wanted").fill("<b>nobody</b>")
    page.locator("#wanted").press("Enter")
    page.wait_for_selector("text=Nobody was found.")
    assert page.locator("#wanted").input_value() == "<b>nobody</b>"


# --- type one in


def test_the_decision_follows_what_is_typed(visit, desk):
    page = visit("/new")
    values = desk.people.person(REFUSED)
    assert text(page, "#verdict") == f"{len(values)} fields to go"
    for done, (name, value) in enumerate(values.items(), start=1):
        control = page.locator(f"[name={name}]")
        if control.evaluate("each => each.tagName") == "SELECT":
            control.select_option(value)
        else:
            control.press_sequentially(value)
        left = len(values) - done
        if left:
            many = "1 field" if left == 1 else f"{left} fields"
            page.wait_for_selector(f"#verdict >> text={many} to go")
    page.wait_for_selector("#verdict >> text=Refused")
    told = figures(desk, REFUSED)
    assert text(page, ".figure") == told.gives
    assert shown_ways(settled(page)) == told_ways(told)
    page.locator("[name=duration]").fill("12")  # and stay in the field
    page.wait_for_function(
        "before => document.querySelector('.figure').innerText !== before", arg=told.gives
    )
    changed = person(desk, REFUSED).assign(duration=12.0)
    assert text(page, ".figure") == look_at(desk.recommend(changed), 0).gives
    assert page.evaluate("document.activeElement.name") == "duration"
    assert text(page, "#said").startswith(text(page, "#verdict"))


def test_fields_have_units_ranges_and_levels(visit, desk):
    page = visit(f"/people/{REFUSED}")
    for name, value in desk.people.person(REFUSED).items():
        assert page.locator(f"[name={name}]").input_value() == value
    entry = page.locator("[data-field=duration]")
    assert entry.locator("> .entry .unit").inner_text() == "months"
    described = page.locator("[name=duration]").get_attribute("aria-describedby").split()
    assert page.locator(f"#{described[0]}").inner_text() == "4 to 60"
    levels = [str(level) for level in desk.columns.levels["employment"]]
    assert texts(page, "[name=employment] option") == levels
    held = page.locator(".group", has_text="Stays as it is")
    assert held.locator("[data-lock]").count() == 0
    assert held.locator("[name=employment]").count() == 1


# --- the advice


@pytest.mark.parametrize("row", [REFUSED, 12, SHAKY])
def test_the_ways_are_those_of_python(visit, desk, row):
    page = settled(visit(f"/people/{row}"))
    told = figures(desk, row)
    assert len(told.ways) >= 2
    assert text(page, ".figure") == told.gives
    assert shown_ways(page) == told_ways(told)
    check_bars(page, [change.effort for way in told.ways for change in way.changes])


def check_bars(page, efforts):
    """Bars are as long as the effort."""
    bars = [each.bounding_box()["width"] for each in page.locator(".effort .bar").all()]
    assert max(bars) > 50.0
    for effort, width in zip(efforts, bars, strict=True):
        assert width / max(bars) == pytest.approx(effort / max(efforts), abs=0.01)


def test_somebody_approved_needs_nothing(visit, desk):
    page = settled(visit(f"/people/{APPROVED}"))
    assert text(page, "#verdict") == "Approved"
    assert "You do not need to change anything." in text(page, "#ways")
    assert page.locator(".way").count() == 0
    assert page.locator("#letter").is_hidden()


# --- try it


def test_lock_limit_dearer_and_take_back(visit, desk):
    page = settled(visit(f"/people/{REFUSED}"))
    tried = {}

    def check():
        assert shown_ways(page) == told_ways(figures(desk, REFUSED, preferences=tried))

    page.locator(".way [data-lock=other_parties]").first.click()  # where the change is
    settled(page)
    tried["other_parties"] = {"locked": True}
    check()
    assert page.locator(".field [data-lock=other_parties]").get_attribute("aria-pressed") == "true"
    limit(page, "duration", "change_by", "5")
    tried["duration"] = {"change_by": 5}
    check()
    limit(page, "credit_amount", "lower", "4000")
    tried["credit_amount"] = {"lower": 4000}
    check()
    page.locator("[data-feature=credit_amount][data-key=times]").select_option("5")
    settled(page)
    tried["credit_amount"]["times"] = 5
    check()
    assert texts(page, ".chip span:first-child") == [
        "duration by at most 5 months",
        "credit amount not below 4000 DM",
        "credit amount 5× harder",
        "other parties locked",
    ]
    page.locator(".chip", has_text="other parties locked").click()
    settled(page)
    del tried["other_parties"]
    check()
    assert page.locator(".field [data-lock=other_parties]").get_attribute("aria-pressed") == "false"
    page.locator("#undo").click()
    page.wait_for_selector(".chip >> text=other parties locked")
    tried["other_parties"] = {"locked": True}
    settled(page)
    check()
    page.locator("#again").click()
    settled(page)
    assert page.locator(".chip").count() == 0
    tried.clear()
    check()
    assert page.locator("[data-feature=duration][data-key=change_by]").input_value() == ""


def test_levels_that_are_not_possible(visit, desk):
    page = settled(visit("/people/12"))
    page.locator("[data-limits=savings_status] summary").click()
    page.locator("[data-feature=savings_status][value='>=1000']").check()
    settled(page)
    told = figures(desk, 12, preferences={"savings_status": {"avoid": [">=1000"]}})
    assert shown_ways(page) == told_ways(told)
    assert shown_ways(page) != told_ways(figures(desk, 12))
    assert texts(page, ".chip span:first-child") == ["savings status not >=1000"]


def test_undo_goes_back_through_values_too(visit, desk):
    page = settled(visit(f"/people/{REFUSED}"))
    assert page.locator("#undo").is_disabled()
    before = text(page, ".figure")
    page.locator("[name=duration]").fill("12")
    page.locator("[name=duration]").press("Enter")
    settled(page)
    assert text(page, ".figure") != before
    page.locator("#undo").click()
    page.wait_for_function(
        "before => document.querySelector('.figure').innerText === before", arg=before
    )
    assert page.locator("[name=duration]").input_value() == desk.people.person(REFUSED)["duration"]
    assert page.locator("#undo").is_disabled()


# --- the link


def copied(page, button):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(button).click()
    page.wait_for_selector("#copied >> text=Copied")
    return page.evaluate("navigator.clipboard.readText()")


def test_a_link_holds_what_was_tried_and_no_values(visit, desk, server):
    page = settled(visit(f"/people/{REFUSED}"))
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    lock(page, "other_parties")
    page.locator("[name=duration]").fill("54")
    page.locator("[name=duration]").press("Enter")
    settled(page)
    link = copied(page, "#copy")
    held = json.loads(urllib.parse.unquote(link.partition("#")[2]))
    of = page.locator(".person").get_attribute("data-of")
    assert held == {"p": {"other_parties": {"locked": True}}, "of": of}
    assert "54" not in page.url.partition("#")[2].replace(of, "")  # which tells no value
    other = settled(visit(link.removeprefix(server.address)))
    tried = {"other_parties": {"locked": True}}
    other.wait_for_selector(".chip >> text=other parties locked")
    settled(other)
    assert shown_ways(other) == told_ways(figures(desk, REFUSED, preferences=tried))

    link = copied(page, "#copy-values")
    other = visit(link.removeprefix(server.address))
    other.wait_for_selector(".chip >> text=other parties locked")
    settled(other)
    assert other.locator("[name=duration]").input_value() == "54"
    assert shown_ways(other) == shown_ways(page)
    assert any(url.endswith("/parts/person") for url in asked)
    assert not any("?" in url for url in asked if "/static/" not in url)


def test_a_link_that_was_cut_off_is_no_harm(visit, desk):
    page = settled(visit(f"/people/{REFUSED}#%7B%22p%22%3A%7B%22other"))
    assert shown_ways(page) == told_ways(figures(desk, REFUSED))


def test_a_reload_keeps_what_was_tried(visit):
    page = lock(settled(visit(f"/people/{REFUSED}")), "duration")
    ways = shown_ways(page)
    page.reload()
    page.wait_for_selector(".chip >> text=duration locked")
    assert shown_ways(settled(page)) == ways


# --- how sure


def test_the_slider_goes_from_one_end_of_its_chart_to_the_other(visit):
    for width in (360, 1400):
        page = settled(visit(f"/people/{REFUSED}", viewport={"width": width, "height": 800}))
        axis = page.locator("#sure .axis").bounding_box()
        slider, part = (page.locator(each).bounding_box() for each in ("#size", "#sure"))
        assert slider["x"] + 8 == pytest.approx(axis["x"], abs=1.0)  # 8: half of the knob
        ends = [each["x"] + each["width"] for each in (slider, axis, part)]
        assert ends[0] - 8 == pytest.approx(ends[1], abs=1.0)
        assert ends[0] <= ends[2] + 0.5


def test_the_slider_tells_what_every_size_costs(visit, desk):
    page = settled(visit(f"/people/{REFUSED}"))
    slider = page.locator("#size")
    usual = desk.recourse.robust_to.radius
    sure = how_sure(desk.recourse, person(desk, REFUSED))
    assert text(page, "#size-now") == f"{usual:.4g}"
    assert text(page, "#size-cost") == pages.cost(sure.way.cost)
    assert text(page, ".plainly dd") == pages.cost(sure.plain.cost)
    marks = [f"plain {pages.cost(sure.plain.cost)}", pages.cost(sure.way.cost)]
    assert page.locator("#sure figure text.value").all_text_contents() == marks
    assert sure.opposing is not None
    assert text(page, ".opposing") == sure.words
    check_stops(page, desk)
    slider.focus()
    for _ in range(5):
        slider.press("ArrowLeft")
    settled(page)
    radius = float(
        page.locator(f"[data-stop='{slider.input_value()}']").get_attribute("data-radius")
    )
    assert 0.0 < radius < usual
    told = figures(desk, REFUSED, radius=radius)
    assert shown_ways(page) == told_ways(told)
    assert text(page, "#size-cost") == pages.cost(told.ways[0].cost)
    assert (
        slider.get_attribute("aria-valuetext")
        == f"size {radius:.4g}: cost {pages.cost(told.ways[0].cost)}"
    )
    assert page.locator(".chip", has_text="size").count() == 1
    assert page.evaluate("document.activeElement.id") == "size"
    slider.press("Home")
    settled(page)
    assert text(page, "#size-now") == "0"
    assert text(page, "#size-cost") == pages.cost(sure.plain.cost)
    assert shown_ways(page) == told_ways(figures(desk, REFUSED, radius=0.0))
    page.locator(".chip", has_text="size").click()
    settled(page)
    assert text(page, "#size-now") == f"{usual:.4g}"


def check_stops(page, desk):
    """Every stop of the slider costs what Python says."""
    stops = page.locator("#stops [data-stop]").evaluate_all(
        "all => all.map(each => [Number(each.dataset.radius), each.dataset.cost])"
    )
    assert len(stops) > 20
    exact = [stop for stop in stops if not stop[1].startswith("about")]
    assert len(exact) > 10
    for radius, cost in exact[:: len(exact) // 6]:
        told = figures(desk, REFUSED, radius=radius, n_options=1)
        assert cost == (pages.cost(told.ways[0].cost) if told.ways else "not possible")


def test_a_cost_between_samples_is_called_rough_until_it_is_asked_for(visit, desk):
    page = lock(settled(visit(f"/people/{REFUSED}")), "other_parties")
    tried = {"preferences": {"other_parties": {"locked": True}}}
    stops = page.locator("#stops [data-stop]").evaluate_all(
        "all => all.map(({dataset: on}) => [on.stop, Number(on.radius), on.cost])"
    )
    place, radius, rough = next(stop for stop in stops[20:] if stop[2].startswith("about"))
    told = figures(desk, REFUSED, radius=radius, n_options=1, **tried).ways[0].cost
    assert float(rough.removeprefix("about ")) == pytest.approx(told, rel=0.05)
    page.locator("#size").fill(place)
    settled(page)
    assert text(page, "#size-cost") == pages.cost(told)


# --- when nothing helps


def test_what_is_in_the_way(visit, desk):
    page = settled(visit(f"/people/{REFUSED}"))
    locked = ("duration", "credit_amount", "age")
    for name in locked:
        lock(page, name)
    told = figures(desk, REFUSED, preferences={name: {"locked": True} for name in locked})
    assert told.ways == []
    assert told.barriers
    assert text(page, "#ways-title") == "What stands in the way"
    assert texts(page, ".barriers li p:first-child") == [each.words for each in told.barriers]
    assert texts(page, ".barriers b") == [pages.cost(each.cost) for each in told.barriers]
    assert told.reachable in text(page, ".reach")
    page.locator(".barriers button").first.click()
    page.wait_for_selector(".way")
    assert settled(page).locator(".chip").count() == len(locked) - 1


# --- the letter


def test_the_letter_opens_and_prints_on_one_or_two_sheets(visit, desk):
    page = settled(visit(f"/people/{REFUSED}"))
    lock(page, "other_parties")
    page.locator("[name=lender]").fill("Bank of <Tests>")
    with page.context.expect_page() as opened:
        page.locator("#letter button").click()
    letter = opened.value
    letter.wait_for_load_state()
    told = letter.locator("body").inner_text()
    assert "Bank of <Tests>" in told
    assert letter.url.endswith("/letter")
    first = figures(desk, REFUSED, preferences={"other_parties": {"locked": True}}).ways[0]
    assert first.changes[0].after in told.replace(",", "")
    assert letter.evaluate("getComputedStyle(document.body).fontFamily") != ""
    sheets = len(re.findall(rb"/Type\s*/Page\b(?!s)", letter.pdf()))
    assert 1 <= sheets <= 2
    assert letter.evaluate("document.styleSheets[0].cssRules.length") > 3


# --- the overview


def test_the_overview_has_the_figures_of_the_report(visit, desk):
    page = visit("/people")
    page.wait_for_selector("#people[data-ready=true]")
    page.goto("/overview")
    counts = desk.overview().counts
    told = text(page, "main")
    assert f"{counts.refused:,} refused by today’s model" in told
    assert f"{counts.helped:,} of these can be helped" in told
    page.locator("#group").select_option("employment")
    page.locator(".grouping button").click()
    page.wait_for_url("**group=employment")
    summary = desk.overview("employment")
    assert len(summary.groups) > 2
    for group in summary.groups:
        assert group.name in text(page, "main")


# --- what goes wrong


def test_wrong_input_is_marked_where_it_is(visit):
    page = settled(visit(f"/people/{REFUSED}"))
    before = shown_ways(page)
    field = page.locator("[name=duration]")
    field.fill("12,5")
    settled(page)
    assert field.get_attribute("aria-invalid") == "true"
    message = page.locator(f"#{field.get_attribute('aria-describedby').split()[1]}")
    assert "“12,5” is not a number" in message.inner_text()
    assert text(page, "#verdict") == "1 field needs another look"
    assert shown_ways(page) == before
    assert "stale" in page.locator("#ways").get_attribute("class")
    field.fill("12")
    settled(page)
    assert field.get_attribute("aria-invalid") is None
    assert message.inner_text() == ""
    assert text(page, "#verdict") in ("Refused", "Approved")
    limit(page, "duration", "lower", "much")
    assert page.locator("[data-wrong='duration.lower']").inner_text() == "“much” is not a number."
    limit(page, "duration", "lower", "1000")
    said = page.locator("[data-wrong='duration.lower']").inner_text()
    assert said == "The lender allows at most 60; lock it to keep it as it is."
    box = page.locator("[data-feature=duration][data-key=lower]")
    assert box.get_attribute("aria-invalid") == "true"
    assert field.get_attribute("aria-invalid") is None
    page.locator(".chip", has_text="duration not below 1000 months (not possible)").click()
    settled(page)
    assert text(page, "#verdict") in ("Refused", "Approved")


def test_pages_that_are_not_there(visit):
    for path in ("/people/4000", "/nothing"):
        page = visit(path, allowed="404")
        assert text(page, "h1") == "Page not found"
        page.locator("main a").click()
        page.wait_for_selector("h1 >> text=People")


def test_two_tabs_do_not_meet(visit, desk):
    one = settled(visit(f"/people/{REFUSED}"))
    two = one.context.new_page()
    two.goto(f"/people/{REFUSED}")
    settled(two)
    lock(one, "other_parties")
    lock(two, "duration")
    for page, name in ((one, "other_parties"), (two, "duration")):
        told = figures(desk, REFUSED, preferences={name: {"locked": True}})
        assert shown_ways(page) == told_ways(told)


def test_a_late_answer_never_overwrites_a_newer_one(visit, desk):
    page = settled(visit(f"/people/{REFUSED}"))
    held = []

    def hold(route):
        held.append(route) if not held else route.continue_()

    page.route("**/parts/person", hold)
    page.locator(".field [data-lock=duration]").click()
    page.locator(".field [data-lock=other_parties]").click()
    settled(page)
    assert len(held) == 1
    told = figures(
        desk, REFUSED, preferences={n: {"locked": True} for n in ("duration", "other_parties")}
    )
    assert shown_ways(page) == told_ways(told)
    # the browser gave the first question up; had it not, its answer would not count
    assert held[0].request.failure is not None


def test_what_took_too_long_is_said_and_not_asked_again(visit):
    page = settled(visit(f"/people/{REFUSED}", allowed="504"))
    asked = []

    def too_late(route):
        asked.append(route)
        route.fulfill(status=504, content_type="text/html", body="<p>No answer in time.</p>")

    page.route("**/parts/person", too_late)
    page.clock.install()
    page.locator(".field [data-lock=duration]").click()
    page.clock.run_for(100)
    page.wait_for_selector("#away.shown >> text=No answer in time.")
    page.clock.run_for(600_000)
    settled(page)
    assert len(asked) == 1


def test_a_busy_server_is_asked_some_times_and_then_there_is_a_button(visit):
    page = settled(visit(f"/people/{REFUSED}"))
    asked = []

    def busy(route):
        asked.append(route)
        route.fulfill(status=503, content_type="text/html", body="<p>Busy.</p>")

    page.route("**/parts/person", busy)
    page.clock.install()
    page.locator(".field [data-lock=duration]").click()
    for _ in range(200):
        page.clock.run_for(8_100)
        if page.locator("#away button").count():
            break
    assert text(page, "#away") == "The server is busy. Try again"
    assert 5 < len(asked) < 20
    settled(page)
    page.unroute("**/parts/person")
    page.locator("#away button").click()
    page.clock.run_for(100)
    page.wait_for_selector(".chip >> text=duration locked")
    assert text(page, "#away") == ""


def test_a_server_that_was_started_again(visit, server, desk):
    page = settled(visit(f"/people/{REFUSED}", allowed="ERR_CONNECTION"))
    lock(page, "duration")
    server.stop()
    page.locator(".field [data-lock=other_parties]").click()
    page.wait_for_selector("#away.shown >> text=is not answering")
    server.start()
    page.wait_for_selector("#away:not(.shown)", state="attached", timeout=60_000)
    page.wait_for_selector(".chip >> text=other parties locked", timeout=60_000)
    settled(page)
    tried = {name: {"locked": True} for name in ("duration", "other_parties")}
    assert shown_ways(page) == told_ways(figures(desk, REFUSED, preferences=tried))


# --- for everybody


def test_the_keyboard_alone(visit):
    page = visit("/people")
    page.wait_for_selector("#people[data-ready=true]")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"

    def tab_to(query):
        for _ in range(80):
            if page.evaluate("query => document.activeElement.matches(query)", query):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"no way to {query} with the keyboard")

    tab_to(".people td.who a")
    ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert ring == "solid"
    page.keyboard.press("Enter")
    page.wait_for_selector(".person")
    settled(page)
    tab_to(".way .lock")
    name = page.evaluate("document.activeElement.dataset.lock")
    page.keyboard.press("Space")
    settled(page)
    assert page.locator(f".field [data-lock={name}]").get_attribute("aria-pressed") == "true"
    assert page.evaluate("document.activeElement !== document.body")  # the focus is not lost
    page.evaluate("document.querySelector('main').focus()")
    tab_to(".chip")
    page.keyboard.press("Enter")
    settled(page)
    assert page.locator(".chip").count() == 0
    page.evaluate("document.querySelector('main').focus()")
    tab_to("#size")
    page.keyboard.press("ArrowLeft")
    settled(page)
    assert page.locator(".chip", has_text="size").count() == 1
    tab_to(".limit summary")
    page.keyboard.press("Enter")
    tab_to("[data-key=change_by]")
    page.keyboard.type("1")
    page.keyboard.press("Enter")
    page.wait_for_selector(".chip >> text=by at most 1")


def test_the_keyboard_goes_through_a_wide_page_from_left_to_right(visit):
    for width, is_first in ((1400, True), (360, False)):
        page = settled(visit(f"/people/{REFUSED}", viewport={"width": width, "height": 800}))
        comes_first = page.evaluate(
            "document.querySelector('#person').compareDocumentPosition("
            "document.querySelector('.answer')) === Node.DOCUMENT_POSITION_FOLLOWING"
        )
        assert comes_first == is_first


STATES = {
    "people": ("/people", ()),
    "refused": (f"/people/{REFUSED}", ()),
    "tried": (f"/people/{REFUSED}", ("duration",)),
    "infeasible": (f"/people/{REFUSED}", ("duration", "credit_amount", "age")),
    "wrong": (f"/people/{REFUSED}", ()),
    "approved": (f"/people/{APPROVED}", ()),
    "new": ("/new", ()),
    "overview": ("/overview", ()),
    "error": ("/nothing", ()),
}


def in_state(visit, state):
    path, locked = STATES[state]
    if path == "/overview":  # it is there when everybody has been advised
        visit("/people").wait_for_selector("#people[data-ready=true]")
    page = visit(path, allowed="404" if state == "error" else "")
    if page.locator(".answer").count():
        settled(page)
    for name in locked:
        lock(page, name)
    if state == "wrong":
        page.locator("[name=duration]").fill("twelve")
        settled(page)
    return page


@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing_serious_and_no_phone_scrolls_sideways(visit, state):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = in_state(visit, state)
    page.evaluate("document.querySelectorAll('.limit').forEach(each => { each.open = true; })")
    for scheme, width in (("light", 1400), ("dark", 360)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        found = axe.run(page).response["violations"]
        assert [
            (each["id"], each["nodes"][0]["html"])
            for each in found
            if each["impact"] in ("serious", "critical")
        ] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_is_dark(visit):
    page = visit("/new")
    for scheme, is_dark in (("light", False), ("dark", True)):
        page.emulate_media(color_scheme=scheme)
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", paper)[:3])) / 3
        assert (light < 60) == is_dark


@pytest.mark.parametrize("path", ["/people", f"/people/{REFUSED}", "/new"])
@pytest.mark.parametrize("width", [360, 1400])
def test_nothing_jumps(visit, path, width):
    page = visit("about:blank", viewport={"width": width, "height": 800})
    page.context.add_init_script(
        "window.jumps = 0; new PerformanceObserver(list => list.getEntries().forEach(each => {"
        "if (!each.hadRecentInput) window.jumps += each.value; }))"
        ".observe({type: 'layout-shift', buffered: true});"
    )
    page.goto(path)
    if page.locator(".answer").count():
        settled(page)
    page.wait_for_timeout(100)
    assert page.evaluate("window.jumps") < 0.05


def test_without_scripts_the_answer_is_there(visit, desk):
    page = visit(f"/people/{REFUSED}", java_script_enabled=False)
    assert text(page, ".figure") == figures(desk, REFUSED).gives
    assert page.locator(".way").count() == len(figures(desk, REFUSED).ways)
    assert page.locator("noscript p").is_visible()
    assert page.locator(".tools").is_hidden()


def test_nothing_of_a_person_is_logged(visit, server):
    page = settled(visit(f"/people/{REFUSED}"))
    page.locator("[name=duration]").fill("47.125")
    settled(page)
    visit("/people")
    assert any("/parts/person" in line for line in server.said)
    assert not any("47.125" in line or f"/people/{REFUSED}" in line for line in server.said)


# --- in house


def test_no_script_or_style_is_inline():
    for path in sorted((pages._STATIC.parent / "templates").glob("*.html")):
        content = path.read_text()
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", content), path.name
        assert not re.search(r"<script(?![^>]*\ssrc=)", content), path.name
    assert "eval(" not in (pages._STATIC / "page.js").read_text()
