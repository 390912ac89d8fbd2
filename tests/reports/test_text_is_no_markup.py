"""Text from users is text: in figures, pages, documents and sheets, and on terminals."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from fake_results import fake_results
from softclt.cli import app
from softclt.cli.output import new_table, print_table, say, tell, write_table
from softclt.plaintext import no_formula, visible
from softclt.reports.document import Cell, Column, Document, Grid, Line, Section
from softclt.reports.long_table import long_csv
from softclt.reports.page import html
from softclt.reports.pictures import inline_svg, save_pictures
from softclt.reports.plain import latex, markdown
from softclt.reports.report import build_report

EVIL = (
    r"$\frac{$ _x ^2 \end{verbatim}\input{/etc/passwd} <script>alert(1)</script> [a](b) `c` & # %"
)


def document(*code, text=EVIL, pictures=()):
    grid = Grid(text, (Column(text, False), Column("n")), (Line((Cell(text), Cell("1", 1.0))),))
    return Document(text, text, (Section(text, (text,), (text,), (grid,), pictures, code),))


def figure_with(text):
    from softclt.reports.figures import new_figure, style

    with style():
        figure = new_figure(4, 3)
        ax = figure.subplots()
        ax.plot([1, 2], [1, 2], label=text)
        ax.set(title=text, xlabel=text, ylabel=text)
        ax.set_xticks([1, 2], [text, text])
        ax.legend(title=text)
        figure.suptitle(text)
    return figure


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_dollars_in_names_are_no_mathematics_in_figures(tmp_path, suffix):
    pytest.importorskip("matplotlib")
    from softclt.reports.figures import save_figure

    save_figure(figure_with(r"a $\frac{$ b"), tmp_path / f"a{suffix}")
    assert (tmp_path / f"a{suffix}").stat().st_size > 1000


def test_an_inline_figure_shows_a_name_letter_by_letter():
    pytest.importorskip("matplotlib")
    name = 'x$^2$ id="q" url(#h) href="#i" #0072B2 </text><script>'
    text = inline_svg(figure_with(name), "k", themed=True)
    shown = [element.text for element in ElementTree.fromstring(text).iter() if element.text]
    assert sum(name in one for one in shown) >= 5
    assert "<script" not in text


def test_a_legend_shows_names_that_begin_with_an_underscore():
    pytest.importorskip("matplotlib")
    from softclt.reports.figures import embedding_scatter, new_figure

    ax = new_figure(3, 3).subplots()
    points = np.random.default_rng(0).normal(size=(12, 2))
    embedding_scatter(ax, points, np.arange(12) % 2, classes=["_hidden", "shown"])
    assert [text.get_text().strip() for text in ax.get_legend().get_texts()] == ["_hidden", "shown"]


@pytest.mark.parametrize("words", ["detect --plot", "forecast --plot"])
def test_pictures_of_series_with_dollars_in_their_names_are_drawn(tmp_path, words):
    pytest.importorskip("matplotlib")
    command, option = words.split()
    t = np.arange(160)
    frame = pd.DataFrame({"id": "a $b", "time": t, "x $\\frac{": np.sin(t) + t % 7})
    frame.to_csv(tmp_path / "a $1.csv", index=False)
    call = [command, tmp_path / "a $1.csv", "--out", tmp_path / "o.csv", option, tmp_path / "o.svg"]
    tiny = ["output_dims=4", "hidden_dims=4", "depth=1", "max_iter=1"]
    call += [word for one in tiny for word in ("--set", one)] + ["--context", "20"]
    call += ["--horizon", "5"] if command == "forecast" else []
    done = CliRunner().invoke(app, [str(word) for word in call])
    assert done.exit_code == 0, done.output
    assert "a $b" in (tmp_path / "o.svg").read_text() or (tmp_path / "o.svg").stat().st_size > 5000


def test_latex_obeys_nothing_in_a_text_or_a_command():
    text = latex(document(f"softclt bench {EVIL!r}"), {})
    assert "verbatim" not in re.sub(r"\\textbackslash\{\}(end|begin)\\\{verbatim", "", text)
    assert r"\input" not in text
    assert r"\frac" not in text
    assert "\\textbackslash{}input" in text


def test_latex_brackets_are_no_options():
    text = latex(document(text="[x] y"), {})
    assert r"\item {[}x{]} y" in text
    assert "\n{[}x{]}" in text  # a row of the table: behind \\ a bracket would be a length


def test_markdown_obeys_nothing_in_a_text_or_a_command():
    text = markdown(document("softclt bench ```\n# no heading"), {})
    assert r"\[a\](b) \`c\`" in text
    assert r"\<script>" in text
    assert "````bash\nsoftclt bench ```" in text
    begun = markdown(document(text="# heading"), {})
    assert begun.count("\n\\# heading") == 2  # the subtitle and the text
    listed = markdown(document(text="1. one"), {})
    assert "\n1\\. one" in listed
    assert r"http\://evil" in markdown(document(text="http://evil"), {})
    assert r"www\.evil" in markdown(document(text="www.evil.com"), {})
    assert "&amp;lt;" in markdown(document(text="&lt;"), {})


def test_links_to_pictures_survive_odd_names(tmp_path):
    pytest.importorskip("matplotlib")
    made = document(pictures=(("one", "two", figure_with("x")),))
    links = save_pictures(made, tmp_path / "my report (1) %.md", ".svg")
    assert re.fullmatch(r"[\w.-]+/1-one\.svg", links[0])
    assert (tmp_path / links[0]).is_file()
    assert f"]({links[0]})" in markdown(made, links)


def test_html_shows_a_text_letter_by_letter():
    pytest.importorskip("jinja2")
    text = html(document(EVIL))
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_control_characters_reach_no_format():
    made = document("a\x1b]0;b\x07", text="a\x1b[31m\x00b\u202ec")
    assert "\x1b" not in markdown(made, {}) + latex(made, {})
    assert "\x00" not in markdown(made, {}) + latex(made, {})
    pytest.importorskip("jinja2")
    assert "\x1b" not in html(made)
    pytest.importorskip("matplotlib")
    ElementTree.fromstring(inline_svg(figure_with("a\x1b\x00b"), "k", themed=True))


def test_a_suite_with_an_evil_name_makes_a_tame_report(tmp_path):
    results = fake_results()
    for result in results:
        object.__setattr__(result, "suite", EVIL)
    made = build_report(results, drawn=False, command="softclt report").document
    assert r"\input" not in latex(made, {})
    outside, *code = markdown(made, {}).split("```bash")
    assert "[a](b)" not in outside
    assert len(code) == 1


def test_nothing_in_a_name_reaches_the_terminal(capsys):
    name = "a\x1b[2J\x07[red]:smile:[/]"
    say(name)
    tell(name)
    table = new_table(name, numbers=[name])
    table.add_row(name, "1")
    print_table(table, name, name)
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert "\x1b" not in text
        assert r"\x1b[2J" in text
    assert shown.out.count(":smile:") == 6
    assert shown.out.count("[red]") == 6


def test_an_error_and_a_warning_about_an_evil_file_are_one_tame_line(tmp_path):
    path = tmp_path / "a\x1b[31m.csv"
    for words in (["fit", str(path), "--out", str(tmp_path / "m")], ["check", str(path)]):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 2
        assert "\x1b" not in done.stderr
    path.write_text("1,2\n3,4\n")  # warns that the first line is read as data
    assert "\x1b" not in CliRunner().invoke(app, ["check", str(path)]).stderr


@pytest.mark.parametrize("cell", ["=1+2", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1"])
def test_formulas_get_an_apostrophe_when_asked(cell, tmp_path):
    frame = pd.DataFrame({"id": [cell, "pump"], "=x": [-1.5, 2.0]})
    write_table(frame, tmp_path / "safe.csv", safe_csv=True)
    back = pd.read_csv(tmp_path / "safe.csv")
    assert back["id"].tolist() == ["'" + cell.replace("\r", "\n"), "pump"]
    assert back.columns.tolist() == ["id", "'=x"]
    assert back["'=x"].tolist() == [-1.5, 2.0]
    write_table(frame, tmp_path / "plain.csv")
    assert "'" not in (tmp_path / "plain.csv").read_text()


def test_a_report_as_a_sheet_computes_nothing(tmp_path):
    results = fake_results()
    for result in results:
        object.__setattr__(result, "suite", "=1+2")
    made = build_report(results, drawn=False).analyses
    assert "\n=1+2" in long_csv(made)
    assert "\n=1+2" not in long_csv(made, safe=True)


def writing_sheets():
    """Commands whose output may be a CSV, by what their help says."""
    for name, command in get_command(app).commands.items():
        helps = [one.help or "" for one in command.params if "--out" in one.opts]
        if any(".csv" in words for words in helps):
            yield name


def test_the_commands_that_write_sheets_are_found():
    assert {"embed", "classify", "detect", "forecast", "report"} <= set(writing_sheets())


@pytest.mark.parametrize("command", sorted(writing_sheets()))
def test_every_command_that_writes_sheets_can_make_them_safe(command):
    assert "--safe-csv" in CliRunner().invoke(app, [command, "--help"]).stdout


def test_text_that_nothing_obeys_stays_as_it_is():
    for text in ("Zürich · 東京 ✓", "a\tb\nc", "👩‍🔬"):
        assert visible(text) == text
    assert no_formula(3) == 3
