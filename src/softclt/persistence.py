"""Models as folders: tensors in safetensors, everything else in JSON. Nothing is ever unpickled."""

import hashlib
import json
import math
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from softclt import __version__
from softclt.files import json_lines, too_large

FORMAT = 1
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
HISTORY = "history.jsonl"

_LONGEST_CONFIG = 2**24  # bytes: parameters may hold arrays, but not data
_COPIES = 3  # of the bytes of weights that loading makes: as read, as tensors, in the network


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


class Kind(NamedTuple):
    """What an entry of a description may be.

    Attributes:
        words: For messages.
        fits: Whether a value of JSON is one.
    """

    words: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_one and abs(value) < math.inf


def _is_count(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63


TEXT = Kind("a text", lambda value: isinstance(value, str))
TABLE = Kind("a table", lambda value: isinstance(value, dict))
LIST = Kind("a list", lambda value: isinstance(value, list))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
NUMBERS = Kind(
    "a list of numbers", lambda value: isinstance(value, list) and all(map(_is_number, value))
)
COUNT = Kind("a whole number >= 0", _is_count)
COUNTS = Kind(
    "a list of whole numbers >= 0",
    lambda value: isinstance(value, list) and all(map(_is_count, value)),
)
SIZE = Kind("a whole number > 0", partial(_is_count, least=1))
DIGEST = Kind("a SHA-256", lambda value: isinstance(value, str) and len(value) == 64)


def optional(kind: Kind) -> Kind:
    """The same, or null."""
    return Kind(f"{kind.words} or null", lambda value: value is None or kind.fits(value))


def check_entries(table: Mapping[str, Any], kinds: Mapping[str, Kind], where: str = "") -> None:
    """Refuse a table whose entries are missing, or of another kind."""
    for name, kind in kinds.items():
        if name not in table:
            raise ModelFileError(f"{where}{name} is missing")
        if not kind.fits(table[name]):
            shown = repr(table[name])
            shown = shown if len(shown) <= 40 else shown[:40] + "..."
            raise ModelFileError(f"{where}{name} is {shown}; expected {kind.words}")


# What every description has, and what only some have: the first models had no history of their own.
_NEEDED = {"method": TEXT, "params": TABLE, "fitted": TABLE, "sha256": DIGEST}
_POSSIBLE = {"history_sha256": DIGEST, "training": FLAG, "fingerprint": TEXT, "versions": TABLE}


@contextmanager
def one_error(folder: str | os.PathLike[str], method: str) -> Iterator[None]:
    """Let all that a description can make fail be one error, which names its folder."""
    try:
        yield
    except (
        *(ArithmeticError, AssertionError, AttributeError, LookupError),
        *(MemoryError, RuntimeError, TypeError, ValueError),
    ) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelFileError(
            f"the model in {folder} does not fit the method {method!r} of this version ({reason})"
        ) from error


def read_config(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The description of a model, without its tensors; its entries are of the right kinds."""
    path = Path(folder) / CONFIG
    if not path.is_file():
        raise ModelFileError(f"{folder} is not a model folder: {CONFIG} is missing")
    if path.stat().st_size > _LONGEST_CONFIG:
        raise ModelFileError(f"{path} is longer than any description of a softclt model")
    try:
        config = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged ({error}); save the model again") from None
    if not isinstance(config, dict) or "format" not in config:
        raise ModelFileError(f"{path} does not describe a softclt model: it has no format number")
    if config["format"] != FORMAT:
        raise ModelFileError(
            f"{path} has format {config['format']}, this version reads {FORMAT}; "
            "use the version of softclt that wrote it"
        )
    missing = _NEEDED.keys() - config.keys()
    if missing:
        raise ModelFileError(f"{path} lacks {', '.join(sorted(missing))}; save the model again")
    there = {name: kind for name, kind in _POSSIBLE.items() if name in config}
    check_entries(config, _NEEDED | there, f"{path} describes no softclt model: ")
    return config


def read_model(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Description and tensors of a model, with damage found before use.

    The losses of its training are in the description, as ``fitted.history.loss``.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    config = read_config(folder)
    data = _read_checked(Path(folder) / WEIGHTS, config["sha256"])
    history = config["fitted"].setdefault("history", {})
    check_entries(config["fitted"], {"history": TABLE}, f"{Path(folder) / CONFIG}: model's ")
    if "history_sha256" in config:  # the first models had the losses in the description
        history["loss"] = _losses(Path(folder) / HISTORY, config["history_sha256"])
    try:
        tensors = load(data)
    except SafetensorError as error:
        raise ModelFileError(
            f"{folder}: {WEIGHTS} cannot be read ({error}); save the model again"
        ) from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not _all_finite(tensor):
            raise ModelFileError(
                f"{folder}: {name} in {WEIGHTS} holds NaN or infinity, with which nothing can be "
                "computed; train the model again"
            )
    return config, tensors


def _losses(path: Path, checksum: str) -> list[float]:
    try:
        losses = [json.loads(line)["loss"] for line in _read_checked(path, checksum).splitlines()]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path} holds no losses ({error}); save the model again") from None
    if not NUMBERS.fits(losses):
        raise ModelFileError(f"{path} holds a loss that is no number; save the model again")
    return losses


def _all_finite(tensor: Tensor) -> bool:
    if tensor.element_size() == 1:  # eight bits, of which torch cannot ask it
        tensor = tensor.float()
    return bool(torch.isfinite(tensor).all())


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _read_checked(path: Path, checksum: str) -> bytes:
    if not path.is_file():
        raise ModelFileError(f"{path.parent} is not complete: {path.name} is missing")
    if problem := too_large(_COPIES * path.stat().st_size):
        raise ModelFileError(f"{path} is too large to load: it {problem}")
    data = path.read_bytes()
    if _checksum(data) != checksum:
        raise ModelFileError(
            f"{path} is damaged or belongs to another {CONFIG}: its checksum differs; "
            "save the model again"
        )
    return data


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
