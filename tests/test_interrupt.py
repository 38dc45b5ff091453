"""Ctrl-C ends a long batch soon, and says so; the rows that were done are thrown away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import holdfast
from holdfast import NormBall
from holdfast.machinery.threads import over_rows

BEGIN = """
import signal, sys, numpy as np, holdfast
from holdfast import NormBall
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)

def run(n, threads={threads}):
{call}

run(0)  # compiles
print("ready", flush=True)
try:
    run({n})
except KeyboardInterrupt:
    print("interrupted", flush=True)
else:
    print("finished", flush=True)
"""

# Each would take minutes, in one row or in many.
CALLS = {
    "many short rows": (
        1_000_000,
        """
        points = np.repeat(rng.normal(size=(1000, 28)), n // 1000, axis=0)
        holdfast.solve(
            points, rng.normal(size=28), -2.0, robust_to=NormBall(1.5, 0.3), cost_weight=0.05,
            loss="squared_error", n_jobs=threads
        )
        """,
    ),
    "many long rows": (
        100_000,
        """
        from holdfast.paper import Algorithm1
        slow = Algorithm1(max_steps=100_000, tolerance=0.0)
        holdfast.find_recourse(
            rng.normal(size=(n, 5)), (np.ones(5), -9.0), slow, robust_to=NormBall(1, 0.1),
            cost_weight=0.01, n_jobs=threads
        )
        """,
    ),
    "a row without an end": (
        1,
        """
        holdfast.find_recourse(
            rng.normal(size=(n, 5)), (np.ones(5), -9.0), "roar", robust_to=NormBall(1, 0.1),
            cost_weight=0.01, max_steps=10**12, tolerance=0.0, n_jobs=threads
        )
        """,
    ),
    "a search without an end": (
        1,
        """
        from holdfast.discrete import DiscreteProblem, solve_discrete
        d = 40
        weight = rng.integers(1000, 2000, size=d).astype(float)
        base = holdfast.problem.RecourseProblem.build(
            np.zeros((n, d)), weight + 500.0, -0.5 * float(np.sum(weight)) - 0.5,
            robust_to=NormBall(2, 0.0), feature_costs=weight, bounds=(np.zeros(d), np.ones(d))
        )
        nothing = np.empty((n, 0), dtype=int)
        problem = DiscreteProblem(base, np.ones((1, d)), np.zeros((1, d)), [], nothing, [])
        solve_discrete(
            problem, guarantee=0.5, max_nodes=10**12, tolerance=0.0, n_jobs=threads
        )
        """,
    ),
    "networks": (
        100_000,
        """
        import torch
        from holdfast.models.network import Network
        from holdfast.models.networks import worst_network
        torch.manual_seed(0)
        layers = [torch.nn.Linear(20, 200), torch.nn.ReLU(), torch.nn.Linear(200, 200),
            torch.nn.ReLU(), torch.nn.Linear(200, 1)]
        network, ball = Network(torch.nn.Sequential(*layers)), NormBall(np.inf, 0.1)
        worst_network(network, rng.normal(size=(max(n, 1), 20)), ball, n_jobs=threads, memory=1e6)
        """,
    ),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_is_heard(name, threads):
    n, call = CALLS[name]
    body = textwrap.indent(textwrap.dedent(call), "    ")
    code = BEGIN.format(call=body, n=n, threads=threads)
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ}
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=1.0)  # it is at work by now
        child.send_signal(signal.SIGINT)
        child.wait(timeout=15.0)
        assert child.stdout.read() == "interrupted\n"
    finally:
        child.kill()
        child.wait()


def test_an_error_in_one_thread_ends_the_others():
    done = []

    def kernel(own, begin, end):
        if begin == 0 < end:
            raise MemoryError("none left")
        if end > begin:
            time.sleep(0.05)
        done.extend(range(begin, end))

    stop = np.zeros(1, dtype=np.int8)
    with pytest.raises(MemoryError, match="none left"):
        over_rows(kernel, 10_000, 2, least_rows=1, stop=stop)
    assert stop[0] == 1
    assert len(done) < 5_000


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_every_row_is_handed_out_once(n, threads):
    rows = []
    over_rows(
        lambda own, begin, end: rows.extend(range(begin, end)), n, threads, least_rows=1, stop=None
    )
    assert sorted(rows) == list(range(n))


def test_pieces_and_threads_do_not_matter():
    rng = np.random.default_rng(1)
    points, coef = rng.normal(size=(3000, 4)), rng.normal(size=4)
    for p in (1, 1.5, np.inf):
        settings = {"robust_to": NormBall(p, 0.2), "cost_weight": 0.05}
        whole = holdfast.solve(points, coef, -1.0, n_jobs=1, **settings)
        many = holdfast.solve(points, coef, -1.0, n_jobs=5, **settings)
        part = holdfast.solve(points[1234:1240], coef, -1.0, **settings)
        for name in ("recourse_array", "price", "lower_bound", "multiplier"):
            one, two = getattr(whole, name), getattr(many, name)
            np.testing.assert_array_equal(one, two)
            np.testing.assert_array_equal(one[1234:1240], getattr(part, name))
