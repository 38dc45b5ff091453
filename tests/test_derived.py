"""Derived features: against every combination of raw values, tried by force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, OneHotEncoder, StandardScaler
from small_banks import least_price_of, set_around

from holdfast import ActionSet, NormBall, RobustRecourse, Status
from holdfast.actions import (
    AtMost,
    CategoryFeature,
    Follows,
    Linear,
    NumberFeature,
    Product,
    Ratio,
    check,
    pose_problem,
    raw_cost,
)
from holdfast.actions import joint as joint_module
from holdfast.actions.check import check_changes
from holdfast.models.encoding import Encoding

HOMES = ["own", "rent"]
NUMBERS = ["balance", "limit", "used", "age"]
BALANCES, LIMITS, AGES = np.arange(0.0, 901.0, 150.0), np.arange(200.0, 1001.0, 200.0), [30, 31, 32]


def table_of(rng: np.random.Generator, n: int = 120, derived: str = "ratio") -> pd.DataFrame:
    table = pd.DataFrame(
        {
            "balance": rng.integers(0, 7, size=n) * 150.0,
            "limit": rng.integers(1, 6, size=n) * 200.0,
            "age": rng.integers(30, 33, size=n),
            "home": rng.choice(HOMES, size=n),
        }
    )
    off = rng.random(n) < 0.2  # some stand between two steps
    table.loc[off, "balance"] = table.loc[off, "balance"] + 17.5
    ratio = table["balance"] / table["limit"]
    table["used"] = ratio if derived == "ratio" else table["balance"] * table["limit"]
    return table


def fitted(rng: np.random.Generator, table: pd.DataFrame, read: str):
    """Return a pipeline that reads all numbers, or not all, or what is derived in other ways."""
    spread = table[["balance", "limit", "used"]].std()
    score = table[["balance", "limit", "used"]] / spread @ [-0.5, 0.6, -1.2]
    wanted = score + (table["home"] == "own") + 0.5 * rng.normal(size=len(table))
    numbers = {"all": NUMBERS, "derived": ["used", "age"], "parents": ["balance", "limit"]}
    parts = [("n", StandardScaler(), numbers.get(read, ["balance", "age"]))]
    if read == "twice":
        parts += [("m", MinMaxScaler(), ["used"]), ("s", StandardScaler(), ["used"])]
    if read == "bins":
        bins = KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform")
        parts.append(("b", bins, ["used"]))
    columns = ColumnTransformer([*parts, ("c", OneHotEncoder(), ["home"])])
    pipeline = make_pipeline(columns, LogisticRegression())
    return pipeline.fit(table, wanted > wanted.median())


def actions_of(rng: np.random.Generator, derived: Ratio | Product) -> ActionSet:
    fee, far = float(rng.choice([0.0, 0.1])), rng.choice([None, 150, 150])
    most = float(rng.choice([0.8, 1.5])) if isinstance(derived, Ratio) else None
    return ActionSet(
        [
            NumberFeature(
                "balance", lower=0, upper=900, step=150, max_decrease=far, cost=2e-3, fixed_cost=fee
            ),
            NumberFeature("limit", lower=200, upper=1000, integer=True, step=200, cost=0.003),
            NumberFeature("used", upper=most),
            NumberFeature("age", direction="up", lower=30, upper=32, integer=True, cost=0.5),
            CategoryFeature("home", HOMES, cost=1.5),
        ],
        max_changes=rng.choice([None, 1, 2, 3]),
        derived=[derived],
    )


def every_row(person: pd.DataFrame, derived: Ratio | Product) -> pd.DataFrame:
    own = person.iloc[0]
    values = {
        "balance": [*BALANCES, own["balance"]],
        "limit": [*LIMITS, own["limit"]],
        "age": [*AGES, own["age"]],
        "home": HOMES,
    }
    rows = pd.DataFrame(list(itertools.product(*values.values())), columns=list(values))
    rows["used"] = derived.value({name: rows[name].to_numpy() for name in derived.parents})
    return pd.concat([person, rows[person.columns]], ignore_index=True)


def least_price(person, actions, pipeline, robust_to, goal) -> float:
    rows = every_row(person, actions.derived[0])
    return least_price_of(rows, person, actions, pipeline, robust_to, goal)


@pytest.mark.parametrize("goal", [{"guarantee": 0.75}, {"cost_weight": 0.1}])
@pytest.mark.parametrize("kind", ["1", "2", "inf", "ellipsoid", "list"])
def test_nothing_that_is_derived_rightly_is_cheaper(kind, goal):
    rng = np.random.default_rng([13, sum(map(ord, kind)), len(goal)])
    found = moved = both = 0
    reads = ["all", "derived", "parents", "twice", "bins", "all", "bins"]
    for turn, read in enumerate(reads):
        derived = Ratio("used", "balance", "limit")
        if turn >= 5:
            derived = Product("used", ("balance", "limit"))
        table = table_of(rng, derived="product" if turn >= 5 else "ratio")
        pipeline = fitted(rng, table, read)
        actions = actions_of(rng, derived)
        robust_to = set_around(rng, kind, pipeline[-1], 0.05, 0.2)
        people = table[pipeline.predict_proba(table)[:, 1] < 0.45].iloc[:4]
        ours = RobustRecourse(pipeline, actions=actions, robust_to=robust_to, **goal)
        result = ours.recommend(people)
        for label in people.index:
            person = people.loc[[label]]
            theirs = least_price(person, actions, pipeline, robust_to, goal)
            if math.isinf(theirs):
                assert result.status_of(label) is Status.INFEASIBLE
                continue
            way, *_ = result.ways(label)
            assert way.status.is_proven
            assert way.price == pytest.approx(theirs, rel=1e-9, abs=1e-12)
            after = result.after().loc[[label]]
            assert check(actions, person, after) == []
            assert way.cost == pytest.approx(raw_cost(actions, person, after), abs=1e-9)
            if not way.features.isdisjoint(derived.parents):
                moved += 1
                both += way.features >= set(derived.parents)
                value = {name: after[name].to_numpy() for name in derived.parents}
                assert after["used"].iloc[0] == derived.value(value)[0]  # to the last bit
            if "guarantee" in goal:
                assert pipeline.predict_proba(after)[0, 1] >= goal["guarantee"]
            found += 1
    assert found >= 10
    assert moved >= 4
    assert both >= (kind != "ellipsoid")


def person_and_question(seed: int = 5, **more):
    rng = np.random.default_rng(seed)
    table = table_of(rng)
    pipeline = fitted(rng, table, "all")
    actions = actions_of(rng, Ratio("used", "balance", "limit"))
    actions.max_changes = None
    people = table[pipeline.predict_proba(table)[:, 1] < 0.4]
    recourse = RobustRecourse(
        pipeline, actions=actions, robust_to=NormBall(2, 0.1), guarantee=0.6, **more
    )
    return people, recourse, actions, pipeline


LINKS = {
    "at most": AtMost("limit", "balance"),
    "follows": Follows("limit", of="balance", by=-4 / 3),
    "linear": Linear({"limit": 1, "balance": -0.5}, at_most=200),
    "of what is derived": Linear({"used": -1000, "limit": 1}, at_most=-200),
}


@pytest.mark.parametrize("name", LINKS)
def test_links_among_features_that_are_tried_together_hold(name):
    people, _, actions, pipeline = person_and_question()
    free = least_price(people.iloc[[0]], actions, pipeline, NormBall(2, 0.1), {"guarantee": 0.6})
    assert math.isfinite(free)
    actions.links = [LINKS[name]]
    recourse = RobustRecourse(pipeline, actions=actions, robust_to=NormBall(2, 0.1), guarantee=0.6)
    some = people.iloc[:12]
    result = recourse.recommend(some)
    dearer = 0
    for label in some.index:
        given = (some.loc[[label]], pipeline, NormBall(2, 0.1), {"guarantee": 0.6})
        theirs = least_price(given[0], actions, *given[1:])
        actions.links = []
        dearer += theirs > least_price(given[0], actions, *given[1:]) + 1e-9
        actions.links = [LINKS[name]]
        ours = result.ways(label)[0].price if result.ways(label) else math.inf
        assert ours == pytest.approx(theirs, rel=1e-9)
    assert dearer >= 2  # the link is not idle


def test_several_derived_features_may_have_parents_in_common():
    rng = np.random.default_rng(17)
    table = table_of(rng)
    table["paid"] = table["balance"] * table["age"]
    table["share"] = table["age"] / table["limit"]
    names = ["balance", "limit", "used", "age", "paid", "share"]
    score = (table[names] / table[names].std()) @ rng.normal(size=6)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    pipeline.fit(table[names], score > score.median())
    actions = actions_of(rng, Ratio("used", "balance", "limit"))
    features = [*(actions[name] for name in NUMBERS), NumberFeature("paid"), NumberFeature("share")]
    derived = [
        Ratio("used", "balance", "limit"),
        Product("paid", ("balance", "age")),
        Ratio("share", of="age", to="limit"),
    ]
    actions = ActionSet(features, max_changes=2, derived=derived)
    people = table[pipeline.predict_proba(table[names])[:, 1] < 0.45].iloc[:10].copy()
    people["used"] *= 1.0 + 1e-9  # as they have it, not as anybody would compute it
    robust_to, found = NormBall(1, 0.05), 0
    result = RobustRecourse(
        pipeline, actions=actions, robust_to=robust_to, guarantee=0.6
    ).recommend(people)
    for label in people.index:
        own = people.loc[[label]]
        values = [
            [*BALANCES, own["balance"].iloc[0]],
            [*LIMITS, own["limit"].iloc[0]],
            range(int(own["age"].iloc[0]), 33),
        ]
        rows = pd.DataFrame(list(itertools.product(*values)), columns=["balance", "limit", "age"])
        for each in derived:
            stays = (rows[list(each.parents)] == own[list(each.parents)].iloc[0]).all(axis=1)
            made = each.value({n: rows[n].to_numpy() for n in each.parents})
            rows[each.feature] = np.where(stays, own[each.feature].iloc[0], made)
        rows["home"] = own["home"].iloc[0]
        rows = pd.concat([own, rows[own.columns]], ignore_index=True)
        model = pipeline[-1]
        points = pipeline[:-1].transform(rows[names])
        fine = robust_to.worst_score(points, model.coef_, model.intercept_) >= math.log(1.5)
        fine[list(check_changes(actions, pd.concat([own] * len(rows)), rows))] = False
        costs = [raw_cost(actions, own, rows.iloc[[k]]) for k in np.flatnonzero(fine)]
        ways = result.ways(label)
        if not costs:
            assert result.status_of(label) is Status.INFEASIBLE
            continue
        found += 1
        assert ways[0].status.is_proven
        assert ways[0].cost == pytest.approx(min(costs), rel=1e-9, abs=1e-12)
        assert len(ways[0].features) <= 2
    assert found >= 4


def test_other_ways_leave_a_parent_alone():
    people, _, actions, pipeline = person_and_question()
    recourse = RobustRecourse(
        pipeline, actions=actions, robust_to=NormBall(2, 0.1), guarantee=0.6, n_options=3
    )
    result = recourse.recommend(people.iloc[:10])
    others = 0
    for label in people.index[:10]:
        person = people.loc[[label]]
        for way in result.ways(label)[1:]:
            assert way.held
            assert way.held.isdisjoint(way.features)
            held = ActionSet([actions[name] for name in actions], derived=list(actions.derived))
            for name in way.held:
                held[name].immutable = True
            theirs = least_price(person, held, pipeline, NormBall(2, 0.1), {"guarantee": 0.6})
            for name in way.held:
                held[name].immutable = False
            assert way.price == pytest.approx(theirs, rel=1e-9)
            others += not way.held.isdisjoint({"balance", "limit"})
    assert others >= 3


def test_a_person_is_the_same_in_any_batch_and_everything_can_be_said():
    people, recourse, *_ = person_and_question()
    some = people.iloc[:40]  # more than go into one batch
    together = recourse.recommend(some)
    for label in some.index[[0, 7, 33]]:
        alone = recourse.recommend(some.loc[[label]])
        ours, theirs = (each.to_frame().loc[[label]] for each in (together, alone))
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
        assert together.explain(label) == alone.explain(label)
        assert len(alone.frontier(label, n_points=5).cost) > 1
        if together.status_of(label) is Status.INFEASIBLE:
            assert isinstance(together.releases(label), list)
    said = " ".join(together.explain(label) for label in some.index)
    assert "balance from" in said or "limit from" in said
    assert "used from" not in said  # nobody changes it as such


def test_nothing_protected_is_named_where_nothing_helps():
    """Nor what is derived from it: not even as something that was not tried."""
    people, recourse, actions, _ = person_and_question()
    hopeless = recourse.with_settings(guarantee=1.0 - 1e-9)
    first, more = ("age", "home"), ("limit",)
    for protected, named in (first, {"balance", "limit", "used"}), (more, {"balance"}):
        for name in protected:
            actions[name].protected = True
        result = hopeless.recommend(people.iloc[:4])
        for label in people.index[:4]:
            assert result.status_of(label) is Status.INFEASIBLE
            said = result.explain(label)
            words = said.partition("those on ")[2].partition(" were not tried")[0]
            assert set(words.replace(" and ", ", ").split(", ")) == named, said


def test_who_cannot_be_used_is_told_why(monkeypatch):
    people, recourse, actions, _ = person_and_question()
    some = people.iloc[:4].copy()
    some["used"] = some["used"] * [1.0, 1.0 + 1e-8, 1.01, 1.0]
    some.iloc[3, some.columns.get_loc("limit")] = 0.0
    result = recourse.recommend(some)
    first, second, third, fourth = some.index
    assert result.why_refused(first) is None
    assert result.why_refused(second) is None
    assert "but balance / limit is" in result.why_refused(third)
    assert "used = " in result.why_refused(fourth)

    monkeypatch.setattr(joint_module, "MOST_COMBINATIONS", 30)
    why = recourse.recommend(people.iloc[:1]).why_refused(people.index[0])
    assert "combinations, from which used is derived, but at most 30 can be tried; give " in why
    for part in why.split("; give ")[1].removesuffix(", at least").split(" and "):
        name, step = part.split(" a step of ")
        actions.set(name, step=float(step))
    again = RobustRecourse(
        recourse.model, actions=actions, robust_to=NormBall(2, 0.1), guarantee=0.6
    )
    assert again.recommend(people.iloc[:1]).why_refused(people.index[0]) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.set("balance", step=None), "balance: used is derived from it, .* a step"),
        (lambda a: a.set("limit", upper=None), "limit: used is derived from it, .* an upper bound"),
        (lambda a: a.links.append(AtMost("age", "limit")), "'limit' is tried together"),
    ],
)
def test_what_cannot_be_listed_is_refused(change, message):
    people, _, actions, pipeline = person_and_question()
    change(actions)
    recourse = RobustRecourse(pipeline, actions=actions, robust_to=NormBall(2, 0.1), guarantee=0.6)
    with pytest.raises(ValueError, match=message):
        recourse.recommend(people.iloc[:1])


def test_derived_features_are_checked_when_they_come_in():
    actions = actions_of(np.random.default_rng(0), Ratio("used", "balance", "limit"))
    for wrong, message in [
        (Ratio("used", "age", "limit"), "'used' is already derived"),
        (Ratio("age", "used", "limit"), "a derived feature cannot be used to derive another"),
        (Ratio("limit", "age", "balance"), "a derived feature cannot be used to derive another"),
        (Ratio("agee", "balance", "limit"), "did you mean 'age'"),
        (Product("age", ("balance", "home")), "'home' is not a number"),
        (AtMost("age", "used"), "is not a derived feature"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            actions.derived.append(wrong)
    with pytest.raises(ValueError, match="used: it must be able to change"):
        actions["used"].immutable = True
    actions.derived[0] = Product("used", ("balance", "limit"))  # in place of the other
    actions.derived = []
    actions["used"].protected = True
    with pytest.raises(ValueError, match="'used' may not change, but it changes with"):
        actions.derived = [Ratio("used", "balance", "limit")]
    for wrong in (lambda: Ratio("a", "a", "b"), lambda: Product("a", ("b", "b"))):
        with pytest.raises(ValueError, match="use three different features"):
            wrong()


def test_the_checker_knows_what_is_derived():
    actions = actions_of(np.random.default_rng(0), Ratio("used", "balance", "limit"))
    actions.max_changes = 1
    actions["used"].upper = 0.8
    actions["balance"].max_decrease = None
    person = {"balance": 600.0, "limit": 1000.0, "used": 0.6, "age": 30, "home": "own"}

    def say(**changes):
        return check(actions, person, {**person, **changes})

    assert say(balance=300.0, used=0.3) == []
    assert raw_cost(actions, person, {**person, "balance": 300.0, "used": 0.3}) == pytest.approx(
        0.6 + actions["balance"].fixed_cost
    )
    assert say(balance=300.0) == ["used = 0.6, but balance / limit is 0.3"]
    assert say(used=0.5) == ["used changes, but balance and limit do not"]
    assert say(balance=900.0, used=0.9) == ["used = 0.9 is above 0.8, its upper bound"]
    assert say(balance=300.0, limit=800.0, used=0.375) == [
        "2 features change ('balance', 'limit'); at most 1 may"
    ]


def test_nothing_changes_where_the_pipeline_reads_none_of_them():
    rng = np.random.default_rng(3)
    table = table_of(rng)
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(), ["home"])]
    )
    pipeline = make_pipeline(columns, LogisticRegression())
    pipeline.fit(table, (table["home"] == "own") & (table["age"] > 30))
    actions = actions_of(rng, Ratio("used", "balance", "limit"))
    posed = pose_problem(table, Encoding.of(pipeline), actions, robust_to=NormBall(2, 0.1))
    assert set(posed.fixed) == {"balance", "limit", "used"}
    assert posed.joints == []
