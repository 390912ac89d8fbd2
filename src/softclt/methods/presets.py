"""Named settings from presets.toml."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from softclt.validation import did_you_mean

_SHARED = {"catcc": "tstcc"}  # methods with the presets of another, whose parameters they have


@cache
def _all_presets() -> dict[str, dict[str, dict[str, Any]]]:
    return tomllib.loads(
        files("softclt.methods").joinpath("presets.toml").read_text(encoding="utf-8")
    )


def preset_names(method: str) -> list[str]:
    """Presets that a method has."""
    return sorted(_presets_of(method))


def preset(method: str, name: str, overrides: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a preset with ``overrides`` on top; a preset may require some of them."""
    presets = _presets_of(method)
    if name not in presets:
        known = ", ".join(sorted(presets)) or "none"
        raise ValueError(
            f"unknown preset {name!r} of {method}; known: {known}{did_you_mean(name, presets)}"
        )
    settings = {key: None if value == "none" else value for key, value in presets[name].items()}
    required = settings.pop("requires", None) or []
    missing = [key for key in required if key not in overrides]
    if missing:
        raise ValueError(
            f"the preset {name!r} needs {' and '.join(missing)}: "
            "its source tuned them for each data set, so there is no value for all"
        )
    return settings | overrides


def _presets_of(method: str) -> dict[str, dict[str, Any]]:
    return _all_presets().get(_SHARED.get(method, method), {})
