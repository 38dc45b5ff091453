"""The rules of the house: which rooms may import which, and what `import holdfast` may load."""

from __future__ import annotations

import ast
import doctest
import fnmatch
import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import holdfast
from holdfast.machinery.compile import kernel_sources

PACKAGE = Path(holdfast.__file__).parent
ROOMS = sorted(PACKAGE.rglob("*.py"))

# The house from the ground up: a room imports only rooms of the floors below its own.
FLOOR_PLAN = [
    {"machinery"},  # 1: how kernels are compiled, and numbers, threads and files handled
    {"problem", "datasets"},  # 2: what is asked, of whom, and the tables to try it on
    {"core", "certificate", "result"},  # 3: solve it, bound it; how all answer
    {"continuous", "discrete", "models"},  # 4: proven answers of both kinds; scores read off models
    {"actions", "methods", "sets", "evaluate"},  # 5: what people can do, and models may become
    {"recommend", "calibration", "fitting"},  # 6: advice in raw units, and what it rests on
    {"files"},  # 7: all of that read from files, and written to them
    {"engines", "report"},  # 8: many people at once; pages and letters
    {"web", "demo", "paper"},  # 9: wings, each a use of the whole
    {"cli"},  # 10: the door
]
FLOORS = {room: floor for floor, rooms in enumerate(FLOOR_PLAN) for room in rooms}


def room_of(path: Path) -> str:
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "cli" if room == "__main__" else room


def modules_of(code: str) -> set[str]:
    """Modules of ours that are imported by code, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module == "holdfast":
            found |= {f"holdfast.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name == "holdfast" or name.startswith("holdfast.")}


def imports_of(code: str) -> set[str]:
    """Rooms imported by code."""
    return {(*name.split("."), "__init__")[1] for name in modules_of(code)}


def doctests_of(path: Path) -> str:
    """The code that the docstrings of a file show."""
    places = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, places)]
    parser = doctest.DocTestParser()
    return "".join(
        example.source
        for node in nodes
        for example in parser.get_examples(ast.get_docstring(node) or "")
    )


def test_every_room_has_a_floor():
    there = {room_of(path) for path in ROOMS} - {"__init__"}
    assert there == set(FLOORS)
    assert sum(len(rooms) for rooms in FLOOR_PLAN) == len(FLOORS), "a room is on two floors"


def test_the_floors_are_drawn_as_they_are():
    """The table that newcomers read says what is enforced here."""
    drawn = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^ *\| +(\d+) \| ([^|]+) \|", drawn, flags=re.MULTILINE)
    floors = {int(floor): set(re.findall("`(.*?)`", rooms)) for floor, rooms in rows}
    assert floors == dict(enumerate(FLOOR_PLAN, start=1))


def test_newcomers_are_sent_to_files_that_there_are():
    """The table of rules, and the headings of the mathematics."""
    root = Path(__file__).parents[1]
    rules = re.findall(r"^ *\| [^|]+ \| (`.*`) \|$", (root / "CONTRIBUTING.md").read_text(), re.M)
    formulas = re.findall(r"^#.*\((`.*`)\)$", (root / "docs/mathematics.md").read_text(), re.M)
    assert len(rules) > 12
    assert len(formulas) > 10
    for place in re.findall("`([^`]+)`", " ".join([*rules, *formulas])):
        file = PACKAGE / place
        assert file.exists() or file.with_suffix(".py").exists(), place


def test_only_the_door_leads_to_the_paper():
    outside = [path for path in ROOMS if room_of(path) != "paper"]
    doors = {path.name for path in outside if "paper" in imports_of(path.read_text())}
    assert doors == {"methods.py", "reproduce.py"}


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    room = room_of(path)
    if room == "__init__":
        return
    for other in imports_of(path.read_text()) - {room}:
        assert other in FLOORS, f"{path} must import from a room, not from the package"
        assert FLOORS[other] < FLOORS[room], f"{room} must not import {other}"


def test_doctests_of_the_product_do_without_the_paper():
    """Examples may show what stands above them, but nothing that belongs to the paper alone."""
    for path in ROOMS:
        if room_of(path) != "paper":
            assert "paper" not in imports_of(doctests_of(path)), path


def test_the_certificate_knows_nothing_of_the_solvers():
    assert "core" not in imports_of((PACKAGE / "certificate.py").read_text())
    for path in (PACKAGE / "core").glob("*.py"):
        assert "certificate" not in imports_of(path.read_text())


def files_imported_by(path: Path) -> set[Path]:
    """The files of the package whose names a file imports, from wherever in its code."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    places = [PACKAGE.parent.joinpath(*name.split(".")) for name in modules]
    files = {file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")}
    return files & set(ROOMS)


KERNEL_FILES = [path for path in ROOMS if "kernel\ndef " in path.read_text()]


def test_machine_code_answers_to_all_that_kernels_are_made_of():
    sources = set(kernel_sources(PACKAGE))
    assert len(KERNEL_FILES) > 20
    assert sources >= set(KERNEL_FILES)
    for path in sources:
        missing = files_imported_by(path) - sources
        assert not missing, f"{path} may lend kernels something of {missing}"


def test_machine_code_stays_valid_when_other_rooms_change():
    """Those beside or above the last room with kernels, but for the wing of the paper."""
    with_kernels = {room_of(path) for path in KERNEL_FILES}
    last = max(FLOORS[room] for room in with_kernels - {"paper"})
    others = {room for room, floor in FLOORS.items() if floor >= last} - with_kernels
    assert "recommend" in others
    assert not others & {room_of(path) for path in kernel_sources(PACKAGE)}


def test_only_kernels_may_go_untyped():
    """Every module that need not say its types holds kernels, or is one of a room that does."""
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    (loose,) = (
        each["module"]
        for each in settings["tool"]["mypy"]["overrides"]
        if each.get("disallow_untyped_defs") is False
    )
    with_kernels = {".".join(path.relative_to(PACKAGE.parent).parts) for path in KERNEL_FILES}
    for name in loose:
        assert any(fnmatch.fnmatch(module, f"{name}.py") for module in with_kernels), name


@pytest.mark.parametrize(
    "what",
    [
        "import holdfast",
        "from holdfast.evaluate import evaluate_recourse",
        "from holdfast.paper import Algorithm1, RoarAsPublished, RobustBayesianAsPublished",
    ],
)
def test_importing_is_light(what):
    code = f"import sys; {what}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"torch", "matplotlib", "sklearn", "pandas", "fastapi", "flask", "cvxpy", "rich"}
    heavy |= {"jsonschema", "statsmodels"}  # numba loads yaml wherever it is installed
    assert not heavy & set(loaded)


def test_machine_code_is_kept_for_one_state_of_all_sources(tmp_path):
    """Change any source, and another directory is used: no stale kernels."""
    copy = tmp_path / "holdfast"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    code = "from holdfast.machinery import compile; print(compile.CACHE_DIRECTORY)"

    def directory() -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        ).stdout.strip()

    before = directory()
    assert directory() == before
    for name in ("core/kinds.py", "problem/problem.py", "machinery/numbers.py"):
        path = copy / name
        path.write_text(path.read_text() + "\n# changed\n")
        after = directory()
        assert after != before, name
        before = after


