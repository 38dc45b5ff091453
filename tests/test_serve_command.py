"""`holdfast serve`: what it asks for, what it says, and how it ends."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml
from serving import SHOWN, serving

import holdfast.machinery.extras as extras
from holdfast.cli import main
from holdfast.demo.files import write_demo

pytest.importorskip("uvicorn")
PAGE = Path(__file__).parent.parent / "docs" / "serve.md"


@pytest.fixture
def served(monkeypatch):
    """What the command would serve."""
    import holdfast.web.server as room

    seen = []
    monkeypatch.setattr(room, "serve", lambda desk, **where: seen.append((desk, where)))
    return seen


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return write_demo(tmp_path_factory.mktemp("demo"))


def options_of(job, *names):
    flags = {
        name: [f"--{name}", str(getattr(job, name))] for name in ("model", "actions", "people")
    }
    return [word for name in names for word in flags[name]]


def refused(capsys, *words) -> str:
    """What is said where nothing is served."""
    assert main(["serve", "--no-browser", *words]) == 2
    return capsys.readouterr().err


def test_what_is_not_said_is_said_at_the_start(served, job, capsys):
    assert main(["serve", *options_of(job, "model", "actions"), "--no-browser"]) == 0
    desk, where = served[0]
    assert where == {"host": "127.0.0.1", "port": 8765, "open_browser": False}
    assert (desk.job.robust_to, desk.job.guarantee, desk.people) == ("p=1,radius=0.1", 0.5, None)
    said = capsys.readouterr().err
    assert '"p=1,radius=0.1"' in said
    assert "0.5, the model's own threshold" in said


def test_all_that_is_said_reaches_the_desk(served, job, tmp_path):
    words = ["--robust-to", "p=2,radius=0.3", "--guarantee", "0.6", "--key", "applicant"]
    words += ["--lender", "Hanse Bank", "--reference", job.people]
    words += ["--host", "127.0.0.2", "--port", "0"]
    assert main(["serve", *options_of(job, "model", "actions", "people"), *words]) == 0
    desk, where = served[0]
    assert where == {"host": "127.0.0.2", "port": 0, "open_browser": True}
    assert (desk.recourse.robust_to.p, desk.recourse.guarantee) == (2.0, 0.6)
    assert (desk.lender, str(desk.reference), desk.job.keys) == (
        "Hanse Bank",
        job.people,
        ["applicant"],
    )
    assert not Path(desk.people._folder.name).exists()  # deleted at the end


def test_settings_are_those_of_recommend(served, job, tmp_path, capsys):
    out = tmp_path / "out.parquet"
    words = ["--actions", job.actions, "--robust-to", job.robust_to, "--guarantee", "0.55"]
    assert main(["recommend", job.model, job.people, *words, "--out", str(out)]) == 0
    manifest = f"{out}.yaml"
    assert main(["serve", "--settings", manifest, "--key", "applicant"]) == 0
    desk, _ = served[0]
    assert (desk.recourse.guarantee, desk.job.people) == (0.55, job.people)
    content = yaml.safe_load(Path(manifest).read_text())
    content["run"]["checksums"]["model"] = "0" * 64
    Path(manifest).write_text(yaml.safe_dump(content))
    assert "these files have changed since that run: model" in refused(
        capsys, "--settings", manifest
    )


def test_the_demo_needs_nothing(served, capsys):
    assert main(["serve", "--demo", "--guarantee", "0.7", "--robust-to", "p=1,radius=0.2"]) == 0
    desk, _ = served[0]
    assert (desk.recourse.guarantee, desk.recourse.robust_to.radius) == (0.7, 0.2)
    assert not Path(desk.job.model).exists()
    said = refused(capsys, "--demo", "--model", "m.skops", "--key", "name")
    assert "leave out --model, --key" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "also give --model and --actions, or --demo"),
        (["--guarantee", "0.4"], "the page looks for an approval"),
        (["--guarantee", "0.6", "--guarantee-points", "600"], "one of --guarantee and"),
        (["--points", "600"], "is not a scale such as"),
        (["--key", "applicant"], "--key names a column of --people"),
        (["--people", "nobody.csv"], "nobody.csv does not exist"),
        (["--reference", "nobody.csv"], "nobody.csv does not exist"),
        (["--robust-to", "p=0"], "p=0"),
        (["--guarantee", "1.5"], "1.5"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(served, job, capsys, words, said):
    given = options_of(job, "model", "actions") if words else []
    assert said in refused(capsys, *given, *words)
    assert not served


def test_a_price_is_refused(job, tmp_path, capsys):
    settings = tmp_path / "job.yaml"
    content = {"holdfast_job": 1, "model": job.model, "actions": job.actions, "cost_weight": 0.1}
    settings.write_text(yaml.safe_dump(content))
    assert "the page looks for an approval" in refused(capsys, "--settings", str(settings))


def test_a_missing_extra_is_said(monkeypatch, capsys):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert "pip install 'holdfast[serve]'" in refused(capsys, "--demo")


def test_it_answers_and_ends_in_order(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    tempfile.tempdir = None
    with serving(["--demo"], tmp_path) as address:
        written = list(tmp_path.glob("holdfast-*"))
        assert written
        with urlopen(f"{address}v1/model", timeout=60) as answer:
            assert json.load(answer)["guarantee"] == 0.5
        example = re.search(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)[1]
        with redirect_stdout(io.StringIO()) as told:
            exec(example.replace(SHOWN, address))
        assert "months" in told.getvalue()
        port = re.search(r":(\d+)/", address)[1]
        said = subprocess.run(
            [sys.executable, "-m", "holdfast", "serve", "--demo", "--no-browser", "--port", port],
            capture_output=True,
            text=True,
        )
        assert said.returncode == 2
        assert f"port {port}: address already in use" in said.stderr
    assert not list(tmp_path.glob("holdfast-*"))


def test_it_deletes_what_it_has_written_when_it_is_terminated(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [sys.executable, "-m", "holdfast", "serve", "--demo", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        server.stdout.readline()
        assert list(tmp_path.glob("holdfast-*"))
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 143
    assert not list(tmp_path.glob("holdfast-*"))
