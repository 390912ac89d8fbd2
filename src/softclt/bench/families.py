"""Which data sets are relatives, and which of them pre-trained encoders have not seen."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from softclt.bench.sets import groups
from softclt.data import Dataset


@cache
def families() -> dict[str, Any]:
    """The table: ``families`` with their sets, those ``held_out``, and those that ``chooses``."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@groups.register("family")
def family(data: Dataset) -> str:
    """Sets of the same recordings have one name; a set without relatives has its own."""
    name = str(data.meta["name"])
    for own, members in families()["families"].items():
        if name in members:
            return str(own)
    return name


@groups.register("corpus")
def corpus(data: Dataset) -> str:
    """Whether unlabelled relatives were in the corpus of ``base``: seen, or unseen."""
    table, own = families(), family(data)
    return "seen" if own in table["families"] and own not in table["held_out"] else "unseen"
