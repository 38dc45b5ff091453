"""What stands between the network and the desk: limits, doors, headers, and a quiet log.

All of it is plain ASGI, from the outside in: `Headed` says what a browser may do with an answer,
`Logged` writes a line and lets no bug out, `Guarded` refuses what should not come in. `SafeRoute`
is the kind of route that works something out: when it is its turn, and for a limited time.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import hmac
import inspect
import ipaddress
import json
import logging
import os
import time
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi.routing import APIRoute
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.machinery.meanwhile import meanwhile
from holdfast.machinery.plain_files import FileKind, parse_json
from holdfast.machinery.threads import limited

LOG = logging.getLogger("holdfast.web")
MOST_BYTES = 1_000_000
MOST_SECONDS = 10.0
MOST_WAITING = 64
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_SLOW_SECONDS = 20.0  # in which a body must have arrived
_BODY = FileKind("a request", most_bytes=MOST_BYTES)

# Makes an answer that says what was wrong.
Refuse = Callable[[Scope, HTTPException], Response]


class UnfitError(HTTPException):
    """A request that can be read, but does not fit the model; `where` says which part of it."""

    def __init__(self, message: str, where: str | None) -> None:
        super().__init__(422, message)
        self.where = where


# --- what a browser may do with an answer


def content_policy(*styles: str) -> str:
    """Return the Content-Security-Policy of a page, with the texts of its own style elements.

    Examples
    --------
    >>> "style-src 'self';" in content_policy()
    True
    >>> content_policy("p { color: red }").split("; ")[2]
    "style-src 'self' 'sha256-ngewhhP73WDIbgwseeu52VAAJgKdGUsu1IUQQsAm8m4='"
    """
    digests = [hashlib.sha256(style.encode()).digest() for style in styles]
    hashes = "".join(f" 'sha256-{base64.b64encode(each).decode()}'" for each in digests)
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'{hashes}; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


_HEADERS = {
    "Content-Security-Policy": content_policy(),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without any, browsers do not say where forms come from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class Headed:
    """Sets security headers on every answer; a policy that a route has set stays."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers["Cache-Control"] = _keeping(scope, message["status"])
            await send(message)

        await self.app(scope, receive, with_headers)


def _keeping(scope: Scope, status: int) -> str:
    """Say how long an answer may be kept: for ever where its address names its content."""
    if scope["path"].startswith("/static/") and status == 200:
        named = b"v=" in scope["query_string"]
        return "public, max-age=31536000, immutable" if named else "no-cache"
    return "no-store"


# --- what should not come in


class Guarded:
    """Refuses unknown hosts, posts of other sites, whoever lacks the token, and large bodies.

    Parameters
    ----------
    app : ASGI application
    hosts : tuple of str
        Names under which the server may be asked, without a port. Otherwise a page of another
        site could reach it under a name of its own that it lets point here. 0.0.0.0 and :: stand
        for all numeric addresses, which are no names.
    token : str, optional
    """

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...], token: str | None) -> None:
        self.app, self.token = app, token
        self.hosts = {host.lower().strip("[]") for host in hosts}
        self.cookie = "" if token is None else f"holdfast-{_digest(token)[:8]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        self._check_host(headers)
        _check_origin(scope, headers)
        welcome = self._check_token(scope, headers)
        if welcome is not None:
            await welcome(scope, receive, send)
            return
        _check_length(headers)
        await self.app(scope, _counted(receive), send)

    def _check_host(self, headers: Headers) -> None:
        name = _host_name(headers.get("host", ""))
        anywhere = bool(self.hosts & {"0.0.0.0", "::"}) and _is_numeric(name)
        if name not in self.hosts and not anywhere:
            raise HTTPException(
                400, "this server does not answer to the name in the address; open it as localhost"
            )

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse who has no token; exchange one in an address for a cookie."""
        if self.token is None or scope["path"] == "/healthz":
            return None
        if scope["path"].startswith("/static/") or scope["path"] == "/report.css":
            return None  # how pages look, such as the one that asks for a token
        request = Request(scope)
        said = request.query_params.get("token")
        if said is not None and scope["method"] == "GET" and _same(said, self.token):
            return self._welcome(scope)
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(bearer.strip(), self.token):
            return None
        if _same(request.cookies.get(self.cookie, ""), self.token):
            return None
        raise HTTPException(
            401,
            "a token is needed: open the address that `holdfast serve` printed, or send the "
            "header Authorization: Bearer TOKEN",
            {"WWW-Authenticate": "Bearer"},
        )

    def _welcome(self, scope: Scope) -> Response:
        """Take the token out of the address, so that no history or bookmark holds it."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        # two slashes at the beginning would name another host
        path = "/" + scope["raw_path"].decode("latin-1").partition("?")[0].lstrip("/\\")
        response = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        assert self.token is not None
        response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
        return response


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _same(said: str, token: str) -> bool:
    """Compare in a time that tells nothing."""
    return hmac.compare_digest(said.encode("utf-8", "replace"), token.encode())


