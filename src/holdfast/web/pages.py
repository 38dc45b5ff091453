"""The pages: what was asked is read, the library is called, and its figures are shown."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Depends
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request

from holdfast.recommend.numerals import below, numeral
from holdfast.report.figures import figure
from holdfast.report.person import PersonFigures, look_at
from holdfast.result.status import Status
from holdfast.web.forms import (
    Field,
    State,
    StateError,
    Typed,
    chips_of,
    fields_of,
    label,
    read_form,
    read_person,
    read_state,
)
from holdfast.web.safety import SafeRoute

if TYPE_CHECKING:
    from holdfast.web.desk import Desk

_STATIC = Path(__file__).parent / "static"


def percent(share: float) -> str:
    """Write a share as a length for a drawing.

    Examples
    --------
    >>> percent(0.375), percent(1.2)
    ('37.50%', '100.00%')
    """
    return f"{100.0 * min(max(share, 0.0), 1.0):.2f}%"


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("holdfast.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {"percent": percent, "figure": figure, "label": label, "numeral": numeral}
    templates.globals["static"] = "/static"
    templates.globals["version"] = _version()
    templates.filters["tojson_text"] = lambda value: json.dumps(value, allow_nan=False)
    return templates


def _version() -> str:
    """Name the content of the static files, which browsers keep for ever under that name."""
    files = sorted(path for path in _STATIC.iterdir() if path.is_file())
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


_NAV = {"people": ("/people", "People"), "new": ("/new", "New person"), "overview": ("/overview", "Overview")}
