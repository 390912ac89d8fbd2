"""A room knows the rooms before it: the order that CONTRIBUTING draws, read from every import."""

import ast
import re
from pathlib import Path

import pytest

import softclt

SRC = Path(softclt.__file__).parent
DRAWING = Path(__file__).parents[1] / "CONTRIBUTING.md"


def drawn_rooms():
    """Rooms in the order of the drawing, each with its sentence."""
    block = re.search(r"## The house\n.*?```\n(.*?)```", DRAWING.read_text(), re.DOTALL).group(1)
    rooms = {}
    for line in block.splitlines():
        names, _, sentence = line.partition("  ")
        rooms |= {name.rstrip("/"): sentence.strip() for name in names.split()}
    return rooms


def modules():
    """All modules of the package by their dotted name."""
    found = {}
    for path in SRC.rglob("*.py"):
        parts = path.relative_to(SRC.parent).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def room_of(module):
    return module.split(".")[1] if "." in module else ""


def imports(path):
    """Every module of the package that a file imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            for alias in node.names:
                whole = node.module == "softclt" and alias.name != "__version__"
                yield (f"softclt.{alias.name}" if whole else node.module or ""), node.lineno


def runtime_imports(path, found):
    """Modules of the package that a file imports when it runs, sooner or later."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    types_only = [
        n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CH" in ast.dump(n.test)
    ]
    skipped = {id(inner) for node in types_only for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in found)
        elif isinstance(node, ast.ImportFrom) and node.module in found:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in found else node.module


def circles(found):
    """Groups of modules that import each other, at the top or in functions."""
    edges = {m: set(runtime_imports(path, found)) - {m, "softclt"} for m, path in found.items()}
    edges["softclt"] = set()  # the front door, again
    left = dict(edges)
    while leaves := [m for m, targets in left.items() if not targets & left.keys()]:
        for module in leaves:
            del left[module]
    back = {m: {o for o in left if m in left[o]} for m in left}
    while roots := [m for m, sources in back.items() if not sources & back.keys()]:
        for module in roots:
            del back[module]
    return sorted(back)


def against_the_order(found, order):
    """Imports of a room that stands later, as sentences."""
    place = {name: i for i, name in enumerate(order)}
    wrong = []
    for module, path in found.items():
        here = room_of(module)
        if here in ("", "__main__"):  # the front door opens every room, on first use
            continue
        for target, line in imports(path):
            there = room_of(target) if target.startswith("softclt.") else ""
            if there and place[there] > place[here]:
                wrong.append(f"{module}, line {line}: {here} must not know {there}")
    return wrong


def test_the_drawing_has_every_room_and_no_other():
    assert sorted(drawn_rooms()) == sorted({room_of(m) for m in modules()} - {"", "__main__"})
    assert all(drawn_rooms().values())


def test_no_room_knows_one_that_comes_after_it():
    assert against_the_order(modules(), list(drawn_rooms())) == []


@pytest.mark.parametrize(
    "line",
    [
        "from softclt.tasks import tasks",
        "from softclt import tasks",
        "import softclt.tasks",
        "def late():\n    from softclt.tasks.result import Result",
    ],
)
def test_an_import_against_the_order_is_found_wherever_it_stands(line, tmp_path):
    path = tmp_path / "bad.py"
    path.write_text(line)
    (found,) = against_the_order({"softclt.losses.bad": path}, list(drawn_rooms()))
    assert found.endswith("losses must not know tasks")


def test_no_modules_import_each_other_not_even_inside_functions():
    assert circles(modules()) == []


def test_a_circle_is_found_wherever_it_closes(tmp_path):
    files = {
        "softclt.losses.one": "from softclt.losses.two import b",
        "softclt.losses.two": "def late():\n    from softclt.losses import three",
        "softclt.losses.three": "import softclt.losses.one",
        "softclt.losses.four": "from softclt.losses import one",
        "softclt.losses": "if TYPE_CHECKING:\n    from softclt.losses.four import d",
    }
    found = {}
    for name, text in files.items():
        found[name] = tmp_path / f"{name}.py"
        found[name].write_text(text)
    assert circles(found) == ["softclt.losses.one", "softclt.losses.three", "softclt.losses.two"]
