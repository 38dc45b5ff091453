"""`holdfast reproduce`: what is planned, kept, gone on with, and said when something is wrong."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from importlib import metadata

import pytest
from data_files import needs_files
from rich.console import Console

from holdfast.datasets import sources
from holdfast.paper.reproduce import Order, command, plan_pieces, reproduce, runner, store
from holdfast.paper.reproduce.plan import QUICK, Size
from holdfast.paper.reproduce.store import Store
from holdfast.paper.tidy import read_table

QUICK_OF_TWO = replace(QUICK, most_rows=2)
_ABSENT = [{"what": "sba"}, {"what": "german, shifted"}]


@pytest.fixture
def only_german(monkeypatch):
    """No other data than the embedded, and no way to get any."""

    def absent(file, directory=None):
        raise sources.DataAbsent(f"{file.name} was not found (for this test)")

    for room in ("sba", "south_german"):
        monkeypatch.setattr(f"holdfast.datasets.{room}.fetch", absent)
    for cached in (command.load_folds, command.load_futures):
        cached.cache_clear()
    yield
    for cached in (command.load_folds, command.load_futures):
        cached.cache_clear()


@pytest.fixture
def small(monkeypatch):
    """Two methods on two people."""
    monkeypatch.setattr(command, "QUICK", QUICK_OF_TWO)
    whole = plan_pieces

    def few(targets, size):
        return [p for p in whole(["table1"], size) if p.method in ("exact", "roar_as_published")]

    monkeypatch.setattr(command, "plan_pieces", few)


def run(order, width=200):
    console = Console(record=True, width=width, file=open(os.devnull, "w"))  # noqa: SIM115
    return reproduce(order, console), console.export_text()


def test_the_plan_has_every_cell_of_the_tables():
    plan = plan_pieces(["tables"])
    for experiment in ("table1", "table2", "table3"):
        for dataset in ("german", "sba"):
            cells = {
                (piece.method.removesuffix("_as_published"), piece.p)
                for piece in plan
                if piece.experiment == experiment and piece.dataset == dataset
            }
            assert {("roar", 1.0), ("roar", math.inf), ("algorithm1", 1.0)} <= cells
            assert ("algorithm2", math.inf) in cells
            assert ("exact", 1.0) in cells
    assert {piece.fold for piece in plan} == set(range(5))
    for piece in plan:
        assert set(piece.radii) <= {0.1, 0.5}
    parts = {}  # the authors' people of table3 depend on the radius: these pieces have one each
    for piece in plan:
        key = (piece.experiment, *piece.world, piece.method, piece.p, piece.linearise)
        parts.setdefault((*key, piece.judging), []).extend(piece.radii)
    assert all(sorted(radii) == [0.1, 0.5] for radii in parts.values())


def test_the_cost_weights_of_the_frontiers_are_those_of_the_appendix():
    plan = [piece for piece in plan_pieces(["figures"]) if piece.method == "exact"]
    ranges = {
        (piece.dataset, piece.model, piece.radii[0]): (
            min(piece.cost_weights),
            max(piece.cost_weights),
        )
        for piece in plan
    }
    assert ranges["german", "logistic", 0.1] == (0.001, 0.5)
    assert ranges["german", "logistic", 0.5] == (0.004, 0.5)
    assert ranges["german", "network", 0.5] == (0.01, 3.0)
    assert ranges["sba", "logistic", 0.1] == (0.01, 2.1)
    assert ranges["sba", "network", 0.5] == (0.01, 3.5)
    assert all("inside" in piece.constraints for piece in plan)


def test_the_third_table_is_that_of_two_folds_with_lime():
    """As the paper's figures come about; `experiments/README.md` has the evidence."""
    plan = [piece for piece in plan_pieces(["table3"]) if piece.linearise == "lime_as_published"]
    assert {piece.fold for piece in plan} == {0, 1}
    people = {
        (piece.dataset, piece.method == "algorithm1_as_published", piece.radii): piece.people
        for piece in plan
    }
    assert {who for (dataset, *_), who in people.items() if dataset == "german"} == {"all"}
    assert people["sba", True, (0.1,)] == people["sba", False, (0.5,)] == "sorted"
    assert people["sba", False, (0.1,)] == "all"


