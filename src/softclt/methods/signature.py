"""Parameters of a method that adds some to those of another."""

import inspect
from collections.abc import Callable
from typing import Any


def with_parameters_of(parent: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator of an ``__init__`` that passes its ``**kwargs`` on to that of its parent.

    Its signature then names the parent's parameters as well, behind its own: scikit-learn, the
    command line and help read parameters from there.

    Example:
        >>> class Parent:
        ...     def __init__(self, *, size=1):
        ...         self.size = size
        >>> class Child(Parent):
        ...     @with_parameters_of(Parent)
        ...     def __init__(self, *, colour="red", **parameters):
        ...         super().__init__(**parameters)
        >>> inspect.signature(Child)
        <Signature (*, colour='red', size=1)>
    """

    def name_all(init: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(init)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        inherited = list(inspect.signature(parent).parameters.values())
        names = {p.name for p in own}
        everything: Any = [*own, *(p for p in inherited if p.name not in names)]
        init.__signature__ = signature.replace(parameters=everything)  # type: ignore[attr-defined]
        return init

    return name_all
