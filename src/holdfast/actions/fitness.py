"""Whether an action set, a pipeline and some people go together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from holdfast.actions.action_set import ActionSet
from holdfast.actions.category import CategoryFeature
from holdfast.actions.derived import bundles_of
from holdfast.actions.joint import check_bundle, read_bundle
from holdfast.actions.number import NumberFeature
from holdfast.models.encoding import Category, Curve, Encoding
from holdfast.models.encoding.reading import Reading


def check_fit(encoding: Encoding, actions: ActionSet) -> None:
    """Refuse an action set that does not fit the pipeline."""
    for problem in misfits(encoding, actions):
        raise ValueError(problem)


def misfits(encoding: Encoding, actions: ActionSet) -> Iterator[str]:
    """Go through all that keeps an action set from fitting the pipeline, one sentence for each."""
    missing = [name for name in encoding.features if name not in actions]
    if missing:
        yield f"the action set has no features for the columns {missing}"
    for name, raw_feature in encoding.features.items():
        if name in missing:
            continue
        feature = actions[name]
        if isinstance(raw_feature, Category) and isinstance(feature, NumberFeature):
            yield (
                f"{name}: the pipeline reads it as a category, but the action set treats it as a "
                "number; draft it with ActionSet.from_data(table, encoding=...)"
            )
        if not isinstance(raw_feature, Category) and isinstance(feature, CategoryFeature):
            texts = [level for level in feature.levels if isinstance(level, str)]
            if texts:
                yield f"{name}: the pipeline reads it as a number, not as {texts[0]!r}"
    yield from _link_misfits(encoding, actions)


def _link_misfits(encoding: Encoding, actions: ActionSet) -> Iterator[str]:
    bundles = bundles_of(actions.derived, encoding.features)
    for bundle in bundles:
        try:
            check_bundle(bundle, actions)
        except ValueError as error:
            yield str(error)
    joined = {name: bundle for bundle in bundles for name in bundle.names}
    for link in actions.links:
        for name in link.names:
            if name in joined:
                if not joined[name].holds(link):
                    yield (
                        f"{link}: {name!r} is tried together with others, because "
                        f"{joined[name].key!r} is derived; it can only be linked with "
                        f"{', '.join(joined[name].names)}"
                    )
                continue
            if name not in encoding.features:
                yield f"{link}: the pipeline does not use {name!r}"
                continue
            raw_feature = encoding[name]
            if isinstance(raw_feature, Curve):
                yield (
                    f"{link}: {raw_feature.where} transforms or bins {name!r}; only numbers that "
                    "enter the model linearly can be linked"
                )


def read_derived(reading: Reading, frame: Any, encoding: Encoding, actions: ActionSet) -> None:
    """Refuse people whose derived features are not what they would be computed to be."""
    for bundle in bundles_of(actions.derived, encoding.features):
        read_bundle(bundle, reading, frame, actions)


def read_action_levels(
    reading: Reading, frame: Any, encoding: Encoding, actions: ActionSet
) -> None:
    """Refuse people with a level that the action set does not know; they could not move.

    Nor can those be used who miss a number that is linked with others.
    """
    for name in {name: None for link in actions.links for name in link.names}:
        if name not in reading.numbers:
            continue
        others = {n: None for link in actions.links if name in link.names for n in link.names}
        others.pop(name)
        for i in np.flatnonzero(np.isnan(reading.numbers[name])):
            if int(i) not in reading.reasons:
                said = f"{name} is missing, but it is linked with {' and '.join(others)}"
                reading.note(int(i), name, said)
    for name, raw_feature in encoding.features.items():
        feature = actions[name]
        if not isinstance(feature, CategoryFeature) or feature.stays:
            continue
        if not isinstance(raw_feature, Category):
            reading.read_levels(
                name,
                frame[name],
                feature.levels,
                "the action set",
                takes_missing=isinstance(raw_feature, Curve) and raw_feature.takes_missing,
            )
            continue
        foreign = [k for k, level in enumerate(raw_feature.levels) if level not in feature.levels]
        for i in np.flatnonzero(np.isin(reading.levels[name], foreign)):
            value = frame[name].iloc[int(i)]
            reading.refuse(int(i), name, value, "the action set has no such level")
