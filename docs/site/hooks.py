"""Hooks of mkdocs: pages made of the code, files from outside `docs`, equations as MathML."""

import os
import re
import sys
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "src"))  # the code beside these pages, whatever is installed

# Pages that lie outside `docs`, and their address in the site.
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
OUTSIDE = re.compile(r"\]\(\.\./([^)#\s]+)")
EQUATION = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)

# What all methods have, most of it from the classes above theirs.
SHARED = "[fit, transform, encode, stream, save, load, from_preset, get_feature_names_out]"

# Beside what `softclt` itself has: what all methods share, and what the functions return.
MORE = (
    *("methods.Pretrained", "data.Dataset", "tasks.Result"),
    *("data.read_table", "data.from_frame", "data.from_channels_last", "data.read_series"),
)

PYTHON_INTRO = """# Python

What `import softclt` gives. Each heading is a name of the package: `softclt.TS2Vec` is also
`from softclt import TS2Vec`. What all methods share, such as `fit`, `transform`, `encode`, `save`
and `load`, is under [RepresentationLearner](#softclt.methods.RepresentationLearner).
"""
COMMANDS_INTRO = """# Commands

All commands with all options, as `softclt COMMAND --help` shows them. What they share is in
[the command line](../command-line.md).
"""


def on_files(files, config):
    """Add the pages that are not in `docs`, and the files outside it to which pages link."""
    made = {
        "reference/python.md": python_page(),
        "reference/commands.md": commands_page(),
        **{page: (ROOT / name).read_text(encoding="utf-8") for name, page in PAGES.items()},
    }
    for name in sorted({name for file in files for name in linked(file)} - PAGES.keys()):
        made[name] = (ROOT / name).read_text(encoding="utf-8")
    for address, content in made.items():
        files.append(File.generated(config, address, content=content))
    return files


def on_page_markdown(markdown, page, config, files):
    """Let links to files outside `docs`, and from them into it, lead to their address here."""
    if page.file.src_uri in PAGES.values():
        return re.sub(r"\]\(docs/", "](", markdown)
    above = "../" * page.file.src_uri.count("/")
    return OUTSIDE.sub(lambda link: f"]({above}{PAGES.get(link[1], link[1])}", markdown)


def on_page_content(html, page, config, files):
    """Write equations in the browser's own language: nothing has to be fetched to show them."""
    return EQUATION.sub(as_mathml, html)


def as_mathml(found):
    """An equation between the signs of TeX as MathML."""
    text = found[3].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return convert(text, display="inline" if found[2] == "(" else "block")


def linked(file):
    """Files outside `docs` to which a page links."""
    if not file.is_documentation_page() or "/" in file.src_uri:
        return []
    return OUTSIDE.findall(file.content_string)


def python_page():
    """A section for each public name, to be filled from its docstring."""
    import softclt

    names = [name for name in softclt.__all__ if name != "__version__"]
    for cls in softclt.methods.RepresentationLearner.__subclasses__():
        show_whole_signatures(cls)
    shared = (
        "::: softclt.methods.RepresentationLearner\n    options:\n"
        f"      members: {SHARED}\n      inherited_members: {SHARED}"
    )
    sections = [f"::: softclt.{name}" for name in (*names, *MORE)]
    return "\n\n".join([PYTHON_INTRO, *sections, shared]) + "\n"


def show_whole_signatures(cls):
    """Let the reference see the signature that `with_parameters_of` makes, not what it wraps."""
    init = cls.__init__
    if hasattr(init, "__signature__") and hasattr(init, "__wrapped__"):
        del init.__wrapped__
    for child in cls.__subclasses__():
        show_whole_signatures(child)


def commands_page():
    """The help of every command, as it is shown in a terminal of 90 columns."""
    from typer.main import get_command

    from softclt.cli import app

    os.environ["TERMINAL_WIDTH"] = "90"
    parts = [COMMANDS_INTRO]
    for words, command in commands_of(get_command(app)):
        context = command.make_context(
            f"softclt {' '.join(words)}", [], resilient_parsing=True, max_content_width=90
        )
        parts.append(f"## softclt {' '.join(words)}\n\n```text\n{command.get_help(context)}\n```")
    return "\n\n".join(parts) + "\n"


def commands_of(group, before=()):
    """Every command with the words that call it, groups before what is in them."""
    for name, command in group.commands.items():
        yield (*before, name), command
        if hasattr(command, "commands"):
            yield from commands_of(command, (*before, name))
