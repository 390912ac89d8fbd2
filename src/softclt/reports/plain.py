"""A report as Markdown and as LaTeX."""

import re
from collections.abc import Mapping

from softclt.plaintext import visible
from softclt.reports.document import Cell, Document, Grid

_TEX = {
    "\\": r"\textbackslash{}",
    **{letter: "\\" + letter for letter in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "·": r"$\cdot$",
    "Δ": r"$\Delta$",
    "†": r"$\dagger$",
    "<": "$<$",
    ">": "$>$",
    "«": "``",
    "»": "''",
    "|": r"\textbar{}",
    "[": "{[}",  # behind an \item or the end of a row a bracket would be an option
    "]": "{]}",
}
_TEX_CODE = _TEX | {"'": r"\textquotesingle{}", "`": r"\textasciigrave{}"}


def markdown(document: Document, links: Mapping[int, str]) -> str:
    """Markdown with a table for each grid; ``links`` are the pictures' files, by number."""
    parts = [f"# {_md(document.title)}", _md_begun(document.subtitle)]
    n_pictures = 0
    for section in document.sections:
        parts.append(f"## {_md(section.title)}")
        parts += [_md_begun(text) for text in section.text]
        if section.points:
            parts.append("\n".join(f"- {_md_begun(point)}" for point in section.points))
        for grid in section.grids:
            parts += [f"### {_md(grid.title)}", _md_table(grid)]
            if grid.notes:
                parts.append("\n".join(f"- {_md_begun(note)}" for note in grid.notes))
        for title, caption, _ in section.pictures:
            parts += [f"![{_md(title)}]({links[n_pictures]})", f"**{_md(title)}.** {_md(caption)}"]
            n_pictures += 1
        if section.code:
            parts.append(_md_code("\n".join(section.code)))
    return visible("\n\n".join(parts) + "\n")


def _md_table(grid: Grid) -> str:
    names = [
        _md(f"{column.name} ({column.below})" if column.below else column.name)
        for column in grid.columns
    ]
    rule = ["---:" if column.numeric else "---" for column in grid.columns]
    lines = [names, rule]
    for line in grid.lines:
        pairs = zip(line.cells, grid.columns, strict=True)
        lines.append([_md_cell(cell, line.kind or column.kind) for cell, column in pairs])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _md_cell(cell: Cell, kind: str) -> str:
    text = _md(cell.text)
    mark = "*" if kind == "oracle" else "**" if cell.strong or kind == "total" else ""
    return f"{mark}{text}{mark}" if text else ""


def _md(text: str) -> str:
    for letter in "\\|*_<[]`~$":
        text = text.replace(letter, "\\" + letter)
    text = re.sub(r"&(?=#|\w+;)", "&amp;", text)
    text = re.sub(r":(?=//)", r"\\:", text)  # no links but ours
    text = re.sub(r"\bwww\.", r"www\\.", text)
    return " ".join(text.split())


def _md_begun(text: str) -> str:
    """A text at the beginning of a line, where more letters mean something."""
    text = re.sub(r"^([#>+=-])", r"\\\1", _md(text))
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", text)


def _md_code(code: str) -> str:
    """Lines as they are, between fences that are longer than any inside."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
    return f"{fence}bash\n{code}\n{fence}"


def latex(document: Document, links: Mapping[int, str]) -> str:
    """A document of its own; its tables (booktabs) can be taken out one by one."""
    parts = [
        "% needs the packages booktabs, longtable and graphicx",
        r"\documentclass{article}",
        r"\usepackage[margin=2cm,landscape]{geometry}",
        r"\usepackage[utf8]{inputenc}",
        r"\usepackage{booktabs,longtable,graphicx,xcolor}",
        rf"\title{{{_tex(document.title)}}}",
        r"\date{}",
        r"\begin{document}",
        r"\maketitle",
        _tex(document.subtitle),
    ]
    n_pictures = 0
    for section in document.sections:
        parts.append(rf"\section*{{{_tex(section.title)}}}")
        parts += [_tex(text) + r"\par" for text in section.text]
        if section.points:
            points = "\n".join(rf"\item {_tex(point)}" for point in section.points)
            parts.append(f"\\begin{{itemize}}\n{points}\n\\end{{itemize}}")
        parts += [_tex_table(grid) for grid in section.grids]
        for title, caption, content in section.pictures:
            if not isinstance(content, str):  # LaTeX cannot read an SVG
                parts.append(
                    r"\begin{figure}[htbp]\centering"
                    rf"\includegraphics[width=0.9\linewidth]{{{links[n_pictures]}}}"
                    rf"\caption{{\textbf{{{_tex(title)}.}} {_tex(caption)}}}\end{{figure}}"
                )
            n_pictures += 1
        if section.code:
            parts.append(_tex_code("\n".join(section.code)))
    return visible("\n\n".join([*parts, r"\end{document}"]) + "\n")


def _tex_code(code: str) -> str:
    """Lines of code; not verbatim, which code could end."""
    lines = ["".join(_TEX_CODE.get(letter, letter) for letter in line) for line in code.split("\n")]
    return "\\begin{flushleft}\\ttfamily\n" + " \\\\\n".join(lines) + "\n\\end{flushleft}"


def _tex_table(grid: Grid) -> str:
    form = "".join("r" if column.numeric else "l" for column in grid.columns)
    head = [
        _tex(f"{column.name} ({column.below})" if column.below else column.name)
        for column in grid.columns
    ]
    lines = [
        rf"\subsection*{{{_tex(grid.title)}}}",
        r"{\footnotesize",
        rf"\begin{{longtable}}{{{form}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule\endhead",
    ]
    before = ""
    for i, line in enumerate(grid.lines):
        if i and line.kind != before:
            lines.append(r"\midrule")
        before = line.kind
        pairs = zip(line.cells, grid.columns, strict=True)
        cells = [_tex_cell(cell, line.kind or column.kind) for cell, column in pairs]
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{longtable}"]
    lines += [rf"\par {_tex(note)}" for note in grid.notes]
    return "\n".join([*lines, "}"])


def _tex_cell(cell: Cell, kind: str) -> str:
    text = _tex(cell.text)
    if text and kind == "oracle":
        return rf"\textcolor{{gray}}{{{text}}}"
    return rf"\textbf{{{text}}}" if text and cell.strong else text


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in " ".join(text.split()))
