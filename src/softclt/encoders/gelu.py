"""GELU with its slope taken on the way: what both need, an exponential, is computed once.

With x's tail Q(x) = exp(-x^2 / 2) * polynomial(1 / (1 + p x)) / 2 (Abramowitz and Stegun 7.1.26,
off by less than 1e-7), GELU is x (1 - Q), as exact as torch's own in float32.
"""

import math
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from softclt.compilation import compiled
from softclt.validation import Floats32

# The loop runs in one thread; torch's operations, which take three times as long, in all it has.
_MOST_THREADS = 2

_HALF, _ONE = np.float32(0.5), np.float32(1)
_P = np.float32(0.3275911 / math.sqrt(2))
_TAIL = tuple(
    np.float32(c) for c in (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
)
_EXP2 = tuple(np.float32(math.log(2) ** k / math.factorial(k)) for k in range(7))
_SQUARE_TO_EXPONENT = np.float32(-0.5 / math.log(2))
_SMALLEST = np.float32(-126)  # exponent of a float32
_DENSITY = np.float32(1 / math.sqrt(2 * math.pi))


def gelu(x: Tensor) -> Tensor:
    """``x * (1 + erf(x / sqrt(2))) / 2``; where a gradient is wanted, faster on a CPU."""
    wants_grad = torch.is_grad_enabled() and x.requires_grad
    on_cpu = x.device.type == "cpu" and x.dtype == torch.float32
    if not (wants_grad and on_cpu and torch.get_num_threads() <= _MOST_THREADS):
        return F.gelu(x)
    out: Tensor = _Gelu.apply(x)  # type: ignore[no-untyped-call]
    return out


class _Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x = x.detach().contiguous()
        out, slope = torch.empty_like(x), torch.empty_like(x)
        _gelu_and_slope(*(tensor.view(-1).numpy() for tensor in (x, out, slope)))
        ctx.save_for_backward(slope)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        slope: Tensor = ctx.saved_tensors[0]
        return grad * slope


@intrinsic  # type: ignore[untyped-decorator]
def _power_of_two(_: Any, exponent: Any) -> Any:
    """``2 ** exponent`` in float32, of an int32 from -126 to 127."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = ir.IntType(32)
        biased = builder.add(args[0], ir.Constant(integer, 127))
        return builder.bitcast(builder.shl(biased, ir.Constant(integer, 23)), ir.FloatType())

    return types.float32(types.int32), build


def _loop(x: Floats32, out: Floats32, slope: Floats32) -> None:
    c1, c2, c3, c4, c5 = _TAIL
    e0, e1, e2, e3, e4, e5, e6 = _EXP2
    for i in range(x.size):
        v = x[i]
        exponent = max(v * v * _SQUARE_TO_EXPONENT, _SMALLEST)
        whole = np.rint(exponent)
        r = exponent - whole
        bell = (((((e6 * r + e5) * r + e4) * r + e3) * r + e2) * r + e1) * r + e0
        bell *= _power_of_two(np.int32(whole))  # exp(-v^2 / 2)
        t = _ONE / (_ONE + _P * abs(v))
        tail = ((((c5 * t + c4) * t + c3) * t + c2) * t + c1) * t * bell * _HALF
        below = _ONE - tail if v >= 0 else tail
        out[i] = v * below
        slope[i] = below + v * _DENSITY * bell


_gelu_and_slope = compiled(_loop, fastmath={"contract"}, error_model="numpy")