def test_linear_is_a_part_of_all():
    linear, everything = (plan_pieces([name]) for name in ("linear", "all"))
    assert set(linear) < set(everything)
    assert {piece.model for piece in linear} == {"logistic"}
    assert len(set(everything)) == len(everything)


def test_the_proof_is_of_every_recourse_of_the_networks_frontiers():
    plan, frontiers = plan_pieces(["proof"]), plan_pieces(["figures"])
    assert {piece.model for piece in plan} == {"network"}
    assert {piece.judging for piece in plan} == {"proof"}

    def points(pieces):
        return {
            (*piece.world, piece.method, piece.p, radius, weight, piece.linearise)
            for piece in pieces
            for radius in piece.radii
            for weight in piece.cost_weights or piece.settings
            if piece.judged_p == 1.0 and piece.model == "network" and piece.guarantee is None
        }

    assert points(frontiers) < points(plan)
    more = {(point[0], point[-2]) for point in points(plan) - points(frontiers)}
    assert more == {("german", 0.7), ("german", 0.3), ("sba", 0.1)}  # the tables' cost weights
    asked = {(piece.p, piece.radii) for piece in plan if piece.guarantee is not None}
    assert asked == {(1.0, (0.1, 0.5)), (math.inf, (0.1,))}
    assert {piece.method for piece in plan if piece.judged_p == math.inf} == {
        "exact",
        "roar",
        "refine",
    }
    assert set(plan) < set(plan_pieces(["all"]))


def test_what_is_proven_goes_to_the_worker_that_found_it():
    pieces = [p for p in plan_pieces(["figures", "proof"], QUICK) if p.linearise == "lime"]
    batches = {(*piece.world, piece.experiment): runner._batch(piece) for piece in pieces}
    for key in [key for key in batches if key[-1] == "proof"]:
        assert batches[key] == batches[*key[:-1], "frontiers"]
    assert all(runner.effort(piece) > 0.05 for piece in pieces)


def test_an_unknown_target_is_refused_by_name():
    with pytest.raises(ValueError, match="'table4' cannot be reproduced; available: table1"):
        plan_pieces(["table4"])


def test_what_is_finished_is_kept_and_a_change_touches_only_its_own(
    tmp_path, only_german, small, monkeypatch
):
    order = Order(out=tmp_path, quick=True, jobs=1)
    code, said = run(order)
    assert code == 0
    pieces = list((tmp_path / "pieces").iterdir())
    assert f"{len(pieces)} pieces, 0 of them already finished" in said
    before = {path: path.stat().st_mtime_ns for path in pieces}
    first = read_table(tmp_path / "results.parquet")[0]
    assert run(order)[1].startswith(f"{len(pieces)} pieces, {len(pieces)} of them already finished")
    assert {path: path.stat().st_mtime_ns for path in pieces} == before
    # one setting of one method changes
    changed = command.plan_pieces
    monkeypatch.setattr(
        command,
        "plan_pieces",
        lambda targets, size: [
            replace(piece, cost_weights=(0.2,)) if piece.p == 2.0 else piece
            for piece in changed(targets, size)
        ],
    )
    code, said = run(order)
    assert f"{len(pieces)} pieces, {len(pieces) - 1} of them already finished" in said
    second = read_table(tmp_path / "results.parquet")[0]
    assert set(second.loc[second["p"] == 2.0, "cost_weight"]) == {0.2}
    same = first["p"] != 2.0
    assert len(second[second["p"] != 2.0]) == same.sum()


