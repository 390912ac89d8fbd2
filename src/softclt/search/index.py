"""Series to be searched by likeness: their embeddings on disk, with ids and what is known."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from softclt.distances import distances
from softclt.files import held
from softclt.persistence import LOCK
from softclt.search.description import Description, IndexFileError, is_part, read_description
from softclt.search.hits import SERIES, hits_table, measured_again, values_of
from softclt.search.models import as_model, keep, kept_model, refuse_other
from softclt.search.rows import (
    OWN,
    Given,
    batches_of,
    given,
    id_array,
    like_rows,
    numbered,
    reader_of,
    shared,
    some_of,
)
from softclt.search.store import VECTOR, RowStore
from softclt.search.windows import rows_in_one_place
from softclt.validation import Floats, Floats32, Floats64, check_range, check_series, taken_out

if TYPE_CHECKING:
    import pandas as pd

_CANDIDATES = 10  # that are measured again, for each hit
_QUERIES_AT_ONCE = 256


class SeriesIndex:
    """Series that can be searched by likeness.

    A new index lives in a temporary folder, from `save` on in the folder that was given. There,
    what `add`, `update` and `delete` have changed is on disk when they return, whole or not at all,
    and other processes see it at their next call.

    Args:
        model: A fitted model, its folder, or the name of a pre-trained one. The index is bound to
            it: it keeps the name and SHA-256 of one that comes with the package, and a copy of any
            other.
        window: Search in long series: each becomes rows of so many steps, and hits have their
            first step ``start`` and ``end``, the step behind the last.
        stride: Steps from one window to the next; None is a quarter of the window.
        keep_series: Keep the values of each row, for ``rerank`` and pictures.
        scratch: Where the temporary folder is; None is that of the system.

    Example:
        >>> index = SeriesIndex("base").add([[0, 1, 2, 1], [5, 4, 4, 9]], ids=["hill", "rise"])
        >>> index.search([[0, 2, 4, 2]], k=1).round(3)
           query  rank    id  distance
        0      0     1  hill       0.0
    """

    def __init__(
        self,
        model: Any = "base",
        *,
        window: int | None = None,
        stride: int | None = None,
        keep_series: bool = True,
        scratch: str | os.PathLike[str] | None = None,
    ) -> None:
        if window is not None:
            check_range(window, "window", 2)
            stride = max(1, window // 4) if stride is None else stride
            check_range(stride, "stride", 1)
        elif stride is not None:
            raise ValueError("stride is for windows; give window, too, or leave it out")
        self.model = as_model(model)
        self._temporary: Any = tempfile.TemporaryDirectory(prefix="softclt-index-", dir=scratch)
        self.folder = Path(self._temporary.name)
        kept = keep(self.model, self.folder)
        self._is = Description(kept, window, stride, keep_series)
        self._is.write(self.folder)
        self._rows: RowStore | None = None

    @classmethod
    def load(cls, folder: str | os.PathLike[str], model: Any = None) -> Self:
        """Open an index. It stays on disk, and so does what is changed.

        Args:
            folder: That `save` or ``softclt index`` wrote.
            model: To make sure that the index belongs to it; another one is refused.
        """
        index = cls.__new__(cls)
        index.folder, index._temporary = Path(folder), None
        index._is = read_description(folder)
        index.model = kept_model(index._is.model, index.folder)
        if model is not None:
            refuse_other(index._is.model, as_model(model))
        index._rows = None
        return index

    def save(self, folder: str | os.PathLike[str]) -> Self:
        """Move into a folder. An index that is there is replaced at one moment.

        If killed before, that one is as it was.
        """
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"{folder} is a file; an index is saved as a folder")
        if folder.exists() and folder.samefile(self.folder):
            return self
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as locks:
            for place in sorted({self.folder.resolve(), folder.resolve()}):
                locks.enter_context(held(place / LOCK))
            self._look()
            moved = replace(self._is, rows=_new_name("rows") if self._is.rows else None)
            if self._is.rows:
                _copy(self.folder / f"{self._is.rows}.lance", folder / f"{moved.rows}.lance")
            if "folder" in self._is.model:
                moved = replace(moved, model={**moved.model, "folder": _new_name("model")})
                _copy(self.folder / self._is.model["folder"], folder / moved.model["folder"])
            moved.write(folder)
            for path in folder.iterdir():  # of the index before, or of a killed process
                if is_part(path.name) and path.name not in moved.parts():
                    shutil.rmtree(path, ignore_errors=True)
        self.folder, self._is, self._rows = folder, moved, None
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None
        return self

    def __len__(self) -> int:
        store = self._look()
        if store is None:
            return 0
        return len(store) if self._is.window is None else len(self.ids())

    def ids(self) -> list[Any]:
        """Id of each series, in the order in which they were added."""
        store = self._look()
        return [] if store is None else store.column("id").unique().to_pylist()

    def add(self, X: Any, ids: Sequence[Any] | None = None, metadata: Any = None) -> Self:
        """Add series, all or none of them.

        Args:
            X: As ``transform`` takes them, with as many channels as those before. What
                `softclt.data.open_series` gives is read piece by piece.
            ids: Whole numbers or texts, each once in the index. None: those that X has, else
                numbers that go on from those in the index.
            metadata: Columns about the series, for ``where`` and the table of hits: a frame, or a
                mapping from names to columns. The first call decides their types.
        """
        with self._writing() as store:
            new = given(X, ids, metadata, self._is.n_channels)
            known = None if store is None else store.column("id")
            own = numbered(len(new.source), known) if new.ids is None else new.ids
            if known is not None and (there := shared(own, known)):
                raise ValueError(
                    f"the index has series {some_of(there)} already; update puts new ones in "
                    "their place"
                )
            self._write(new, own, store)
        return self

    def update(self, X: Any, ids: Sequence[Any] | None = None, metadata: Any = None) -> Self:
        """Put series in the place of those with the same ids, and add the others. See `add`."""
        with self._writing() as store:
            new = given(X, ids, metadata, self._is.n_channels)
            if new.ids is None:
                raise ValueError("update needs ids, to know which series are replaced")
            self._write(new, new.ids, store, instead=True)
        return self

    def delete(self, ids: Sequence[Any]) -> Self:
        """Take series out, all of them or none; an id that is not there is refused."""
        with self._writing() as store:
            own = id_array(ids)
            there = [] if store is None else shared(own, store.column("id"))
            if len(there) < len(own):
                missing = [one for one in own.to_pylist() if one not in set(there)]
                raise ValueError(f"the index has no series {some_of(missing)}")
            if store is not None and there:
                store.delete(there)
                self._tend()
        return self

    def _tend(self) -> None:
        """Keep the search fast, and know what it finds."""
        store = self._look()
        if store is not None and (ann := store.tend(self._is.ann)) != self._is.ann:
            self._is = replace(self._is, ann=ann)
            self._is.write(self.folder)

    def search(
        self,
        X: Any,
        k: int = 10,
        where: str | None = None,
        *,
        rerank: str | None = None,
        candidates: int | None = None,
        exact: bool = False,
    ) -> "pd.DataFrame":
        """The k series most like each query.

        Args:
            X: Queries, as ``transform`` takes them.
            k: Hits for each, fewer where there are no more.
            where: A condition in SQL on the columns of the metadata, ``id``, ``start`` and ``end``.
            rerank: Measure the nearest again, with a distance of `softclt.pairwise_distance`
                between the series, each channel standardised by itself, such as ``"dtw"``.
            candidates: How many are measured again; None is ten for each hit.
            exact: Compare all rows, however many there are; see `facts` for what is missed else.

        Returns:
            A row for each hit: ``query`` (its id or number), ``rank`` from 1, ``id``, ``distance``
            (1 minus the cosine between embeddings, or that of ``rerank``), ``start`` and ``end`` of
            a window, and the metadata.
        """
        import pandas as pd

        store = self.check_search(k, where, rerank)
        names, series = self._queries(X)
        n = k if rerank is None else max(k, _CANDIDATES * k if candidates is None else candidates)
        if self._is.window is not None:
            n *= rows_in_one_place(self._is.window, self._is.stride or 1)
        probes = None if exact else self._is.ann.get("probes")
        columns = [name for name in store.schema.names if name not in (VECTOR, SERIES)]
        found = []
        for start in range(0, len(series), _QUERIES_AT_ONCE):
            part = series[start : start + _QUERIES_AT_ONCE]
            own = [*columns, SERIES] if rerank is not None else columns
            rows = store.nearest(self._vectors(part), n, own, where, probes)
            if rerank is not None:
                rows = measured_again(rows, part, rerank)
            windows = self._is.window is not None
            found.append(hits_table(rows, names[start : start + _QUERIES_AT_ONCE], k, windows))
        return pd.concat(found, ignore_index=True)

    def check_search(
        self, k: int = 10, where: str | None = None, rerank: str | None = None
    ) -> RowStore:
        """Refuse what `search` cannot do, before there are queries; the rows."""
        check_range(k, "k", 1)
        store = self._look()
        if store is None:
            raise ValueError("the index has no series yet; add some before searching")
        if rerank is not None:
            distances[rerank]  # or an error that names those there are
            if not self.keeps_series:
                raise ValueError("rerank measures the series, which this index does not keep")
        if where is not None:
            store.check_filter(where)
        return store

    @property
    def keeps_series(self) -> bool:
        """Whether rows have their values."""
        return self._is.keep_series

    def series(self, hits: "pd.DataFrame") -> list[Floats64]:
        """Values ``(D, T_i)`` of hits of `search`."""
        if not self.keeps_series:
            raise ValueError("this index does not keep the series")
        store = self._look()
        if store is None or hits.empty:
            return []
        rows = store.rows(hits["id"].unique().tolist(), ["id", "start", SERIES])
        keys = zip(rows["id"].to_pylist(), rows["start"].to_pylist(), strict=True)
        place = {key: i for i, key in enumerate(keys)}
        starts = hits["start"] if "start" in hits else [0] * len(hits)
        wanted = [place[key] for key in zip(hits["id"].tolist(), starts, strict=True)]
        return values_of(rows.take(wanted), self._is.n_channels or 1)

    def facts(self) -> dict[str, Any]:
        """What the index holds and how it is searched."""
        store = self._look()
        metadata = {} if store is None else {f.name: str(f.type) for f in store.schema}
        return {
            "model": self._is.model.get("name", "its own copy"),
            "sha256": self._is.model["sha256"],
            "series": len(self),
            "rows": 0 if store is None else len(store),
            "channels": self._is.n_channels,
            "window": self._is.window,
            "stride": self._is.stride,
            "keeps_series": self._is.keep_series,
            "columns": {k: v for k, v in metadata.items() if k not in OWN},
            "search": self._is.ann,
            "bytes": sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file()),
        }

    def _vectors(self, X: Floats) -> Floats32:
        """Unit vectors of series, or zeros where there is no direction."""
        R = self.model.encode(X).astype(np.float64)
        length = np.linalg.norm(R, axis=1, keepdims=True)
        return np.where(length > 0, R / np.where(length > 0, length, 1), 0).astype(np.float32)

    def _queries(self, X: Any) -> tuple[list[Any], Floats]:
        held = taken_out(X)
        series = check_series(held.series, n_channels=self._is.n_channels)
        names = list(range(len(series))) if held.ids is None else list(held.ids)
        return names, series

    def _write(self, new: Given, ids: Any, store: RowStore | None, instead: bool = False) -> None:
        """Write the rows of series, to new ids or instead of those with theirs."""
        schema = None if store is None else store.schema
        if schema is not None:
            new = replace(new, metadata=like_rows(ids, new.metadata, schema))
        cut = self._is.window, self._is.stride, self._is.keep_series
        batches = batches_of(new, ids, self._vectors, *cut)
        first = next(batches, None)
        if first is None:
            raise ValueError("no window of X has a step at which all channels have a value")
        schema = first.schema if schema is None else schema
        with reader_of(chain([first], batches), schema) as reader:
            if store is None:
                self._first(reader, schema, new)
            elif instead:
                store.put(reader.read_all(), ids.to_pylist())
            else:
                store.add(reader)
        self._tend()

    def _first(self, reader: Any, schema: Any, new: Given) -> None:
        """Make the table; it belongs to the index once it has its rows."""
        name = _new_name("rows")
        RowStore.create(self.folder, name, schema).add(reader)
        self._is = replace(self._is, rows=name, n_channels=new.source.shape[1])
        self._is.write(self.folder)

    def _look(self) -> RowStore | None:
        """The rows as they are on disk now; None before the first."""
        now = read_description(self.folder)
        if now.rows != self._is.rows or now.model != self._is.model:
            if any(now.model.get(key) != self._is.model.get(key) for key in ("sha256", "name")):
                raise IndexFileError(f"{self.folder} holds the index of another model now; load it")
            self._rows = None
        self._is = now
        if self._rows is None and now.rows is not None:
            self._rows = RowStore(self.folder, now.rows)
        return self._rows

    @contextmanager
    def _writing(self) -> Iterator[RowStore | None]:
        with held(self.folder / LOCK):
            yield self._look()


def _new_name(kind: str) -> str:
    return f"{kind}-{secrets.token_hex(6)}"


def _copy(source: Path, target: Path) -> None:
    """A folder once more; its files are never changed, so that links to them will do."""

    def copy(one: str, other: str) -> None:
        try:
            os.link(one, other)
        except OSError:  # another disk
            shutil.copyfile(one, other)

    shutil.copytree(source, target, copy_function=copy)
