"""The service for programs: the same answers as in Python, to the bit."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter, ValidationError
from service_desk import cells, client_of, denied, german_desk

from holdfast import RobustRecourse
from holdfast.problem.ball import NormBall
from holdfast.web import api

WISHES: dict[str, dict[str, Any]] = {
    "duration": {"change_by": 6.0},
    "credit_amount": {"lower": 1500.0, "times": 2.0},
    "savings_status": {"avoid": ["500<=X<1000"]},
}


def ask(client: Any = None, **content: Any) -> list[dict[str, Any]]:
    client = client_of(german_desk()) if client is None else client
    answer = client.post("/v1/recourse", json=content)
    assert answer.status_code == 200, answer.text
    people: list[dict[str, Any]] = answer.json()["people"]
    return people


def rows_of(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the service says, as rows of `Recommendations.to_frame`."""
    rows = []
    for person in found:
        shared = {name: person[name] for name in ("approved", "initial_validity")}
        for way in person["ways"]:
            numbers = {name: way[name] for name in ("option", "status", *NUMBERS)}
            after = {f"recourse.{name}": value for name, value in way["recourse"].items()}
            rows.append({"row": person["row"], **shared, **numbers, **after})
            rows[-1]["changes"] = way["words"]
        if not person["ways"]:
            rows.append({"row": person["row"], **shared, "option": 0, "status": person["status"]})
    return rows


NUMBERS = ("cost", "price", "lower_bound", "gap", "worst_case_validity", "current_validity")


def assert_same(found: list[dict[str, Any]], frame: pd.DataFrame) -> None:
    """All that the service says is what Python says: every number, to the bit."""
    rows = rows_of(found)
    assert [row["row"] for row in rows] == frame.index.tolist()
    for row, (_, told) in zip(rows, frame.iterrows(), strict=True):
        for name, value in row.items():
            if name == "row":
                continue
            expected = told[name]
            if isinstance(expected, float) and math.isnan(expected):
                expected = None
            assert value == expected, name


def test_a_batch_is_what_python_says():
    people = denied(40)
    frame = german_desk().recourse.recommend(people).to_frame()
    assert (frame["status"] == "optimal").sum() > 5
    assert_same(ask(people=cells(people)), frame)


def test_one_by_one_is_the_batch():
    people = cells(denied(8))
    batch = ask(people=people, n_options=3)
    for row, person in enumerate(people):
        (alone,) = ask(people=[person], n_options=3)
        assert alone == batch[row] | {"row": 0}


def test_other_sizes_wishes_and_numbers_of_ways_are_what_python_says():
    desk, people = german_desk(), denied(30)
    settings = desk.recourse.get_params(deep=False) | {
        "robust_to": NormBall(p=1, radius=0.05),
        "actions": desk.actions.with_preferences(WISHES),
        "n_options": 3,
    }
    frame = RobustRecourse(**settings).recommend(people).to_frame()
    assert frame["option"].max() > 1
    found = ask(people=cells(people), radius=0.05, preferences=WISHES, n_options=3)
    assert_same(found, frame)
    assert found != ask(people=cells(people), n_options=3)


def test_changes_are_those_of_the_words():
    for person in ask(people=cells(denied(20)), n_options=3):
        for way in person["ways"]:
            said = [change["feature"] for change in way["changes"]]
            assert said
            assert [words.split(" from ")[0] for words in way["words"].split(", ")] == said
            for change in way["changes"]:
                assert way["recourse"][change["feature"]] == change["to"] != change["from"]


def test_points_stand_beside_probabilities():
    scale = {"points": 600.0, "odds": 50.0, "double": 20.0}
    desk = german_desk_of_points()
    people = denied(10)
    frame = desk.recourse.recommend(people).to_frame()
    found = ask(client_of(desk), people=cells(people))
    assert found[0]["initial_points"] == frame["initial_points"].iloc[0]
    ways = [way["worst_case_points"] for person in found for way in person["ways"]]
    assert ways == frame["worst_case_points"].dropna().tolist() != []
    assert client_of(desk).get("/v1/model").json()["points"] == scale


def german_desk_of_points() -> Any:
    from dataclasses import replace

    from holdfast.problem.points import Points

    desk = german_desk()
    scale = {"points": 600.0, "odds": 50.0, "double": 20.0}
    settings = desk.recourse.get_params(deep=False) | {"points": Points(**scale)}
    job = desk.job.with_changes(points=scale)
    return replace(desk, job=job, recourse=RobustRecourse(**settings))


