"""Named things with capabilities: distances, assignments, methods, tasks, data sets."""

import logging
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from softclt.validation import did_you_mean

T = TypeVar("T")

PLUGIN_GROUP = "softclt.plugins"

_failed: dict[str, str] = {}  # what is wrong with a plugin, by its name

_log = logging.getLogger(__name__)


class Registry(Generic[T]):
    """A table from names to objects, each with tags that callers and tests can ask for.

    A package outside registers its own things by naming a module in the entry-point group
    ``softclt.plugins``; it is imported when an unknown name is asked for, or all names are. One
    that fails is left out; a warning, and the error on an unknown name, say so.

    Args:
        kind: What the table holds, in the singular; error messages use it.
        more: What else may be given, for the end of the message about an unknown name.

    Example:
        >>> shapes = Registry("shape")
        >>> @shapes.register("square", corners=4)
        ... def square(side):
        ...     return side**2
        >>> shapes["square"](3), shapes.names(corners=4), shapes.tags("square")
        (9, ['square'], {'corners': 4})
        >>> shapes["sqare"]
        Traceback (most recent call last):
        ...
        ValueError: unknown shape 'sqare'; known: square; did you mean 'square'?
    """

    def __init__(self, kind: str, more: str = "") -> None:
        self.kind, self.more = kind, more
        self._items: dict[str, T] = {}
        self._tags: dict[str, dict[str, Any]] = {}
        self._plugins_loaded = False

    def register(self, name: str, **tags: Any) -> Callable[[T], T]:
        """Decorator that enters an object under ``name``; a name is given only once."""

        def enter(item: T) -> T:
            if name in self._items and self._items[name] is not item:
                raise ValueError(f"the {self.kind} {name!r} is registered already")
            self._items[name] = item
            self._tags[name] = tags
            return item

        return enter

    def unregister(self, name: str) -> T:
        """Take the entry ``name`` back, with its tags; the name is free again.

        Returns:
            What was registered under it.
        """
        item = self[name]
        del self._items[name], self._tags[name]
        return item

    def __getitem__(self, name: str) -> T:
        if name not in self._items:
            self._load_plugins()
        if name not in self._items:
            broken = "".join(f"; {what}" for what in _failed.values())
            raise ValueError(
                f"unknown {self.kind} {name!r}; known: {', '.join(sorted(self._items))}"
                f"{self.more}{broken}{did_you_mean(name, self._items)}"
            )
        return self._items[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._items:
            self._load_plugins()
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self, **tags: Any) -> list[str]:
        """Sorted names of everything whose tags include ``tags``."""
        self._load_plugins()
        return sorted(
            name
            for name, own in self._tags.items()
            if all(own.get(key) == value for key, value in tags.items())
        )

    def tags(self, name: str) -> dict[str, Any]:
        """Tags that ``name`` was registered with."""
        self[name]
        return dict(self._tags[name])

    def name_of(self, item: T) -> str:
        """The name under which ``item`` was registered."""
        for name, own in self._items.items():
            if own is item:
                return name
        raise ValueError(f"{item!r} is not a registered {self.kind}")

    def _load_plugins(self) -> None:
        if not self._plugins_loaded:
            self._plugins_loaded = True
            for plugin in entry_points(group=PLUGIN_GROUP):
                _load(plugin)


def _load(plugin: EntryPoint) -> None:
    """Import a plugin; what is wrong with it, whatever it is, is said once."""
    if plugin.name in _failed:
        return
    try:
        plugin.load()
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())[:200]
        _failed[plugin.name] = (
            f"the plugin {plugin.name!r} ({plugin.value}) cannot be imported and is left out "
            f"({type(error).__name__}: {reason})"
        )
        _log.warning(_failed[plugin.name])
