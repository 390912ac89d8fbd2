"""The two pages of a server; all that they need is in them."""

from functools import cache
from pathlib import Path
from typing import Any

from softclt.optional import needed
from softclt.serving.opening import Served

_HERE = Path(__file__).parent
_SHARED = _HERE.parent / "reports"  # colours and the look of buttons


@cache
def _templates() -> Any:
    with needed("the pages need jinja2: pip install 'softclt[serve]'"):
        from jinja2 import Environment, FileSystemLoader
    return Environment(
        loader=FileSystemLoader([_HERE, _SHARED]), autoescape=True,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def home(served: Served) -> str:
    """The page that takes a CSV and shows map, neighbours and alarms."""
    facts = {"paths": served.paths(), "names": dict(served.names)}
    return str(_templates().get_template("home.html.j2").render(facts=facts))


def docs(description: dict[str, Any]) -> str:
    """What there is to ask for, of an OpenAPI description."""
    return str(_templates().get_template("docs.html.j2").render(api=description))
