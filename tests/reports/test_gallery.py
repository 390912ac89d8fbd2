"""The gallery: pictures that are small and follow light and dark, with the code that drew each."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
gallery = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "site" / "gallery.py")))
FILES = {path.stem: path for path in (ROOT / "docs" / "gallery").iterdir()}


def test_every_picture_has_its_code_and_no_other_file_is_there():
    assert sorted(gallery.items()) == sorted(FILES)
    assert len(FILES) == 12
    assert all(path.suffix == ".svg" for path in FILES.values())


def test_the_code_of_a_picture_is_short():
    lengths = {
        name: sum(1 for line in code.splitlines() if line and "import" not in line)
        for name, code in gallery.items().items()
    }
    assert {name: n for name, n in lengths.items() if n > 12} == {}


def test_the_pictures_are_small_and_follow_the_readers_choice():
    assert sum(path.stat().st_size for path in FILES.values()) < 2e6
    for path in FILES.values():
        text = path.read_text(encoding="utf-8")
        assert "prefers-color-scheme: dark" in text, path
        assert "<script" not in text
        assert "mathdefault" not in text, path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lags", "designs", "few-labels", "ranks", "speed"])
def test_the_code_draws_the_picture(name, monkeypatch):
    if name == "ranks":
        pytest.importorskip("aeon", reason="the diagram is aeon's")
    monkeypatch.chdir(ROOT)
    drawn = gallery.drawn(gallery.items()[name])
    assert drawn.count("<text") == FILES[name].read_text(encoding="utf-8").count("<text")
