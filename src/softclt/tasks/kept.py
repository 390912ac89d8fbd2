"""What several results need is made once, as long as somebody asked to keep it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from softclt.data import Dataset, load

_LOADED = 2**30  # bytes of data sets that are kept at most

_store: dict[Any, Any] | None = None


@contextmanager
def keeping() -> Iterator[None]:
    """Within it, `kept` is one and the same; with the outermost it ends."""
    global _store
    before = _store
    _store = {} if before is None else before
    try:
        yield
    finally:
        _store = before


def keep_until_exit() -> None:
    """For a process that does nothing but such work."""
    global _store
    _store = {} if _store is None else _store


def kept() -> dict[Any, Any]:
    """What was kept so far; one that nobody will see again unless `keeping`."""
    return {} if _store is None else _store


def load_once(name: str, split: Literal["both", "train"] = "both") -> Dataset:
    """A data set, kept while there is room."""
    loaded: dict[tuple[str, str], Dataset] = kept().setdefault("loaded", {})
    if (name, split) not in loaded:
        data = load(name, split=split)
        if sum(map(_size, (data, *loaded.values()))) > _LOADED:
            return data
        loaded[name, split] = data
    return loaded[name, split]


def _size(data: Dataset) -> int:
    parts = (data.X_train, data.X_test)
    return sum(part.nbytes for part in parts if part is not None)