def test_a_row_that_cannot_be_used_is_explained_as_in_python():
    people = denied(1).astype({"duration": float})
    people.loc[0, "duration"] = math.nan
    expected = german_desk().recourse.recommend(people).explain(0)
    (found,) = ask(people=[cells(people)[0] | {"duration": None}], explain=True)
    assert found["explanation"] == expected
    assert expected.startswith("This row cannot be used")


def test_who_cannot_be_used_does_not_affect_others():
    people = cells(denied(3))
    alone = ask(people=people)
    odd = [people[0] | {"housing": "castle"}, people[1] | {"duration": None}]
    found = ask(people=[odd[0], *people, odd[1]], explain=True)
    for row, person in enumerate(alone, start=1):
        assert found[row] | {"explanation": None} == person | {"row": row}
    assert [each["status"] for each in (found[0], found[-1])] == ["invalid input"] * 2
    assert "castle" in found[0]["reason"]
    assert found[-1]["reason"] == "duration is missing"
    assert found[0]["approved"] is None
    assert found[0]["ways"] == []


def test_it_is_said_in_words_where_that_is_asked_for():
    people = denied(5)
    result = german_desk().recourse.recommend(people)
    found = ask(people=cells(people), explain=True)
    assert [each["explanation"] for each in found] == [result.explain(k) for k in range(5)]
    assert {each["explanation"] for each in ask(people=cells(people))} == {None}


def person_with(**changes: Any) -> dict[str, Any]:
    """One person as they are, and one with something changed."""
    return {"people": [*cells(denied(1)), cells(denied(1))[0] | changes]}


