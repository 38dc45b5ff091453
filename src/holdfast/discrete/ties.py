"""Which of several equally cheap answers is given: none that one other level would better.

Costs of levels are often round numbers, so that many answers cost the same. Rounding would choose
among them, and a model that differs in its last digits would send people another way. Where one
change of a level is enough, what is given is the best of all that cost the same. Where several are,
where numbers change too, and where links are kept, an answer that differs in more than one level,
or in parts that are searched apart, may leave more room.
"""

from __future__ import annotations

from holdfast.discrete.layout import feature_of, load_levels
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.problem.model_set import copy_into, worst_score_of

_HAIR = 1e-9  # of a score: what differs by less is the same


@kernel
def settle_ties(layout, data, case, state, leaf):
    """Trade one level for another of the same cost as long as that raises the worst-case score.

    The answer in `leaf.best` reaches its target, and so does whatever it is traded for; as many
    features change as before.
    """
    numbers = layout.columns.size
    load_levels(layout, case.coef, data)  # the search may have left those of another model
    score = worst_score_of(leaf.best, case.coef, case.intercept, case.robust)
    for _ in range(2 * data.current.size):
        gives, takes, level, traded = best_trade(layout, data, case, state, leaf, score)
        if level < 0:
            return
        trade(layout, data, gives, takes, level, leaf.best)
        state.best[feature_of(numbers, gives)] = data.current[gives]
        state.best[feature_of(numbers, takes)] = level
        score = traded


@kernel
def best_trade(layout, data, case, state, leaf, score):
    """Return (group that goes home, group that leaves it, its level, score); level -1: none."""
    gives, takes, level, numbers = 0, 0, -1, layout.columns.size
    best = score + _HAIR * (1.0 + abs(score))
    for g in range(data.current.size):
        home, chosen = data.current[g], int(state.best[feature_of(numbers, g)])
        if chosen == home:
            continue
        start = layout.level_start[g]
        cost = data.level_cost[start + chosen]
        back, at_most = return_home(data, case, start + chosen, start + home)
        for h in range(data.current.size):
            now, start = int(state.best[feature_of(numbers, h)]), layout.level_start[h]
            if h != g and now != data.current[h]:
                continue
            stays = start + data.current[h]
            for k in range(start, layout.level_start[h + 1]):
                if data.level_cost[k] != cost or k == stays or k == start + now:
                    continue
                rise = back + data.score[k] - data.score[stays]
                spread = at_most + case.robust.radius * (data.size[k] + data.size[stays])
                if score + rise + spread <= best:
                    continue  # it cannot be better
                copy_into(leaf.point, leaf.best)
                trade(layout, data, g, h, k - start, leaf.point)
                found = worst_score_of(leaf.point, case.coef, case.intercept, case.robust)
                if found > best:
                    best, gives, takes, level = found, g, h, k - start
    return gives, takes, level, best


@kernel
def return_home(data, case, chosen, home):
    """Return what going back to the own level does to today's score; and, at most, to its fall."""
    spread = case.robust.radius * (data.size[chosen] + data.size[home])
    return data.score[home] - data.score[chosen], spread


@kernel
def trade(layout, data, gives, takes, level, point):
    """Write into a point that one group goes home, and another one, or the same, to a level."""
    put_level(layout, data, gives, data.current[gives], point)
    put_level(layout, data, takes, level, point)


@kernel
def put_level(layout, data, group, level, point):
    """Write the values of a level into the columns of its group."""
    first = layout.group_start[group]
    value = layout.value_start[layout.level_start[group] + level]
    for i in range(layout.group_start[group + 1] - first):
        point[layout.group_columns[first + i]] = data.values[value + i]
