"""What stands before the service: limits, doors, headers, a quiet log."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import threading
from typing import Any

import pytest
from service_desk import cells, client_of, denied, german_desk, httpx

from holdfast.web import api, safety
from holdfast.web.app import make_service

TOKEN = "a-token-of-this-test"
JSON = {"Content-Type": "application/json"}


def client(**settings: Any) -> Any:
    return client_of(german_desk(), **settings)


# --- who may come in


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "localhost."]
)
def test_local_names_are_known(host):
    assert client().get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.nip.io", "[::1", "10.0.0.1"]
)
def test_other_names_are_refused(host):
    answer = client().get("/healthz", headers={"Host": host})
    assert answer.status_code == 400
    assert "name" in answer.json()["error"]["message"]


def test_a_name_that_was_asked_for_is_known():
    some = client(hosts=("localhost", "desk.example"))
    assert some.get("/healthz", headers={"Host": "desk.example:80"}).status_code == 200


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "::"])
def test_everywhere_means_every_number_but_no_name(everywhere):
    some = client(hosts=(everywhere,))
    assert some.get("/healthz", headers={"Host": "192.168.1.7:80"}).status_code == 200
    assert some.get("/healthz", headers={"Host": "[fe80::1]:80"}).status_code == 200
    assert some.get("/healthz", headers={"Host": "evil.example"}).status_code == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://localhost"}, 200),
        ({"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "http://localhost:9999"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_posts_of_other_sites_are_refused(headers, status):
    content = {"people": cells(denied(1))}
    assert client().post("/v1/recourse", json=content, headers=headers).status_code == status


def test_links_of_other_sites_are_followed():
    assert client().get("/healthz", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


# --- the token


def test_without_the_token_nobody_comes_in():
    some = client(token=TOKEN)
    for path in ("/", "/v1/model", "/openapi.json", "/staticpage.css", "/nowhere"):
        answer = some.get(path)
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"] == "Bearer"
    for path in ("/healthz", "/static/page.css", "/report.css"):  # nothing of anybody
        assert some.get(path).status_code == 200


@pytest.mark.parametrize("said", ["", TOKEN[:-1], TOKEN + "x", "é", TOKEN.upper()])
def test_a_wrong_token_is_refused(said):
    some = client(token=TOKEN)
    assert some.get("/v1/model", params={"token": said}).status_code == 401
    bearer = {"Authorization": f"Bearer {said}".encode()}
    assert some.get("/v1/model", headers=bearer).status_code == 401


def test_programs_bring_the_token_as_a_bearer():
    bearer = {"Authorization": f"bearer {TOKEN}"}
    assert client(token=TOKEN).get("/v1/model", headers=bearer).status_code == 200
    basic = {"Authorization": f"Basic {TOKEN}"}
    assert client(token=TOKEN).get("/v1/model", headers=basic).status_code == 401


def test_the_token_in_an_address_becomes_a_cookie():
    some = client(token=TOKEN)
    answer = some.get(f"/v1/model?a=b%20c&token={TOKEN}", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/v1/model?a=b+c"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert some.get("/v1/model").status_code == 200


def test_the_token_in_an_address_leads_to_no_other_host():
    some = client(token=TOKEN)
    for path in ("//evil.example/", "/\\evil.example/", "///evil.example"):
        answer = some.get(f"http://localhost{path}?token={TOKEN}", follow_redirects=False)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/evil.example")


def test_a_post_cannot_bring_the_token_in_its_address():
    content = {"people": cells(denied(1))}
    answer = client(token=TOKEN).post(f"/v1/recourse?token={TOKEN}", json=content)
    assert answer.status_code == 401


# --- how much


def test_large_bodies_are_refused_by_what_they_say():
    answer = client().post("/v1/recourse", content=b" " * 1_000_001, headers=JSON)
    assert answer.status_code == 413
    assert "1,000,000 bytes" in answer.json()["error"]["message"]


def test_large_bodies_are_refused_by_what_they_are():
    read = 0

    def endless() -> Any:
        nonlocal read
        for _ in range(100):
            read += 1
            yield b" " * 100_000

    answer = client().post("/v1/recourse", content=endless(), headers=JSON)
    assert answer.status_code == 413


@pytest.mark.parametrize("length", ["-1", "1e3", "٣", "9" * 5000])
def test_a_length_that_is_none_is_refused(length):
    headers = {**JSON, "Content-Length": length.encode()}
    answer = client().post("/v1/recourse", content=b"{}", headers=headers)
    assert answer.status_code in (400, 413)


# --- for how long


def _ask_of_route(monkeypatch: Any, work: Any) -> Any:
    monkeypatch.setattr(api, "_answer", work)
    return client().post("/v1/recourse", json={"people": cells(denied(1))})


def test_who_takes_too_long_is_told_so(monkeypatch):
    def work(*_: Any) -> Any:
        raise TimeoutError

    answer = _ask_of_route(monkeypatch, work)
    assert answer.status_code == 504
    assert "retry-after" not in answer.headers  # it would take as long again
    assert "10 seconds" in answer.json()["error"]["message"]


def test_while_solvers_compile_it_is_worth_to_come_again(monkeypatch):
    def work(*_: Any) -> Any:
        raise TimeoutError

    monkeypatch.setattr(type(safety.meanwhile), "is_compiling", True)
    answer = _ask_of_route(monkeypatch, work)
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert "compiled" in answer.json()["error"]["message"]


def test_all_that_may_go_wrong_is_in_the_schema():
    told = client().get("/openapi.json").json()["paths"]["/v1/recourse"]["post"]["responses"]
    statuses = {"400", "401", "403", "408", "413", "415", "422", "500", "503", "504"}
    assert set(told) == {"200", *statuses}


def test_a_bug_is_a_sentence_and_tells_nothing(monkeypatch, caplog):
    def work(*_: Any) -> Any:
        raise KeyError("the secret of a person")

    with caplog.at_level(logging.DEBUG):
        answer = _ask_of_route(monkeypatch, work)
    assert answer.status_code == 500
    assert "bug" in answer.json()["error"]["message"]
    assert "secret" not in answer.text + caplog.text
    assert "KeyError at" in caplog.text
    assert "test_service_safety.py" in caplog.text


class _Stub:
    """Stands for a request whose client may have left."""

    def __init__(self, gone: bool = False) -> None:
        self.gone = gone

    async def is_disconnected(self) -> bool:
        return self.gone


def test_few_work_few_wait_and_others_are_sent_away():
    async def scene() -> list[Any]:
        turns, working, most, over = safety.Turns(working=2, waiting=3), 0, 0, asyncio.Event()

        async def visit() -> None:
            nonlocal working, most
            async with turns.take(_Stub()):  # type: ignore[arg-type]
                working += 1
                most = max(most, working)
                await over.wait()
                working -= 1

        visits = [asyncio.create_task(visit()) for _ in range(8)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        over.set()
        found = await asyncio.gather(*visits, return_exceptions=True)
        assert most == 2
        await visit()  # all turns were given back
        return [each for each in found if each is not None]

    refused = asyncio.run(scene())
    assert [each.status_code for each in refused] == [503] * 3
    assert refused[0].headers["Retry-After"]


def test_nothing_is_worked_out_for_who_has_left():
    async def scene() -> bool:
        turns, worked = safety.Turns(working=1, waiting=1), False
        with pytest.raises(safety.ClientDisconnect):
            async with turns.take(_Stub(gone=True)):  # type: ignore[arg-type]
                worked = True
        async with turns.take(_Stub()):  # type: ignore[arg-type]
            return worked

    assert asyncio.run(scene()) is False


def test_work_is_done_on_a_thread(monkeypatch):
    threads = []

    def work(*_: Any) -> Any:
        threads.append(threading.current_thread())
        asyncio.get_running_loop()

    assert _ask_of_route(monkeypatch, work).status_code == 500  # there is no loop there
    assert threads != [threading.main_thread()]


def test_a_route_that_works_is_no_coroutine():
    async def work() -> None: ...

    with pytest.raises(TypeError, match="plain function"):
        safety.SafeRoute("/", work)


def test_every_page_that_works_something_out_waits_for_its_turn():
    app = make_service(german_desk())
    quick = {"/v1/model", "/healthz", "/openapi.json", "/static"}
    paths = {route.path: route for route in routes_of(app)}
    assert "/v1/recourse" in paths
    for path, route in paths.items():
        assert path in quick or isinstance(route, safety.SafeRoute), path


def routes_of(app: Any) -> list[Any]:
    found = []
    for route in app.routes:
        inner = getattr(route, "original_router", None)
        found += routes_of(inner) if inner is not None else [route]
    return found


# --- what a browser may do


@pytest.mark.parametrize("path", ["/", "/v1/model", "/nowhere", "/healthz", "/static/nothing.css"])
def test_headers_are_on_every_answer(path):
    for some in (client(), client(token=TOKEN), client(hosts=("other",))):
        headers = some.get(path, follow_redirects=False).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "camera=()" in headers["permissions-policy"]
        assert "server" not in headers


def test_a_style_of_a_page_is_let_in_by_its_hash():
    style = "p { color: #123 }\n"
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'self' 'sha256-{digest}';" in safety.content_policy(style)


# --- what is written down


def test_the_log_holds_nothing_of_anybody(caplog):
    secret = "hunter2"
    some = client(token=TOKEN)
    bearer = {"Authorization": f"Bearer {TOKEN}", "X-Name": secret, "Cookie": f"name={secret}"}
    person = cells(denied(1))[0] | {"housing": secret}
    with caplog.at_level(logging.INFO, logger="holdfast"):
        some.get(f"/people/{secret}?name={secret}", headers=bearer)
        some.get(f"/v1/model?name={secret}&token={TOKEN}", headers=bearer)
        some.post("/v1/recourse", json={"people": [person]}, headers=bearer)
        some.post("/v1/recourse", json={"people": [person | {secret: 1}]}, headers=bearer)
        some.request(secret.upper(), "/", headers=bearer)
    lines = [record.getMessage() for record in caplog.records if record.name == "holdfast.web"]
    assert len(lines) >= 5
    text = "\n".join(lines).lower()
    assert secret not in text
    assert TOKEN not in text
    assert any(line.startswith("POST /v1/recourse 200 ") for line in lines)
    assert any(line.startswith("POST /v1/recourse 422 ") for line in lines)


def test_a_program_is_told_in_json_and_a_person_in_html():
    some = client()
    assert some.get("/v1/nothing").json() == {
        "error": {"message": "there is nothing at this address", "where": None}
    }
    assert some.delete("/v1/model").status_code == 405
    page = some.get("/nothing/<b>")
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "there is nothing at this address" in page.text.lower()


def test_requests_do_not_meet():
    """Many at once: each gets the answer that it gets alone."""
    people = cells(denied(6))
    alone = [client().post("/v1/recourse", json={"people": [each]}).text for each in people]

    async def scene() -> list[str]:
        transport = httpx.ASGITransport(make_service(german_desk()))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as some:
            asked = [some.post("/v1/recourse", json={"people": [each]}) for each in people * 3]
            return [answer.text for answer in await asyncio.gather(*asked)]

    assert asyncio.run(scene()) == alone * 3