def _host_name(host: str) -> str:
    """Return the name of a host, in small letters and without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_numeric(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _check_origin(scope: Scope, headers: Headers) -> None:
    """Refuse what a page of another site sends; programs say nothing of where they come from."""
    if scope["method"] in ("GET", "HEAD", "OPTIONS"):
        return
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    ours = origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()
    if site not in (None, "same-origin", "none") or not ours:
        raise HTTPException(403, "this request came from a page of another site and was refused")


def _check_length(headers: Headers) -> None:
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise HTTPException(400, "the header Content-Length must be a whole number")
    if len(length) > 20 or int(length) > MOST_BYTES:
        raise _too_large()


def _too_large() -> HTTPException:
    return HTTPException(
        413, f"this request is larger than {MOST_BYTES:,} bytes; send fewer people at a time"
    )


def _counted(receive: Receive) -> Receive:
    """Refuse a body that turns out too large, whatever its headers say, or that never ends."""
    received, is_whole = 0, False
    deadline = time.monotonic() + _SLOW_SECONDS

    async def counted() -> Message:
        nonlocal received, is_whole
        if is_whole:  # what comes now is that the client goes
            return await receive()
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                message = await receive()
        except TimeoutError:
            raise HTTPException(
                408, f"the request did not arrive within {_SLOW_SECONDS:.0f} seconds"
            ) from None
        received += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if received > MOST_BYTES:
            raise _too_large()
        return message

    return counted


class Heads:
    """Answers HEAD wherever GET is answered: with the same headers, and without the content."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        scope["method"] = "GET"
        try:
            await self.app(scope, receive, without_body)
        finally:
            scope["method"] = "HEAD"  # for the log


# --- one at a time, and not for ever


class Turns:
    """Lets a few requests work at a time, and a few more wait; all others come again later."""

    def __init__(self, working: int | None = None, waiting: int = MOST_WAITING) -> None:
        self._free = asyncio.Semaphore(working or (os.cpu_count() or 1) + 2)
        self._waiting, self._most = 0, waiting

    @asynccontextmanager
    async def take(self, request: Request) -> AsyncIterator[None]:
        """Wait for a turn; nothing is worked out for who has left meanwhile."""
        if self._waiting >= self._most:
            raise too_busy("too many requests are waiting")
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            if await request.is_disconnected():
                raise ClientDisconnect
            yield
        finally:
            self._free.release()


def too_busy(why: str) -> HTTPException:
    """Say that somebody should come again."""
    return HTTPException(503, f"{why}; try again in a moment", {"Retry-After": "2"})


class StrictRequest(Request):
    """A request whose JSON must mean one thing: nothing twice, nothing endless, numbers only."""

    async def json(self) -> Any:
        """Read the body, or refuse it."""
        try:
            text = (await self.body()).decode("utf-8")
            content = parse_json(text, _BODY)
            # Python reads NaN, 1e999, and half of a character; nobody can be told such an answer
            _write_strictly(content).encode("utf-8")
        except UnicodeDecodeError as error:
            raise HTTPException(400, f"the body is not UTF-8: see byte {error.start}") from None
        except UnicodeEncodeError:
            raise HTTPException(
                400, "a string in the body holds half a character (a lone surrogate)"
            ) from None
        except ValueError as error:
            raise HTTPException(400, f"the body cannot be read: {error}") from None
        return content


def _write_strictly(content: Any) -> str:
    try:
        return json.dumps(content, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise ValueError(
            "NaN and infinite numbers are not valid JSON; send null for missing values"
        ) from None


class SafeRoute(APIRoute):
    """A route that works something out; its function is no coroutine, and runs on a thread."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        super().__init__(path, _in_time(endpoint), **settings)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request: it comes in whole, then it waits for its turn."""
        answer = super().get_route_handler()

        async def in_turn(request: Request) -> Response:
            whole = StrictRequest(request.scope, request.receive)
            await whole.body()
            async with request.app.state.turns.take(whole):
                return await answer(whole)

        return in_turn


def _in_time(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(endpoint):
        raise TypeError(f"{endpoint.__name__} must be a plain function: it works on a thread")

    @functools.wraps(endpoint)
    def in_time(*args: Any, **kwargs: Any) -> Any:
        was_compiling = meanwhile.is_compiling
        try:
            with limited(MOST_SECONDS):
                return endpoint(*args, **kwargs)
        except TimeoutError:
            if (
                was_compiling or meanwhile.is_compiling
            ):  # which makes all of it slow, and is over soon
                raise too_busy("the solvers are still being compiled") from None
            # to come again would take as long again
            raise HTTPException(
                504,
                f"no answer was found within {MOST_SECONDS:.0f} seconds; ask for less at a time",
            ) from None

    return in_time


# --- the log


class Logged:
    """Writes a line for each request, which holds nothing of a person, and lets no bug out.

    Parameters
    ----------
    app : ASGI application
    refuse : function
        Makes an answer of what was refused on the way in, or failed.
    """

    def __init__(self, app: ASGIApp, refuse: Refuse) -> None:
        self.app, self.refuse = app, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever happens."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except Exception as error:
            refused = _refusal(error)
            if not status:
                await self.refuse(scope, refused)(scope, receive, noted)
        finally:
            spent = 1000 * (time.perf_counter() - began)
            LOG.info("%s %s %d %.0f ms", _method(scope), _template(scope), status, spent)


def _refusal(error: Exception) -> HTTPException:
    """Say what became of a request; of a bug, log where it is, but not what somebody typed."""
    if isinstance(error, HTTPException):
        return error
    if isinstance(error, ClientDisconnect):
        return HTTPException(499, "the client has gone")
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    where = ", ".join(f"{os.path.basename(each.filename)}:{each.lineno}" for each in frames)
    LOG.error("a bug: %s at %s", type(error).__name__, where)
    return HTTPException(
        500, "something went wrong: this is a bug; please report it, with what the server logged"
    )


def _method(scope: Scope) -> str:
    known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    return scope["method"] if scope["method"] in known else "OTHER"


def _template(scope: Scope) -> str:
    """Return the route, never the path: that may hold what somebody typed."""
    template = getattr(scope.get("route"), "path", None)
    known = ("/static/", "/openapi.json")
    return template or next((each for each in known if scope["path"].startswith(each)), "no route")
