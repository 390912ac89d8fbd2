"""From ``--method --preset --set key=value`` to an estimator."""

import ast
import inspect
import json
from collections.abc import Sequence
from typing import Any

_WORDS = {"none": None, "null": None, "true": True, "false": False}


def parse_settings(
    settings: Sequence[str] | None, like: str = "--set max_iter=100"
) -> dict[str, Any]:
    """Parameters from ``key=value`` texts that were given with a flag, as in the example ``like``.

    Example:
        >>> parse_settings(["lr=1e-4", "tau_instance=none", "distance=tam", "progress=true"])
        {'lr': 0.0001, 'tau_instance': None, 'distance': 'tam', 'progress': True}
    """
    parsed = {}
    for setting in settings or ():
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{like.split()[0]} {setting!r} is not KEY=VALUE, e.g. {like}")
        parsed[key.strip()] = parse_value(text.strip())
    return parsed


def parse_value(text: str) -> Any:
    """A Python literal or JSON as what it says, anything else as text."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for read in (ast.literal_eval, json.loads):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text


def build_model(
    method: str, preset: str | None, settings: Sequence[str] | None, **fallbacks: Any
) -> Any:
    """An unfitted estimator; ``fallbacks`` hold where neither preset nor settings say otherwise."""
    from softclt.methods import methods
    from softclt.validation import check_known

    kind = methods[method]
    given = parse_settings(settings)
    known = list(inspect.signature(kind).parameters)
    check_known(given, known, method, "parameter")
    given = {key: value for key, value in fallbacks.items() if key in known} | given
    return kind(**given) if preset is None else kind.from_preset(preset, **given)
