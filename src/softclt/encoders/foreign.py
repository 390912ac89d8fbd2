"""Any torch module as an encoder."""

import copy
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from softclt.encoders.encoder import Encoder, Piece

TRIED = 2, 64  # series and steps of the batch that a module is tried with
_ANOTHER = 37  # and steps of a second one: a module has to work for any number


class ForeignEncoder(Encoder):
    """A copy of a module from ``(B, D, T)`` to ``(B, T, M)``, for methods that want an `Encoder`.

    The module knows nothing of missing values: it sees 0 where a step is missing, hidden or padded.
    It has one layer to read out. Its parameters have no axis of models, but in a stack of several:
    see `softclt.encoders.stacked.can_stack`.

    Args:
        module: Has to work for any T, and is tried at once.
        n_channels: D.
        mask_padding: See `Encoder`.

    Example:
        >>> class Steps(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.linear = nn.Linear(1, 4)
        ...     def forward(self, x):
        ...         return self.linear(x.transpose(1, 2))
        >>> ForeignEncoder(Steps(), n_channels=1)(torch.randn(3, 1, 20)).shape
        torch.Size([3, 20, 4])
    """

    n_layers = 1

    def __init__(self, module: nn.Module, n_channels: int, mask_padding: bool = True) -> None:
        super().__init__()
        self.mask_padding = mask_padding
        self.output_dims = embedding_size(module, n_channels)
        self.widths = [self.output_dims]
        self.module = copy.deepcopy(module).requires_grad_(True)
        self.n_models = 1

    def forward(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        dropout: Tensor | None = None,
        layer: int | None = None,
        complete: bool = False,
        pieces: Sequence[Piece] | None = None,
    ) -> Tensor:
        """See `Encoder`; of a single model x may have the leading axis or not."""
        if layer not in (None, 0):
            raise ValueError(f"layer is {layer}; this encoder has one, number 0")
        everything, parts = range(x.shape[-1]), []
        x = self._hidden(x, keep, complete)
        for steps, wanted in pieces or [Piece(everything, everything)]:
            z = self._steps(x[..., steps.start : steps.stop])
            parts.append(z[..., wanted.start - steps.start : wanted.stop - steps.start, :])
        z = torch.cat(parts, dim=-2)
        return z if dropout is None else z * dropout

    def _steps(self, x: Tensor) -> Tensor:
        """What the module, or each of the stack, makes of series ``(..., D, T)``."""
        if self.n_models > 1:
            return _side_by_side(self.module, x)
        z: Tensor = self.module(x.reshape(-1, *x.shape[-2:]))
        if z.shape[-2] != x.shape[-1]:
            raise ValueError(
                f"encoder {type(self.module).__name__} makes {z.shape[-2]} vectors of series of "
                f"{x.shape[-1]} steps; expected one for each step"
            )
        return z.reshape(*x.shape[:-2], *z.shape[-2:])

    def all_layers(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """The only one."""
        return cast(Tensor, self(x, keep))

    @staticmethod
    def _hidden(x: Tensor, keep: Tensor | None, complete: bool) -> Tensor:
        """Series ``(..., D, T)`` with 0 at the steps that are not to be seen."""
        seen = None if complete else ~x.isnan().any(dim=-2)  # (..., T)
        if keep is not None:
            seen = keep if seen is None else seen & keep
        return x if seen is None else torch.where(seen[..., None, :], x, x.new_zeros(()))


def _side_by_side(stack: nn.Module, x: Tensor) -> Tensor:
    """What each module of a stack makes of its series ``(R, B, D, T)``."""

    def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor], own: Tensor) -> Tensor:
        return cast(Tensor, functional_call(stack, (parameters, buffers), (own,)))

    parameters: dict[str, Tensor] = dict(stack.named_parameters())
    buffers = dict(stack.named_buffers())
    return vmap(one, randomness="error")(parameters, buffers, x)


def embedding_size(module: nn.Module, n_channels: int) -> int:
    """M of a module, or an error that says what it makes of series of so many channels."""
    size = _tried(module, n_channels, *TRIED)
    _tried(module, n_channels, TRIED[0], _ANOTHER)
    return size


def _tried(module: nn.Module, n_channels: int, b: int, t: int) -> int:
    like = next(module.parameters(), torch.zeros(()))
    x = torch.zeros(b, n_channels, t, dtype=like.dtype, device=like.device)
    name, trained = type(module).__name__, module.training
    try:
        with torch.no_grad():
            z = module.eval()(x)
    except Exception as error:  # whatever it is, it is about this module and this shape
        raise ValueError(
            f"encoder {name} cannot take series of shape (B, D, T) = {tuple(x.shape)}: {error}"
        ) from error
    finally:
        module.train(trained)
    if not isinstance(z, Tensor) or z.ndim != 3 or z.shape[:2] != (b, t):
        came = f"shape {tuple(z.shape)}" if isinstance(z, Tensor) else f"a {type(z).__name__}"
        raise ValueError(
            f"encoder {name} makes {came} of series of shape (B, D, T) = {tuple(x.shape)}; "
            f"expected (B, T, M) = ({b}, {t}, M), one vector for each step"
        )
    return z.shape[-1]
