"""Kernels that are compiled in a process of their own, and called by their address."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import holdfast
from holdfast.machinery.apart import Apart, Packing, packer
from holdfast.machinery.threads import thread_count
from holdfast.machinery.whole import Kernel

MODULE = """
import numpy as np
from holdfast.machinery.apart import Apart, Packing, packer
from holdfast.machinery.compile import viewing_kernel as kernel

PACKING = Packing(lambda: (np.zeros(2), 1.0))
pack, unpack = packer(PACKING), PACKING.unpack

@kernel
def shifted(packed):
    values, shift = unpack(packed)
    return values[0] + shift, values[1] - shift

SHIFTED = Apart(shifted, "SHIFTED", floats=2)
call = SHIFTED.call

@kernel
def caller(address, values, shift):
    return call(address, pack(values, shift))
"""
CODE = """
import os, sys
import numpy as np
import tiny
sys.executable = os.environ.get("TINY_PYTHON", sys.executable)
told = []
address = tiny.SHIFTED.address(lambda: told.append("meanwhile"))
assert tiny.SHIFTED.address(lambda: told.append("again")) == address
print(tiny.caller(address, np.array([1.0, 5.0]), 0.5))
print(told, sum(tiny.shifted.stats.cache_misses.values()))
"""


def run(folder: Path, cache: Path, **environment: str) -> list[str]:
    """Return the answer of a kernel by its address, and how it was compiled."""
    (folder / "tiny.py").write_text(MODULE)
    kept = {k: v for k, v in os.environ.items() if k not in ("HOLDFAST_QUIET", "XDG_CACHE_HOME")}
    paths = os.pathsep.join([str(folder), str(Path(holdfast.__file__).parents[1])])
    settings = {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(cache), "HOLDFAST_QUIET": "1"}
    return subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        check=True,
        env={**kept, **settings, **environment},
    ).stdout.splitlines()


@pytest.mark.skipif(thread_count(-1) < 2, reason="there is no other processor")
def test_another_process_compiles_it_meanwhile(tmp_path):
    cache = tmp_path / "kernels"
    assert run(tmp_path, cache) == ["(1.5, 4.5)", "['meanwhile'] 0"]
    assert run(tmp_path, cache) == ["(1.5, 4.5)", "[] 0"]  # nothing is left to do


@pytest.mark.parametrize("python", ["/nowhere/python", "/nowhere/program", ""])
def test_without_another_process_it_is_compiled_here(tmp_path, python):
    said = run(tmp_path, tmp_path / "kernels", TINY_PYTHON=python)
    assert said == ["(1.5, 4.5)", "['meanwhile'] 1"]


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such scripts")
def test_a_process_that_fails_leaves_the_work_to_this_one(tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    said = run(tmp_path, tmp_path / "kernels", TINY_PYTHON=str(broken))
    assert said == ["(1.5, 4.5)", "['meanwhile'] 1"]


def as_kernel(function):
    """A kernel that is kept nowhere."""
    return Kernel(function, targetoptions={"nopython": True, "nogil": True, "_nrt": False})


def test_other_types_than_those_packed_are_refused():
    packing = Packing(lambda: (np.zeros(2), 1.0))
    pack = packer(packing)

    @as_kernel
    def caller(values, shift):
        return pack(values, shift)

    with pytest.raises(numba.TypingError, match="packed are"):
        caller(np.zeros(2, dtype=np.int64), 1.0)


def test_errors_pass_through():
    packing = Packing(lambda: (1.0,))
    pack, unpack = packer(packing), packing.unpack

    @as_kernel
    def picky(packed):
        (value,) = unpack(packed)
        if value < 0.0:
            raise ValueError("below 0")
        return (value,)

    apart = Apart(picky, "apart", floats=1)
    call = apart.call

    @as_kernel
    def caller(address, value):
        return call(address, pack(value))

    apart.compile()
    address = apart.address(lambda: None)
    assert caller(address, 2.0) == (2.0,)
    with pytest.raises(ValueError, match="below 0"):
        caller(address, -1.0)