def test_an_interrupted_run_goes_on(tmp_path, only_german, small, monkeypatch):
    order = Order(out=tmp_path, quick=True, jobs=1)
    true, count = runner.run_piece, 0

    def interrupted(*arguments):
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        return true(*arguments)

    monkeypatch.setattr(runner, "run_piece", interrupted)
    code, said = run(order)
    assert code == 130
    assert "interrupted: 2 of" in said
    assert not (tmp_path / "results.parquet").exists()
    code, said = run(order)
    assert code == 0
    assert ", 2 of them already finished" in said


def test_a_piece_that_fails_is_said_and_does_not_stop_the_others(
    tmp_path, only_german, small, monkeypatch
):
    true = runner.run_piece

    def failing(piece, *rest):
        if piece.method == "exact" and piece.p == 1.0:
            raise RuntimeError("the disk is full of water")
        return true(piece, *rest)

    monkeypatch.setattr(runner, "run_piece", failing)
    code, said = run(Order(out=tmp_path, quick=True, jobs=1))
    assert code == 1
    assert "1 pieces failed" in said
    table, about = read_table(tmp_path / "results.parquet")
    assert "the disk is full of water" in about["failed"][0]["why"]
    assert not ((table["method"] == "exact") & (table["p"] == 1.0)).any()
    assert "the disk is full of water" in (tmp_path / "index.html").read_text()


def test_absent_data_is_said_and_the_rest_is_run(tmp_path, only_german, small):
    code, said = run(Order(out=tmp_path, quick=True, jobs=1))
    assert code == 0
    assert "not run, data missing: sba: SBAcase.11.13.17.csv was not found" in said
    assert "not run, data missing: german, shifted: corrected_german.csv was not found" in said
    table, about = read_table(tmp_path / "results.parquet")
    assert set(table["dataset"]) == {"german"}
    assert table["future_validity"].isna().all()
    assert [each["what"] for each in about["absent"]] == ["german, shifted", "sba"]
    page = (tmp_path / "index.html").read_text()
    assert "Not run: data absent: sba." in page
    assert "Not run: data absent: german, shifted." in page


def test_a_piece_without_the_shifted_data_is_not_taken_for_one_with_it(tmp_path):
    piece = plan_pieces(["table1"])[0]
    store = Store(tmp_path)
    assert store.path(piece) != store.path(replace(piece, shifted=False))


def test_networks_on_another_device_are_other_pieces(tmp_path):
    linear, network = (plan_pieces([name])[0] for name in ("table1", "table2"))
    here, there = Store(tmp_path), Store(tmp_path, device="cuda")
    assert here.path(linear) == there.path(linear)
    assert here.path(network) != there.path(network)
    assert here.path(network) == Store(tmp_path, device="cpu").path(network)


def test_what_cannot_be_is_refused_before_anything_is_run(tmp_path):
    with pytest.raises(ValueError, match="nowhere is not a directory"):
        run(Order(out=tmp_path / "out", data=tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="device = 'abacus' cannot be used"):
        run(Order(out=tmp_path / "out", device="abacus"))
    with pytest.raises(ValueError, match="'table4' cannot be reproduced"):
        run(Order(out=tmp_path / "out", targets=["table4"]))
    with pytest.raises(ValueError, match="n_jobs = 0 is not allowed"):
        run(Order(out=tmp_path / "out", jobs=0))
    assert not (tmp_path / "out").exists()


def test_a_damaged_piece_is_named(tmp_path, only_german, small):
    order = Order(out=tmp_path, quick=True, jobs=1)
    assert run(order)[0] == 0
    piece = next((tmp_path / "pieces").iterdir())
    piece.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=f"{piece.name} cannot be read; delete it"):
        run(order)


