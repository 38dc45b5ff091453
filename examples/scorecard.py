"""From the bins of a scorecard to advice in points and in raw units.

python examples/scorecard.py    (needs `pip install 'holdfast[lenders]'`)
"""

from __future__ import annotations

from optbinning import BinningProcess, Scorecard
from sklearn.linear_model import LogisticRegression

import holdfast
from holdfast.datasets import load_german
from holdfast.models.additive import points_of

FEATURES = [
    "duration",
    "credit_amount",
    "age",
    "checking_status",
    "credit_history",
    "savings_status",
    "employment",
    "purpose",
]
CUTOFF = 520  # the lender says yes from this many points on


def fit_scorecard(table, default) -> Scorecard:
    """Bin every feature, compute weights of evidence, and scale: 600 points at odds of 50:1."""
    texts = [name for name in table if table[name].dtype.kind not in "if"]
    card = Scorecard(
        BinningProcess(list(table), categorical_variables=texts, min_bin_size=0.05),
        LogisticRegression(),
        scaling_method="pdo_odds",
        scaling_method_params={"pdo": 20, "odds": 50, "scorecard_points": 600},
    )
    return card.fit(table, default)


def what_people_can_do(table, units) -> holdfast.ActionSet:
    """Draft an action set from the data, then add what we know about the world."""
    fixed = ["age", "credit_history", "employment", "purpose"]
    known = {name: unit for name, unit in units.items() if name in table}
    actions = holdfast.ActionSet.from_data(table, immutable=fixed, units=known)
    actions.set("credit_amount", step=100)
    actions.set("checking_status", moves={"no checking": ["0<=X<200", ">=200"]})
    return actions


def main() -> None:
    """Fit a scorecard, ask for recourse, and explain the answers."""
    german = load_german()
    table, default = german.features[FEATURES], (~german.approved).astype(int)
    card = fit_scorecard(table, default)
    refused = table[card.score(table) < CUTOFF]
    print(f"{len(refused)} of {len(table)} have less than {CUTOFF} points.", end="\n\n")
    recourse = holdfast.RobustRecourse(
        card,
        favorable_class=0,
        robust_to=holdfast.NormBall(p=1, radius=0.1),  # of the weights of evidence
        actions=what_people_can_do(table, german.units),
        points=points_of(card),
        guarantee_points=CUTOFF,
    )
    result = recourse.recommend(refused)
    print(result, end="\n\n")
    helped = refused.index[result.status == "optimal"][:3]
    for applicant in helped:
        print(f"Applicant {applicant}: {result.explain(applicant)}", end="\n\n")
    again = card.score(result.after())  # ask the scorecard itself about the advised rows
    print(f"With this advice, the scorecard gives everybody at least {again.min():.1f} points.")


if __name__ == "__main__":
    main()
