"""Named things with tags."""

import pytest

from softclt import registry
from softclt.registry import Registry


@pytest.fixture
def shapes():
    shapes = Registry("shape")
    shapes.register("square", corners=4, flat=True)("a square")
    shapes.register("cube", corners=8, flat=False)("a cube")
    return shapes


def test_a_registered_thing_is_found_by_its_name(shapes):
    assert shapes["cube"] == "a cube"
    assert shapes.name_of("a cube") == "cube"
    assert "cube" in shapes
    assert "ball" not in shapes


def test_register_gives_the_thing_back():
    things = Registry("thing")

    @things.register("f")
    def f():
        return 1

    assert f() == 1
    assert things["f"] is f


def test_names_are_sorted_and_chosen_by_tags(shapes):
    assert shapes.names() == list(shapes) == ["cube", "square"]
    assert shapes.names(flat=True) == ["square"]
    assert shapes.names(flat=True, corners=8) == []
    assert shapes.names(colour="red") == []


def test_tags_are_a_copy(shapes):
    shapes.tags("cube")["corners"] = 0
    assert shapes.tags("cube") == {"corners": 8, "flat": False}


def test_an_unknown_name_lists_the_known_ones(shapes):
    for ask in (shapes.__getitem__, shapes.tags):
        with pytest.raises(ValueError, match="unknown shape 'ball'; known: cube, square"):
            ask("ball")


def test_a_name_is_given_only_once(shapes):
    with pytest.raises(ValueError, match="the shape 'cube' is registered already"):
        shapes.register("cube")("another")
    shapes.register("cube", corners=8)("a cube")  # the same thing again: a module loaded twice


def test_a_thing_that_is_not_registered_has_no_name(shapes):
    with pytest.raises(ValueError, match="is not a registered shape"):
        shapes.name_of("a ball")


def test_plugins_are_loaded_once_when_a_name_is_missing(shapes, monkeypatch):
    loads = []

    class Plugin:
        def load(self):
            loads.append(1)
            shapes.register("ball", corners=0)("a ball")

    def plugins(group):
        assert group == "softclt.plugins"
        return [Plugin()]

    monkeypatch.setattr(registry, "entry_points", plugins)
    assert shapes["cube"] == "a cube"
    assert loads == []
    assert shapes["ball"] == "a ball"
    assert shapes.names() == ["ball", "cube", "square"]
    assert loads == [1]
