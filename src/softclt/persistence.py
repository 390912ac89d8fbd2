"""Models as folders: tensors in safetensors, everything else in JSON. Nothing is ever unpickled."""

import hashlib
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from softclt import __version__
from softclt.files import json_lines

FORMAT = 1
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
HISTORY = "history.jsonl"


class ModelFileError(ValueError):
    """A folder that is not, or no longer, a model of softclt."""


_installed = cache(version)  # a file is read for each


def versions() -> dict[str, str]:
    """Versions of what a result or a model was made with."""
    packages = ("torch", "numpy", "scikit-learn")
    return {
        "softclt": __version__,
        "python": platform.python_version(),
        **{name: _installed(name) for name in packages},
    }


def utc_now() -> str:
    """The time as files hold it, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def json_safe(value: Any) -> Any:
    """The same value made of what JSON has; callables and strange objects become their names."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (np.generic, np.ndarray, Tensor)):
        return json_safe(value.tolist())
    if isinstance(value, Mapping):
        return {str(k): json_safe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_safe(v) for v in value]
    if isinstance(value, partial):
        return json_safe({"partial": value.func, "args": value.args, **value.keywords})
    if isinstance(value, nn.Module):
        value = type(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return str(value)


def write_model(
    folder: str | os.PathLike[str],
    config: dict[str, Any],
    tensors: dict[str, Tensor],
    losses: Sequence[float],
) -> None:
    """Write a model folder; all files are complete before any of them takes its name.

    Args:
        folder: Made if needed.
        config: What JSON can hold.
        tensors: By name.
        losses: Of each step of training.
    """
    from safetensors.torch import save

    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; a model is saved as a folder")
    folder.mkdir(parents=True, exist_ok=True)
    data = save({name: t.detach().cpu().contiguous() for name, t in tensors.items()})
    lines = json_lines({"step": k, "loss": loss} for k, loss in enumerate(losses, 1)).encode()
    checksums = {"sha256": _checksum(data), "history_sha256": _checksum(lines)}
    text = json.dumps({"format": FORMAT, **checksums, **config}, indent=2, allow_nan=False) + "\n"
    new = {WEIGHTS: data, HISTORY: lines, CONFIG: text.encode()}
    temporary = {name: folder / f".{name}.{os.getpid()}" for name in new}
    try:
        for name, content in new.items():
            temporary[name].write_bytes(content)
        for name, path in temporary.items():
            os.replace(path, folder / name)
    finally:
        for path in temporary.values():
            path.unlink(missing_ok=True)


def read_config(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The description of a model, without its tensors."""
    path = Path(folder) / CONFIG
    if not path.is_file():
        raise ModelFileError(f"{folder} is not a model folder: {CONFIG} is missing")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged ({error}); save the model again") from None
    if not isinstance(config, dict) or "format" not in config:
        raise ModelFileError(f"{path} does not describe a softclt model: it has no format number")
    if config["format"] != FORMAT:
        raise ModelFileError(
            f"{path} has format {config['format']}, this version reads {FORMAT}; "
            "use the version of softclt that wrote it"
        )
    missing = {"method", "params", "fitted", "sha256"} - config.keys()
    if missing:
        raise ModelFileError(f"{path} lacks {', '.join(sorted(missing))}; save the model again")
    return config


def read_model(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Description and tensors of a model, with damage found before use.

    The losses of its training are in the description, as ``fitted.history.loss``.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    config = read_config(folder)
    data = _read_checked(Path(folder) / WEIGHTS, config["sha256"])
    if "history_sha256" in config:  # the first models had the losses in the description
        lines = _read_checked(Path(folder) / HISTORY, config["history_sha256"]).splitlines()
        losses = [json.loads(line)["loss"] for line in lines]
        config["fitted"].setdefault("history", {})["loss"] = losses
    try:
        return config, load(data)
    except SafetensorError as error:
        raise ModelFileError(
            f"{folder}: {WEIGHTS} cannot be read ({error}); save the model again"
        ) from None


def _read_checked(path: Path, checksum: str) -> bytes:
    if not path.is_file():
        raise ModelFileError(f"{path.parent} is not complete: {path.name} is missing")
    data = path.read_bytes()
    if _checksum(data) != checksum:
        raise ModelFileError(
            f"{path} is damaged or belongs to another {CONFIG}: its checksum differs; "
            "save the model again"
        )
    return data


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
