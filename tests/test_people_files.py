"""How people in files are read: each column as the model knows it."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast
from holdfast.engines.rows import RowFunction
from holdfast.files.people import Columns
from holdfast.files.tables import open_table, read_frame
from holdfast.models.encoding import Encoding


def table_of(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "income": rng.integers(10, 90, n).astype(float),
            "grade": rng.integers(1, 4, n),
            "married": rng.random(n) < 0.5,
            "home": rng.choice(["own", "rent", "None"], n),
            "note": rng.choice(["a", "b"], n),
        }
    )


@pytest.fixture(scope="module")
def recourse():
    table = table_of()
    score = table["income"] / 20 - table["grade"] + table["married"] + (table["home"] == "own")
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["income"]),
        (OneHotEncoder(handle_unknown="ignore"), ["grade"]),
        (OneHotEncoder(), ["married", "home"]),
        ("drop", ["note"]),
    )
    model = make_pipeline(columns, LogisticRegression()).fit(table, score > score.median())
    actions = holdfast.ActionSet.from_data(table, categories=["grade"])
    return holdfast.RobustRecourse(
        model, robust_to=holdfast.NormBall(1, 0.05), actions=actions, guarantee=0.5, n_jobs=1
    )


def columns_of(recourse) -> Columns:
    return Columns.of(Encoding.of(recourse.model), recourse.actions)


def test_the_types_are_those_of_the_model(recourse):
    assert columns_of(recourse).levels == {
        "income": None,
        "grade": (1, 2, 3),
        "married": (False, True),
        "home": ("None", "own", "rent"),
        "note": (),
    }


def test_texts_are_read_as_what_they_stand_for(recourse, tmp_path):
    lines = [
        "income,grade,married,home,note",
        " 41.5 ,1,True,own,a",
        "NA,2.0,false,None,",
        "+7,x,TRUE,NA,b",
        "1e2,4,yes, rent ,b",
        "1_000,,False,own,c",
    ]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines))
    (batch,) = open_table(path).batches(10)
    frame = columns_of(recourse).frame(pa.Table.from_batches([batch]))
    assert frame["income"].tolist()[0] == 41.5
    assert np.isnan(frame["income"].tolist()[1])
    assert frame["income"].tolist()[3] == 100.0
    assert frame["income"].tolist()[4] == "1_000"  # no number, whatever Python says
    assert frame["grade"].tolist() == [1, 2, "x", 4.0, None]
    assert frame["married"].tolist() == [True, False, True, "yes", False]
    assert frame["home"].fillna("?").tolist() == ["own", "None", "?", "rent", "own"]


@pytest.mark.parametrize("cut", [1, 3, 50])
def test_answers_do_not_depend_on_how_a_table_is_cut_nor_on_its_types(recourse, cut):
    table = table_of(60)
    plain = pa.Table.from_pandas(table, preserve_index=False)
    columns = columns_of(recourse)
    whole = RowFunction(recourse, columns, plain.schema)(plain)
    parts = [
        RowFunction(recourse, columns, plain.schema)(plain.slice(k, cut), k)
        for k in range(0, 60, cut)
    ]
    assert pa.concat_tables(parts).equals(whole)
    texts = pa.table({name: [str(v) for v in table[name]] for name in table})
    decimals = plain.set_column(0, "income", pa.array([Decimal(int(v)) for v in table["income"]]))
    small = plain.set_column(1, "grade", plain["grade"].cast(pa.int8()))
    coded = plain.set_column(3, "home", plain["home"].dictionary_encode())
    for other in (texts, decimals, small, coded):
        found = RowFunction(recourse, columns, other.schema)(other)
        assert found.equals(whole)
    assert set(whole["status"].to_pylist()) >= {"optimal", "already valid"}


def test_what_is_advised_is_what_python_advises(recourse):
    table = table_of(60)
    plain = pa.Table.from_pandas(table, preserve_index=False)
    found = RowFunction(recourse, columns_of(recourse), plain.schema)(plain).to_pandas()
    frame = recourse.recommend(table).to_frame()
    for name in ("status", "changes", "cost", "lower_bound", "gap", "worst_case_validity"):
        assert found[name].tolist() == frame[name].tolist()
    for name in ("income", "grade", "married", "home"):
        assert found[f"recourse.{name}"].tolist() == frame[f"recourse.{name}"].tolist()
        assert found[f"person.{name}"].tolist() == table[name].tolist()


def test_a_csv_column_is_a_number_where_all_of_it_is(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d,e\n1,1.5,01,x,\n2,NA,02,7,\n")
    frame = read_frame(path)
    assert frame["a"].dtype == np.int64
    assert frame["b"].dtype == np.float64
    assert frame["c"].tolist() == ["01", "02"]
    assert frame["d"].tolist() == ["x", "7"]
    assert frame["e"].isna().all()


@pytest.mark.parametrize("between", [",", ";", "\t", "|"])
def test_whatever_stands_between_cells(tmp_path, between):
    path = tmp_path / "t.csv"
    path.write_text(f"a{between}b{between}c d\n1{between}x{between}\n")
    assert open_table(path).names == ["a", "b", "c d"]
    assert read_frame(path)["b"].tolist() == ["x"]


def test_a_model_without_names_is_refused():
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    actions = holdfast.ActionSet.from_data(X)
    with pytest.raises(ValueError, match="does not know its columns by name"):
        Columns.of(Encoding.of(model), actions)
