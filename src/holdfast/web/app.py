"""The application: pages, the service for programs, and what stands before them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from holdfast.machinery.versions import VERSION
from holdfast.web.api import make_api
from holdfast.web.desk import Desk
from holdfast.web.pages import PageLinks, error_page, make_pages, pages_of
from holdfast.web.safety import LOCAL_HOSTS, Guarded, Headed, Heads, Logged, Turns, UnfitError

_STATIC = Path(__file__).parent / "static"
_FOR_PROGRAMS = ("/v1/", "/healthz", "/openapi.json")


def make_service(
    desk: Desk, *, token: str | None = None, hosts: tuple[str, ...] = LOCAL_HOSTS
) -> FastAPI:
    """Put the application together.

    Parameters
    ----------
    desk : Desk
    token : str, optional
        What everybody must bring, in the address or as a bearer.
    hosts : tuple of str
        Names under which the server may be asked.
    """
    refuse = functools.partial(_refuse, pages_of(desk))

    async def refused(request: Request, error: Any) -> Response:
        return refuse(request.scope, error)

    async def not_understood(request: Request, error: Any) -> Response:
        return refuse(request.scope, _unfit(error))

    app = FastAPI(
        title="Holdfast",
        version=VERSION,
        description="What people can change so that today's model, and every model near it, "
        "approves them.",
        docs_url=None,
        redoc_url=None,
        middleware=[
            Middleware(Headed),
            Middleware(Logged, refuse=refuse),
            Middleware(Heads),
            Middleware(Guarded, hosts=hosts, token=token),
        ],
        exception_handlers={HTTPException: refused, RequestValidationError: not_understood},
    )
    app.state.turns = Turns()
    app.mount("/static", StaticFiles(directory=_STATIC, check_dir=False), name="static")
    app.include_router(make_api(desk))
    app.include_router(make_pages(desk), include_in_schema=False)
    return app


def _refuse(pages: PageLinks, scope: Scope, error: HTTPException) -> Response:
    """Say what was wrong, to a program or to a person."""
    status, message = error.status_code, _sentence(error)
    if scope["path"].startswith(_FOR_PROGRAMS):
        where = error.where if isinstance(error, UnfitError) else None
        content = {"error": {"message": message, "where": where}}
        return JSONResponse(content, status, error.headers)
    is_part = scope["path"].startswith("/parts/")
    return HTMLResponse(error_page(pages, status, message, is_part=is_part), status, error.headers)


# for those of others, who say no more than their status
_SENTENCES = {
    "Not Found": "there is nothing at this address",
    "Method Not Allowed": "this address does not accept this kind of request",
}


def _sentence(error: HTTPException) -> str:
    return _SENTENCES.get(str(error.detail), str(error.detail))


def _unfit(error: RequestValidationError) -> UnfitError:
    """Say which part of a request was wrong, without what stood there."""
    first = error.errors()[0]
    message = _EXPECTED.get(first["type"], first["msg"]).format(**first.get("ctx", {}))
    return UnfitError(message, _place(first["loc"]))


_EXPECTED = {
    "missing": "this is missing",
    "extra_forbidden": "this name is not known; see GET /v1/model for the known names",
    "float_type": "a number was expected",
    "int_type": "a whole number was expected",
    "unexpected": "{words}",
    "string_type": "a string was expected",
    "bool_type": "true or false was expected",
    "list_type": "a list was expected",
    "model_attributes_type": "an object of names and values was expected",
    "literal_error": "{expected} was expected",
    "none_required": "null was expected: a list of models has no size",
    "greater_than_equal": "a number of at least {ge} was expected",
    "less_than_equal": "a number of at most {le} was expected",
    "too_short": "at least {min_length} was expected",
    "too_long": "at most {max_length} were expected, but there are {actual_length}",
}


def _place(steps: tuple[str | int, ...]) -> str | None:
    """Return where something is in the body: people[3].age."""
    place = ""
    for step in steps[1:] if steps[:1] == ("body",) else steps:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else str(step)
    return place or None
