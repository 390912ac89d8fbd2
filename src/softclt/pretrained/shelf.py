"""Trained weights by name: a folder each, beside this file, as ``softclt pretrain`` writes it."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from torch import Tensor

from softclt.files import whole_file
from softclt.persistence import CONFIG, WEIGHTS, ModelFileError, json_safe, read_config, read_model
from softclt.validation import did_you_mean

MANIFEST = "manifest.json"
_HERE = Path(__file__).parent
_VERSIONED = re.compile(r"(.+)-(\d+)")


@dataclass(frozen=True, eq=False)
class Weights:
    """What a trained encoder is made of.

    Attributes:
        name: With its version, as ``base-1``; the path of a folder of one's own.
        digest: SHA-256 of the weights.
        config: Of the model that was trained.
        tensors: By name.
        manifest: What the weights have seen: sets with fingerprints, licence, scores.
    """

    name: str
    digest: str
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    manifest: Mapping[str, Any]


def names() -> list[str]:
    """Names of all weights in the package, each version, and the newest by its name alone."""
    return sorted({*versions(), *(_VERSIONED.sub(r"\1", name) for name in versions())})


def is_pretrained(name: str | os.PathLike[str]) -> bool:
    """Whether it is a name of weights, or a folder with a manifest of what they have seen."""
    folder = Path(name)
    if folder.is_dir():
        return (folder / MANIFEST).is_file()
    return os.fspath(name) in names()


def find_weights(name: str | os.PathLike[str]) -> Weights:
    """Weights by their name, or from a folder that ``softclt pretrain`` wrote.

    A name without a version is the newest. Damage is found before anything is used.
    """
    folder = folder_of(name)
    written = (folder / CONFIG).stat().st_mtime_ns if (folder / CONFIG).is_file() else 0
    return _read(folder, written)


def folder_of(name: str | os.PathLike[str]) -> Path:
    """Where weights lie; or an error that names those there are."""
    text = os.fspath(name)
    if text in versions():
        return _HERE / text
    newest = [own for own in versions() if _VERSIONED.sub(r"\1", own) == text]
    if newest:
        return _HERE / max(newest, key=_version)
    if (Path(text) / CONFIG).is_file():
        return Path(text)
    raise ModelFileError(
        f"{text} is not a model folder: {CONFIG} is missing; nor is it the name of a pre-trained "
        f"model: {', '.join(names()) or 'none is installed'}{did_you_mean(text, names())}"
    )


def manifest_of(name: str | os.PathLike[str]) -> dict[str, Any]:
    """What weights have seen, checked against them."""
    folder = folder_of(name)
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFileError(f"{folder} lacks {MANIFEST}: softclt pretrain writes it") from None
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged ({error})") from None
    digest = read_config(folder)["sha256"]
    if not isinstance(manifest, dict) or manifest.get("sha256") != digest:
        raise ModelFileError(f"{path} belongs to other weights than those in {folder}")
    return manifest


def about(name: str) -> str:
    """What weights are, in a few words."""
    version, manifest = folder_of(name).name, manifest_of(name)
    if version != name:
        return f"The newest: {version}."
    sets = manifest["corpus"]["sets"]
    scores = "; ".join(f"{what} {score}" for what, score in manifest.get("scores", {}).items())
    words = manifest.get("about") or f"Trained on {len(sets)} sets."
    size = (folder_of(name) / WEIGHTS).stat().st_size / 1e6
    scored = f" {scores}." if scores else ""
    return f"{words} {size:.1f} MB.{scored}{_licences(manifest.get('licence', {}))}"


def _licences(by_part: Mapping[str, str]) -> str:
    """That of the weights, then those of what they were made from."""
    sources = ", ".join(f"{part} ({own})" for part, own in by_part.items() if part != "weights")
    own = f" Licence: {by_part['weights']}." if "weights" in by_part else ""
    return f"{own} Sources: {sources}." if sources else own


def write_manifest(folder: str | os.PathLike[str], seen: Mapping[str, Any], **facts: Any) -> None:
    """Say beside a saved model what it has seen, and more facts, such as its licence."""
    manifest = {"sha256": read_config(folder)["sha256"], **facts, "corpus": dict(seen)}
    with whole_file(Path(folder) / MANIFEST) as temporary:
        text = json.dumps(json_safe(manifest), indent=1, allow_nan=False) + "\n"
        temporary.write_text(text, encoding="utf-8")


@lru_cache(maxsize=4)  # estimators are cloned often
def _read(folder: Path, written: int) -> Weights:
    config, tensors = read_model(folder)
    name = folder.name if folder.parent == _HERE else os.fspath(folder)
    return Weights(name, config["sha256"], config, tensors, manifest_of(folder))


def versions() -> list[str]:
    """Names of all weights in the package, each with its version."""
    return sorted(path.name for path in _HERE.iterdir() if (path / CONFIG).is_file())


def _version(name: str) -> int:
    found = _VERSIONED.fullmatch(name)
    return int(found[2]) if found else 0
