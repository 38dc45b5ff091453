"""Every command that README and docs show is run, in the order of its page."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from serving import SHOWN, serving

from holdfast.actions import ActionSet
from holdfast.cli import main
from holdfast.datasets import load_german

ROOT = Path(__file__).parent.parent
CLUSTER = ROOT / "docs" / "cluster.md"
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").glob("*.md")} - {CLUSTER})]
# What a page shows of other programs, or runs for a long time elsewhere in the tests.
ELSEWHERE = ("pip ", "pytest", "spark-submit", "holdfast reproduce", "python benchmarks/")
# Commands that are right to end with something that needs attention.
ATTENTION = {"holdfast letter", "holdfast audit"}


# Pages whose commands take long; what they do is tested elsewhere, piece by piece.
LONG = ("serve.md", "tool.md")


def commands_of(page: Path) -> list[str]:
    """Return the commands of a page, each in one line."""
    found = []
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(), flags=re.DOTALL):
        lines = block.replace("\\\n", " ").splitlines()
        for line in lines:
            parts = line.split("  #")[0].split(" && ")
            found += [part.strip() for part in parts if part.strip() and part[0] != "#"]
    return found


def is_ours(command: str) -> bool:
    setting_up = command.startswith(("python3 -m venv", ". .venv", "source "))
    return not setting_up and not command.startswith(ELSEWHERE)


def test_there_are_commands():
    assert sum(len(list(filter(is_ours, commands_of(page)))) for page in PAGES) > 12


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.slow] * (page.name in LONG))
        for page in PAGES
    ],
)
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    with contextlib.ExitStack() as stack:
        run_commands(page, tmp_path, capfd, stack)


def run_commands(page, tmp_path, capfd, stack):
    address = None
    for command in filter(is_ours, commands_of(page)):
        words = shlex.split(command)
        if words[:2] == ["holdfast", "serve"]:  # it answers until it is told to stop
            address = stack.enter_context(serving(words[2:], tmp_path))
        elif words[0] == "curl":
            here = [word.replace(SHOWN, address) for word in words]
            told = subprocess.run(here, check=True, capture_output=True, text=True).stdout
            assert json.loads(told)["people"][0]["ways"], told
        elif words[0] == "holdfast":
            code = main(words[1:])
            allowed = {0, 1} if " ".join(words[:2]) in ATTENTION else {0}
            assert code in allowed, f"{command}: {capfd.readouterr().err}"
        else:
            assert words[0] == "python", command
            subprocess.run([sys.executable, *words[1:]], check=True, cwd=tmp_path)


def test_the_edit_that_the_page_shows_keeps_people_from_what_nobody_should_do():
    page = (ROOT / "docs" / "tool.md").read_text()
    (edit,) = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    drafted = ActionSet.from_data(load_german().features[["savings_status"]])
    drafted.set("savings_status", **yaml.safe_load(edit))
    feature = drafted["savings_status"]
    assert set(feature.levels) - set(feature.allowed) == {"no known savings"}


def test_the_reproduction_takes_the_options_that_the_page_shows(monkeypatch):
    import holdfast.paper.reproduce as room

    seen = []
    monkeypatch.setattr(room, "reproduce", lambda order: seen.append(order) or 0)
    shown = [c for page in PAGES for c in commands_of(page) if c.startswith("holdfast reproduce")]
    assert shown
    for command in shown:
        assert main(shlex.split(command)[1:]) == 0
    assert len(seen) == len(shown)


def test_the_cluster_takes_the_options_that_the_page_shows(monkeypatch):
    """Its jobs are run in the tests of Spark; here, each command is read to its end."""
    from holdfast.engines import local, spark
    from holdfast.engines.earlier import Finished

    seen = []

    def run(job, **settings):
        seen.append(job)
        return Finished(job.out, Path(f"{job.out}.yaml"), 0, {}, False, {})

    monkeypatch.setattr(local, "run_job", run)
    monkeypatch.setattr(spark, "run_on_spark", run)
    shown = [c.partition("recommend")[2] for c in commands_of(CLUSTER) if " recommend " in c]
    for words in shown:
        assert main(["recommend", *shlex.split(words)]) == 0
    assert len(seen) == len(shown) == 3
    assert not any(job.missing() for job in seen)
