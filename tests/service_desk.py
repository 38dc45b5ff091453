"""A desk of German Credit, and a client for it, for tests of the service."""

from __future__ import annotations

import functools
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
from recourse_files import german_actions, german_model, german_people

from holdfast.files.jobs import Job
from holdfast.files.models import save_model

pytest.importorskip("fastapi", reason="the service needs fastapi: pip install 'holdfast[serve]'")
httpx = pytest.importorskip("httpx", reason="the client of these tests needs httpx")

from holdfast.web.app import make_service  # noqa: E402
from holdfast.web.desk import Desk  # noqa: E402

with warnings.catch_warnings():  # Starlette announces another package for its client
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

# Held as long as the tests run, and removed with them.
_FOLDER = tempfile.TemporaryDirectory()


@functools.cache
def german_desk(**settings: Any) -> Desk:
    """The lender of the tests of files: a ball of models, and a guarantee."""
    folder = Path(_FOLDER.name)
    model, actions = folder / "model.skops", folder / "actions.yaml"
    if not model.exists():
        save_model(german_model(), model, favorable_class=0)
        german_actions().save(actions)
    asked = {"robust_to": "p=1,radius=0.1", "guarantee": 0.5, **settings}
    return Desk.of(Job(model=str(model), actions=str(actions), **asked))


def client_of(desk: Desk, **settings: Any) -> TestClient:
    """Return a client that sees an answer where there is a bug, as everybody does."""
    desk.recourse.recommend(denied(1))  # compiles the solvers, which may take more than a request
    return TestClient(
        make_service(desk, **settings), base_url="http://localhost", raise_server_exceptions=False
    )


def denied(count: int) -> Any:
    """The first of those who were turned down, as a table of the columns of the model."""
    desk = german_desk()
    people = german_people()[list(desk.columns.levels)].drop(index=[5, 100, 200])
    people = people.astype({"duration": float})
    score = desk.recourse.model.predict_proba(people)[:, 0]
    return people[score < 0.5].head(count).reset_index(drop=True)


def cells(people: Any) -> list[dict[str, Any]]:
    """Return people as JSON has them."""
    return [
        {name: value.item() if hasattr(value, "item") else value for name, value in row.items()}
        for row in people.to_dict("records")
    ]
