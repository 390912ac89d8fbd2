"""Entries of registries for the length of a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from softclt.registry import Registry


@contextmanager
def as_before(*registries: Registry) -> Iterator[None]:
    """Put every registry back to what it holds now, whatever is entered or taken meanwhile."""
    before = [{name: (table[name], table.tags(name)) for name in table} for table in registries]
    try:
        yield
    finally:
        for table, entries in zip(registries, before, strict=True):
            for name in table:
                table.unregister(name)
            for name, (item, tags) in entries.items():
                table.register(name, **tags)(item)


@contextmanager
def registered(registry: Registry, name: str, item: Any, /, **tags: Any) -> Iterator[Any]:
    """Enter ``item`` for a while; it replaces an entry of that name.

    Without ``tags`` it has those of the entry that it replaces.
    """
    with as_before(registry):
        if name in registry:
            tags = tags or registry.tags(name)
            registry.unregister(name)
        yield registry.register(name, **tags)(item)
