"""One process that answers on one port until it is told to stop."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import secrets
import socket
import sys
import time
import webbrowser
from typing import Any

import uvicorn

from holdfast.web.app import make_service
from holdfast.web.desk import Desk
from holdfast.web.safety import LOCAL_HOSTS, LOG

_MOST_CONNECTIONS = 512
_MOST_SILENT = 10  # seconds in which a connection must have sent the whole head of a request
_STOPPING = 12  # seconds that requests under way have left: more than one may take


def serve(desk: Desk, *, host: str = "127.0.0.1", port: int = 8000, open_browser: bool) -> None:
    """Answer until Ctrl-C; the address is printed as soon as it answers.

    Parameters
    ----------
    desk : Desk
    host : str
        Where to listen. Whoever is not on this machine needs a token, which is printed with the
        address.
    port : int
        0 for any one that is free.
    open_browser : bool

    Raises
    ------
    ValueError
        If nobody can listen there.
    KeyboardInterrupt
        After Ctrl-C, when all is closed.
    """
    door = _listen(host, port)
    token = None if _is_loopback(host) else secrets.token_urlsafe(24)
    hosts = (*LOCAL_HOSTS, host, socket.gethostname(), socket.getfqdn())
    address = _address(host, door.getsockname()[1], token)
    config = uvicorn.Config(
        make_service(desk, token=token, hosts=hosts),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        ws="none",
        proxy_headers=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=_MOST_SILENT,
        timeout_graceful_shutdown=_STOPPING,
    )
    _log_to_stderr()
    with door:
        _Announcing(config, address, open_browser).run(sockets=[door])


class _Announcing(uvicorn.Server):
    """A server that says where it is as soon as it answers, and waits for no half of a request."""

    def __init__(self, config: uvicorn.Config, address: str, open_browser: bool) -> None:
        super().__init__(config)
        self.address, self.open_browser = address, open_browser

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self.started:
            self.watching = asyncio.create_task(close_silent(self.server_state.connections))
            print(f"Holdfast is running at {self.address} (press Ctrl-C to stop it)", flush=True)
            if self.open_browser:
                webbrowser.open(self.address)


async def close_silent(connections: set[Any], seconds: float = _MOST_SILENT) -> None:
    """Close connections on which nothing is answered and no request has come for so long.

    Uvicorn itself waits for the rest of a head for ever, and some hundred of such connections
    would keep everybody out. How long a body may take, `Guarded` says.
    """
    waiting: dict[Any, tuple[Any, float]] = {}
    while True:
        now, before = time.monotonic(), waiting
        waiting = {}
        for each in list(connections):
            if each.cycle is not None and not each.cycle.response_complete:
                continue
            last, since = before.get(each, (each.cycle, now))
            if last is not each.cycle:  # meanwhile something was answered
                since = now
            waiting[each] = each.cycle, since
            if now - since >= seconds:
                each.transport.close()
        await asyncio.sleep(seconds / 8.0)


def _listen(host: str, port: int) -> socket.socket:
    """Open the port, or say why that cannot be done."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except (OSError, UnicodeError, OverflowError):
        raise ValueError(
            f"host = {host!r} is not an address of this machine; use 127.0.0.1 for this machine "
            "alone, or 0.0.0.0 for every machine that can reach it"
        ) from None
    door = socket.socket(family, socket.SOCK_STREAM)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((host, port))
        door.listen(128)
    except (OSError, OverflowError) as error:
        door.close()
        why = getattr(error, "strerror", None) or str(error)
        raise ValueError(
            f"cannot listen on {host}, port {port}: {why.lower()}; choose another port, or 0 for "
            "any free one"
        ) from None
    return door


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _address(host: str, port: int, token: str | None) -> str:
    """Return what to open: a wildcard is no address, the name of the machine is."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    named = f"[{name}]" if ":" in name else name
    return f"http://{named}:{port}/" + ("" if token is None else f"?token={token}")


def _log_to_stderr() -> None:
    """Show the log where nobody has said what should become of it."""
    if not LOG.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
        LOG.addHandler(handler)
        LOG.setLevel(logging.INFO)
