"""docs/paper.md has every piece of the paper, and what it names is there."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from softclt.bench.suites import shipped_suites

PAGE = (Path(__file__).parents[1] / "docs" / "paper.md").read_text(encoding="utf-8")

# Numbers of the published paper, in its order; tables and figures with parts may have several rows.
PIECES = ["Table 1", "Figure 1", *(f"Equation {i}" for i in (1, 2, 3, 4))]
PIECES += ["Figure 2", *(f"Equation {i}" for i in (5, 6, 7))]
PIECES += ["Table 2", "Figure 3", "Table 3", "Table 4a", "Table 4b", "Table 5a", "Table 5b"]
PIECES += ["Table 5", *(f"Table 6{part}" for part in "abcd"), "Table 7", "Table 8"]
PIECES += ["Figure 4", "Figure 5", "A", "Table A.1", "Table A.2", "B", "C", "Table C.1", "D"]
PIECES += [f"Equation D.{i}" for i in range(1, 7)]
PIECES += ["Table E.1", "Table F.1", "Table G.1", "H", "Table H.1", "Table H.2", "Table H.3"]
PIECES += ["Figure I.1", "Figure I.2", "Figure J.1", "Table K.1", "Figure L.1"]
PIECES += ["Figure M.1", "Figure M.2", "Table N.1"]


def rows():
    """Cells of the rows of all tables whose first column names a piece."""
    own = False
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| piece |"):
            own = True
        elif not line.startswith("|"):
            own = False
        elif own and not line.startswith("|---"):
            yield cells


def names():
    """What the third column names, each once."""
    return sorted({name for cells in rows() for name in re.findall(r"`([^`]+)`", cells[2])})


def test_every_piece_of_the_paper_is_there_in_its_order():
    assert list(dict.fromkeys(cells[0] for cells in rows())) == PIECES


def test_every_piece_names_what_runs_it():
    assert [cells[0] for cells in rows() if "`" not in cells[2]] == []


@pytest.mark.parametrize("name", names())
def test_what_it_names_is_there(name):
    kind, _, own = name.partition(" ")
    if kind == "bench":
        assert own in shipped_suites()
    elif kind == "figures":
        figures = pytest.importorskip("softclt.reports.figures", reason="needs `report`").figures
        assert own in figures
    else:
        target, attributes = import_module("softclt"), name.split(".")[1:]
        for depth, attribute in enumerate(attributes, start=1):
            if not hasattr(target, attribute):
                import_module(".".join(["softclt", *attributes[:depth]]))
            target = getattr(target, attribute)


def test_suites_that_the_text_names_are_there():
    named = re.findall(r"`bench\s+([a-z-]+)`", PAGE)
    assert set(named) <= set(shipped_suites())


def test_an_experiment_has_a_number_of_ours_or_says_why_not():
    """Rows of tables with a printed number: five cells before the remark."""
    for cells in rows():
        if len(cells) == 6 and cells[3]:
            assert cells[4], cells[0]
            assert re.search(r"\d|open|declined", cells[4]), cells[0]


@pytest.mark.slow
def test_its_python_runs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/paper.md", "exec"), {"__name__": "__main__"})
