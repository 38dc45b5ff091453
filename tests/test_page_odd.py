"""Odd tables and action sets in a real browser: long names, what follows from other values."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytest.importorskip("page_visits")
from page_visits import Server, needs_browser, settled

import holdfast
from holdfast.files.models import save_model

pytestmark = needs_browser

NAME = "Maximiliane-Friederike_von_und_zu_" + "Hohenlohe" * 4


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """A lender who looks at a ratio and at years that pass together; everything can change."""
    folder = tmp_path_factory.mktemp("odd")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "debt": rng.integers(1_000, 30_000, 200).astype(float),
            "income": rng.integers(7_000, 60_000, 200).astype(float),
            "age": rng.integers(20, 60, 200).astype(float),
            "years_here": rng.integers(0, 15, 200).astype(float),
        }
    )
    table["burden"] = table.debt / table.income
    good = table.burden * 3 - table.years_here / 8 + rng.normal(0, 0.3, 200) < 1.0
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, good)
    actions = holdfast.ActionSet.from_data(table)
    actions.set("debt", lower=500, step=500)
    actions.set("income", step=2500)
    actions.links.append(holdfast.actions.Follows("years_here", "age"))
    actions.derived.append(holdfast.actions.Ratio("burden", "debt", "income"))
    save_model(model, folder / "model.skops", favorable_class=True)
    actions.save(folder / "actions.yaml")
    table["name"] = [f"{NAME}{k}" for k in range(len(table))]
    table["branch"] = [f"branch number {k % 3} with quite a long name" for k in range(len(table))]
    refused = table[~model.predict(table.iloc[:, :5])].head(40)
    refused.to_csv(folder / "people.csv", index=False)
    return (
        *("--model", str(folder / "model.skops"), "--actions", str(folder / "actions.yaml")),
        *("--people", str(folder / "people.csv"), "--key", "name", "--key", "branch"),
        *("--robust-to", "p=2,radius=0.05", "--guarantee", "0.5"),
    )


@pytest.fixture(scope="module")
def server(options):
    server = Server(*options)
    yield server
    server.stop()


def test_no_page_is_wider_than_the_window(page):
    page.goto("/people")
    page.wait_for_selector("#people[data-ready=true]", timeout=60_000)
    for path in ("/people", "/people/0", "/overview?group=branch"):
        page.goto(path)
        if path == "/people/0":
            settled(page)
        for width in (360, 640, 700, 1000, 1400):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
            if path == "/people":
                who, today = (page.locator(f".people td.{each}").first for each in ("who", "n"))
                link = who.locator("a").bounding_box()
                beside = today.bounding_box()
                apart = link["x"] + link["width"] <= beside["x"] + 0.5
                assert apart or link["y"] + link["height"] <= beside["y"] + 0.5


def test_what_follows_cannot_be_locked_and_is_short(page):
    page.goto("/people/0")
    settled(page)
    for name in ("burden", "years_here"):
        assert page.locator(f"[data-lock={name}]").count() == 0
    assert page.locator("[data-lock=debt]").count() >= 1
    shown = page.locator("[data-derived=burden]").inner_text()
    assert re.fullmatch(r"\d\.\d{1,6}", shown)
    told = page.locator(".way tr", has_text="burden").locator(".move").all_inner_texts()
    assert told
    for number in re.findall(r"[\d.]+", " ".join(told)):
        assert len(number.replace(".", "").lstrip("0")) <= 6


def test_no_heading_stands_above_nothing(page):
    page.goto("/people/0")
    assert page.locator(".group h2").all_inner_texts() == ["Can change"]


def test_a_preference_that_is_refused_is_said_beside_the_feature(page):
    """Whatever a page of ours would not send."""
    page.goto("/people/0")
    settled(page)
    answer = page.request.post(
        "/parts/person",
        data={
            "row": 0,
            "values": page.evaluate(
                "Object.fromEntries([...document.querySelectorAll('[data-value]')]"
                ".map(each => [each.name, each.value]))"
            ),
            "preferences": {"years_here": {"locked": True}, "debt": {"upper": 100}},
        },
    )
    assert answer.status == 200
    told = answer.text()
    assert 'data-name="years_here.locked">It changes with age' in told
    assert 'data-name="debt.upper">The lender allows no less than 500' in told
    assert "years here locked (not possible)" in told
    assert page.locator("[data-wrong='years_here.locked']").count() == 1
