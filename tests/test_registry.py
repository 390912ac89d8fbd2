"""Named things with tags."""

import pytest

from softclt import registry
from softclt.registry import Registry
from tables import as_before, registered


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
    for ask in (shapes.__getitem__, shapes.tags, shapes.unregister):
        with pytest.raises(ValueError, match="unknown shape 'ball'; known: cube, square"):
            ask("ball")


def test_a_name_is_given_only_once(shapes):
    with pytest.raises(ValueError, match="the shape 'cube' is registered already"):
        shapes.register("cube")("another")
    shapes.register("cube", corners=8)("a cube")  # the same thing again: a module loaded twice


def test_a_name_taken_back_is_free_again(shapes):
    assert shapes.unregister("cube") == "a cube"
    assert "cube" not in shapes
    assert shapes.names() == ["square"]
    with pytest.raises(ValueError, match="unknown shape 'cube'; known: square"):
        shapes.unregister("cube")
    with pytest.raises(ValueError, match="is not a registered shape"):
        shapes.name_of("a cube")
    shapes.register("cube", colour="red")("another")
    assert (shapes["cube"], shapes.tags("cube")) == ("another", {"colour": "red"})


def entries(shapes):
    return {name: (shapes[name], shapes.tags(name)) for name in shapes}


def test_an_entry_for_a_while_leaves_the_table_as_it_was(shapes):
    before = entries(shapes)
    with registered(shapes, "ball", "a ball", corners=0) as ball:
        assert entries(shapes) == before | {"ball": (ball, {"corners": 0})}
    with registered(shapes, "cube", "another"):
        assert entries(shapes) == before | {"cube": ("another", before["cube"][1])}
    with registered(shapes, "cube", "another", corners=9):
        assert entries(shapes) == before | {"cube": ("another", {"corners": 9})}
    assert entries(shapes) == before


def test_a_table_is_as_before_whatever_was_done_to_it(shapes):
    before = entries(shapes)

    @as_before(shapes)
    def change_and_fail():
        shapes.register("ball")("a ball")
        shapes.unregister("square")
        shapes.register("cube", corners=9)(shapes.unregister("cube"))
        assert entries(shapes) == {"ball": ("a ball", {}), "cube": ("a cube", {"corners": 9})}
        raise KeyError

    with pytest.raises(KeyError):
        change_and_fail()
    assert entries(shapes) == before


def test_a_thing_that_is_not_registered_has_no_name(shapes):
    with pytest.raises(ValueError, match="is not a registered shape"):
        shapes.name_of("a ball")


def test_plugins_are_loaded_once_when_a_name_is_missing(shapes, monkeypatch):
    loads = []

    class Plugin:
        name, value = "mine", "my_package.things"

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
