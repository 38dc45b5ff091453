"""Connections that send half of a request keep nobody out."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import Any

import pytest

uvicorn = pytest.importorskip("uvicorn", reason="the page needs uvicorn")

from holdfast.web.server import close_silent  # noqa: E402

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """Say yes, to those who ask for it slowly after a while."""
    if b"slow" in scope["raw_path"]:
        await asyncio.sleep(1.5)
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", b"3")],
        }
    )
    await send({"type": "http.response.body", "body": b"yes"})


class Watched(uvicorn.Server):
    """A server that is watched, or not."""

    seconds: float | None = None

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.seconds is not None:
            connections = self.server_state.connections
            self.watching = asyncio.create_task(close_silent(connections, self.seconds))
        self.is_open.set()


@pytest.fixture
def server():
    door = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(answer, lifespan="off", log_config=None, limit_concurrency=5)
    server = Watched(config)
    server.seconds, server.is_open = 0.5, threading.Event()
    thread = threading.Thread(target=lambda: server.run(sockets=[door]), daemon=True)
    thread.start()
    assert server.is_open.wait(30)
    yield door.getsockname()
    server.should_exit = True
    thread.join(30)


def connect(address: Any, *sent: bytes) -> socket.socket:
    connection = socket.create_connection(address, timeout=30)
    for each in sent:
        connection.sendall(each)
    return connection


def read(connection: socket.socket) -> bytes:
    """All that comes until the other side has closed."""
    found = b""
    with contextlib.suppress(ConnectionResetError):  # it was closed while we still wrote
        while part := connection.recv(4096):
            found += part
    return found


def test_half_of_a_head_is_not_waited_for(server):
    silent = [connect(server), connect(server, HEAD), connect(server, b"G")]
    again = connect(server, HEAD, b"\r\n")
    assert again.recv(4096).startswith(b"HTTP/1.1 200")
    again.sendall(HEAD)  # the first was whole, the second is not
    crowd = [connect(server, HEAD) for _ in range(4)]
    for each in [*silent, *crowd]:
        assert read(each) == b""
    assert read(again) in (b"", b"yes")
    whole = connect(server, HEAD, b"Connection: close\r\n\r\n")
    assert read(whole).endswith(b"yes")


def test_an_answer_may_take_longer_than_a_head(server):
    slow = connect(server, HEAD.replace(b"/ ", b"/slow "), b"Connection: close\r\n\r\n")
    assert read(slow).endswith(b"yes")
