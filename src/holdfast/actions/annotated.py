"""An action set as YAML with a comment on every setting, for people to edit."""

from __future__ import annotations

from typing import Any

from holdfast.actions.action_set import ActionSet
from holdfast.actions.number import NumberFeature
from holdfast.actions.plain import to_plain
from holdfast.machinery.plain_files import to_yaml

_HEAD = """\
# What a person can change, in the units of the table. This is a draft: go through it line by line.
#
# A line that begins with # is a comment. Unused settings are shown as comments, with an example;
# remove the # to use them. Whatever the settings, a person may always stay as they are.
# Check the file when you are done: holdfast actions check THIS_FILE model.skops
"""
_LINKS = """
# Links between numbers, if there are any:
# links:
#   - {type: at_most, smaller: FEATURE, larger: FEATURE}  # the first is never above the second
#   - {type: follows, feature: FEATURE, of: FEATURE, by: 1}  # moves by this much per unit of it
#   - {type: linear, coef: {FEATURE: 1, FEATURE: 1}, at_most: 100}  # the sum is never above it
"""
_DERIVED = """
# Numbers that are computed from others, and change with them:
# derived:
#   - {type: ratio, feature: FEATURE, of: FEATURE, to: FEATURE}
#   - {type: product, feature: FEATURE, of: [FEATURE, FEATURE]}
"""
_WIDE = 40  # where comments begin, if there is room

_NUMBER = {
    "unit": "its unit, for sentences",
    "immutable": "it may not change",
    "protected": "it may not change, and no explanation mentions it: age, sex",
    "direction": "any: up and down; up: it may only rise; down: it may only fall",
    "lower": "nobody is advised to go below this",
    "upper": "nobody is advised to go above this",
    "possible_lower": "lower values are impossible, even if `lower` is lifted",
    "possible_upper": "higher values are impossible, even if `upper` is lifted",
    "max_increase": "it may rise by at most this much from its current value",
    "max_decrease": "it may fall by at most this much from its current value",
    "physical": "settings that are facts, which nobody can lift",
    "step": "it may only change to multiples of this",
    "integer": "whether it may only change to whole numbers",
    "cost": "cost of changing it by one unit, relative to the other features",
    "fixed_cost": "cost of changing it at all, so that advice avoids tiny changes",
    "provide_cost": "cost of filling it in where it is missing; without it, it stays missing",
}
_NUMBER_EXAMPLES: dict[str, Any] = {
    "unit": "years",
    "immutable": True,
    "protected": True,
    "direction": "up",
    "lower": 0,
    "upper": 100,
    "possible_lower": None,
    "possible_upper": None,
    "max_increase": 10,
    "max_decrease": 10,
    "physical": ["direction"],
    "step": 1,
    "integer": True,
    "fixed_cost": 0.1,
    "provide_cost": 0.5,
}
_CATEGORY = {
    "levels": "all levels that exist",
    "immutable": "it may not change",
    "protected": "it may not change, and no explanation mentions it: sex, nationality",
    "moves": "which level may become which; the others may not change",
    "order": "from lowest to highest, if there is an order",
    "direction": "up or down the order, or any (needs `order`)",
    "allowed": "the only levels that may be chosen",
    "physical": "settings that are facts, which nobody can lift",
    "cost": "cost of a change; 1 is as much as a number's standard deviation",
    "cost_by": "step: the cost is per step in the order (needs `order`); or: switch",
    "fixed_cost": "fixed part of the cost of a change, on top of `cost`",
    "provide_cost": "cost of filling it in where it is missing; without it, it stays missing",
}


def annotated(actions: ActionSet) -> str:
    """Return an action set as YAML with comments; it is read as exactly the same set.

    Examples
    --------
    >>> from holdfast.actions import ActionSet, NumberFeature
    >>> text = annotated(ActionSet([NumberFeature("age", lower=18, direction="up")]))
    >>> print("\\n".join(text.splitlines()[12:17]))
      age:
        type: number
        direction: up                       # any: up and down; up: it may only rise; down: it may \
only fall
        lower: 18                           # nobody is advised to go below this
        cost: 1.0                           # cost of changing it by one unit, relative to the \
other features
    """
    content = to_plain(actions)
    lines = [_HEAD, f"holdfast_actions: {content['holdfast_actions']}  # version of this format"]
    most = content.get("max_changes")
    what = "how many features may change at once, at most"
    lines += ["", _line(0, "max_changes", most if most is not None else 3, what, most is not None)]
    lines += ["", "features:"]
    for name in actions:
        lines += _feature(name, actions[name], content["features"][name])
    for key, example in (("links", _LINKS), ("derived", _DERIVED)):
        if key in content:
            lines += ["", f"{key}:", *(f"  - {_inline(each)}" for each in content[key])]
        else:
            lines.append(example.rstrip("\n"))
    return "\n".join(lines) + "\n"


def _feature(name: str, feature: Any, given: dict[str, Any]) -> list[str]:
    number = isinstance(feature, NumberFeature)
    meanings = _NUMBER if number else _CATEGORY
    examples = _NUMBER_EXAMPLES if number else _category_examples(feature)
    lines = ["", f"  {_inline(name)}:"]
    lines += [_line(4, key, value, meanings.get(key, ""), True) for key, value in given.items()]
    unused = [key for key in meanings if key in examples and key not in given]
    lines += [_line(4, key, examples[key], meanings[key], False) for key in unused]
    return lines


def _category_examples(feature: Any) -> dict[str, Any]:
    levels = list(feature.levels)
    examples: dict[str, Any] = {
        "immutable": True,
        "protected": True,
        "moves": [{"from": levels[0], "to": [levels[-1]]}],
        "order": levels,
        "direction": "up",
        "allowed": levels,
        "physical": ["moves"],
        "cost_by": "step",
        "fixed_cost": 0.1,
        "provide_cost": 0.5,
    }
    return examples


def _line(indent: int, key: str, value: Any, meaning: str, used: bool) -> str:
    text = f"{' ' * indent}{'' if used else '# '}{key}: {_inline(value)}"
    if not meaning:  # the type says it all
        return text
    return f"{text:<{_WIDE}}# {meaning}" if len(text) < _WIDE else f"{text}  # {meaning}"


def _inline(value: Any) -> str:
    """Write a value on one line, as it may stand anywhere in YAML."""
    how: dict[str, Any] = {"width": 10**9, "default_flow_style": True}
    text = to_yaml([value], **how)
    if "\n" in text.rstrip("\n"):  # a text of several lines: with its breaks spelled out
        text = to_yaml([value], default_style='"', **how)
    return text.strip()[1:-1]
