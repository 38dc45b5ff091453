"""Stand-in until the pages are there."""

from __future__ import annotations

from html import escape

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from holdfast.web.desk import Desk
from holdfast.web.safety import SafeRoute


def error_page(status: int, message: str, *, is_part: bool) -> str:
    """Say what was wrong."""
    return f"<p>{status}: {escape(message)}</p>"


def make_pages(desk: Desk) -> APIRouter:
    """Return the pages."""
    router = APIRouter(route_class=SafeRoute, default_response_class=HTMLResponse)

    @router.get("/")
    def home() -> str:
        return "<p>Holdfast</p>"

    return router
