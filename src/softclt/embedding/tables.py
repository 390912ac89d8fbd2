"""Embeddings as tables with ids, written block by block: whole files, or none."""

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softclt.files import whole_file
from softclt.plaintext import without_formulas
from softclt.validation import Floats, Floats32

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".parquet", ".csv", ".npz")
METADATA = b"softclt"  # the key in a Parquet file

#: Adds the embeddings of some series, with their ids.
Write = Callable[[list[Any], Floats32], None]


def embedding_table(
    ids: list[Any], embeddings: Floats, stride: int = 1, times: Any = None
) -> "pd.DataFrame":
    """A row for each embedding: ``id``, its first ``step`` unless it is the series, ``emb_0 ...``.

    Args:
        ids: Of the series.
        embeddings: ``(N, M)``, or ``(N, W, M)`` with NaN where a series has ended.
        stride: Steps from one embedding of a series to its next.
        times: Of the steps, ``(N, T)``, if they are known.
    """
    import pandas as pd

    if embeddings.ndim == 2:
        embeddings = embeddings[:, None]  # (N, 1, M)
        keys: dict[str, Any] = {"id": ids}
    else:
        rows, places = np.nonzero(~np.isnan(embeddings).all(axis=-1))
        keys = {"id": [ids[row] for row in rows], "step": places * stride}
        if times is not None:
            keys["time"] = times[rows, places * stride]
        embeddings = embeddings[rows, places][:, None]
    columns = [f"emb_{i}" for i in range(embeddings.shape[-1])]
    values = pd.DataFrame(embeddings[:, 0], columns=columns)
    return pd.concat([pd.DataFrame(keys), values], axis=1)


@contextmanager
def embedding_writer(
    path: Path, n_series: int, step: int = 1, times: Any = None, safe_csv: bool = False
) -> Iterator[Write]:
    """A function that adds the embeddings of some series to a file; it gets its name at the end.

    Args:
        path: ``.parquet``, ``.csv`` or ``.npz``.
        n_series: That will be added in all.
        step: Steps from one embedding of a series to its next.
        times: Of the steps ``(N, T)``, if all series are added at once.
        safe_csv: Whether texts of a CSV that a spreadsheet would compute get an apostrophe.
    """
    with whole_file(path) as temporary:
        opened: AbstractContextManager[Write]
        if path.suffix == ".npz":
            opened = _npz(temporary, n_series)
        elif path.suffix == ".csv":
            opened = _csv(temporary, step, times, safe_csv)
        else:
            opened = parquet_writer(temporary, step, times)
        with opened as write:
            yield write


@contextmanager
def parquet_writer(
    path: Path, step: int = 1, times: Any = None, facts: Mapping[str, Any] | None = None
) -> Iterator[Write]:
    """The same for a Parquet file that has its name already; ``facts`` are kept in it as JSON."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None

    def write(ids: list[Any], embeddings: Floats32) -> None:
        nonlocal writer
        frame = embedding_table(ids, embeddings, step, times)
        table = pa.Table.from_pandas(frame, preserve_index=False)
        if writer is None:
            schema = table.schema
            if facts is not None:
                known = schema.metadata or {}
                schema = schema.with_metadata({**known, METADATA: json.dumps(facts).encode()})
            writer = pq.ParquetWriter(path, schema)
        try:
            table = table.cast(writer.schema)
        except (pa.ArrowInvalid, ValueError) as error:
            reason = " ".join(str(error).split())[:80]
            raise ValueError(
                f"the ids of the series do not have one type throughout ({reason}); "
                "make them all texts"
            ) from None
        writer.write_table(table)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def facts_of(path: Path) -> dict[str, Any] | None:
    """What `parquet_writer` kept in a file; None if the file is not whole, or not one of these."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path).metadata or {}
        facts = json.loads(metadata[METADATA])
    except (pa.ArrowException, OSError, KeyError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


@contextmanager
def _csv(path: Path, step: int, times: Any, safe: bool) -> Iterator[Write]:
    with path.open("w", encoding="utf-8", newline="") as file:

        def write(ids: list[Any], embeddings: Floats32) -> None:
            table = embedding_table(ids, embeddings, step, times)
            table = without_formulas(table) if safe else table
            table.to_csv(file, index=False, header=file.tell() == 0)

        yield write


@contextmanager
def _npz(path: Path, n_series: int) -> Iterator[Write]:
    """``ids`` and ``embeddings``, with nothing pickled inside."""
    names: list[Any] = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as members:
        with members.open("embeddings.npy", "w", force_zip64=True) as member:

            def write(ids: list[Any], embeddings: Floats32) -> None:
                if not names:
                    shape = (n_series, *embeddings.shape[1:])
                    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_2_0(member, header)  # type: ignore[no-untyped-call]
                names.extend(ids)
                member.write(np.ascontiguousarray(embeddings, "<f4").data)

            yield write
        array = np.asarray(names)
        if array.dtype == object:
            array = array.astype(str)
        with members.open("ids.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array(member, array, allow_pickle=False)  # type: ignore[no-untyped-call]
