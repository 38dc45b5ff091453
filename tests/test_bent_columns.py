"""What was read of each step is what the pipeline does, one column at a time."""

from __future__ import annotations

import contextlib
import functools
import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from holdfast import ActionSet, NormBall, RobustRecourse
from holdfast.models.encoding import ColumnRule, Curve, Encoding, Number
from holdfast.models.encoding.columns import Affine, Bent, Coded, Flag
from holdfast.models.encoding.features import gather
from holdfast.models.encoding.steps import walk

N = 120
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # logarithms of negative numbers
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # bins that are too narrow
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of optbinning, by pandas
]


def draw(seed):
    """Draw a table of whole numbers, counts, amounts and texts; no value is missing."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-2, 5)
    homes = np.array(["own", "rent", "free", "other"])[: rng.integers(2, 5)]
    return pd.DataFrame(
        {
            "amount": rng.lognormal(0.0, 1.0, N) * scale,
            "balance": rng.normal(rng.normal() * 5.0, 3.0, N),
            "debts": rng.poisson(0.7, N),
            "home": rng.choice(homes, N),
            "job": rng.choice(
                ["clerk", "cook", "none", "smith", "vet"], N, p=[5 / 9, *[1 / 9] * 4]
            ),
            "grade": rng.integers(0, 4, N),
        }
    ).astype({"home": object, "job": object})


def with_holes(table, seed):
    rng = np.random.default_rng(seed + 1)
    whole = table.select_dtypes("integer").columns
    table = table.astype(dict.fromkeys(whole, float))
    for name in table:
        table.loc[rng.random(N) < 0.15, name] = np.nan
    return table


def transform(steps, table):
    made = table.copy()
    for step in steps:
        made = step.transform(made)
    made = made.toarray() if hasattr(made, "toarray") else made
    return np.asarray(made, dtype=np.float64)


def fit(steps, table):
    approved = np.arange(len(table)) % 3 > 0
    pipeline = make_pipeline(*(clone(step) for step in steps))
    pipeline.fit(table, approved)
    return [step for _, step in pipeline.steps], list(table)


def read(steps, names):
    columns = [Affine(j, "the table itself") for j in range(len(names))]
    for step in steps:
        columns = walk(step, columns, "step")
    return columns


def others_unchanged(steps, columns, table):
    """Whatever changes in one raw column, the columns of all others stay as they are."""
    before = transform(steps, table)
    assert before.shape[1] == len(columns)
    rng = np.random.default_rng(0)
    for j, name in enumerate(table):
        changed = table.assign(**{name: rng.permutation(table[name].to_numpy())})
        elsewhere = [k for k, column in enumerate(columns) if column.raw != j]
        after = transform(steps, changed)
        np.testing.assert_array_equal(after[:, elsewhere], before[:, elsewhere])


def like(table, name, values):
    """Return the first row again and again, with other values in one column."""
    rows = table.iloc[[0] * len(values)].reset_index(drop=True)
    is_text = table[name].dtype == object
    return rows.assign(**{name: pd.Series(values, dtype=object if is_text else None)})


def made_of(steps, table, name, k, values):
    """Return what becomes of single raw values in the k-th column; None: it is refused."""
    try:
        return transform(steps, like(table, name, values))[:, k].tolist()
    except (ValueError, KeyError):
        if len(values) == 1:
            return [None]
        return [made_of(steps, table, name, k, [value])[0] for value in values]


def check_affine(steps, column, table, name, k):
    values = table[name].dropna().tolist()
    read_as = dict(column.codes)
    told = [float(read_as.get(value, value)) for value in values]
    ours = column.shift + column.scale * np.array(told)
    size = np.abs(column.shift) + np.abs(column.scale * np.array(told)) + 1e-9
    theirs = np.array(made_of(steps, table, name, k, values))
    assert (np.abs(ours - theirs) <= 1e-9 * size).all()
    if column.fill is not None:
        return column.shift + column.scale * float(column.fill), ANY
    return None if column.refuses_missing else np.nan, ANY


def check_coded(steps, column, table, name, k):
    np.testing.assert_allclose(
        made_of(steps, table, name, k, list(column.levels)), column.values, rtol=1e-9, atol=1e-9
    )
    return column.missing, column.unknown


def check_flag(steps, column, table, name, k):
    values = table[name].dropna().tolist()
    assert made_of(steps, table, name, k, values) == pytest.approx([column.present] * len(values))
    return column.missing, column.present


def check_bent(steps, column, table, name, k):
    rng = np.random.default_rng(k)
    width = 1.0 + np.ptp(column.edges) if column.edges else 10.0
    marks = np.unique([*column.edges, *column.specials])
    ends = np.array([marks[0] - width, *marks, marks[-1] + width] if len(marks) else [0.0, 10.0])
    if column.is_flat:
        for low, high in itertools.pairwise(ends):
            room = 2e-9 * (1.0 + abs(low) + abs(high))
            if high - low > 2 * room:
                inside = np.append(rng.uniform(low + room, high - room, 20), [low + room])
                found = made_of(steps, table, name, k, [*inside, high - room])
                assert len(set(map(str, found))) == 1
    elif column.has_flat_tails:
        for edge, side in ((column.edges[0], -1.0), (column.edges[-1], 1.0)):
            values = [edge, *(edge + side * width * rng.random(20))]
            found = np.array(made_of(steps, table, name, k, values))
            np.testing.assert_allclose(found, found[0], rtol=1e-9, atol=1e-9)
    if column.is_monotone and not column.specials:
        for low, high in itertools.pairwise(ends):
            inside = np.sort(rng.uniform(low, high, 30))
            found = np.array(made_of(steps, table, name, k, inside.tolist()), dtype=np.float64)
            moves = np.diff(found[np.isfinite(found)])
            room = 1e-12 * (1.0 + np.abs(found[np.isfinite(found)]).max(initial=0.0))
            assert (moves >= -room).all() or (moves <= room).all()
    if column.takes_missing:
        filled = column.fill is not None
        return made_of(steps, table, name, k, [column.fill])[0] if filled else ANY, ANY
    return None if column.refuses_missing else np.nan, ANY


ANY = object()  # some number, which nobody has said
CHECKS = {Affine: check_affine, Coded: check_coded, Flag: check_flag, Bent: check_bent}


def check(steps, table):
    """Fit steps to a table, read them, and hold what was read against what they do."""
    steps, names = fit(steps, table)
    columns = read(steps, names)
    whole = table.dropna().head(60)
    others_unchanged(steps, columns, whole)
    check_columns(steps, columns, whole)
    gather(columns, names)
    return columns


def check_columns(steps, columns, table):
    """Compare each column with what becomes of raw values, missing and unknown ones as well."""
    names = list(table)
    said = [
        CHECKS[type(column)](steps, column, table, names[column.raw], k)
        for k, column in enumerate(columns)
    ]
    coded = {column.raw for column in columns if isinstance(column, Coded)}
    for end in (0, 1):
        refused = {columns[k].raw for k in range(len(columns)) if said[k][end] is None}
        for k, column in enumerate(columns):
            name = names[column.raw]
            if end == 1 and column.raw not in coded:
                continue
            unknown = "nobody" if table[name].dtype == object else 977.0
            found = made_of(steps, table, name, k, [unknown if end else np.nan])[0]
            if column.raw in refused:  # all columns are made at once
                assert found is None
            elif said[k][end] is ANY:
                assert np.isfinite(found)
            else:
                np.testing.assert_allclose(found, said[k][end], rtol=1e-9, atol=1e-9)


def check_encoding(steps, table):
    """Hold the encoding of people against the pipeline, with all values that they may have."""
    pipeline = make_pipeline(*(clone(step) for step in steps), LogisticRegression(max_iter=5))
    pipeline.fit(table, np.arange(len(table)) % 3 > 0)
    encoding = Encoding.of(pipeline)
    some = np.ones(len(table), dtype=bool)
    for row, _ in encoding.read(table).refused():
        some[row] = False
    encoded = encoding.encode(table[some])
    theirs = pipeline[:-1].transform(table[some])
    theirs = theirs.toarray() if hasattr(theirs, "toarray") else theirs
    np.testing.assert_array_equal(encoded, np.asarray(theirs, dtype=np.float64))
    return encoding


def bins(encode="ordinal", **options):
    return KBinsDiscretizer(4, encode=encode, **options)


def function(func, **options):
    return FunctionTransformer(func, kw_args=options or None)


NUMBER_STEPS = {
    "bins": [bins()],
    "one-hot bins": [bins("onehot")],
    "dense bins": [bins("onehot-dense", strategy="uniform")],
    "k-means bins": [bins(strategy="kmeans")],
    "single bins": [bins(dtype=np.float32)],
    "scaled bins": [StandardScaler(), bins("onehot-dense")],
    "bins, scaled": [bins(), StandardScaler()],
    "bins, one-hot": [bins(), OneHotEncoder()],
    "binarizer": [Binarizer(threshold=1.5)],
    "scaled binarizer": [RobustScaler(), Binarizer()],
    "clipped": [MinMaxScaler((-1, 2), clip=True)],
    "winsorized bins": [function(np.clip, a_min=0.5, a_max=9.0), bins()],
    "box-cox": [PowerTransformer("box-cox")],
    "yeo-johnson": [PowerTransformer()],
    "yeo-johnson bins": [PowerTransformer(), bins()],
    "quantiles": [QuantileTransformer(n_quantiles=20)],
    "normal quantiles": [QuantileTransformer(n_quantiles=20, output_distribution="normal")],
    "spline": [SplineTransformer(4)],
    "spline without bias": [StandardScaler(), SplineTransformer(include_bias=False, order="F")],
    "linear spline": [SplineTransformer(degree=2, knots="quantile", extrapolation="linear")],
    "endless spline": [SplineTransformer(extrapolation="continue")],
    "periodic spline": [SplineTransformer(extrapolation="periodic")],
    "bounded spline": [SplineTransformer(extrapolation="error")],
    "steps": [SplineTransformer(degree=0)],
    "first degree": [PolynomialFeatures(1)],
    "scaled first degree": [PolynomialFeatures(1), StandardScaler()],
    "log1p": [function(np.log1p)],
    "log1p, bins": [function(np.log1p), bins()],
    "log": [function(np.log)],
    "log, filled": [function(np.log1p), SimpleImputer(add_indicator=True)],
    "log, scaled": [FunctionTransformer(np.log1p, validate=True), StandardScaler()],
    "square": [function(np.square)],
    "square, bins": [function(np.square), bins()],
    "sign": [function(np.sign)],
    "round": [function(np.round, decimals=1)],
    "logistic": [StandardScaler(), function(special.expit)],
    "negative": [function(np.negative), bins()],
    "at least": [function(functools.partial(np.maximum, 0.25))],
    "at least, or missing": [function(functools.partial(np.fmax, 0.25))],
    "clip": [function(functools.partial(np.clip, a_min=1.0), a_max=3.0), StandardScaler()],
    "nothing for missing": [function(np.nan_to_num), StandardScaler()],
    "mean": [SimpleImputer(), StandardScaler()],
    "mean after scaling": [StandardScaler(), SimpleImputer(add_indicator=True)],
    "constant": [SimpleImputer(strategy="constant", fill_value=-5.0), bins()],
    "told": [SimpleImputer(add_indicator=True), StandardScaler()],
    "told, bins": [SimpleImputer(strategy="median", add_indicator=True), bins()],
    "told apart": [make_union(SimpleImputer(), MissingIndicator(features="all"))],
    "union": [FeatureUnion([("a", bins()), ("b", "passthrough"), ("c", "drop")])],
    "weighed": [
        FeatureUnion(
            [("log", function(np.cbrt)), ("bins", bins("onehot-dense"))],
            transformer_weights={"log": 2.0, "bins": 0.5},
        )
    ],
    "selected": [SelectKBest(k=2)],
    "varying": [VarianceThreshold(), StandardScaler()],
}
NUMBERS = ["amount", "balance", "debts"]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("case", NUMBER_STEPS)
def test_numbers(case, seed):
    steps, table = NUMBER_STEPS[case], draw(seed)[NUMBERS]
    table = table.abs() + 1 if case in ("box-cox", "log1p, bins", "log, scaled") else table
    check(steps, table)
    try:
        fit(steps, with_holes(table, seed))
    except ValueError:
        return  # it cannot be fitted to what is missing
    check(steps, with_holes(table, seed))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("holes", [False, True])
def test_powers_of_a_single_column(seed, holes):
    table = draw(seed)[["balance"]]
    table = with_holes(table, seed) if holes else table
    fills = [SimpleImputer()] if holes else []
    kinds = [type(column) for column in check([*fills, PolynomialFeatures(3)], table)]
    assert kinds == [Flag, Affine, Bent, Bent]
    check([*fills, StandardScaler(), PolynomialFeatures((2, 3), include_bias=False)], table)
    check([*fills, PolynomialFeatures(2), bins()], table)
    both = make_union("passthrough", FunctionTransformer(np.abs))
    check([*fills, both, PolynomialFeatures(2)], table)


def test_a_product_of_two_columns_is_refused():
    steps, names = fit([PolynomialFeatures(2)], draw(0)[["balance", "debts"]])
    with pytest.raises(ValueError, match="step: PolynomialFeatures multiplies balance by debts"):
        read(steps, names)
    steps, names = fit([PolynomialFeatures(2)], draw(0)[["balance", "debts"]].to_numpy())


CATEGORY_STEPS = {
    "one-hot": [OneHotEncoder()],
    "ignored": [OneHotEncoder(handle_unknown="ignore", drop="first")],
    "rare": [OneHotEncoder(min_frequency=15, handle_unknown="infrequent_if_exist")],
    "few": [OneHotEncoder(max_categories=2, handle_unknown="ignore", sparse_output=False)],
    "rare, dropped": [OneHotEncoder(max_categories=3, drop="first")],
    "ordinal": [OrdinalEncoder()],
    "ordinal, unknown": [
        OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
        )
    ],
    "ordinal, unknown is missing": [
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan),
        SimpleImputer(add_indicator=True),
    ],
    "ordinal, rare": [OrdinalEncoder(min_frequency=20)],
    "ordinal, one-hot": [OrdinalEncoder(), OneHotEncoder(handle_unknown="ignore")],
    "target": [TargetEncoder()],
    "target, clipped": [TargetEncoder(), MinMaxScaler(clip=True)],
    "most frequent": [SimpleImputer(strategy="most_frequent"), OneHotEncoder()],
    "one-hot, bent": [OneHotEncoder(sparse_output=False), PowerTransformer()],
    "one-hot, quantiles": [
        OneHotEncoder(sparse_output=False, handle_unknown="ignore"),
        QuantileTransformer(n_quantiles=20),
    ],
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("case", CATEGORY_STEPS)
def test_categories(case, seed):
    steps = CATEGORY_STEPS[case]
    texts, numbers = draw(seed)[["home", "job"]], draw(seed)[["grade"]].astype(float)
    for table in (texts, numbers):
        check(steps, table)
        check(steps, with_holes(draw(seed), seed)[list(table)])


@pytest.mark.parametrize("seed", range(3))
def test_texts_that_stand_for_missing_ones(seed):
    named = SimpleImputer(strategy="constant", fill_value="unsaid", add_indicator=True)
    table = with_holes(draw(seed), seed)[["home", "job"]]
    columns = ColumnTransformer(
        [
            (
                "filled",
                make_pipeline(named, ColumnTransformer([("o", OneHotEncoder(), [0, 1])])),
                list(table),
            ),
            ("told", MissingIndicator(), ["home"]),
        ]
    )
    found = check([columns], table)
    coded = [column for column in found if isinstance(column, Coded)]
    assert all(column.specials == () for column in coded)  # it might as well be a level
    assert all("unsaid" in column.levels for column in coded)
    check_encoding([columns], table)

    marked = draw(seed)[["home", "job"]].replace({"own": "?"})
    steps = [SimpleImputer(missing_values="?", strategy="most_frequent"), OneHotEncoder()]
    found = check(steps, marked)
    assert found[0].specials == ("?",)
    check_encoding(steps, marked)


@pytest.mark.parametrize("seed", range(3))
def test_numbers_that_stand_for_missing_ones(seed):
    table = draw(seed)[["balance", "grade"]].astype(float)
    table.loc[::7, "balance"] = -1.0
    imputer = SimpleImputer(missing_values=-1.0, add_indicator=True)
    columns = check([imputer], table)
    assert isinstance(columns[0], Affine)
    assert columns[0].codes[0][0] == -1.0
    part = gather(columns, list(table))[0]
    assert isinstance(part, Curve)
    assert part.specials == (-1.0,)
    check([imputer, bins()], table)
    check([SimpleImputer(missing_values=2.0), OneHotEncoder()], table[["grade"]])
    check_encoding([imputer, StandardScaler()], table)
    with pytest.raises(ValueError, match=r"missing_values=-1.0 reads a column that another step"):
        check([StandardScaler(), imputer], table)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gone", [None, pd.NA, np.nan])
def test_what_pandas_takes_for_missing(gone, seed):
    table = with_holes(draw(seed), seed)[["home", "job"]]
    marker = None if gone is None else np.nan
    table = table.where(table.notna(), marker).astype(object)
    imputer = SimpleImputer(missing_values=gone, strategy="most_frequent", add_indicator=True)
    codes = ColumnTransformer([("o", OneHotEncoder(), [0, 1])], remainder="passthrough")
    encoding = check_encoding([imputer, codes], table)
    assert encoding["home"].takes_missing
    assert encoding["home"].missing[-1] == 1.0
    numbers = with_holes(draw(seed), seed)[NUMBERS]
    if gone is None:
        objects = draw(seed)[NUMBERS].astype(object)
        imputer = SimpleImputer(missing_values=None, strategy="most_frequent")
        with pytest.raises(ValueError, match="missing_values=None only takes numbers as objects"):
            read(*fit([imputer], objects))
    else:
        check([SimpleImputer(missing_values=gone, add_indicator=True)], numbers)


@pytest.mark.parametrize("gone", [None, np.nan])
@pytest.mark.parametrize(
    "coder",
    [
        OneHotEncoder(),
        OrdinalEncoder(encoded_missing_value=-1),
        TargetEncoder(),
        make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
    ],
)
def test_a_missing_level_is_given_as_the_pipeline_knows_it(coder, gone):
    """What the pipeline refuses is missing all the same; what it takes is read as it takes it."""
    table = with_holes(draw(0), 0)[["home"]]
    table = table.where(table.notna(), gone).astype(object)
    coder = clone(coder)
    if isinstance(coder, Pipeline) and gone is None:
        coder.set_params(simpleimputer__missing_values=None)
    pipeline = make_pipeline(coder, LogisticRegression()).fit(table, np.arange(N) % 3 > 0)
    encoding = Encoding.of(pipeline)
    row = int(np.flatnonzero(table["home"].isna())[0])

    def made_of(people):
        made = pipeline[:-1].transform(people)
        return made.toarray() if hasattr(made, "toarray") else made

    missing = made_of(table.iloc[[row]])
    for other in (None, np.nan, pd.NA):
        theirs = missing
        with contextlib.suppress(ValueError, TypeError):
            theirs = made_of(pd.DataFrame({"home": [other]}, dtype=object))
        person = pd.DataFrame({"home": [other]})  # of whatever type pandas makes it
        np.testing.assert_array_equal(encoding.encode(person), theirs)
        mixed = pd.DataFrame({"home": [other, "own"]}, dtype=object)
        np.testing.assert_array_equal(encoding.encode(mixed)[:1], theirs)
        if type(other) is type(gone):
            np.testing.assert_array_equal(theirs, missing)


def test_columns_without_any_value():
    table = with_holes(draw(0), 0)[NUMBERS].assign(amount=np.nan)
    steps, names = fit([SimpleImputer(), bins()], table)
    assert [column.raw for column in read(steps, names)] == [1, 2]
    check_encoding([SimpleImputer(), StandardScaler()], table)
    kept = SimpleImputer(keep_empty_features=True, add_indicator=True)
    steps, names = fit([kept, StandardScaler()], table)
    assert [column.raw for column in read(steps, names)] == [0, 1, 2, 0, 1, 2]
    encoding = check_encoding([kept, StandardScaler()], table)
    assert encoding["amount"].fill == 0.0
    assert encoding["debts"].indicators == (5,)


def whole_pipeline(**options):
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    bent = make_pipeline(SimpleImputer(), make_union(bins("onehot-dense"), SplineTransformer(4)))
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop="first"))
    return ColumnTransformer(
        [
            ("numbers", numbers, ["amount", "debts"]),
            ("bent", bent, ["balance"]),
            ("texts", texts, ["home"]),
            ("more", TargetEncoder(), ["home", "job"]),
        ],
        **options,
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"remainder": "passthrough"},
        {"remainder": SimpleImputer(add_indicator=True), "sparse_threshold": 1.0},
        {"transformer_weights": {"numbers": -2.0, "texts": 0.5}},
        {"verbose_feature_names_out": False, "remainder": SimpleImputer()},
    ],
)
def test_whole_pipelines(options, seed):
    table = with_holes(draw(seed), seed)
    columns = whole_pipeline(**options)
    check([columns], table)
    if options.get("remainder") == "passthrough":
        table["grade"] = draw(seed)["grade"]
    encoding = check_encoding([columns], table)
    assert isinstance(encoding["balance"], Curve)
    assert isinstance(encoding["amount"], Number)
    assert encoding["amount"].takes_missing
    assert encoding["home"].columns.size > 1
    if "sparse_threshold" not in options:
        check_encoding([columns, MinMaxScaler(clip=True)], table)


def test_data_frames_between_the_steps():
    table = draw(1)
    first = ColumnTransformer(
        [
            ("bins", bins(), ["amount"]),
            ("log", FunctionTransformer(np.cbrt, feature_names_out="one-to-one"), ["balance"]),
            ("texts", OrdinalEncoder(), ["home"]),
        ],
        remainder="drop",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    second = ColumnTransformer(
        [("s", StandardScaler(), ["home", "balance"])], remainder="passthrough"
    )
    columns = check([first, second], table)
    assert [column.raw for column in columns] == [3, 1, 0]
    check_encoding([first, second], table)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (KNNImputer(), "KNNImputer is not supported; what it fills in depends on other columns"),
        (Normalizer(), "Normalizer is not supported; it divides each row"),
        (function(np.reciprocal), "the function reciprocal is not supported; supported"),
        (function(lambda x: x + 1), "the function <lambda> is not supported; .*holdfast_rules"),
        (function(np.log1p, where=True), "the function log1p is not supported"),
        (function(np.clip, a_min=[0.0, 1.0, 2.0], a_max=None), "the function clip is not"),
        (make_pipeline(SplineTransformer(), bins()), "bins a column that .* transforms"),
        (make_pipeline(StandardScaler(), OneHotEncoder()), "OneHotEncoder reads a column that a"),
        (make_pipeline(function(np.cbrt), OrdinalEncoder()), "OrdinalEncoder reads a column that"),
    ],
)
def test_what_is_not_understood_is_named(step, message):
    with pytest.raises(ValueError, match=f"^step.*: .*{message}|^step.* {message}"):
        read(*fit([step], draw(0)[NUMBERS]))


# ------------------------------------------------------------------ intervals


@pytest.mark.parametrize("coder", [OneHotEncoder(), OrdinalEncoder(), TargetEncoder()])
def test_intervals_of_pandas(coder):
    for how in ("category", object):
        table = pd.DataFrame({"balance": pd.cut(draw(0)["balance"], 4).astype(how)})
        encoding = check_encoding([coder], table)
        assert len(encoding["balance"].levels) == 4
        assert all(isinstance(level, pd.Interval) for level in encoding["balance"].levels)


@pytest.mark.parametrize("coder", [OneHotEncoder(), OrdinalEncoder(), TargetEncoder()])
def test_ordered_categories_of_pandas(coder):
    cut = pd.cut(draw(0)["balance"], 4, labels=["low", "fair", "good", "top"])
    table = pd.DataFrame({"balance": cut})
    assert table["balance"].cat.ordered
    encoding = check_encoding([coder], table)
    assert set(encoding["balance"].levels) == {"low", "fair", "good", "top"}
    check_encoding([coder], pd.DataFrame({"balance": cut.astype(str)}))


# ------------------------------------------------------------------ rules


class Evidence(TransformerMixin, BaseEstimator):
    """Weights of evidence: bins of balance, a group for each home, and a curve of debts."""

    def fit(self, table, approved):
        self.feature_names_in_ = np.array(table.columns, dtype=object)
        self.edges_ = np.quantile(table["balance"], [0.25, 0.5, 0.75])
        groups = pd.Series(approved).groupby(table["home"].to_numpy())
        self.rates_ = {home: float(np.log(rate + 0.1)) for home, rate in groups.mean().items()}
        return self

    def transform(self, table):
        place = np.searchsorted(self.edges_, table["balance"], side="right")
        bins = np.where(np.isnan(table["balance"].to_numpy(float)), 7.0, np.sqrt(place))
        homes = [self.rates_[home] for home in table["home"]]
        debts = table["debts"].to_numpy(float)
        return np.column_stack([bins, homes, debts**2, np.exp(-debts)])

    def holdfast_rules(self):
        return [
            ColumnRule(edges=self.edges_, takes_missing=True),
            ColumnRule(levels=self.rates_),
            ColumnRule(width=2),
        ]


@pytest.mark.parametrize("seed", range(3))
def test_transformers_that_say_their_rules(seed):
    table = draw(seed)[["balance", "home", "debts"]]
    columns = check([Evidence(), StandardScaler()], table)
    assert [type(column) for column in columns] == [Bent, Coded, Bent, Bent]
    assert columns[1].missing is None
    assert columns[1].unknown is None
    check_encoding([ColumnTransformer([("e", Evidence(), list(table))])], draw(seed))


class Scaler(StandardScaler):
    def holdfast_rules(self):
        return [ColumnRule() for _ in self.scale_]


class Wrong(Scaler):
    def holdfast_rules(self):
        return [ColumnRule(width=2) for _ in self.scale_]


class TooFew(Scaler):
    def holdfast_rules(self):
        return [ColumnRule()]


def test_rules_are_held_against_what_a_transformer_does():
    table = draw(0)[NUMBERS]
    columns = check([Scaler()], table)
    assert [type(column) for column in columns] == [Bent] * 3
    with pytest.raises(ValueError, match="Wrong makes 3 columns; its rules say 6"):
        read(*fit([Wrong()], table))
    with pytest.raises(ValueError, match="a ColumnRule for each of the 3 columns"):
        read(*fit([TooFew()], table))
    with pytest.raises(ValueError, match="edges or levels, not both"):
        ColumnRule(edges=[1.0], levels=["a"])


# ------------------------------------------------------------------ advice

ADVISED = {
    "bins": [SimpleImputer(), bins("onehot-dense")],
    "told": [SimpleImputer(add_indicator=True), StandardScaler()],
    "roots": [SimpleImputer(add_indicator=True), function(np.cbrt)],
    "splines": [SimpleImputer(), SplineTransformer(4)],
    "both": [SimpleImputer(), make_union("passthrough", bins("onehot-dense"))],
    "clipped": [StandardScaler(), SimpleImputer(), MinMaxScaler(clip=True)],
}


@pytest.mark.parametrize("case", ADVISED)
def test_advice_is_taken_by_the_pipeline_itself(case):
    table = with_holes(draw(3), 3)[NUMBERS]
    noise = np.random.default_rng(0).normal(size=N)
    approved = (table["balance"].fillna(0.0) + noise > 1.0).to_numpy()
    steps = [clone(step) for step in ADVISED[case]]
    pipeline = make_pipeline(*steps, LogisticRegression(max_iter=500)).fit(table, approved)
    actions = ActionSet.from_data(table)
    actions.set("balance", step=0.1)
    actions.set("amount", step=float(table["amount"].max()) / 100.0)
    people = table[~pipeline.predict(table)].head(8)
    ball = NormBall(p=1, radius=0.01)
    advice = RobustRecourse(pipeline, robust_to=ball, actions=actions, guarantee=0.5)
    found = advice.recommend(people)
    after = found.after()
    some = after.index[[found.status_of(label).name == "OPTIMAL" for label in after.index]]
    assert len(some) >= 4
    assert (pipeline.predict_proba(after.loc[some, NUMBERS])[:, 1] >= 0.5 - 1e-9).all()


# ------------------------------------------------------------------ optbinning


def binning_table(seed):
    table = with_holes(draw(seed), seed).drop(columns=["amount"])
    table.loc[::6, "debts"] = -9.0
    approved = table["balance"].fillna(0.0) + (table["home"] == "own") > table["balance"].median()
    return table, approved.to_numpy() ^ (np.arange(N) % 5 == 0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"metric": "event_rate", "metric_missing": "empirical", "metric_special": "empirical"},
        {"metric": "indices"},
        {"metric_missing": -3.5, "metric_special": 2.0},
    ],
)
def test_binning_processes(params, seed):
    optbinning = pytest.importorskip("optbinning", reason="optbinning is not installed")
    table, approved = binning_table(seed)
    names = list(table)
    process = optbinning.BinningProcess(
        names,
        categorical_variables=["grade"],
        special_codes=[-9.0],
        binning_fit_params={"job": {"cat_cutoff": 0.15, "dtype": "categorical"}},
        binning_transform_params=dict.fromkeys(names, params),
    )
    for step in (
        process,
        ColumnTransformer([("b", clone(process), names[::-1])], remainder="drop"),
    ):
        steps = [step.fit(table, approved)]
        columns = read(steps, names)
        whole = table.dropna().head(60)
        others_unchanged(steps, columns, whole)
        check_columns(steps, columns, whole)
        assert {type(column) for column in columns} == {Bent, Coded}
        assert all(column.takes_missing for column in columns if isinstance(column, Bent))
        debts = next(column for column in columns if column.raw == names.index("debts"))
        assert debts.specials == (-9.0,)

    pipeline = make_pipeline(process, LogisticRegression()).fit(table, approved)
    encoding = Encoding.of(pipeline)
    assert encoding.names == names
    theirs = process.transform(table)
    np.testing.assert_array_equal(encoding.encode(table), theirs)


def test_bins_that_are_texts_are_refused():
    optbinning = pytest.importorskip("optbinning", reason="optbinning is not installed")
    table, approved = binning_table(0)
    params = {name: {"metric": "bins"} for name in table}
    process = optbinning.BinningProcess(list(table), binning_transform_params=params)
    with pytest.raises(ValueError, match=r"step / variable '.*': the metric 'bins' gives strings"):
        read([process.fit(table, approved)], list(table))


def test_only_selected_variables_come_out():
    optbinning = pytest.importorskip("optbinning", reason="optbinning is not installed")
    table, approved = binning_table(0)
    criteria = {"iv": {"strategy": "highest", "top": 2}}
    process = optbinning.BinningProcess(list(table), selection_criteria=criteria)
    process.fit(table, approved)
    columns = read([process], list(table))
    assert [column.raw for column in columns] == np.flatnonzero(process.get_support()).tolist()
    assert len(columns) == 2
