"""Parameters of a method that adds some to those of another: stated once, told everywhere."""

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

Init = Callable[..., None]

_ARGS = re.compile(r"(?<=\nArgs:\n)(?: {4}.*(?:\n|$))+")
_ENTRY = re.compile(r"^ {4}(\w+):.*\n?(?: {5,}.*\n?)*", re.MULTILINE)


def with_parameters_of(*parents: type, **defaults: Any) -> Callable[[Init], Init]:
    """Decorator of an ``__init__`` that passes its ``**kwargs`` on to those of its parents.

    Its signature then names the parents' parameters as well, behind its own: scikit-learn, the
    command line and help read parameters from there.

    Args:
        parents: Whose parameters it passes on.
        defaults: Of parents' parameters, where they are others here.

    Example:
        >>> class Parent:
        ...     def __init__(self, *, size=1):
        ...         self.size = size
        >>> class Child(Parent):
        ...     @with_parameters_of(Parent, size=2)
        ...     def __init__(self, *, colour="red", **parameters):
        ...         super().__init__(**parameters)
        >>> inspect.signature(Child), Child().size
        (<Signature (*, colour='red', size=2)>, 2)
    """

    def name_all(init: Init) -> Init:
        own = inspect.signature(init)
        named = {n: p for n, p in own.parameters.items() if p.kind is not p.VAR_KEYWORD}
        for parent in parents:
            for name, parameter in inspect.signature(parent).parameters.items():
                default = defaults.get(name, parameter.default)
                named.setdefault(name, parameter.replace(default=default))
        signature = own.replace(parameters=list(named.values()))

        @functools.wraps(init)
        def with_defaults(*args: Any, **given: Any) -> None:
            if type(args[0]).__init__ is with_defaults:  # not one that passes more on to this
                signature.bind(*args, **given)  # or an error that names what is no parameter
            init(*args, **defaults | given)

        with_defaults.__signature__ = signature  # type: ignore[attr-defined]
        return with_defaults

    return name_all


def tell_parameters(cls: type) -> None:
    """Add to the ``Args`` of a class what its bases say of those parameters it says nothing of."""
    if "__doc__" not in cls.__dict__ or cls.__doc__ is None:
        return
    told: dict[str, str] = {}
    for base in cls.__mro__:
        section = _ARGS.search(inspect.cleandoc(base.__dict__.get("__doc__") or ""))
        for entry in _ENTRY.finditer(section[0] if section else ""):
            told.setdefault(entry[1], entry[0])
    names = [name for name in told if name in inspect.signature(cls).parameters]
    everything = "".join(told[name].rstrip() + "\n" for name in names)
    cls.__doc__ = _ARGS.sub(lambda _: everything, inspect.cleandoc(cls.__doc__), count=1)
