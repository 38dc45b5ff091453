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
from holdfast.files.people import PeopleColumns
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


def columns_of(recourse, *, are_texts: bool = False) -> PeopleColumns:
    return PeopleColumns.of(Encoding.of(recourse.model), recourse.actions, are_texts=are_texts)


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
    frame = columns_of(recourse, are_texts=True).frame(pa.Table.from_batches([batch]))
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
    read = columns_of(recourse, are_texts=True)
    said = RowFunction(recourse, read, texts.schema)(texts)
    assert said.cast(whole.schema).equals(whole)
    decimals = plain.set_column(0, "income", pa.array([Decimal(int(v)) for v in table["income"]]))
    small = plain.set_column(1, "grade", plain["grade"].cast(pa.int8()))
    coded = plain.set_column(3, "home", plain["home"].dictionary_encode())
    for other in (decimals, small, coded):
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
        PeopleColumns.of(Encoding.of(model), actions)


def test_a_text_in_a_typed_table_is_that_text(recourse):
    """A level with a space is another one, and no text is a number, as in Python."""
    table = table_of(4).astype({"home": object})
    table["home"] = ["own", " own", "NA", None]
    typed = pa.Table.from_pandas(table, preserve_index=False)
    found = RowFunction(recourse, columns_of(recourse), typed.schema)(typed).to_pandas()
    assert found["status"].tolist()[1:] == ["invalid input"] * 3
    assert "home = ' own'" in found["reason"][1]
    assert "home = 'NA'" in found["reason"][2]
    texts = typed.set_column(0, "income", pa.array(["41", "42", "43", "44"]))
    found = RowFunction(recourse, columns_of(recourse), texts.schema)(texts).to_pandas()
    assert "income = '41': a finite number was expected" in found["reason"][0]


@pytest.mark.parametrize(
    "notes",
    [
        pa.array(["04716", "SW1A", "1", None, "NA"]),
        pa.array(pd.date_range("2020-01-01", periods=5)),
        pa.array([[1], [2], [], None, [3]]),
        pa.array([True, False, None, True, True]),
    ],
    ids=["texts", "dates", "lists", "truths"],
)
def test_what_the_model_does_not_feel_goes_through(recourse, notes):
    table = table_of(5)
    plain = pa.Table.from_pandas(table, preserve_index=False)
    plain = plain.set_column(4, "note", notes)
    for are_texts in (False, True):
        columns = PeopleColumns(columns_of(recourse).levels, are_texts)
        advise = RowFunction(recourse, columns, plain.schema)
        found = advise(plain)
        assert found["person.note"].to_pylist() == notes.to_pylist()
        had = [k > 0 for k in found["option"].to_pylist()]
        kept = [note if h else None for note, h in zip(notes.to_pylist(), had, strict=True)]
        assert found["recourse.note"].to_pylist() == kept
        alone = [advise(plain.slice(k, 1), k) for k in range(5)]
        assert pa.concat_tables(alone).equals(found)


def test_decimal_numbers_are_what_they_say(recourse):
    table = pa.Table.from_pandas(table_of(300), preserve_index=False)
    cents = np.random.default_rng(0).integers(1000, 9000, 300)
    decimals = [Decimal(int(c)) / 100 for c in cents]
    table = table.set_column(0, "income", pa.array(decimals, pa.decimal128(18, 2)))
    read = columns_of(recourse).frame(table)["income"]
    assert read.tolist() == [float(f"{c / 100:.2f}") for c in cents]


def test_single_precision_is_shown_as_it_is(recourse):
    table = table_of(60).astype({"income": np.float32})
    table["income"] += np.float32(0.68)
    typed = pa.Table.from_pandas(table, preserve_index=False)
    found = RowFunction(recourse, columns_of(recourse), typed.schema)(typed).to_pandas()
    assert found["changes"].tolist() == recourse.recommend(table).to_frame()["changes"].tolist()
    assert any(".68" in words for words in found["changes"])


def test_one_bad_cell_costs_little(recourse):
    """Each text is looked at once, not one by one."""
    import holdfast.files.people as room

    calls = []
    original = room._number

    def counted(*given):
        calls.append(given)
        return original(*given)

    room._number = counted
    try:
        cells = pa.array(["1.5", "2.5", "soon"] * 1000)
        values = PeopleColumns({"a": None}, are_texts=True).column("a", cells)
    finally:
        room._number = original
    assert len(calls) == 3
    assert values[:3].tolist() == [1.5, 2.5, "soon"]


def test_a_fraction_of_a_whole_level_is_not_rounded(recourse):
    table = table_of(3).astype({"grade": float})
    table.loc[1, "grade"] = 2.5
    typed = pa.Table.from_pandas(table, preserve_index=False)
    found = RowFunction(recourse, columns_of(recourse), typed.schema)(typed).to_pandas()
    assert pd.isna(found["person.grade"][1])


def test_parts_of_different_types_are_one_table(tmp_path):
    import pyarrow.parquet as pq

    for k, values in enumerate(([1, 2], [1.5, None])):
        pq.write_table(pa.table({"a": values}), tmp_path / f"part-{k}.parquet")
    batches = list(open_table(tmp_path).batches(10))
    assert [b.column("a").to_pylist() for b in batches] == [[1.0, 2.0], [1.5, None]]
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "part-9.parquet")
    with pytest.raises(ValueError, match=r"part-9\.parquet does not have the same column types"):
        open_table(tmp_path)


def test_a_name_of_ours_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,holdfast.problem\n1,2\n")
    with pytest.raises(ValueError, match="a name that Holdfast uses itself"):
        open_table(tmp_path / "t.csv")
