"""Whatever a program sends: an answer that the schema knows, and never a bug."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from service_desk import denied, german_desk

from holdfast.web.app import make_service

schemathesis = pytest.importorskip("schemathesis", reason="these tests need schemathesis")

from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

LOCAL = {"Host": "localhost"}
german_desk().recourse.recommend(denied(1))  # compiles the solvers, outside of the time limit
app = make_service(german_desk())
schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers=LOCAL)
_CALM = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "derandomize": True,
    "database": None,
}


def check(case: Any) -> None:
    """Check all that schemathesis knows to check, but for what no schema can say.

    That is that wishes contradict one another, and that 1.0 is no number of ways.
    """
    answer = case.call(headers=LOCAL)
    where = answer.json()["error"]["where"] if answer.status_code == 422 else None
    is_float = where == "n_options" and isinstance(case.body["n_options"], float)
    excluded = [positive_data_acceptance] if where == "preferences" or is_float else []
    case.validate_response(answer, excluded_checks=excluded, headers=LOCAL)
    assert answer.status_code < 500


@schema.parametrize()
@settings(max_examples=25, **_CALM)
def test_whatever_is_sent_has_an_answer_that_the_schema_knows(case):
    check(case)


@pytest.mark.slow
@schema.parametrize()
@settings(max_examples=2000, **_CALM)
def test_much_more_is_sent(case):
    check(case)