def test_run_from_its_sources_it_says_so(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert store.versions()["holdfast"] == "not installed"


def test_versions_of_kept_pieces_are_those_that_made_them(
    tmp_path, only_german, small, monkeypatch
):
    order = Order(out=tmp_path, quick=True, jobs=1)
    monkeypatch.setattr(store, "versions", lambda *packages: {"holdfast": "0", "numpy": "1.0"})
    run(order)
    monkeypatch.setattr(store, "versions", lambda *packages: {"holdfast": "0", "numpy": "9.9"})
    next((tmp_path / "pieces").iterdir()).unlink()
    run(order)
    assert read_table(tmp_path / "results.parquet")[1]["versions"]["numpy"] == "1.0, 9.9"


def test_the_quick_run_is_a_part_of_the_whole():
    assert set(QUICK.folds) <= set(Size().folds)
    quick, whole = plan_pieces(["all"], QUICK), plan_pieces(["all"])
    assert {(p.experiment, p.dataset, p.model, p.method, p.p) for p in quick} == {
        (p.experiment, p.dataset, p.model, p.method, p.p) for p in whole
    }


@pytest.mark.slow
@needs_files
def test_the_quick_run_of_everything(tmp_path):
    """The command as people call it, on two processes: every table and figure is there."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "reproduce", "all", "--quick", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    table, about = read_table(tmp_path / "results.parquet")
    assert not about["failed"]
    assert not about["absent"]
    assert about["settings"]["quick"]
    assert set(table["experiment"]) == {"table1", "table2", "table3", "frontiers", "proof"}
    assert set(table["dataset"]) == {"german", "sba"}
    linear = table[table["model"] == "logistic"]
    assert linear["gap"].min() >= -1e-9
    exact = linear[(linear["method"] == "exact") & (linear["constraints"] != "after")]
    assert (exact["gap"] <= 1e-9 * (1 + exact["price"])).all()
    validities = [f"{name}_validity" for name in ("current", "worst_case", "population", "future")]
    assert table[validities].stack().dropna().between(0.0, 1.0).all()
    proof = table["experiment"] == "proof"
    assert table.loc[~proof, validities].notna().all().all()
    assert (table["proven_validity"].notna() == proof).all()
    assert (table["proven_validity"] <= table["worst_case_validity"] + 1e-9)[proof].all()
    asked = table[table["guarantee"].notna() & (table["p"] == 1.0)]
    assert (asked["proven_validity"] >= 0.5).all()
    assert (asked["status"] == "proven valid").all()
    for name in ("table1", "table2", "table3"):
        for kind in ("md", "csv", "tex"):
            for dataset in ("german", "sba"):
                assert (tmp_path / "tables" / f"{name}-{dataset}.{kind}").stat().st_size > 100
    for kind in ("svg", "png"):
        assert len(list((tmp_path / "figures").glob(f"frontiers*.{kind}"))) == 8
    page = (tmp_path / "index.html").read_text()
    assert "Parts of this run failed" not in page
    assert "data absent" not in page
    assert "Not run yet" not in page


def test_sources_that_change_during_a_run_do_not_change_where_its_pieces_go(
    tmp_path, only_german, small, monkeypatch
):
    """What old sources computed must not be found under the name of new ones, nor be lost."""
    digests = iter(["old", *["new"] * 99])
    monkeypatch.setattr(store, "_digest_of_sources", lambda: next(digests))
    code, _ = run(Order(out=tmp_path, quick=True, jobs=1))
    assert code == 0
    plan = command._with_data(command.plan_pieces([], QUICK_OF_TWO), _ABSENT)
    assert all(Store(tmp_path / "pieces", "old").has(piece) for piece in plan)
    assert not any(Store(tmp_path / "pieces", "new").has(piece) for piece in plan)


def test_a_piece_that_is_lost_without_a_word_is_a_failure(
    tmp_path, only_german, small, monkeypatch
):
    monkeypatch.setattr(
        command, "run_pieces", lambda pieces, *rest: runner.run_pieces(pieces[1:], *rest)
    )
    code, said = run(Order(out=tmp_path, quick=True, jobs=1))
    assert code == 1
    assert "not finished" in said
    assert "Parts of this run failed" in (tmp_path / "index.html").read_text()
