"""Models as folders: tensors in safetensors, everything else in JSON. Nothing is ever unpickled."""

import hashlib
import json
import math
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from softclt import __version__, schema
from softclt.files import held, json_lines, to_disk, too_large, whole_file
from softclt.schema import DIGEST, FLAG, NUMBERS, TABLE, TEXT, Kind

FORMAT = 1
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
HISTORY = "history.jsonl"
LOCK = ".lock"

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
    """Write a model folder. Its description takes its name at one moment, and that is the switch.

    Until then a reader finds the model that was there before, whole; from then on the new one, also
    if the process was killed, or the machine went down, before the other files have their names:
    they lie beside, under names with their checksums, where `read_model` looks too.

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
    waiting = {
        WEIGHTS: _beside(folder / WEIGHTS, checksums["sha256"]),
        HISTORY: _beside(folder / HISTORY, checksums["history_sha256"]),
    }
    with held(folder / LOCK):
        _finish(folder)
        try:
            for name, content in ((WEIGHTS, data), (HISTORY, lines)):
                waiting[name].write_bytes(content)
                to_disk(waiting[name])
            with whole_file(folder / CONFIG, durable=True) as temporary:
                temporary.write_text(text, encoding="utf-8")
        except BaseException:
            for path in waiting.values():
                path.unlink(missing_ok=True)
            raise
        for name, path in waiting.items():
            os.replace(path, folder / name)
        to_disk(folder)


def _beside(path: Path, checksum: str) -> Path:
    """Where a new file waits for its name."""
    return path.with_name(f".{path.stem}-{checksum[:16]}{path.suffix}")


def _finish(folder: Path) -> None:
    """Give what a killed process left its name if the description asks for it; or remove it."""
    with suppress(ModelFileError):
        config = read_config(folder)
        for name, key in ((WEIGHTS, "sha256"), (HISTORY, "history_sha256")):
            if key in config and (path := _beside(folder / name, config[key])).is_file():
                os.replace(path, folder / name)
    for name in (WEIGHTS, HISTORY, CONFIG):
        for path in folder.glob(f".{Path(name).stem}-*{Path(name).suffix}"):
            path.unlink(missing_ok=True)


def check_entries(table: Mapping[str, Any], kinds: Mapping[str, Kind], where: str = "") -> None:
    """Refuse a part of a description whose entries are missing, or of another kind."""
    try:
        schema.check_entries(table, kinds, where)
    except ValueError as error:
        raise ModelFileError(str(error)) from None


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


def read_model(
    folder: str | os.PathLike[str], method: str | None = None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Description and tensors of a model, with damage found before use.

    A model of another method than the given one is refused. The losses of its training are
    in the description, as ``fitted.history.loss``.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    folder = Path(folder)
    config, data, lines = _read_files(folder)
    if method not in (None, config["method"]):
        raise ModelFileError(
            f"{folder} holds a model of the method {config['method']!r}, no {method}; use "
            "softclt.load_model"
        )
    history = config["fitted"].setdefault("history", {})
    check_entries(config["fitted"], {"history": TABLE}, f"{Path(folder) / CONFIG}: model's ")
    if "history_sha256" in config:
        history["loss"] = _losses(folder / HISTORY, lines)
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


def _read_files(folder: Path) -> tuple[dict[str, Any], bytes, bytes]:
    """The three files of one moment: another process may save another model meanwhile."""
    while True:
        config = read_config(folder)
        try:
            data = _read_checked(folder / WEIGHTS, config["sha256"])
            if "history_sha256" not in config:  # the first models had their losses elsewhere
                return config, data, b""
            return config, data, _read_checked(folder / HISTORY, config["history_sha256"])
        except ModelFileError:
            if read_config(folder) == config:
                raise


def _losses(path: Path, lines: bytes) -> list[float]:
    try:
        losses = [json.loads(line)["loss"] for line in lines.splitlines()]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
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
    """What a file holds, under its name or that under which it waits for it."""
    found = False
    for place in (path, _beside(path, checksum), path):  # it may get its name in between
        try:
            if problem := too_large(_COPIES * place.stat().st_size):
                raise ModelFileError(f"{place} is too large to load: it {problem}")
            data = place.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            continue
        if _checksum(data) == checksum:
            return data
        found = True
    if not found:
        raise ModelFileError(f"{path.parent} is not complete: {path.name} is missing")
    raise ModelFileError(
        f"{path} is damaged or belongs to another {CONFIG}: its checksum differs; "
        "save the model again"
    )


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