def public_name(node: ast.stmt) -> str | None:
    """The name that a class, a function or an alias of types brings into its module."""
    name = None
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        name = node.name
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
        if not re.match("[A-Z]+[a-z]", name):  # a constant, or a private one
            return None
    return None if name is None or name.startswith("_") else name


def test_a_name_is_one_thing():
    """Classes, aliases of types, and functions that others may import, have names of their own."""
    places: dict[str, list[str]] = {}
    for path in ROOMS:
        for node in ast.parse(path.read_text()).body:
            if name := public_name(node):
                places.setdefault(name, []).append(str(path.relative_to(PACKAGE)))
    several = {name: files for name, files in places.items() if len(files) > 1}
    assert not several


def test_functions_take_few_things():
    """More than eight only by name at a door, or as the plain arrays of a kernel."""
    for path in ROOMS:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            marks = " ".join(ast.unparse(mark) for mark in node.decorator_list)
            if "kernel" in marks or "choice" in marks:
                continue
            given = [*node.args.posonlyargs, *node.args.args]
            given = [each for each in given if each.arg not in ("self", "cls")]
            assert len(given) <= 8, f"{path}: {node.name} takes {len(given)}"


def imports_from(path: Path) -> set[tuple[str, str]]:
    """What a script takes from the package, wherever in its code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holdfast"):
            found |= {(str(node.module), alias.name) for alias in node.names}
    return found


def test_scripts_import_what_there_is():
    root = Path(__file__).parent.parent
    scripts = [
        path for room in ("benchmarks", "experiments") for path in (root / room).glob("*.py")
    ]
    assert len(scripts) > 8
    for path in scripts:
        for module, name in imports_from(path):
            place = importlib.import_module(module)
            assert hasattr(place, name) or importlib.import_module(f"{module}.{name}"), path
