"""Large CSV and .npz files as sources: written anew, once, in a form that is read in parts."""

import logging
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from softclt.data.arrays import Arrays, damage_told
from softclt.data.columns import Columns, refuse_given
from softclt.data.csvfile import Block, CsvTable
from softclt.data.errors import DataError
from softclt.data.rows import bad_cells
from softclt.data.sources.arrays import NpySource
from softclt.data.sources.parquet import ParquetSource
from softclt.data.tables import parquet
from softclt.data.text import text_stream
from softclt.progress import progress_bar

if TYPE_CHECKING:
    import pyarrow as pa

_GROUP = 2**22  # values of a row group
_log = logging.getLogger(__name__)


class CsvSource(ParquetSource):
    """Series of a CSV of any size; it needs as much disk as the file has, for temporary files.

    Rows of a series of a long table should stand together: see `ParquetSource`.

    Args:
        path: The file, also ``.csv.gz``.
        progress: Show a bar while it is read.
        **columns: See :func:`softclt.data.read_table`.
    """

    def __init__(self, path: Path, progress: bool = False, **columns: Unpack[Columns]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="softclt-")  # gone with this source
        copy = Path(self._folder.name) / f"{path.name}.parquet"
        named = _as_parquet(path, copy, progress, columns)
        super().__init__(copy, **named)
        self.name = str(path)


def _as_parquet(path: Path, copy: Path, progress: bool, columns: Columns) -> Columns:
    """Write the numbers and texts of a CSV as Parquet; how that is to be read."""
    with parquet(copy) as pq, text_stream(path) as stream:
        table = CsvTable(stream, path, **columns)
        roles = table.roles
        values = [f"value {name}" for name in table.names]
        names = {"id": roles.id, "time": roles.time}
        kept = {name: at for name, at in names.items() if at is not None}
        per_group, held, n_held = max(1, _GROUP // len(values)), [], 0
        writer: Any = None
        with progress_bar(f"reading {path.name}", None, progress):
            for block in table.blocks():
                held.append(block)
                n_held += len(block.lines)
                if n_held >= per_group:
                    writer = _write(pq, writer, copy, _group(held, values, kept))
                    held, n_held = [], 0
            if held:
                writer = _write(pq, writer, copy, _group(held, values, kept))
        writer.close()
    if bad := table.bad_lines:
        _log.warning(
            "%s: %s read as missing, the first at line %d", path, bad_cells(len(bad)), bad[0]
        )
    named: Columns = {"id": "id" if "id" in kept else "", "time": "time" if "time" in kept else ""}
    named |= {"label": "", "values": values, "form": "long" if roles.long else "wide"}
    named["duplicates"] = columns.get("duplicates", "error")
    named["bad_values"] = columns.get("bad_values", "error")
    return named


def _group(blocks: list[Block], values: list[str], kept: dict[str, int]) -> "pa.Table":
    import pyarrow as pa

    numbers = np.concatenate([block.numbers for block in blocks])
    texts = {
        name: pa.array([text or None for block in blocks for text in block.texts[at]], pa.string())
        for name, at in kept.items()
    }
    return pa.table(texts | {name: numbers[:, j] for j, name in enumerate(values)})


def _write(pq: Any, writer: Any, path: Path, group: "pa.Table") -> Any:
    if writer is None:
        texts = [name for name in group.schema.names if name in ("id", "time")]
        writer = pq.ParquetWriter(path, group.schema, use_dictionary=texts)
    writer.write_table(group, row_group_size=len(group))
    return writer


class NpzSource(NpySource):
    """The series of an ``.npz`` file of any size, unpacked once into a temporary file.

    Args:
        path: The file.
        name: Of the array.
        ids: One a series, if the file has some.
        progress: Show a bar while it is unpacked.
    """

    def __init__(self, path: Path, name: str, ids: list[Any], progress: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="softclt-")
        copy = Path(self._folder.name) / f"{path.name}.npy"
        bar = progress_bar(f"reading {path.name}", None, progress)
        with bar, damage_told(path), zipfile.ZipFile(path) as members:
            (member,) = (one for one in members.namelist() if _array_of(one) == name)
            with members.open(member) as packed, copy.open("wb") as whole:
                shutil.copyfileobj(packed, whole, 2**24)
        opened = NpySource.open(copy)
        self.__dict__.update(vars(opened) | {"name": str(path), "_folder": self._folder})
        self._series_ids = ids
        if ids and len(ids) != len(self):
            raise DataError(f"has {len(ids)} ids for {len(self)} series", path)

    def ids_of(self, start: int, stop: int) -> list[Any]:
        """See `SeriesSource`."""
        return self._series_ids[start:stop] or super().ids_of(start, stop)


def unpack_if_large(
    path: Path, least: int, progress: bool, **columns: Unpack[Columns]
) -> CsvSource | NpzSource | None:
    """The source of a CSV or an .npz file with more than so many bytes; None for another file.

    A file that has a training and a test part is none, nor a table that is to be resampled, nor an
    array in Fortran's order: these are read as a whole.
    """
    name = path.name.lower()
    if not path.is_file():
        return None
    if name.endswith((".csv", ".csv.gz")) and not columns.get("resample"):
        large = path.stat().st_size * (4 if name.endswith(".gz") else 1) > least
        return CsvSource(path, progress, **columns) if large else None
    if name.endswith(".npz") and zipfile.is_zipfile(path):
        arrays = Arrays(path)
        found = next((one for one in ("x", "data") if one in arrays), None)
        if found is None or "x_train" in arrays:
            return None
        with damage_told(path), zipfile.ZipFile(path) as members:
            (member,) = (one for one in members.infolist() if _array_of(one.filename) == found)
            large = member.file_size > least and not _in_columns(members, member.filename)
        if large:
            refuse_given(columns, "CSV and Parquet tables", path)
            ids = arrays["ids"].tolist() if "ids" in arrays else []
            return NpzSource(path, found, ids, progress)
    return None


def _array_of(member: str) -> str:
    """The name of the array in a member of an .npz file, as `Arrays` has it."""
    return member.removesuffix(".npy").lower()


def _in_columns(members: zipfile.ZipFile, member: str) -> bool:
    """Whether an array is in Fortran's order."""
    layout: Any = np.lib.format
    with members.open(member) as file:
        version = layout.read_magic(file)
        reader = layout.read_array_header_1_0 if version == (1, 0) else layout.read_array_header_2_0
        return bool(reader(file)[1])
