"""The demonstration as files, such as users have: a model, actions, people, a set of models."""

from __future__ import annotations

from pathlib import Path

from holdfast.demo.people import GUARANTEE, train_lender
from holdfast.files.jobs import Job
from holdfast.files.model_sets import save_model_set
from holdfast.files.models import save_model

KEY = "applicant"
WAYS = 3


def write_demo(directory: Path) -> Job:
    """Write the model, people and actions of `holdfast demo` as files; return the job to run.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     job = write_demo(Path(folder))
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['actions.yaml', 'model.skops', 'models.yaml', 'people.parquet']
    >>> job.guarantee, job.n_options, job.keys
    (0.5, 3, ['applicant'])
    """
    lender = train_lender()
    model, actions = directory / "model.skops", directory / "actions.yaml"
    people, models = directory / "people.parquet", directory / "models.yaml"
    save_model(lender.model, model, favorable_class=True)
    lender.actions.save(actions)
    save_model_set(lender.robust_to, models)
    lender.applicants.rename_axis(KEY).reset_index().to_parquet(people, index=False)
    return Job(
        model=str(model),
        people=str(people),
        actions=str(actions),
        robust_to=str(models),
        guarantee=GUARANTEE,
        n_options=WAYS,
        keys=[KEY],
    )
