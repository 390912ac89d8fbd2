"""A folder of Parquet files becomes a folder of embeddings, a part for each file.

A part is there whole or not at all, and says inside which file of which model it is of. So a killed
job loses the parts that were being made, and the same call goes on.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from softclt import parallel
from softclt.data.columns import Columns
from softclt.data.errors import DataError
from softclt.data.sources import ParquetSource
from softclt.data.sources.places import Place, is_url, n_bytes, relative_name
from softclt.embedding.recipe import Recipe, embedded_blocks
from softclt.embedding.tables import facts_of, parquet_writer
from softclt.files import held, whole_file
from softclt.progress import progress_bar

FORMAT = 1
MANIFEST = "_manifest.json"  # readers of a folder of Parquet files pass over such a name
_LOCK = ".lock"
_EVERY = 1.0  # seconds between two manifests

# What all parts have in common, and what messages call it.
_KEY = {
    "sha256": "the SHA-256 of the weights",
    "model": "the model",
    "options": "the level",
    "columns": "how the tables are read",
}


class PartsError(ValueError):
    """A folder that holds something else than the parts that are wanted."""


@dataclass(frozen=True)
class Part:
    """A file of series, and the file of their embeddings.

    Attributes:
        place: Of the series.
        file: Of the embeddings, within the folder.
        series: How many there are.
        bytes: Size of the file of series.
    """

    place: Place
    file: str
    series: int
    bytes: int


@dataclass(frozen=True)
class Embedded:
    """What `embed_parts` did.

    Attributes:
        made: Parts made by this call.
        found: Parts that were there.
        damaged: Those that were there and could not be read; they are made again.
        series: In the parts made by this call.
        seconds: They took.
    """

    made: int
    found: int
    damaged: list[str]
    series: int
    seconds: float


def embed_parts(
    recipe: Recipe,
    source: ParquetSource,
    folder: str | Path,
    *,
    sha256: str,
    model: Any = None,
    ray: str | None = None,
    anew: bool = False,
    progress: bool = False,
) -> Embedded:
    """Embed each file of a source into a file of the same name, one row a series, in their order.

    Args:
        recipe: The model and the level.
        source: Of a folder of Parquet files, of one file, or of a URL.
        folder: For the parts and for ``_manifest.json``, which lists them in their order.
        sha256: Of the weights.
        model: More that tells models apart, as JSON has it.
        ray: Work on this Ray cluster: ``"auto"``, an address, or ``"local"``. Its machines must be
            able to read the source; the calling process alone needs the folder.
        anew: Drop the parts that are there.
        progress: Show a bar with series a second on standard error.
    """
    folder = Path(folder)
    _refuse_inside(folder, source.name)
    recipe = replace(recipe, length=source.shape[-1])
    parts = [
        Part(place, relative_name(place, source.name), series, n_bytes(place))
        for place, series in source.files.items()
    ]
    given = {name: value for name, value in source.columns.items() if value is not None}
    key = {"sha256": sha256, "model": model, "options": recipe.options, "columns": given}
    with _alone_in(folder):
        kept = _Folder(folder, json.loads(json.dumps(key)), parts, source.name, anew)
        damaged = kept.look()
        todo = [part for part in parts if part.file not in kept.done]
        kept.write_manifest()
        start = time.perf_counter()
        n_series = sum(part.series for part in todo)
        with progress_bar("embedding", n_series, progress, unit="series") as advance:
            if ray is None or not todo:
                _here(recipe, source.columns, todo, kept, advance)
            else:
                _on_ray(recipe, source.columns, todo, kept, advance, ray)
        kept.write_manifest()
        seconds = time.perf_counter() - start
    return Embedded(len(todo), len(parts) - len(todo), damaged, n_series, seconds)


class _Folder:
    """The parts that are there."""

    def __init__(
        self, folder: Path, key: dict[str, Any], parts: Sequence[Part], source: str, anew: bool
    ) -> None:
        self.folder, self.key, self.parts, self.source = folder, key, parts, source
        self.done: set[str] = set()
        self._written = 0.0
        for path in folder.rglob(".*-????????????.parquet"):  # what a killed process had begun
            path.unlink()
        there = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet"))
        if (folder / MANIFEST).is_file():
            if anew:
                for name in there:
                    (folder / name).unlink()
                there = []
            else:
                self._refuse_others(_read_manifest(folder / MANIFEST))
            wanted = {part.file for part in parts}
            strange = [name for name in there if name not in wanted]
            if strange:
                raise PartsError(
                    f"{folder} holds {strange[0]}, and {source} has no such file any more "
                    f"({len(strange)} such parts); remove them, or choose another folder"
                )
        elif any(not path.name.startswith(".") for path in folder.iterdir()):
            raise PartsError(
                f"{folder} is not empty, and holds no {MANIFEST}; choose another folder"
            )

    def facts(self, part: Part) -> dict[str, Any]:
        """What a part says inside."""
        return {"sha256": self.key["sha256"], "series": part.series, "bytes": part.bytes}

    def look(self) -> list[str]:
        """Find the parts that are there; the names of damaged ones."""
        damaged = []
        for part in self.parts:
            path = self.folder / part.file
            if not path.is_file():
                continue
            facts = facts_of(path)
            if facts is None:
                damaged.append(part.file)
            elif facts != self.facts(part):
                raise PartsError(
                    f"{part.place} has changed since it was embedded: it had {facts.get('series')} "
                    f"series in {facts.get('bytes')} bytes, and has {part.series} in {part.bytes}; "
                    f"remove {path} to embed it again, or choose another folder"
                )
            else:
                self.done.add(part.file)
        return damaged

    def add(self, part: Part) -> None:
        """Count a part that has got its name."""
        self.done.add(part.file)
        if time.monotonic() - self._written > _EVERY:
            self.write_manifest()

    def write_manifest(self) -> None:
        """List all parts in their order."""
        parts = [
            {"file": p.file, "series": p.series, "bytes": p.bytes, "done": p.file in self.done}
            for p in self.parts
        ]
        content = {
            "format": FORMAT,
            **self.key,
            "source": self.source,
            "series": sum(part.series for part in self.parts),
            "done": all(part["done"] for part in parts),
            "parts": parts,
        }
        with whole_file(self.folder / MANIFEST) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        self._written = time.monotonic()

    def _refuse_others(self, manifest: dict[str, Any]) -> None:
        different = [name for name in _KEY if manifest.get(name) != self.key[name]]
        if different:
            words = ", ".join(
                f"{_KEY[name]} is {json.dumps(manifest.get(name))} there and "
                f"{json.dumps(self.key[name])} here"
                for name in different
            )
            raise PartsError(
                f"{self.folder} holds other embeddings: {words}; choose another folder, or add "
                "--force (anew=True) to begin again"
            )


def _here(
    recipe: Recipe,
    columns: Columns,
    todo: Sequence[Part],
    kept: _Folder,
    advance: Callable[[int], None],
) -> None:
    for part in todo:
        with whole_file(kept.folder / part.file) as temporary:
            _write(recipe, columns, part, kept.facts(part), temporary, advance)
        kept.add(part)


def _on_ray(
    recipe: Recipe,
    columns: Columns,
    todo: Sequence[Part],
    kept: _Folder,
    advance: Callable[[int], None],
    address: str,
) -> None:
    gpus = int(str(getattr(recipe.model, "device_", "cpu")).startswith("cuda"))
    items = [(part, kept.facts(part)) for part in todo]
    for part, content in parallel.on_ray(_there, (recipe, columns), items, address, gpus=gpus):
        with whole_file(kept.folder / part.file) as temporary:
            temporary.write_bytes(content)
        kept.add(part)
        advance(part.series)


def _there(shared: tuple[Recipe, Columns], item: tuple[Part, dict[str, Any]]) -> tuple[Part, bytes]:
    """A part on a machine of the cluster, as the bytes of its file."""
    part, facts = item
    with tempfile.TemporaryDirectory(prefix="softclt-") as folder:
        path = Path(folder) / "part.parquet"
        _write(*shared, part, facts, path, lambda count: None)
        return part, path.read_bytes()


def _write(
    recipe: Recipe,
    columns: Columns,
    part: Part,
    facts: dict[str, Any],
    path: Path,
    advance: Callable[[int], None],
) -> None:
    source = ParquetSource(part.place, **columns)
    if len(source) != part.series:
        raise DataError(
            f"had {part.series} series a moment ago, and has {len(source)}; it must not change "
            "while it is embedded",
            part.place,
        )
    with parquet_writer(path, recipe.step, facts=facts) as write:
        for ids, embeddings in embedded_blocks(recipe, source):
            write(ids, embeddings)
            advance(len(ids))


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    try:
        with held(folder / _LOCK, wait=False):
            yield
    except BlockingIOError:
        raise PartsError(
            f"another process writes to {folder}; wait until it has ended, or choose another folder"
        ) from None


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PartsError(f"{path} is damaged ({error}); remove the folder") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise PartsError(f"{path} is not of format {FORMAT}, which this version of softclt reads")
    return manifest


def _refuse_inside(folder: Path, source: str) -> None:
    """The next call would read its own parts."""
    if not is_url(source) and folder.resolve().is_relative_to(Path(source).resolve()):
        raise PartsError(f"{folder} lies in {source}, which is read; choose a folder elsewhere")
