"""How kernels are compiled, where machine code is kept, and what is said about it meanwhile."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import holdfast
from holdfast.machinery import compile as compiling
from holdfast.machinery.compile import Notice, first_writable
from holdfast.machinery.kernel_cache import KernelCache
from holdfast.machinery.whole import Kernel

PACKAGE = Path(holdfast.__file__).parent
NOTICE = "Holdfast is compiling its solvers"
# A kernel that calls others in another file, whose change numba would not see
CODE = """
from holdfast.machinery import compile as compiling
from holdfast.problem.goal import PRICE, GoalNumbers
from holdfast.core.row import gain_at, stop_score
print(compiling.CACHE_DIRECTORY)
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
    path = copied / "problem" / "losses.py"
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


def test_machine_code_is_found_wherever_the_package_lies(copy, tmp_path):
    """Compiled once, it can be shipped to machines that have the environment elsewhere."""
    where, first, _ = run(copy, NUMBA_CACHE_DIR=str(tmp_path / "kernels"))
    elsewhere = tmp_path / "elsewhere" / "holdfast"
    shutil.copytree(copy, elsewhere)
    shutil.move(tmp_path / "kernels", tmp_path / "shipped")
    there, again, stderr = run(elsewhere, NUMBA_CACHE_DIR=str(tmp_path / "shipped"))
    assert NOTICE not in stderr
    assert again == first
    assert Path(there).name == Path(where).name


def test_machine_code_that_was_shipped_need_not_be_writable(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert compiling._shipped("kernels-1") is None
    monkeypatch.setenv("NUMBA_CACHE_DIR", "shipped")
    monkeypatch.chdir(tmp_path)
    assert compiling._shipped("kernels-1") is None
    kept = tmp_path / "shipped" / "kernels-1"
    (kept / "holdfast.core.batch").mkdir(parents=True)
    monkeypatch.setattr(Path, "mkdir", None)  # nothing is tried out
    assert compiling._shipped("kernels-1") == str(kept)
    assert compiling._shipped("kernels-2") is None


def test_processes_that_compile_at_once_do_not_take_each_other_s_code(tmp_path):
    """Both have seen an empty index; whatever is found afterwards is what was asked for."""

    def function(x):
        return x

    one, other = (KernelCache(function, str(tmp_path))._cache_file for _ in range(2))
    Path(one._cache_path).mkdir()
    seen = other._load_index()
    one.save(("float64", "a processor"), "code of one")
    other._load_index = lambda: dict(seen)
    other.save(("float64", "another processor"), "code of another")
    third = KernelCache(function, str(tmp_path))._cache_file
    assert third.load(("float64", "another processor")) == "code of another"
    assert third.load(("float64", "a processor")) in (None, "code of one")
    one.save(("float64", "a processor"), "code of one")
    assert third.load(("float64", "a processor")) == "code of one"
    assert third.load(("float64", "another processor")) == "code of another"


def test_what_cannot_be_kept_is_still_compiled(tmp_path):
    kernel = as_kernel(lambda x: x + 1)
    kernel._cache = KernelCache(kernel.py_func, str(tmp_path / "kept"))
    (tmp_path / "kept").write_text("in the way")
    assert kernel(1) == 2
    assert (tmp_path / "kept").is_file()


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


def as_kernel(function):
    """A kernel that is kept nowhere: it is compiled here and now."""
    return Kernel(function, targetoptions={"nopython": True, "nogil": True})


def test_a_kernel_is_the_same_from_python_and_from_other_kernels():
    @as_kernel
    def part(values, k):
        if k > values.size:
            raise ValueError("too many")
        return values[:k].sum(), np.zeros(k)

    @as_kernel
    def entry(values, k):
        total, zeros = part(values, k)
        again, _ = part(values, 1)  # a constant: no version of its own
        return total + again + zeros.size

    values = np.array([1.0, 2.0, 4.0])
    assert entry(values, 2) == 3.0 + 1.0 + 2
    assert part(values, 2)[0] == 3.0
    assert len(part.part.overloads) == 1
    with pytest.raises(ValueError, match="too many"):
        entry(values, 4)
    with pytest.raises(ValueError, match="too many"):
        part(values, 4)


def test_other_code_of_numba_shares_what_was_compiled_for_kernels():
    """Numba's own functions are compiled once for a process, whoever needs them first."""

    @as_kernel
    def ours(n):
        return np.full((n, 2), 3).max() + np.arange(n).mean()

    assert ours(3) == 4.0

    @numba.njit
    def theirs(n):
        return np.full((n, 2), 3).max() + np.arange(n).mean() + ours(n)

    assert theirs(3) == 8.0


def test_a_kernel_that_cannot_be_compiled_leaves_numba_as_it_was():
    codegen = numba.core.registry.cpu_target.target_context.codegen()
    before = codegen._library_class

    @as_kernel
    def wrong(x):
        return x.no_such_thing

    with pytest.raises(numba.TypingError):
        wrong(1.0)
    assert codegen._library_class is before


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def spoken(*modules: str) -> list[SimpleNamespace]:
    """What numba says when it compiles a function of each of these modules."""
    functions = [SimpleNamespace(py_func=SimpleNamespace(__module__=name)) for name in modules]
    return [SimpleNamespace(data={"dispatcher": function}) for function in functions]


@pytest.mark.parametrize(("stream", "is_shown"), [(Terminal, True), (io.StringIO, False)])
def test_how_far_it_is_is_shown_on_terminals_only(monkeypatch, stream, is_shown):
    monkeypatch.delenv("HOLDFAST_QUIET", raising=False)
    monkeypatch.setattr(sys, "stderr", stream())
    seconds = iter([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    monkeypatch.setattr(compiling, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    notice, events = Notice(), spoken("holdfast.a", "numba.b", "holdfast.c")
    for event in events:
        notice.on_start(event)
    for event in events[::-1]:
        notice.on_end(event)
    said = sys.stderr.getvalue()
    assert said.startswith(NOTICE)
    assert ("2 functions, 1 s ..." in said) == is_shown
    assert said.endswith("2 functions compiled in 3 s.\n")
    assert said.count("\n") == 2


def test_nobody_needs_to_listen(monkeypatch):
    monkeypatch.delenv("HOLDFAST_QUIET", raising=False)
    closed = Terminal()
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        notice, (event,) = Notice(), spoken("holdfast.a")
        notice.on_start(event)
        notice.on_end(event)
