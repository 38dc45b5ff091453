"""The service for programs: the same answers as in Python, to the bit, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Body, Depends
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
)
from pydantic_core import PydanticCustomError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from holdfast.actions import NumberFeature
from holdfast.files.model_sets import model_set_to_plain
from holdfast.machinery.plain import plain_of
from holdfast.machinery.plain_files import checksum
from holdfast.machinery.versions import versions
from holdfast.models.encoding import Encoding
from holdfast.models.encoding.reading import is_missing
from holdfast.result.columns import PROVEN
from holdfast.result.status import Status
from holdfast.web.desk import Desk
from holdfast.web.safety import SafeRoute, UnfitError

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.recommend import Recommendations

MOST_PEOPLE = 1000
MOST_TIMES = 1e6  # what is dearer can be locked
MOST_RADIUS = 1e9  # of models whose columns are scaled, that is all of them
CellValue = StrictInt | StrictFloat | StrictStr | StrictBool | None


def _one_fault(words: str) -> WrapValidator:
    """Say once what was expected, instead of once for each kind that it could have been."""

    def check(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
        try:
            return read(value)
        except ValidationError:
            raise PydanticCustomError("unexpected", "{words}", {"words": words}) from None

    return WrapValidator(check)


AskedCell = Annotated[CellValue, _one_fault("a string, a number, true, false or null was expected")]
AskedNumber = Annotated[StrictInt | StrictFloat | None, _one_fault("a number was expected")]


class _Plain(BaseModel):
    model_config = ConfigDict(extra="forbid")


# --- what is asked


class NumberPreference(_Plain):
    """What a person says of a number; it only ever makes the action set tighter, or dearer."""

    locked: StrictBool = Field(False, description="Keep it as it is.")
    change_by: StrictFloat | None = Field(None, ge=0, description="Change it by at most this much.")
    lower: StrictFloat | None = Field(None, description="Not below this.")
    upper: StrictFloat | None = Field(None, description="Not above this.")
    times: StrictFloat = Field(
        1.0, ge=1, le=MOST_TIMES, description="Count it this many times as costly."
    )


class CategoryPreference(_Plain):
    """What a person says of a category; it only ever makes the action set tighter, or dearer."""

    locked: StrictBool = Field(False, description="Keep it as it is.")
    avoid: list[AskedCell] = Field([], description="Levels to avoid.")
    times: StrictFloat = Field(
        1.0, ge=1, le=MOST_TIMES, description="Count it this many times as costly."
    )


# --- what is answered


class ChangeAnswer(_Plain):
    """One change."""

    feature: str
    before: CellValue = Field(alias="from", description="null: not given today.")
    after: CellValue = Field(alias="to")


class WayAnswer(_Plain):
    """One way, and its proof."""

    option: int = Field(ge=1)
    status: Status
    changes: list[ChangeAnswer]
    words: str = Field(description="The changes in words: 'duration from 48 to 36 months'.")
    cost: float
    price: float = Field(description="What was minimised; with a guarantee, the cost.")
    lower_bound: float = Field(description="Proven: no price is lower than this.")
    gap: float = Field(description="Price minus lower bound; 0 up to rounding if it is optimal.")
    worst_case_validity: float | None = Field(
        description="The probability under the worst model of the set."
    )
    current_validity: float | None = Field(description="The probability under today's model.")
    worst_case_points: float | None
    current_points: float | None
    recourse: dict[str, CellValue] = Field(description="The person after following it, by column.")


class PersonAnswer(_Plain):
    """What became of one person."""

    row: int = Field(ge=0, description="The position among the people in the request, from 0.")
    status: Status
    reason: str = Field(description="What the status means, or why the row cannot be used.")
    approved: bool | None = Field(
        description="Whether today's model approves the person as they are; null if the row "
        "cannot be used."
    )
    initial_validity: float | None = Field(
        description="The probability that today's model gives; null without probabilities."
    )
    initial_points: float | None = Field(description="null without a scale of points.")
    explanation: str | None = Field(description="All of it in words, if requested.")
    ways: list[WayAnswer]


class RecourseAnswer(_Plain):
    """What became of all, in their order."""

    people: list[PersonAnswer]


class FeatureAnswer(_Plain):
    """A column of people."""

    name: str
    kind: Literal["number", "category", "unused"]
    unit: str
    can_change: bool
    integer: bool
    step: float | None
    lower: float | None
    upper: float | None
    levels: list[CellValue]


class ModelAnswer(_Plain):
    """What answers rest on."""

    model: str = Field(description="The kind of the classifier.")
    features: list[FeatureAnswer]
    robust_to: dict[str, Any] = Field(description="The set of models, without its matrices.")
    crowd: str = Field(description="The set of models, in words.")
    guarantee: float | None
    guarantee_points: float | None
    cost_weight: float | None
    points: dict[str, float] | None
    threshold: float | None = Field(
        description="The lowest probability that today's model approves; null if it has none."
    )
    favorable_class: CellValue
    versions: dict[str, str]
    checksums: dict[str, str] = Field(description="SHA-256 of the files.")


class Fault(_Plain):
    """What was wrong."""

    message: str
    where: str | None = Field(description="The part of the request: people[3].age.")


class FaultAnswer(_Plain):
    """What was wrong."""

    error: Fault


class HealthAnswer(_Plain):
    """It answers."""

    status: Literal["ok"]


_FAULTS: dict[int | str, dict[str, Any]] = {
    status: {"model": FaultAnswer, "description": description}
    for status, description in {
        400: "The request cannot be read, or names another host.",
        401: "The token is missing.",
        403: "It was sent by a page of another site.",
        408: "The body did not arrive in time.",
        413: "The body is too large.",
        415: "The body is not JSON.",
        422: "The request does not fit the model; `where` says which part of it.",
        500: "A bug in Holdfast.",
        503: "Too many requests; try again.",
        504: "No answer was found in time; ask for less at a time.",
    }.items()
}


def _some(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: _FAULTS[status] for status in statuses}


# --- the routes


def make_api(desk: Desk) -> APIRouter:
    """Return the routes for programs."""
    router = APIRouter()
    asked_of = _request_of(desk)
    model = plain_of(_about(desk))

    def recourse(asked: Any) -> JSONResponse:
        return JSONResponse(_answer(desk, asked))

    recourse.__annotations__["asked"] = Annotated[asked_of, Body(openapi_examples=_examples(desk))]
    router.add_api_route(
        "/v1/recourse",
        recourse,
        methods=["POST"],
        summary="What people can change",
        response_model=RecourseAnswer,
        responses=_some(400, 401, 403, 408, 413, 415, 422, 500, 503, 504),
        dependencies=[Depends(_need_json)],
        route_class_override=SafeRoute,
    )

    @router.get(
        "/v1/model",
        summary="What the answers are based on",
        response_model=ModelAnswer,
        responses=_some(400, 401, 500),
    )
    async def about() -> JSONResponse:
        return JSONResponse(model)

    @router.get(
        "/healthz",
        summary="Whether the service answers",
        response_model=HealthAnswer,
        responses=_some(400, 500),
    )
    async def health() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    return router


def _need_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "send JSON, with the header Content-Type: application/json")


def _request_of(desk: Desk) -> type[BaseModel]:
    """Return the model of a request: the columns of a person, and what they can have wishes of."""
    person = _model_of("Person", {name: (_kind(desk, name), ...) for name in desk.columns.levels})
    wishes: dict[str, Any] = {}
    for name in desk.actions:
        is_number = isinstance(desk.actions[name], NumberFeature)
        wishes[name] = ((NumberPreference if is_number else CategoryPreference) | None, None)
    preferences = _model_of("Preferences", wishes)
    has_size = desk.recourse.robust_to.has_size
    size: Any = Annotated[StrictFloat, Field(ge=0, le=MOST_RADIUS)] | None if has_size else None
    return create_model(
        "RecourseRequest",
        __base__=_Plain,
        people=(
            list[person],  # type: ignore[valid-type]
            Field(
                min_length=1, max_length=MOST_PEOPLE, description="One dictionary for each person."
            ),
        ),
        n_options=(
            StrictInt,
            Field(
                1,
                ge=1,
                le=3,
                description="How many ways to look for; they change different features.",
            ),
        ),
        radius=(
            size,
            Field(
                None, description="Another size of the set of models; null: the size in use here."
            ),
        ),
        preferences=(
            preferences,
            Field(
                default_factory=preferences,
                description="The preferences of everybody in this request, by feature.",
            ),
        ),
        explain=(StrictBool, Field(False, description="Whether to explain it in words as well.")),
    )


def _model_of(name: str, fields: dict[str, tuple[Any, Any]]) -> type[BaseModel]:
    """Return a model whose fields are called as columns are, which may be called anything."""
    named = {
        f"field_{k}": (kind, Field(default, alias=column, title=column))
        for k, (column, (kind, default)) in enumerate(fields.items())
    }
    return create_model(name, __base__=_Plain, **named)  # type: ignore[call-overload, no-any-return]


def _kind(desk: Desk, name: str) -> Any:
    """Return what the cells of a column are; whoever lacks a value has null."""
    levels = desk.columns.levels[name]
    if levels is None:
        return Annotated[StrictFloat | None, Field(description=_range(desk, name))]
    kinds = {"t" if isinstance(k, str) else "b" if isinstance(k, bool) else "n" for k in levels}
    if len(kinds) != 1:  # mixed, or the model does not feel it
        return AskedCell
    known = Field(description="One of " + ", ".join(map(repr, levels)) + ".")
    cells: dict[str, Any] = {"t": StrictStr | None, "b": StrictBool | None, "n": AskedNumber}
    return Annotated[cells[kinds.pop()], known]


def _range(desk: Desk, name: str) -> str:
    feature = desk.feature(name)
    if not isinstance(feature, NumberFeature):
        return "A number."
    unit = f" in {feature.unit}" if feature.unit else ""
    return f"A{' whole' if feature.integer else ''} number{unit}."


def _examples(desk: Desk) -> dict[str, Any]:
    """Return requests that work."""
    person = plain_of(desk.somebody())
    free = [name for name in desk.actions if not desk.actions[name].stays]
    wishes = {free[0]: {"locked": True}} if free else {}
    contents: dict[str, dict[str, Any]] = {
        "One person": {"people": [person]},
        "Several ways, in words": {"people": [person, person], "n_options": 3, "explain": True},
        "With a preference": {"people": [person], "preferences": wishes},
    }
    if desk.recourse.robust_to.has_size:
        contents["For today's model alone"] = {"people": [person], "radius": 0.0}
    return {name: {"summary": name, "value": content} for name, content in contents.items()}


# --- from JSON and to JSON


def _answer(desk: Desk, asked: Any) -> dict[str, Any]:
    people = _frame(desk, asked.people)
    wishes = asked.preferences.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
    with _fitting("preferences"):
        desk.asking(wishes, asked.radius)
    settings = {"preferences": wishes, "radius": asked.radius, "n_options": asked.n_options}
    with _fitting("people"):
        return {"people": desk.ask(_told, people, settings, asked.explain)}


def _told(
    desk: Desk, people: pd.DataFrame, settings: dict[str, Any], explain: bool
) -> list[dict[str, Any]]:
    return _people(desk.recommend(people, **settings), people, explain)


@contextmanager
def _fitting(where: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise UnfitError(str(error), where) from None


def _frame(desk: Desk, people: list[BaseModel]) -> pd.DataFrame:
    """Return people as the model takes them."""
    import pandas as pd

    rows = [list(person.__dict__.values()) for person in people]
    columns: dict[str, Any] = {}
    for k, (name, levels) in enumerate(desk.columns.levels.items()):
        cells = [row[k] for row in rows]
        if levels is None:
            columns[name] = np.array(cells, dtype=np.float64)  # None becomes NaN
        elif levels:
            columns[name] = pd.Series(cells, dtype=object)
        else:  # the model does not feel it
            columns[name] = pd.Series(cells)
    return pd.DataFrame(columns)


def _people(result: Recommendations, people: pd.DataFrame, explain: bool) -> list[dict[str, Any]]:
    frame = result.to_frame()
    names = list(people.columns)
    before = [people[name].tolist() for name in names]
    after = [frame[f"recourse.{name}"].tolist() for name in names]
    told = {name: plain_of(frame[name].tolist()) for name in frame.columns[: -len(names)]}
    found: list[dict[str, Any]] = []
    for place, row in enumerate(frame.index.tolist()):
        line = {name: values[place] for name, values in told.items()}
        if not found or found[-1]["row"] != row:
            found.append(_person(result, row, line, explain))
        if line["option"]:
            was, is_now = [each[row] for each in before], [each[place] for each in after]
            found[-1]["ways"].append(_way(line, names, was, is_now))
    return found


def _person(
    result: Recommendations, row: int, line: dict[str, Any], explain: bool
) -> dict[str, Any]:
    status = result.status_of(row)
    usable = status is not Status.INVALID_INPUT
    return {
        "row": row,
        "status": str(status),
        "reason": status.sentence if usable else result.why_refused(row),
        "approved": line["approved"],
        "initial_validity": line["initial_validity"],
        "initial_points": line.get("initial_points"),
        "explanation": result.explain(row) if explain else None,
        "ways": [],
    }


def _way(
    line: dict[str, Any], names: list[str], was: list[Any], is_now: list[Any]
) -> dict[str, Any]:
    changes = [
        {"feature": name, "from": plain_of(old), "to": plain_of(new)}
        for name, old, new in zip(names, was, is_now, strict=True)
        if old != new and not (is_missing(old) and is_missing(new))
    ]
    numbers = (*PROVEN, "worst_case_validity", "current_validity")
    return {
        "option": line["option"],
        "status": line["status"],
        "changes": changes,
        "words": line["changes"],
        **{name: line[name] for name in numbers},
        "worst_case_points": line.get("worst_case_points"),
        "current_points": line.get("current_points"),
        "recourse": dict(zip(names, plain_of(is_now), strict=True)),
    }


def _about(desk: Desk) -> dict[str, Any]:
    recourse, job = desk.recourse, desk.job
    encoding = Encoding.of(recourse.model, favorable_class=recourse.favorable_class)
    loss = encoding.model.choose_loss(recourse.loss)
    threshold = None if loss.link is None else float(loss.probability(encoding.model.cutoff))
    models = model_set_to_plain(recourse.robust_to)
    files = {"model": job.model, "actions": job.actions}
    return {
        "model": _class_of(recourse.model),
        "features": [_feature(desk, name) for name in desk.columns.levels],
        "robust_to": {name: k for name, k in models.items() if not isinstance(k, list)},
        "crowd": recourse.robust_to.crowd,
        "guarantee": recourse.guarantee,
        "guarantee_points": recourse.guarantee_points,
        "cost_weight": recourse.cost_weight,
        "points": job.points,
        "threshold": threshold,
        "favorable_class": recourse.favorable_class,
        "versions": versions("numpy", "scipy", "numba", "pandas", "scikit-learn"),
        "checksums": {name: checksum(Path(path)) for name, path in files.items()},
    }


def _class_of(model: Any) -> str:
    """Return the kind of the classifier, at the end of a pipeline or alone."""
    while hasattr(model, "steps"):
        model = model.steps[-1][1]
    return type(model).__name__


def _feature(desk: Desk, name: str) -> dict[str, Any]:
    levels = desk.columns.levels[name]
    feature = desk.feature(name)
    return {
        "name": name,
        "kind": "number" if levels is None else "category" if levels else "unused",
        "unit": getattr(feature, "unit", ""),
        "can_change": feature is not None and not feature.stays,
        "integer": getattr(feature, "integer", False),
        "step": getattr(feature, "step", None),
        "lower": getattr(feature, "lower", None),
        "upper": getattr(feature, "upper", None),
        "levels": list(levels or ()),
    }