@pytest.mark.parametrize(
    ("changes", "more", "where"),
    [
        ({"agee": 3}, {}, "people[1].agee"),
        ({}, {"people": [{"age": 3}]}, "people[0].duration"),
        ({"duration": "48"}, {}, "people[1].duration"),
        ({"duration": True}, {}, "people[1].duration"),
        ({"duration": 10**400}, {}, "people[1].duration"),
        ({"duration": [1]}, {}, "people[1].duration"),
        ({"housing": 3}, {}, "people[1].housing"),
        ({}, {"people": []}, "people"),
        ({}, {"people": [{}] * 1001}, "people"),
        ({}, {"radius": -1.0}, "radius"),
        ({}, {"radius": "0.1"}, "radius"),
        ({}, {"n_options": 4}, "n_options"),
        ({}, {"n_options": "1"}, "n_options"),
        ({}, {"n_options": True}, "n_options"),
        ({}, {"n_options": 1.0}, "n_options"),
        ({}, {"n_options": 0}, "n_options"),
        ({}, {"preferences": {"housing": {"avoid": [{}]}}}, "preferences.housing.avoid[0]"),
        ({}, {"preferences": {"housing": {"avoid": [3, [1]]}}}, "preferences.housing.avoid[1]"),
        ({}, {"preferences": {"housing": {"avoid": "own"}}}, "preferences.housing.avoid"),
        ({}, {"preferences": [1]}, "preferences"),
        ({}, {"options": 1}, "options"),
        ({}, {"preferences": {"agee": {}}}, "preferences.agee"),
        ({}, {"preferences": {"age": {"loked": True}}}, "preferences.age.loked"),
        ({}, {"preferences": {"age": {"times": 0.5}}}, "preferences.age.times"),
        ({}, {"preferences": {"duration": {"lower": 9, "upper": 8}}}, "preferences"),
        ({}, {"preferences": {"housing": {"avoid": ["castle"]}}}, "preferences"),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(changes, more, where):
    content = person_with(**changes) | more
    answer = client_of(german_desk()).post("/v1/recourse", json=content)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["where"] == where
    assert error["message"]
    assert "input" not in error["message"].lower()  # not in the words of a library
    assert "should" not in error["message"].lower()


def test_a_column_of_numbers_that_are_levels_is_told_as_one():
    number = TypeAdapter(api.AskedNumber)
    assert [number.validate_python(value) for value in (1, 2.5, None)] == [1, 2.5, None]
    with pytest.raises(ValidationError) as refused:
        number.validate_python("1")
    (told,) = refused.value.errors()
    assert (told["loc"], told["msg"]) == ((), "a number was expected")


@pytest.mark.parametrize("raw", [b"[]", b"null", b"3", b'"people"', b""])
def test_a_body_is_an_object(raw):
    headers = {"Content-Type": "application/json"}
    answer = client_of(german_desk()).post("/v1/recourse", content=raw, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"]["where"] is None


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"people": [', "JSON"),
        (b'{"people": [], "people": []}', "'people' appears twice"),
        (b"[" * 100_000, "deep"),
        (b'{"people": NaN}', "NaN and infinite numbers are not valid JSON"),
        (b'{"people": -Infinity}', "send null for missing values"),
        (b'{"people": 1e999}', "infinite numbers are not valid JSON"),
        (b'{"people": ' + b"9" * 5000 + b"}", "digits"),
        (b'{"people": "\\ud800"}', "half a character"),
        (b"\xff\xfe", "UTF-8"),
    ],
)
def test_what_cannot_be_read_is_refused(raw, said):
    headers = {"Content-Type": "application/json"}
    answer = client_of(german_desk()).post("/v1/recourse", content=raw, headers=headers)
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


@pytest.mark.parametrize("value", [1e308, -1e308, 5e-324, 2**70, -0.0])
def test_extreme_numbers_have_an_answer(value):
    found = ask(people=person_with(duration=value)["people"], n_options=3, explain=True)
    assert len(found) == 2
    assert found[0]["status"] in ("optimal", "infeasible")


def test_json_is_demanded():
    text = json.dumps({"people": cells(denied(1))})
    client = client_of(german_desk())
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = client.post("/v1/recourse", content=text, headers={"Content-Type": kind})
        assert answer.status_code == 415, kind
    headers = {"Content-Type": "application/json; charset=utf-8"}
    assert client.post("/v1/recourse", content=text, headers=headers).status_code == 200


def test_the_model_says_what_answers_rest_on():
    desk = german_desk()
    about = client_of(desk).get("/v1/model").json()
    assert [each["name"] for each in about["features"]] == list(desk.columns.levels)
    by_name = {each["name"]: each for each in about["features"]}
    assert by_name["duration"]["unit"] == "months"
    assert by_name["duration"]["can_change"]
    assert not by_name["age"]["can_change"]
    assert by_name["housing"]["levels"] == ["for free", "own", "rent"]
    assert about["robust_to"]["radius"] == 0.1
    assert about["guarantee"] == about["threshold"] == 0.5
    assert about["favorable_class"] == 0
    assert set(about["checksums"]) == {"model", "actions"}


def test_a_list_of_models_has_no_radius():
    desk = german_desk_of_list()
    client = client_of(desk)
    person = cells(denied(1))
    assert ask(client, people=person, radius=None)[0]["row"] == 0
    answer = client.post("/v1/recourse", json={"people": person, "radius": 0.1})
    assert answer.status_code == 422
    assert answer.json()["error"]["where"] == "radius"
    assert client.get("/v1/model").json()["robust_to"]["type"] == "list"


def german_desk_of_list() -> Any:
    from dataclasses import replace

    from holdfast.problem.model_list import ModelList

    desk = german_desk()
    model = desk.recourse.model[-1]
    models = ModelList([(-1.1 * model.coef_[0], -float(model.intercept_[0]))])
    settings = desk.recourse.get_params(deep=False) | {"robust_to": models}
    return replace(desk, recourse=RobustRecourse(**settings))


def test_it_answers():
    assert client_of(german_desk()).get("/healthz").json() == {"status": "ok"}


def test_every_example_works():
    client = client_of(german_desk())
    schema = client.get("/openapi.json").json()
    body = schema["paths"]["/v1/recourse"]["post"]["requestBody"]
    examples = body["content"]["application/json"]["examples"]
    assert len(examples) == 4
    for name, example in examples.items():
        assert client.post("/v1/recourse", json=example["value"]).status_code == 200, name


def test_numbers_come_back_as_they_were_sent():
    """A number that is not changed is the number that was sent, to the bit."""
    amounts = np.array([1000.1, 2000.0 + 2**-30, math.nextafter(3000.0, 4000.0)])
    people = [cells(denied(1))[0] | {"credit_amount": float(amount)} for amount in amounts]
    wishes = {"credit_amount": {"locked": True}}
    found = ask(people=people, preferences=wishes, n_options=3)
    ways = [(k, way) for k, person in enumerate(found) for way in person["ways"]]
    assert ways
    for k, way in ways:
        assert way["recourse"]["credit_amount"] == amounts[k]
