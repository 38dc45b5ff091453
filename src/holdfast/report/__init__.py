"""What people read: a report for those who answer for the advice, a letter, an audit.

Examples
--------
A model that refuses long loans, and what its lender's run has left:

>>> import tempfile
>>> import pandas as pd
>>> from pathlib import Path
>>> from sklearn.linear_model import LogisticRegression
>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import StandardScaler
>>> from holdfast.actions import ActionSet
>>> from holdfast.engines.local import run_job
>>> from holdfast.files.jobs import Job
>>> from holdfast.files.models import load_model, save_model
>>> from holdfast.files.recourse import RecourseFile
>>> kept = tempfile.TemporaryDirectory()
>>> folder = Path(kept.name)
>>> table = pd.DataFrame({"months": [12, 48, 24, 60, 6, 36], "age": [50, 22, 41, 25, 63, 30]})
>>> model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, [0, 1, 0, 1, 0, 1])
>>> save_model(model, folder / "model.skops", favorable_class=0)
>>> actions = ActionSet.from_data(table, protected=["age"], units={"months": "months"})
>>> actions.save(folder / "actions.yaml")
>>> table.to_csv(folder / "people.csv", index=False)
>>> names = {"model": "model.skops", "people": "people.csv", "actions": "actions.yaml"}
>>> paths = {name: str(folder / path) for name, path in names.items()}
>>> out = folder / "recourse.parquet"
>>> job = Job(**paths, out=str(out), robust_to="p=1,radius=0.1", guarantee=0.5)
>>> _ = run_job(job, n_jobs=1)
>>> file = RecourseFile.open(out)

The figures of its report, advice under another model, and a letter:

>>> summary = summarise(file)
>>> summary.counts.refused, summary.counts.helped
(3, 3)
>>> page = write_report_page(summary)
>>> audit(file, load_model(folder / "model.skops")).must_be_told
0
>>> letter = make_letter(file, find_person(file, row=1), LetterSettings(lender="Hanse Bank"))
>>> letter.ways
[('Option 1', ['Months: from 48 to 7 months'])]
>>> letter.protected
['age']
>>> kept.cleanup()
"""

from holdfast.report.audit import Audit, audit, read_audit
from holdfast.report.letter import (
    Letter,
    LetterSettings,
    find_person,
    make_letter,
    render_letter,
)
from holdfast.report.page import report_style, write_report_body, write_report_page
from holdfast.report.summary import Summary, summarise

__all__ = [
    "Audit",
    "Letter",
    "LetterSettings",
    "Summary",
    "audit",
    "find_person",
    "make_letter",
    "read_audit",
    "render_letter",
    "report_style",
    "summarise",
    "write_report_body",
    "write_report_page",
]
