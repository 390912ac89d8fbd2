"""``list``: every name that the other commands accept."""

import inspect
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any

import typer

from softclt.cli import options
from softclt.cli.output import print_json, say


class What(StrEnum):
    """Kinds of names."""

    methods = "methods"
    distances = "distances"
    assignments = "assignments"
    providers = "providers"
    schedules = "schedules"
    tasks = "tasks"
    probes = "probes"
    classifiers = "classifiers"
    scorers = "scorers"
    thresholds = "thresholds"
    data = "data"
    presets = "presets"
    suites = "suites"
    figures = "figures"
    models = "models"


_REGISTRIES = {  # the others are tables of another kind
    What.methods: "softclt.methods",
    What.distances: "softclt.distances",
    What.assignments: "softclt.assignments",
    What.providers: "softclt.methods.providers",
    What.schedules: "softclt.training.schedules",
    What.tasks: "softclt.tasks",
    What.probes: "softclt.probes",
    What.classifiers: "softclt.classification",
    What.scorers: "softclt.anomaly.scorers",
    What.thresholds: "softclt.anomaly.thresholds",
    What.figures: "softclt.reports.figures",
}

# Beside the names, but none itself, so not in --json.
_PATTERNS = {
    "distances": {
        "aeon:NAME": "Any distance of aeon, e.g. aeon:msm; needs pip install 'softclt[data]'."
    }
}


def list_names(
    what: Annotated[
        What | None, typer.Argument(metavar="[WHAT]", help=f"One of {', '.join(What)}.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """You look for a name to use: of a method, a distance, an assignment, a task, data and more."""
    kinds = list(What) if what is None else [what]
    found = {str(kind): _entries(kind) for kind in kinds}
    if as_json:
        print_json(
            {
                kind: {
                    name: {"about": about, "tags": _tags(What(kind), name)}
                    for name, about in own.items()
                }
                for kind, own in found.items()
            }
        )
        return
    for kind, entries in found.items():
        indent = ""
        if what is None:
            say(f"{kind}:")
            indent = "  "
        entries = entries | _PATTERNS.get(kind, {})
        width = max(map(len, entries), default=0)
        for name, about in entries.items():
            say(f"{indent}{name:{width}}  {about}".rstrip())


def _entries(kind: What) -> dict[str, str]:
    """Names and what they are in a few words."""
    if kind is What.data:
        from softclt.data import available

        return dict.fromkeys(available(), "")
    if kind is What.models:
        from softclt import pretrained

        return {name: pretrained.about(name) for name in pretrained.names()}
    if kind is What.presets:
        return {
            preset: f"--method {' or '.join(own)} --preset {preset}"
            for preset, own in _methods_of_presets().items()
        }
    if kind is What.suites:
        from softclt.bench.suites import shipped_suites

        return shipped_suites()
    registry = _registry(kind)
    found = {name: _first_line(registry[name]) for name in registry.names()}
    if kind is What.methods:
        return {name: about + _in_brackets(name, about) for name, about in found.items()}
    return found


def _in_brackets(method: str, about: str) -> str:
    """What its first line leaves out: where it is from, what can be soft, if it needs labels."""
    tags = _tags(What.methods, method)
    paper = tags.get("paper", "")
    soft = f"soft: {' and '.join(tags['soft'])}" if tags["soft"] else ""
    parts = ["" if paper in about else paper, soft, "needs labels" if tags["needs_labels"] else ""]
    return f" [{'; '.join(part for part in parts if part)}]" if any(parts) else ""


_SOFT = {"tau_instance": "series", "tau_temporal": "time"}  # what a parameter says can be soft


def _of_method(kind: Any) -> dict[str, Any]:
    """What follows from a method's parameters and tags."""
    from sklearn.utils import get_tags

    model = kind()
    params = model.get_params(deep=False)
    return {
        "soft": [what for name, what in _SOFT.items() if name in params],
        "needs_labels": bool(get_tags(model).target_tags.required),
        "targets": "targets" in params,
    }


def _tags(kind: What, name: str) -> dict[str, Any]:
    """What a thing can do, as far as JSON has it; names without a registry have none."""
    if kind is What.models:
        from softclt import pretrained

        return pretrained.manifest_of(name)
    if kind is What.presets:
        return {"methods": _methods_of_presets()[name]}
    if kind not in _REGISTRIES:
        return {}
    tags = _registry(kind).tags(name).items()
    plain = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in tags
        if isinstance(value, (bool, int, float, str, list, tuple))
    }
    return plain | _of_method(_registry(kind)[name]) if kind is What.methods else plain


def _methods_of_presets() -> dict[str, list[str]]:
    from softclt.methods import methods, preset_names

    of: dict[str, list[str]] = {}
    for method in methods.names():
        for preset in preset_names(method):
            of.setdefault(preset, []).append(method)
    return of


def _registry(kind: What) -> Any:
    return getattr(import_module(_REGISTRIES[kind]), kind)


def _first_line(item: Any) -> str:
    return (inspect.getdoc(item) or "").partition("\n")[0]
