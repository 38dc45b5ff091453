"""The demonstration as files: the same lender, and the same answers, as in a terminal."""

from __future__ import annotations

import numpy as np

from holdfast.demo.files import write_demo
from holdfast.demo.people import run_demo
from holdfast.engines.local import run_job
from holdfast.files.recourse import RecourseFile


def test_the_files_hold_the_lender_of_the_demonstration(tmp_path):
    job = write_demo(tmp_path).with_changes(out=str(tmp_path / "out.parquet"))
    run_job(job, n_jobs=1)
    told = RecourseFile.open(tmp_path / "out.parquet").frame()
    shown = run_demo(n_models=1)
    first = told[told["option"] <= 1].set_index("applicant")
    assert len(first) == shown.n_test
    assert first.index[~first["approved"].astype(bool)].tolist() == shown.denied.index.tolist()
    refused = first.loc[shown.denied.index]
    np.testing.assert_allclose(refused["initial_validity"], shown.probability, rtol=1e-14)
    found = refused["option"].to_numpy() == 1
    np.testing.assert_array_equal(found, shown.robust.found)
    np.testing.assert_array_equal(refused["price"][found], shown.robust.cost[found])
    for label in refused.index[found]:
        assert refused.loc[label, "changes"] == ", ".join(shown.robust.result.changes(label))
