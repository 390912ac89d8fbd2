"""From ``--method --preset --set key=value`` to an estimator."""

import ast
import inspect
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softclt.registry import Registry

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
    method: str,
    preset: str | None,
    settings: Sequence[str] | None,
    table: "Registry[Any] | None" = None,
    **fallbacks: Any,
) -> Any:
    """An unfitted estimator of a table, by default that of all methods.

    ``fallbacks`` hold where neither preset nor settings say otherwise.
    """
    from softclt.methods import methods
    from softclt.validation import check_known

    kind: Any = (methods if table is None else table)[method]
    if preset is not None and not hasattr(kind, "from_preset"):
        raise ValueError(f"{method} has no presets; leave --preset out")
    given = parse_settings(settings)
    known = list(inspect.signature(kind).parameters)
    check_known(given, known, method, "parameter")
    given = {key: value for key, value in fallbacks.items() if key in known} | given
    return kind(**given) if preset is None else kind.from_preset(preset, **given)


def check_input(data: str) -> None:
    """Refuse a file that is not there, without loading what reads it."""
    from softclt.data.catalog import is_path
    from softclt.data.text import existing_file

    if is_path(data) and not Path(data).expanduser().is_dir():
        existing_file(data)


def check_model(
    model: Path | None, preset: str | None = None, settings: Sequence[str] | None = None
) -> None:
    """Refuse a model that is not there, at once if a folder is meant; or settings beside it."""
    if model is None or (model / "config.json").is_file():
        pass
    elif model.is_dir():
        raise FileNotFoundError(f"{model} is not a model folder: config.json is missing")
    elif model.suffix == ".onnx":
        raise ValueError(
            f"{model} is an ONNX file, which 'softclt embed' takes; this needs the model that it "
            "was exported from"
        )
    elif len(model.parts) > 1 or model.suffix:
        raise FileNotFoundError(f"{model} is not a model folder: there is no such folder")
    else:
        from softclt import pretrained

        pretrained.folder_of(model)
    if model is not None and (preset is not None or settings):
        raise ValueError("--model is trained already; leave --preset and --set out")


def trained_or_new(
    model: Path | None,
    method: str,
    preset: str | None,
    settings: Sequence[str] | None,
    seed: int,
    **fallbacks: Any,
) -> Any:
    """The model of a folder; without one an unfitted estimator, for which alone the rest is.

    ``fallbacks`` hold where there is no preset and settings do not say otherwise.
    """
    if model is None:
        own = fallbacks if preset is None else {}
        return with_bars(build_model(method, preset, settings, random_state=seed, **own))
    from softclt.methods import load_model

    return load_model(model)


def with_bars(model: Any) -> Any:
    """A model that shows its progress, if it can."""
    if model.get_params(deep=False).get("progress") is False:
        model.set_params(progress=True)
    return model
