"""What a network would be, without its memory: to compare it with weights of unknown origin."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


class AtMost(TorchFunctionMode):
    """Stop what calls torch more often than ``limit`` says, such as making a billion layers.

    Example:
        >>> import torch
        >>> with torch.device("meta"), AtMost(10):
        ...     layers = [torch.empty(10**6, 10**6) for _ in range(10**9)]
        Traceback (most recent call last):
        ...
        ValueError: the network has far more layers than there are weights
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.left = limit

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Count a call, and do it."""
        self.left -= 1
        if self.left < 0:
            raise ValueError("the network has far more layers than there are weights")
        return func(*args, **(kwargs or {}))


def check_shapes(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors that are not all those of a network; it may be on the device ``meta``."""
    wanted = network.state_dict()
    if missing := sorted(wanted.keys() - tensors.keys()):
        raise ValueError(f"the weights lack {missing[0]} ({len(missing)} such)")
    if unknown := sorted(tensors.keys() - wanted.keys()):
        raise ValueError(f"the network has no {unknown[0]}, the weights have ({len(unknown)} such)")
    for name, own in wanted.items():
        if own.shape != tensors[name].shape:
            raise ValueError(
                f"{name} has the shape {tuple(tensors[name].shape)}, and {tuple(own.shape)} in the "
                "network that is described"
            )
