"""When two settings are the same: the key of everything that is done once and kept."""

import hashlib
from collections.abc import Mapping, Set
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn


def settings_key(*values: Any) -> str:
    """Sixteen hex digits, equal for equal values and for no others.

    Arrays count by all their values: their ``repr`` leaves out most of a long one. An estimator
    counts by its class and parameters, a network by its layers and weights. What says nothing of
    itself, such as a function, is the same only if it is the same object, so keys of it hold in
    this process alone.

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
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, nn.Module):
        return kind, str(value), _plain(value.state_dict())
    if hasattr(value, "get_params") and not isinstance(value, type):
        return kind, _plain(value.get_params(deep=False))
    return kind, id(value)
