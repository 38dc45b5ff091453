"""Where files come from: a real server on this machine, which serves well, badly, or not at all."""

from __future__ import annotations

import hashlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from data_files import needs_files

from holdfast.datasets import DataAbsent, load_sba, load_south_german, sources
from holdfast.datasets.sources import SBA, SOUTH_GERMAN, Address, External, fetch
from holdfast.paper.folds import sba_folds

pooch = pytest.importorskip("pooch")

CONTENT = bytes(range(256)) * 1024  # more than one chunk of the downloader
DIGEST = hashlib.sha256(CONTENT).hexdigest()
NAME = "people.csv"


class Server:
    """Serves CONTENT; `broken_after` closes the connection early, once."""

    def __init__(self):
        self.content = CONTENT
        self.broken_after = None
        self.ranges = True
        self.asked = []
        handler = type("Handler", (_Handler,), {"owner": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/{NAME}"
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)
        self.thread.start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


class _Handler(BaseHTTPRequestHandler):
    owner: Server

    def do_GET(self):
        owner, wanted = self.owner, self.headers.get("Range")
        owner.asked.append(wanted)
        if self.path != f"/{NAME}":
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if wanted and owner.ranges:
            if start >= len(owner.content):
                self.send_error(416)
                return
            self.send_response(206)
            size = len(owner.content)
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        else:
            start = 0
            self.send_response(200)
        body = owner.content[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if owner.broken_after is not None:
            body, owner.broken_after = body[: owner.broken_after], None
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no directory named by the environment."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(sources, "cache_directory", lambda _: folder)
    monkeypatch.delenv(sources.DIRECTORY_VARIABLE, raising=False)
    return folder


def external(*urls: str) -> External:
    return External(
        name=NAME,
        sha256=DIGEST,
        same_text=(),
        addresses=tuple(Address(url, DIGEST) for url in urls),
        where="the town hall",
        source="",
        citation="",
        licence="",
    )


def closed_port(server: Server) -> str:
    """An address where nobody answers."""
    server.stop()
    return server.url


def left(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir()) if cache.is_dir() else []


def test_a_file_is_downloaded_once(server, cache):
    file = external(server.url)
    assert fetch(file) == CONTENT
    assert fetch(file) == CONTENT
    assert server.asked == [None]
    assert left(cache) == [NAME]


def test_a_wrong_file_is_refused_and_nothing_is_left(server, cache):
    server.content = b"something else"
    with pytest.raises(DataAbsent) as caught:
        fetch(external(server.url))
    assert DIGEST in str(caught.value)
    assert hashlib.sha256(b"something else").hexdigest() in str(caught.value)
    assert left(cache) == []


def test_the_next_address_is_tried(server, cache):
    missing = server.url.replace(NAME, "elsewhere.csv")
    assert fetch(external(missing, server.url)) == CONTENT
    (cache / NAME).unlink()
    with pytest.raises(DataAbsent, match=r"404.*404"):
        fetch(external(missing, missing))


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_looks_unfinished_and_is_taken_up_again(server, cache, ranges):
    server.broken_after, server.ranges = 100_000, ranges
    file = external(server.url)
    with pytest.raises(DataAbsent, match=r"closed after \d+ of 262144 bytes"):
        fetch(file)
    (unfinished,) = left(cache)
    assert unfinished.endswith(".part")
    assert fetch(file) == CONTENT
    assert left(cache) == [NAME]
    assert server.asked == [None, "bytes=100000-"]


def test_a_rest_that_belongs_to_another_file_is_refused_and_then_forgotten(server, cache):
    cache.mkdir()
    part = cache / f"{NAME}.{DIGEST[:8]}.part"
    part.write_bytes(b"not the beginning of it")
    with pytest.raises(DataAbsent, match="does not match the known hash"):
        fetch(external(server.url))
    assert left(cache) == []
    part.write_bytes(CONTENT + b"and more")
    with pytest.raises(DataAbsent, match="416"):
        fetch(external(server.url))
    assert fetch(external(server.url)) == CONTENT


def test_a_damaged_file_in_the_cache_is_replaced(server, cache):
    cache.mkdir()
    (cache / NAME).write_bytes(b"damaged")
    assert fetch(external(server.url)) == CONTENT
    assert (cache / NAME).read_bytes() == CONTENT


def test_offline_the_message_says_what_to_do(server, cache, tmp_path):
    with pytest.raises(DataAbsent) as caught:
        fetch(external(closed_port(server)))
    for part in (NAME, "the town hall", DIGEST, "HOLDFAST_DATA_DIR", "refused"):
        assert part in str(caught.value)
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        fetch(external(server.url), tmp_path)


def test_without_pooch_the_message_says_how_to_install_it(cache, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    for load in (load_sba, load_south_german, sba_folds):
        with pytest.raises(DataAbsent, match=r"pip install 'holdfast\[reproduce\]'"):
            load(tmp_path)


def test_a_named_directory_comes_first_and_needs_no_pooch(cache, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    (tmp_path / NAME).write_bytes(CONTENT)
    assert fetch(external(), tmp_path) == CONTENT
    monkeypatch.setenv(sources.DIRECTORY_VARIABLE, str(tmp_path))
    assert fetch(external()) == CONTENT


def test_another_file_in_a_named_directory_is_an_error_with_both_sums(cache, tmp_path):
    (tmp_path / NAME).write_bytes(b"another")
    with pytest.raises(ValueError, match="is not the right file") as caught:
        fetch(external(), tmp_path)
    assert DIGEST in str(caught.value)
    assert hashlib.sha256(b"another").hexdigest() in str(caught.value)


def test_a_directory_that_is_not_there_is_an_error(cache, tmp_path, monkeypatch):
    with pytest.raises(NotADirectoryError, match="argument directory"):
        fetch(external(), tmp_path / "nowhere")
    monkeypatch.setenv(sources.DIRECTORY_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(NotADirectoryError, match="HOLDFAST_DATA_DIR"):
        fetch(external())


@pytest.mark.parametrize("file", [SOUTH_GERMAN, SBA], ids=lambda file: file.name)
def test_every_address_is_pinned_to_a_commit_and_a_sum(file):
    for address in file.addresses:
        assert address.sha256 in file.accepted
        assert any(len(part) == 40 for part in address.url.split("/"))
    assert len(set(file.accepted)) == len(file.accepted)


@needs_files
@pytest.mark.parametrize("file", [SOUTH_GERMAN, SBA], ids=lambda file: file.name)
def test_the_same_text_is_accepted_whatever_its_line_ends(file, tmp_path):
    content = fetch(file)
    assert hashlib.sha256(content).hexdigest() in file.accepted
    bom = b"\xef\xbb\xbf"
    for text in (content, content.removeprefix(bom)):
        for changed in (text, text.replace(b"\r\n", b"\n")):
            (tmp_path / file.name).write_bytes(changed)
            assert fetch(file, tmp_path) == changed
    (tmp_path / file.name).write_bytes(content.replace(b"1", b"2", 1))
    with pytest.raises(ValueError, match="is not the right file"):
        fetch(file, tmp_path)


@needs_files
def test_the_file_of_uci_gives_the_same_table(tmp_path):
    lines = fetch(SOUTH_GERMAN).decode().splitlines()
    names = (
        "laufkont laufzeit moral verw hoehe sparkont beszeit rate famges buerge wohnzeit verm "
        "alter weitkred wohn bishkred beruf pers telef gastarb kredit"
    )
    rows = [line.replace(",", " ") for line in lines[1:]]
    path = tmp_path / "SouthGermanCredit.asc"
    path.write_text("\n".join([names, *rows]) + "\n")
    expected = load_south_german()
    data = load_south_german(tmp_path)
    assert data.features.equals(expected.features)
    assert data.approved.equals(expected.approved)

    path.write_text("\n".join([names, *rows[:-1], rows[0]]))
    with pytest.raises(ValueError, match="converted to CSV, is not the right file"):
        load_south_german(tmp_path)
    path.write_text("\n".join(rows))
    with pytest.raises(ValueError, match=r"the first line of .* must be: laufkont"):
        load_south_german(tmp_path)
