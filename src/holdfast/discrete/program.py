"""A discrete problem of one row as a mixed-integer linear program, for links between columns.

Every column is an affine form in the variables: a group's columns in the binaries of its levels, a
number's in how far it goes up and down, with a whole multiple of its step where it has one.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from holdfast.discrete.lattice import MOST_STEPS_OUT, last_multiple, nearest_multiple
from holdfast.discrete.parts import Link, keeps_all
from holdfast.discrete.problem import DiscreteProblem
from holdfast.machinery.numbers import Floats
from holdfast.machinery.threads import check_time, time_left

_SHARP = {
    "mip_feasibility_tolerance": 1e-9,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "mip_abs_gap": 0.0,
    "mip_rel_gap": 0.0,
    "output_flag": False,
    # nobody can interrupt it: a program that is not solved by then stays unproven. In nodes,
    # not in seconds, so that the answer is the same on any machine
    "node_limit": 20_000,
}
# Entries that HiGHS keeps apart from nothing, and ratios that its arithmetic bears.
_LEAST_EVEN, _MOST_EVEN = 1e-8, 1e12
_STOPPED, _INFEASIBLE = 1, 2  # scipy's words
# HiGHS keeps rows to an absolute tolerance; those of the score are multiplied by this.
SCORE_UNIT = 1024.0


def _last_within(high: float, step: float, anchor: float) -> float:
    """Return `last_multiple`; inf where there is no end."""
    return high if math.isinf(high) else float(last_multiple(high, step, anchor))


_SILENCE = threading.Lock()  # what is done to a file descriptor is done to all threads


@contextmanager
def _silenced() -> Iterator[None]:
    """Send what C code prints to nowhere: HiGHS has lines that no option of it turns off."""
    with _SILENCE, warnings.catch_warnings(), ExitStack() as stack:
        # scipy hands options that it does not know on to HiGHS, and warns of it
        warnings.simplefilter("ignore")
        with suppress(OSError, AttributeError, ValueError):  # there may be no such output
            sys.stdout.flush()
            kept = os.dup(1)
            stack.callback(os.close, kept)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            stack.callback(os.close, nowhere)
            os.dup2(nowhere, 1)
            stack.callback(os.dup2, kept, 1)
            stack.callback(_flush)  # what is still in C's buffer belongs there too
        yield


def _flush() -> None:
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)


class Program:
    """Variables, constraints and costs; `forms @ variables + constant` is the encoded point.

    How far a number goes up or down is measured in the score that it can bring. Where a number can
    be touched or not, it goes no further than a cost of `cap`; `is_cut` says whether that cut
    anything off. With `relaxed`, nothing is whole and nothing is cut: what is infeasible then is
    infeasible.
    """

    def __init__(self, problem: DiscreteProblem, cap: float, relaxed: bool = False) -> None:
        self.problem, self.base = problem, problem.base
        self.cap, self.relaxed, self.is_cut, self.gave_up = cap, relaxed, False, False
        self.cost: list[float] = []
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.whole: list[int] = []
        self.constraints: list[tuple[dict[int, float], float, float]] = []
        self.links: list[Link] = []
        # of each column: the variables that it depends on, and how; with `constant`, all of it
        self.terms: list[dict[int, float]] = [{} for _ in range(self.base.n_features)]
        self.constant = self.base.X[0].copy()
        self.taken = [self._add_group(g) for g in range(len(problem.groups))]
        grouped = set(problem.grouped_columns.tolist())
        self.numbers = [j for j in range(self.base.n_features) if j not in grouped]
        self.units = self._units()
        self.moves = {j: self._add_number(j) for j in self.numbers}
        self._limit_changes()
        self.score = self.variable(lower=-math.inf)
        self.forms = self._forms()

    def variable(
        self, cost: float = 0.0, lower: float = 0.0, upper: float = math.inf, whole: int = 0
    ) -> int:
        """Add a variable; return its position."""
        self.cost.append(cost)
        self.lower.append(lower)
        self.upper.append(upper)
        self.whole.append(0 if self.relaxed else whole)
        return len(self.cost) - 1

    def _units(self) -> Floats:
        """Return how far each number goes for about a unit of score: a power of two.

        HiGHS drops what is small beside 1, whatever it means.
        """
        robust, base = self.base.robust_to, self.base
        felt = np.abs(base.coef[0]) + robust.radius * robust.feature_scale(base.n_features)
        _, powers = np.frexp(np.where(felt > 0.0, felt, 1.0))
        return np.asarray(np.ldexp(1.0, -powers))

    def _add_group(self, g: int) -> list[int]:
        group, costs = self.problem.groups[g], self.problem.level_costs[g][0]
        taken = [
            self.variable(cost if cost < np.inf else 0.0, 0.0, float(cost < np.inf), 1)
            for cost in costs.tolist()
        ]
        self.constraints.append((dict.fromkeys(taken, 1.0), 1.0, 1.0))
        for c, j in enumerate(group.columns):
            self.terms[j] = dict(zip(taken, group.by_row[0, :, c].tolist(), strict=True))
            self.constant[j] = 0.0
        return taken

    def _add_number(self, j: int) -> tuple[int, int, int, int]:
        """Return the variables (up, down, whole multiple, whether it moved); -1: it has none."""
        x0, unit_cost = float(self.base.X[0, j]), float(self.base.feature_costs[0, j])
        step, anchor = float(self.problem.step[0, j]), float(self.problem.anchor[0, j])
        low, high = float(self.base.lower[0, j]), float(self.base.upper[0, j])
        home = nearest_multiple(x0, step, anchor) if step > 0.0 else 0
        is_off = step > 0.0 and anchor + step * home != x0
        fixed_cost = float(self.problem.all_fixed_costs[0, j])
        is_counted = is_off or fixed_cost > 0.0 or self.problem.max_changes is not None
        if is_counted and not self.relaxed:
            low, high = self._cut(x0, low, high, unit_cost, step)
        unit = float(self.units[j])
        up = self.variable(unit_cost * unit, 0.0, (high - x0) / unit)
        down = self.variable(unit_cost * unit, 0.0, (x0 - low) / unit)
        self.terms[j] = {up: unit, down: -unit}
        if self.relaxed:
            return up, down, -1, -1
        moved, k = -1, -1
        if is_counted:
            moved = self.variable(fixed_cost, upper=1.0, whole=1)
            self.constraints.append(({up: 1.0, moved: (x0 - high) / unit}, -math.inf, 0.0))
            self.constraints.append(({down: 1.0, moved: (low - x0) / unit}, -math.inf, 0.0))
        if step > 0.0:
            first = -_last_within(-low, step, -anchor) - home
            last = _last_within(high, step, anchor) - home
            k = self.variable(0.0, min(first, 0.0), max(last, 0.0), 1)
            row = {up: 1.0, down: -1.0, k: -step / unit}
            if is_off:
                # x = x0 + moved * (nearest lattice point - x0) + step * k; k = 0 unless moved
                row[moved] = (x0 - (anchor + step * home)) / unit
                self.constraints.append(({k: 1.0, moved: -last}, -math.inf, 0.0))
                self.constraints.append(({k: 1.0, moved: -first}, 0.0, math.inf))
                if first > last:  # no lattice point within the bounds
                    self.upper[moved] = 0.0
            self.constraints.append((row, 0.0, 0.0))
        return up, down, k, moved

    def _cut(
        self, x0: float, low: float, high: float, unit_cost: float, step: float
    ) -> tuple[float, float]:
        """Return how far a number may go for the cap; note whether that is less than allowed."""
        reach = self.cap / unit_cost
        if step > 0.0:
            reach = min(reach, MOST_STEPS_OUT * step)
        self.is_cut = self.is_cut or low < x0 - reach or high > x0 + reach
        return max(low, x0 - reach), min(high, x0 + reach)

    def _limit_changes(self) -> None:
        if self.problem.max_changes is None or self.relaxed:
            return
        changes = {moved: 1.0 for *_, moved in self.moves.values() if moved >= 0}
        for g, taken in enumerate(self.taken):
            home = int(self.problem.current[0, g])
            changes.update({v: 1.0 for k, v in enumerate(taken) if k != home})
        self.constraints.append((changes, 0.0, float(self.problem.max_changes)))

    def _forms(self) -> Floats:
        forms = np.zeros((len(self.terms), len(self.cost)))
        for j, terms in enumerate(self.terms):
            for k, value in terms.items():
                forms[j, k] = value
        return forms

    def keeps_links(self, x: Floats) -> bool:
        """Whether a point keeps the links, computed from the point alone."""
        return keeps_all(self.links, x)

    def link(self, coef: Floats, lower: float, upper: float, score: float = 0.0) -> None:
        """Add ``lower <= coef @ x + score * (score variable) <= upper``."""
        if lower == -math.inf and upper == math.inf:
            return  # it links nothing
        shift = float(coef @ self.constant)
        entries = coef @ self.forms
        unit = SCORE_UNIT
        if score == 0.0:  # rows in which the largest entry is about 1
            self.links.append(Link(coef, lower, upper))
            unit = math.ldexp(1.0, -math.frexp(float(np.abs(entries).max(initial=0.0)))[1])
        row = {k: unit * float(v) for k, v in enumerate(entries) if v != 0.0}
        if score != 0.0:
            row[self.score] = unit * score
        self.constraints.append((row, unit * (lower - shift), unit * (upper - shift)))

    def matrix(self) -> tuple[Floats, Floats, Floats]:
        """Return the constraints as (matrix, lower, upper)."""
        matrix = np.zeros((len(self.constraints), len(self.cost)))
        for i, (row, _, _) in enumerate(self.constraints):
            for k, value in row.items():
                matrix[i, k] += value
        lower = np.array([low for _, low, _ in self.constraints])
        return matrix, lower, np.array([high for _, _, high in self.constraints])

    def solve(self) -> tuple[Floats | None, float]:
        """Solve the whole program: (variables, lower bound).

        Without a point the bound is inf where the program is infeasible, and -inf where HiGHS
        gave up.
        """
        return self._ask(np.array(self.lower), np.array(self.upper), np.array(self.whole))

    def solve_rest(self, fixed: Floats) -> tuple[Floats | None, float]:
        """Solve for the continuous variables alone, with the whole ones as in `fixed`, rounded."""
        whole = np.array(self.whole) == 1
        lower = np.where(whole, np.round(fixed), self.lower)
        upper = np.where(whole, np.round(fixed), self.upper)
        return self._ask(lower, upper, np.zeros(len(whole)))

    def _ask(self, lower: Floats, upper: Floats, whole: Any) -> tuple[Floats | None, float]:
        matrix, low, high = self.matrix()
        # HiGHS was seen to prove too much of small programs, with presolve and without it, though
        # not of the same ones: believed is what both say
        ways = (False, True) if np.any(whole) else (False,)
        results = []
        for presolve in ways:
            options: dict[str, Any] = {**_SHARP, "presolve": presolve}
            if math.isfinite(left := time_left()):
                options["time_limit"] = max(left, 0.0)
            with _silenced():
                result = milp(
                    self.cost,
                    constraints=LinearConstraint(matrix, low, high),
                    bounds=Bounds(lower, upper),
                    integrality=whole,
                    options=cast(Any, options),
                )
            check_time()
            results.append(result)
            self.gave_up |= result.status == _STOPPED
        sure = self._is_even(matrix, lower, upper)
        there = [each for each in results if each.x is not None and np.isfinite(each.x).all()]
        if not there:
            empty = all(each.status == _INFEASIBLE for each in results)
            return None, math.inf if empty and sure else -math.inf
        best = min(there, key=lambda each: float(each.fun))
        bounds = [each.mip_dual_bound for each in there if each.mip_dual_bound is not None]
        return best.x, float(min([*bounds, best.fun])) if sure else -math.inf

    def can_be_believed(self) -> bool:
        """Whether what HiGHS says of the program proves anything."""
        matrix, _, _ = self.matrix()
        return self._is_even(matrix, np.array(self.lower), np.array(self.upper))

    def _is_even(self, matrix: Floats, lower: Floats, upper: Floats) -> bool:
        """Whether HiGHS can be believed: it drops entries that are small, and keeps to a tolerance.

        Nothing is proven by a program whose numbers are further apart than that.
        """
        entries, ranges = np.abs(matrix[matrix != 0.0]), upper - lower
        ranges = ranges[np.isfinite(ranges) & (ranges > 0.0)]
        costs = np.abs([cost for cost in self.cost if cost != 0.0])
        for values in (entries, ranges, costs):
            if values.size and values.max() > _MOST_EVEN * values.min():
                return False
        return all(values.min(initial=1.0) >= _LEAST_EVEN for values in (entries, ranges))

    def point(self, variables: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """Return the encoded point, discrete values exactly, and the level of each group."""
        x, base = self.base.X[0].copy(), self.base
        levels = [int(np.argmax(variables[taken])) for taken in self.taken]
        for group, k in zip(self.problem.groups, levels, strict=True):
            x[group.columns] = group.by_row[0, k]
        for j, (up, down, k, moved) in self.moves.items():
            if moved >= 0 and round(float(variables[moved])) == 0:
                continue
            if k >= 0:
                step, anchor = self.problem.step[0, j], self.problem.anchor[0, j]
                home = nearest_multiple(x[j], step, anchor)
                x[j] = anchor + step * (home + round(float(variables[k])))
            else:
                x[j] += (variables[up] - variables[down]) * self.units[j]
                x[j] = min(max(x[j], base.lower[0, j]), base.upper[0, j])
        return x, np.array(levels, dtype=np.int64)
