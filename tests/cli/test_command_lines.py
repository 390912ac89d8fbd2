"""Every command line that help texts and pages show names a command and options that exist."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from softclt.cli import app
from softclt.cli.doors import DOORS, doors

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
NOT_COMMANDS = {"&&", "|", ">", ";", "#", "||", "2>", ">>"}


def leaves(group=None, path=()):
    """Each command, by the words that call it."""
    for name, command in (group or get_command(app)).commands.items():
        yield (*path, name), command
        if hasattr(command, "commands"):
            yield from leaves(command, (*path, name))


COMMANDS = dict(leaves())


def problems(line):
    """What is wrong with a line of a shell that calls softclt, once or more."""
    words = shlex.split(line, comments=True)
    found = []
    for start in [i for i, word in enumerate(words) if word == "softclt"]:
        own = words[start + 1 :]
        end = next((i for i, word in enumerate(own) if word in {*NOT_COMMANDS, "softclt"}), None)
        found += problems_of_one(own[:end])
    return found


def problems_of_one(words):
    while words and words[0] == "--debug":
        words = words[1:]
    if not words or words[0] in (
        "--help",
        "--version",
        "--install-completion",
        "--show-completion",
    ):
        return []
    command = COMMANDS.get(tuple(words[:2])) or COMMANDS.get(tuple(words[:1]))
    if command is None:
        return [f"no command {words[0]}"]
    known = {name for option in command.params for name in option.opts} | {"--help", "-h"}
    options = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    return [f"{words[0]} has no option {option}" for option in options if option not in known]


def shown_in(page):
    blocks = re.findall(
        r"^```(?:bash|sh|console)\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL
    )
    text = "\n".join(blocks).replace("\\\n", " ")
    return [line for line in text.splitlines() if re.search(r"\bsoftclt\b", line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_a_page_can_be_typed(page):
    assert [(line, wrong) for line in shown_in(page) if (wrong := problems(line))] == []


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_examples_in_help_can_be_typed(words):
    epilog = COMMANDS[words].epilog or ""
    lines = [line for line in epilog.splitlines() if "softclt" in line]
    assert [(line, wrong) for line in lines if (wrong := problems(line))] == []
    assert lines or len(words) > 1  # those of a group are in the group's help


def test_a_wrong_line_is_found():
    assert problems("softclt embd base a.csv") == ["no command embd"]
    assert problems("softclt list && softclt fit a.csv --otu m") == ["fit has no option --otu"]
    assert problems("softclt cache list --json | head -3") == []


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_can_be_quiet(words):
    if not hasattr(COMMANDS[words], "commands"):
        shown = CliRunner().invoke(app, [*words, "--help"]).stdout
        assert "--quiet" in shown
        assert "--json" in shown or words in {("export",), ("serve",)}


def test_softclt_alone_shows_a_command_for_each_problem():
    shown = CliRunner().invoke(app, []).stdout
    assert shown == f"{doors()}\n"
    assert len(DOORS) == 5
    for problem, (_, line) in DOORS.items():
        assert problem in shown
        assert problems(line) == []
    assert max(map(len, shown.splitlines())) <= 100
    assert "softclt --help" in shown


def test_the_shell_completes_commands_options_and_choices():
    def completed(words):
        environment = {
            "_SOFTCLT_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        return CliRunner().invoke(app, [], prog_name="softclt", env=environment).stdout.split()

    assert completed("softclt emb") == ["embed"]
    assert completed("softclt embed --sp") == ["--split"]
    assert completed("softclt embed --split t") == ["train", "test"]
