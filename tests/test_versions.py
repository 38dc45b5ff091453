"""The versions that pyproject.toml declares are those that `.ci/versions` installs and tries."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SCRIPT = (ROOT / ".ci" / "versions").read_text()


def declared() -> dict[str, str]:
    """Return the lower bound of everything that an installation with `[test]` brings."""
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"]]
    for extra in ("networks", "plots", "reproduce", "serve", "test"):
        wanted += [line for line in extras[extra] if not line.startswith("holdfast[")]
    return dict(
        re.fullmatch(r"([\w-]+)[>=]=([\d.]+)(?:,<[\d.]+)?", line).groups() for line in wanted
    )


def test_the_oldest_versions_tried_are_the_lower_bounds():
    lines = (ROOT / "tests" / "oldest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    bounds = declared()
    assert pinned.keys() == bounds.keys()
    for name, bound in bounds.items():
        assert f"{pinned[name]}.".startswith(f"{bound}."), name


def test_the_pythons_declared_reach_from_the_oldest_to_the_newest_tried():
    oldest, newest = re.findall(r"python=python3\.(\d+)", SCRIPT)
    assert PROJECT["requires-python"] == f">=3.{oldest},<3.{int(newest) + 1}"
    named = re.findall(r":: Python :: 3\.(\d+)", " ".join(PROJECT["classifiers"]))
    assert [int(minor) for minor in named] == list(range(int(oldest), int(newest) + 1))


def test_contributors_are_told_the_command():
    assert ".ci/versions oldest" in (ROOT / "CONTRIBUTING.md").read_text()
