"""When two settings are the same: the key of everything that is done once and kept."""

import hashlib
import pickle
from collections.abc import Mapping, Set
from contextlib import suppress
from functools import partial
from itertools import count
from types import BuiltinFunctionType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np
from torch import Tensor, nn

# What says nothing of itself is told by a number of its own: an `id` comes again when it is gone.
_numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_next_number = count()
_KEPT_APART = ("_parameters", "_buffers", "_modules")  # of a module, which are tensors and modules


def settings_key(*values: Any) -> str:
    """Sixteen hex digits, equal for equal values and for no others.

    Arrays count by all their values: their ``repr`` leaves out most of a long one. An estimator
    counts by its class and parameters, a network by its layers, their attributes and weights, a
    function by its place in a module. What says nothing of itself, such as a function made within
    another, is the same only if it is the same object: keys of it hold in this process alone.

    Example:
        >>> a, b = np.zeros(2000), np.zeros(2000)
        >>> b[1000] = 1
        >>> settings_key(a) == settings_key(b), settings_key({"x": 1}) == settings_key({"x": 1})
        (False, True)
    """
    return hashlib.sha256(repr([_plain(value) for value in values]).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """The same value made of texts, numbers and tuples, of which ``repr`` leaves nothing out."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return value
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OV":
            return "array", value.shape, _plain(value.tolist())
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return "array", value.dtype.str, value.shape, content
    if isinstance(value, Mapping):
        return "mapping", sorted((repr(_plain(k)), _plain(v)) for k, v in value.items())
    if isinstance(value, Set):
        return "set", sorted(repr(_plain(v)) for v in value)
    if isinstance(value, (list, tuple)):
        return "list", [_plain(v) for v in value]
    if isinstance(value, partial):
        return "partial", _plain([value.func, value.args, value.keywords])
    if isinstance(value, ref):
        return "reference"  # to what is counted where it lives
    if isinstance(value, (FunctionType, BuiltinFunctionType, type)):
        with suppress(Exception):  # whatever pickle raises, it does not find it by its name
            return "named", pickle.dumps(value)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, nn.Module):
        return kind, str(value), [_layer(own) for own in value.modules()]
    if hasattr(value, "get_params") and not isinstance(value, type):
        return kind, _plain(value.get_params(deep=False))
    try:
        return kind, _numbers.setdefault(value, next(_next_number))
    except TypeError:  # it has no hash, or cannot be referred to weakly
        return kind, "at", id(value)


def _layer(module: nn.Module) -> Any:
    """What a module has itself: tensors, and what its ``forward`` may go by."""
    own = {k: v for k, v in vars(module).items() if k not in _KEPT_APART}
    return _plain([own, dict(module.named_parameters(recurse=False)), module._buffers])
