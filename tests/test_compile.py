"""Where machine code is kept: under the state of all sources, wherever that is; and the notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.machinery.compile import first_writable

PACKAGE = Path(holdfast.__file__).parent
NOTICE = "Holdfast is compiling its solvers"
# A kernel that calls others in another file, whose change numba would not see
CODE = """
from holdfast import _compile
from holdfast.problem.goal import PRICE, GoalNumbers
from holdfast.core.row import gain_at, stop_score
print(_compile.CACHE_DIRECTORY)
print(stop_score(GoalNumbers(PRICE, 0, 0.5), 1.0), gain_at(GoalNumbers(PRICE, 0, 0.5), 1.0, 2.0))
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package in which nothing can be written next to the sources, root or not."""
    copied = tmp_path / "site" / "holdfast"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    (copied / "__pycache__").write_text("in the way")
    return copied


def run(copied: Path, **environment: str) -> tuple[str, str, str]:
    """Return the cache directory, what the kernels said, and what went to stderr."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "HOLDFAST_QUIET")}
    settings = {**kept, "PYTHONPATH": str(copied.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        check=True,
        env={**settings, **environment},
        cwd=copied.parent,
    )
    where, said = done.stdout.splitlines()
    return where, said, done.stderr


def change_a_callee(copied: Path) -> None:
    path = copied / "losses.py"
    before = "        return math.log1p(-s) - math.log(s)\n"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, "        return 42.0\n"))


def test_the_user_s_cache_knows_the_state_of_the_sources(copy, tmp_path):
    cache = tmp_path / "cache"
    where, said, _ = run(copy, XDG_CACHE_HOME=str(cache), HOME=str(tmp_path))
    assert Path(where).is_relative_to(cache if sys.platform == "linux" else tmp_path)
    assert list(Path(where).rglob("*.nbi"))
    change_a_callee(copy)
    after, changed, _ = run(copy, XDG_CACHE_HOME=str(cache), HOME=str(tmp_path))
    assert after != where
    assert changed.startswith("42.0 ")
    assert not said.startswith("42.0 ")


def test_without_any_place_to_write_it_still_works(copy, tmp_path):
    nowhere = tmp_path / "file"
    nowhere.write_text("no directory")
    settings = {"HOME": str(nowhere / "home"), "XDG_CACHE_HOME": str(nowhere / "cache")}
    settings |= {"LOCALAPPDATA": str(nowhere / "data")}
    where, said, stderr = run(copy, **settings)
    assert where == "None"
    assert said.startswith("0.0 1.859140914")
    assert "in every process" in stderr
    change_a_callee(copy)
    assert run(copy, **settings)[1].startswith("42.0 ")


def test_it_says_once_that_it_compiles_and_never_again(copy, tmp_path):
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    _, first, stderr = run(copy, **settings)
    assert stderr.count(NOTICE) == 1
    _, again, stderr = run(copy, **settings)
    assert NOTICE not in stderr
    assert again == first


def test_it_can_be_told_to_be_quiet(copy, tmp_path):
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "HOLDFAST_QUIET": "1"}
    assert NOTICE not in run(copy, **settings)[2]


def test_the_first_place_that_can_be_written(tmp_path):
    (tmp_path / "file").write_text("no directory")
    blocked = [tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")]
    assert first_writable(blocked, "kernels-1") is None
    found = first_writable([*blocked, tmp_path / "a" / "b", tmp_path / "c"], "kernels-1")
    assert found == str(tmp_path / "a" / "b" / "kernels-1")
    assert not (tmp_path / "c").exists()
    assert list((tmp_path / "a" / "b" / "kernels-1").iterdir()) == []
