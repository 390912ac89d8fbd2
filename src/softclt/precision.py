"""How products of float32 round: torch has one switch for all threads of a process.

Nothing is changed where it is as wanted, as on a CPU with torch's defaults. Where it is not, one
thread at a time changes it, and puts it back.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import torch

_ROUNDING = RLock()
_EXACT = ("ieee", "none")  # none: torch's default, which is not to round


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """No TF32 and no bfloat16 in products of float32."""
    if _is_exact(device):
        yield
        return
    with _ROUNDING:
        matmul = _matmul(device)
        before = torch.get_float32_matmul_precision() if matmul is None else matmul.fp32_precision
        _set_rounding(matmul, "highest" if matmul is None else "ieee")
        try:
            yield
        finally:
            _set_rounding(matmul, before)


@contextmanager
def quick_products(device: torch.device, precision: str) -> Iterator[None]:
    """TF32 for a network's float32 products on a GPU, if the precision is ours to choose.

    Ways to convolve are tried out for each shape: the one that is taken unseen works by Fourier
    transforms, which is half of a step of TS-TCC. Threads that train on GPUs take turns, step by
    step; those on a CPU only where its products round, which the losses switch off and on.
    """
    if device.type != "cuda":
        if _is_exact(device):
            yield
        else:
            with _ROUNDING:
                yield
        return
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    with _ROUNDING:
        before = products.allow_tf32, convolutions.allow_tf32, convolutions.benchmark
        products.allow_tf32 = before[0] or precision == "auto"
        convolutions.allow_tf32 = precision == "auto"  # where torch's own default is True
        convolutions.benchmark = True
        try:
            yield
        finally:
            products.allow_tf32, convolutions.allow_tf32, convolutions.benchmark = before


def _is_exact(device: torch.device) -> bool:
    with _ROUNDING:  # not while another thread has changed it
        matmul = _matmul(device)
        if matmul is None:
            return torch.get_float32_matmul_precision() == "highest"
        return matmul.fp32_precision in _EXACT


def _matmul(device: torch.device) -> Any:
    """The switch of a device's matrix products; torch before 2.9 has one for all, which is None."""
    backend = torch.backends.cuda if device.type == "cuda" else torch.backends.mkldnn
    matmul = getattr(backend, "matmul", None)
    return matmul if hasattr(matmul, "fp32_precision") else None


def _set_rounding(matmul: Any, value: str) -> None:
    if matmul is None:
        torch.set_float32_matmul_precision(value)
    else:
        matmul.fp32_precision = value
