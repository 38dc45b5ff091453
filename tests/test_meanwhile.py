"""While the solvers compile, people are answered all the same, and with the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest

import holdfast
from holdfast.demo.people import CATEGORICAL, NUMERIC, credit_model, possible_actions
from holdfast.machinery.compile import kernel
from holdfast.machinery.meanwhile import Meanwhile, meanwhile
from holdfast.machinery.threads import limited, over_rows

ASK = """
import json, sys
from holdfast.machinery.meanwhile import meanwhile
from tests.test_meanwhile import advise

meanwhile.begin()
answers = advise({name!r})
print(json.dumps([meanwhile.is_compiling, answers]))
"""
SETS = {
    "ball": lambda model, table: holdfast.NormBall(p=1, radius=0.3),
    "ellipsoid": lambda model, table: holdfast.sets.fisher(model, table, radius=1.25),
}


def advise(name: str) -> list[list[str]]:
    """Advise a few people, and one who cannot be helped; floats as their bits."""
    data = holdfast.datasets.load_german()
    table = data.features[NUMERIC + CATEGORICAL]
    model, actions = credit_model(table, data.approved), possible_actions(table, data.units)
    denied = table[model.predict_proba(table)[:, 1] < 0.5].iloc[[0, 1, 2]]
    told = []
    for guarantee in (0.5, 0.999):
        recourse = holdfast.RobustRecourse(
            model,
            robust_to=SETS[name](model, table),
            actions=actions,
            guarantee=guarantee,
            n_options=2,
        )
        frame = recourse.recommend(denied).to_frame()
        told += [
            [float.hex(v) if isinstance(v, float) else str(v) for v in row]
            for row in frame.to_numpy().tolist()
        ]
    return told


@pytest.mark.parametrize("name", list(SETS))
def test_people_are_answered_before_the_solvers_are_compiled(name, tmp_path):
    """In a new process with no machine code, which ends before the compiler does."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = os.pathsep.join([root, *(place for place in sys.path if place)])
    settings = {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": places, "HOLDFAST_QUIET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ASK.format(name=name)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    was_compiling, answers = json.loads(done.stdout)
    assert was_compiling, "the answers were those of machine code"
    assert answers == advise(name)


@kernel
def halves(n):
    return 1.0 / n


def test_a_kernel_answers_as_python_and_then_as_machine_code():
    waiting = threading.Event()
    mine = Meanwhile()
    mine.later("something else", waiting.wait)  # the compiler is busy
    answer = mine.stand_in(halves, (holdfast_int(),))
    assert answer(4) == 0.25
    assert mine.is_compiling
    waiting.set()
    mine.wait()
    assert not mine.is_compiling
    assert halves.overloads  # by the thread of the compiler
    assert halves(4) == 0.25


def test_what_python_cannot_compute_waits_for_machine_code():
    mine = Meanwhile()
    assert mine.stand_in(halves, (holdfast_int(),))(0) == np.inf


def test_what_fails_to_compile_says_so():
    mine = Meanwhile()

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        mine.later("it", fail).result()
    mine.wait()
    assert not mine.is_compiling


def test_nothing_of_it_happens_unless_it_is_asked_for():
    assert not meanwhile.is_on
    assert not meanwhile.is_inside


def holdfast_int():
    from numba import typeof

    return typeof(1)


@kernel
def sleepless(own, stop, count, begin, end):
    while stop[0] == 0 and end > begin:
        count[0] += 1  # it may be the same memory: so that LLVM looks at stop each time


def test_a_single_row_that_takes_for_ever_is_given_up_in_time():
    stop, count = np.zeros(1, dtype=np.int8), np.zeros(1, dtype=np.int8)
    over_rows(sleepless, 0, 1, stop, count)  # compiled
    with limited(0.5), pytest.raises(TimeoutError, match="in time"):
        over_rows(sleepless, 1, 1, stop, count, stop=stop)
    assert stop[0] == 1


def test_a_limit_holds_for_all_that_is_called_within_it_and_no_longer():
    points = np.zeros((3, 2))
    robust = holdfast.NormBall(p=2, radius=0.1)

    def ask() -> pd.DataFrame:
        return holdfast.solve(points, np.ones(2), -1.0, robust_to=robust, guarantee=0.5).to_frame()

    free = ask()
    with limited(0.0), pytest.raises(TimeoutError):
        ask()
    with limited(1000.0):
        pd.testing.assert_frame_equal(ask(), free)
    pd.testing.assert_frame_equal(ask(), free)
