"""Two pieces of work at once on a GPU, which one alone would leave half idle."""

from collections.abc import Callable

import torch
from torch import Tensor


def both(work: Callable[[int], Tensor], like: Tensor) -> tuple[Tensor, Tensor]:
    """``work(0), work(1)``; where ``like`` is on a GPU, side by side, forward and backward."""
    if not like.is_cuda:
        return work(0), work(1)
    here, beside = torch.cuda.current_stream(like.device), _beside(like.device)
    beside.wait_stream(here)
    with torch.cuda.stream(beside):
        second = work(1)
    first = work(0)
    here.wait_stream(beside)
    second.record_stream(here)  # its memory is not given away before this stream has read it
    return first, second


_STREAMS: dict[torch.device, torch.cuda.Stream] = {}


def _beside(device: torch.device) -> torch.cuda.Stream:
    """A second stream of a device, the same every time."""
    if device not in _STREAMS:
        _STREAMS[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        if hasattr(torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch"):
            # Both streams have a gradient for the same parameters; autograd lets one wait.
            torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    return _STREAMS[device]
