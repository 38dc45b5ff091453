"""Action sets as plain dicts and lists, for files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from holdfast.actions.action_set import ActionSet
from holdfast.actions.category import CategoryFeature
from holdfast.actions.derived import Derived, Product, Ratio
from holdfast.actions.links import AtMost, FeatureLink, Follows, Linear
from holdfast.actions.number import NumberFeature

VERSION = 1


def to_plain(actions: ActionSet) -> dict[str, Any]:
    """Return all settings that are not the default ones."""
    result: dict[str, Any] = {"holdfast_actions": VERSION}
    if actions.max_changes is not None:
        result["max_changes"] = actions.max_changes
    result["features"] = {name: _plain_feature(actions[name]) for name in actions}
    if len(actions.links):
        result["links"] = [_plain_link(link) for link in actions.links]
    if len(actions.derived):
        result["derived"] = [_plain_derived(each) for each in actions.derived]
    return result


def from_plain(content: dict[str, Any]) -> ActionSet:
    """Return the action set of a dict that satisfies the schema."""
    features = [_feature(name, dict(given)) for name, given in content["features"].items()]
    links = [_link(dict(given)) for given in content.get("links", ())]
    derived = [_derived(dict(given)) for given in content.get("derived", ())]
    return ActionSet(features, links, content.get("max_changes"), derived)


def _plain_feature(feature: Any) -> dict[str, Any]:
    kind = "number" if isinstance(feature, NumberFeature) else "category"
    default = feature.defaults()
    result: dict[str, Any] = {"type": kind}
    for key, value in feature.settings().items():
        # 0 and 0.0 are equal, but a file must not mix them up
        usual = key in default and type(value) is type(default[key]) and value == default[key]
        if not usual or key == "cost":
            result[key] = _plain_setting(key, value)
    return result


def _plain_setting(key: str, value: Any) -> Any:
    """Lists, and pairs instead of dicts: a key of JSON is always a text, a level is not."""
    if key == "moves":
        return [{"from": level, "to": list(targets)} for level, targets in value.items()]
    if isinstance(value, dict):
        return [{"from": a, "to": b, "cost": cost} for (a, b), cost in value.items()]
    return list(value) if isinstance(value, tuple) else value


def _feature(name: str, given: dict[str, Any]) -> NumberFeature | CategoryFeature:
    if given.pop("type") == "number":
        return NumberFeature(name, **given)
    if given.get("moves") is not None:
        given["moves"] = _unique(name, {move["from"]: move["to"] for move in given["moves"]}, given)
    if isinstance(given.get("cost"), list):
        given["cost"] = {(pair["from"], pair["to"]): pair["cost"] for pair in given["cost"]}
    return CategoryFeature(name, **given)


def _unique(name: str, moves: dict[Any, Any], given: dict[str, Any]) -> dict[Any, Any]:
    if len(moves) < len(given["moves"]):
        raise ValueError(f"{name}: moves has the same level in 'from' twice")
    return moves


_LINKS: dict[str, type[FeatureLink]] = {"at_most": AtMost, "follows": Follows, "linear": Linear}


def _plain_link(link: FeatureLink) -> dict[str, Any]:
    kind = next(name for name, known in _LINKS.items() if isinstance(link, known))
    return {"type": kind, **asdict(link)}


def _link(given: dict[str, Any]) -> FeatureLink:
    return _LINKS[given.pop("type")](**given)


def _plain_derived(each: Derived) -> dict[str, Any]:
    if isinstance(each, Ratio):
        return {"type": "ratio", **asdict(each)}
    return {"type": "product", "feature": each.feature, "of": list(each.of)}


def _derived(given: dict[str, Any]) -> Derived:
    return (Ratio if given.pop("type") == "ratio" else Product)(**given)
