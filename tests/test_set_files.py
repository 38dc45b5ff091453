"""Sets of models in files: every number survives to the bit, and what is wrong is said."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Ellipsoid, LastLayer, ModelList, NormBall
from holdfast.files.model_sets import (
    MODEL_SET,
    model_set_from_plain,
    model_set_to_plain,
    read_model_set,
    save_model_set,
)
from holdfast.machinery import plain_files
from holdfast.machinery.plain_files import load_plain

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
POSITIVE = st.floats(0.0, 1e300)
SUFFIXES = st.sampled_from([".json", ".yaml", ".yml"])


@st.composite
def balls(draw):
    scale = draw(st.none() | st.lists(POSITIVE, min_size=1, max_size=4))
    intercept = draw(st.booleans() | POSITIVE)
    p = draw(st.floats(1.0, math.inf))
    return NormBall(p=p, radius=draw(POSITIVE), scale=scale, intercept=intercept)


@st.composite
def ellipsoids(draw):
    count = draw(st.integers(1, 4))
    seed = draw(st.integers(0, 2**32))
    root = np.random.default_rng(seed).normal(size=(count, count))
    size = draw(st.sampled_from([1e-9, 1.0, 1e9]))
    return Ellipsoid(size * root @ root.T, draw(st.floats(0.0, 1e9)), intercept=draw(st.booleans()))


@st.composite
def lists(draw):
    width = draw(st.integers(1, 3))
    model = st.tuples(st.lists(FINITE, min_size=width, max_size=width), FINITE)
    return ModelList(draw(st.lists(model, min_size=1, max_size=4)))


def bits(models):
    if isinstance(models, NormBall):
        scale = () if models.scale is None else models.scale
        given = (models.p, models.radius, *scale, float(models.intercept))
        return type(models.intercept), np.array(given).tobytes()
    if isinstance(models, Ellipsoid):
        width = len(models.covariance) - models.intercept
        parts = (models.covariance, models.factor(width))
        return models.intercept, models.radius, *(part.tobytes() for part in parts)
    return models.coefs.tobytes(), models.intercepts.tobytes()


@settings(max_examples=75, deadline=None)
@given(models=st.one_of(balls(), ellipsoids(), lists()), suffix=SUFFIXES)
def test_every_number_survives_to_the_bit(models, suffix, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / f"set{suffix}"
    save_model_set(models, path)
    found = read_model_set(str(path))
    assert type(found) is type(models)
    assert bits(found) == bits(models)
    again = model_set_from_plain(json.loads(json.dumps(model_set_to_plain(models))))
    assert bits(again) == bits(models)


TYPED = {
    "p=1,radius=0.1": NormBall(p=1, radius=0.1),
    " radius = 2e-3 , p = 2 ": NormBall(p=2, radius=0.002),
    "p=inf,radius=0.2,intercept=false": NormBall(p=math.inf, radius=0.2, intercept=False),
    "p=1.5,radius=0,intercept=0.25": NormBall(p=1.5, radius=0, intercept=0.25),
}


@pytest.mark.parametrize("text", TYPED)
def test_balls_can_be_typed(text):
    assert read_model_set(text) == TYPED[text]


BAD_TEXTS = {
    "": "is not a set of models; write p=1,radius=0.1",
    "fisher": "'fisher' is not a set of models; write",
    "set.txt": "is not a set of models; write",
    "p=1": "lacks radius; write",
    "radius=1": "lacks p; write",
    "p=1,radius=0.1,": "'' cannot be read; write",
    "p=1,radius=0.1,size=2": "'size=2' cannot be read; write",
    "p=1,p=2,radius=1": "has p twice",
    "p=one,radius=1": "p = 'one' is not allowed; it must be a number",
    "p=0.5,radius=1": "p = 0.5 is not allowed; it must be from 1 to inf",
    "p=1,radius=-1": "radius = -1.0 is not allowed; it must be at least 0",
    "p=1,radius=nan": "radius = nan is not allowed",
    "p=1,radius=1,intercept=perhaps": "it must be true, false or a number",
    "none.yaml": "none.yaml cannot be read: No such file",
}


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_what_is_wrong_in_a_text_is_said(text):
    with pytest.raises((ValueError, OSError)) as error:
        read_model_set(text)
    assert BAD_TEXTS[text] in str(error.value)


def ball(**changes):
    given = {"holdfast_model_set": 1, "type": "ball", "p": 1, "radius": 0.1, **changes}
    return {key: value for key, value in given.items() if value is not ...}


def ellipsoid(covariance):
    given = {"holdfast_model_set": 1, "type": "ellipsoid", "radius": 1}
    return {**given, "covariance": covariance}


BAD_FILES = {
    "nothing": (None, "it is empty"),
    "a list": ([], "it is a list"),
    "no version": (ball(holdfast_model_set=...), "'holdfast_model_set' is missing"),
    "another version": (ball(holdfast_model_set=2), "holdfast_model_set: must be 1, not 2"),
    "another type": (ball(type="cube"), "must be one of 'ball', 'ellipsoid', 'list', not 'cube'"),
    "no radius": (ball(radius=...), "'radius' is missing"),
    "a text": (ball(radius="1"), "radius: must be a number, not '1'"),
    "a negative radius": (ball(radius=-1), "radius: must be at least 0, not -1"),
    "an unknown key": (ball(size=1), "unknown name 'size'"),
    "a negative scale": (ball(scale=[1, -1]), "scale = [1, -1] is not allowed"),
    "no rows": (ellipsoid([]), "covariance: must hold at least 1, not []"),
    "no square": (ellipsoid([[1, 2]]), "every row must have 1 numbers"),
    "no covariance": (ellipsoid([[1, 2], [3, 4]]), "covariance is not symmetric"),
    "no model": (
        {"holdfast_model_set": 1, "type": "list", "models": []},
        "models: must hold at least 1, not []",
    ),
}


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
@pytest.mark.parametrize("case", BAD_FILES)
def test_what_is_wrong_in_a_file_is_said(case, suffix, tmp_path):
    content, message = BAD_FILES[case]
    path = tmp_path / f"set{suffix}"
    path.write_text(json.dumps(content))  # which is YAML as well
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the message follows
        read_model_set(path)
    assert message in str(error.value)
    assert str(error.value).startswith(str(path))


@pytest.mark.slow
def test_a_large_set_is_for_json(tmp_path):
    models = ModelList([([0.1 + k] * 1000, 0.5) for k in range(1000)])
    with pytest.raises(ValueError, match=r"large\.yaml is larger than 5,000,000 bytes, which is "
                       r"too large for a model set in YAML; use a \.json file"):  # fmt: skip
        save_model_set(models, tmp_path / "large.yaml")
    assert not (tmp_path / "large.yaml").exists()
    (tmp_path / "large.yaml").write_text("models: [" + "0, " * 2_000_000 + "0]")
    with pytest.raises(ValueError, match="too large for a model set in YAML"):
        read_model_set(tmp_path / "large.yaml")
    save_model_set(models, tmp_path / "large.json")
    assert bits(read_model_set(tmp_path / "large.json")) == bits(models)


def test_numbers_to_the_base_of_60_are_texts(tmp_path):
    """YAML 1.1 reads 1:1:1 as 3661."""
    for wrong in ("1:1:1", "1:30.5"):
        path = tmp_path / "set.yaml"
        path.write_text(f"holdfast_model_set: 1\ntype: ball\np: 1\nradius: {wrong}\n")
        with pytest.raises(ValueError, match=f"radius: must be a number, not '{wrong}'"):
            read_model_set(path)


def test_merge_keys_are_refused(tmp_path):
    path = tmp_path / "set.yaml"
    path.write_text("holdfast_model_set: 1\ntype: ball\np: 1\nradius: 1\n<<: {radius: 5}\n")
    with pytest.raises(ValueError, match="the merge key << is not allowed; write out what it"):
        read_model_set(path)


def test_yaml_is_read_alike_without_libyaml(tmp_path, monkeypatch):
    path = tmp_path / "set.yaml"
    path.write_text("a: [1:30, 1.5e+3, .inf, 0x1F, yes, 1_000, text, '2', ~]\n")
    fast = load_plain(path, MODEL_SET)
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    plain_files._yaml_loader.cache_clear()
    try:
        slow = load_plain(path, MODEL_SET)
    finally:
        plain_files._yaml_loader.cache_clear()
    assert fast == slow == {"a": ["1:30", 1500.0, math.inf, 31, True, 1000, "text", "2", None]}


def test_sets_that_no_file_can_hold_are_refused(tmp_path):
    layer = LastLayer.__new__(LastLayer)
    with pytest.raises(TypeError, match="cannot be written to a file"):
        save_model_set(layer, tmp_path / "set.yaml")
    with pytest.raises(ValueError, match="does not end in one of"):
        save_model_set(NormBall(p=1, radius=1), tmp_path / "set.txt")
    assert not list(tmp_path.iterdir())


@settings(max_examples=75, deadline=None)
@given(content=st.binary(max_size=100) | st.text(max_size=60).map(str.encode), suffix=SUFFIXES)
def test_any_file_is_refused_in_words(content, suffix, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the message follows
        read_model_set(path)
    assert str(error.value).startswith(str(path))


@settings(max_examples=75, deadline=None)
@given(text=st.text(max_size=30))
def test_any_text_is_refused_in_words(text):
    with pytest.raises((ValueError, OSError)):
        read_model_set(text)
