"""From fitting a model to explaining the advice in words, for German Credit applicants.

python examples/german_credit.py
"""

from __future__ import annotations

from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast
from holdfast.datasets import load_german

NUMBERS = ["duration", "credit_amount", "installment_commitment", "age"]
CATEGORIES = ["checking_status", "credit_history", "savings_status", "employment", "other_parties"]


def what_people_can_do(table, units) -> holdfast.ActionSet:
    """Draft an action set from the data, then add what we know about the world."""
    known = {name: units[name] for name in NUMBERS}
    actions = holdfast.ActionSet.from_data(table, units=known)
    actions.set("credit_amount", step=100)
    actions.set("age", direction="up", physical=["direction"], max_increase=2)
    actions.set("savings_status", moves=BUILD_UP)
    actions.set("other_parties", moves={"none": ["guarantor"]})
    for name in ("installment_commitment", "checking_status", "credit_history", "employment"):
        actions[name].immutable = True
    return actions


BUILD_UP = {  # savings can be built up
    "<100": ["100<=X<500", "500<=X<1000", ">=1000"],
    "100<=X<500": ["500<=X<1000", ">=1000"],
    "500<=X<1000": [">=1000"],
}


def main() -> None:
    """Fit a model, ask for recourse, and explain the answers."""
    german = load_german()
    table = german.features[NUMBERS + CATEGORIES]
    columns = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), CATEGORIES))
    model = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(table, german.approved)
    denied = table[~model.predict(table)]
    recourse = holdfast.RobustRecourse(
        model,
        robust_to=holdfast.NormBall(p=1, radius=0.3),
        actions=what_people_can_do(table, german.units),
        guarantee=0.5,
        n_options=2,
    )
    result = recourse.recommend(denied)
    print(result, end="\n\n")
    helped = denied.index[result.status == "optimal"][:2]
    hopeless = denied.index[result.status == "infeasible"][:1]
    for applicant in [*helped, *hopeless]:
        print(f"Applicant {applicant}: {result.explain(applicant)}", end="\n\n")


if __name__ == "__main__":
    main()
