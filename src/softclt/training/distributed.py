"""Training by several processes: each has its rows of every batch, and all take the same steps.

Whatever a step draws is drawn for the whole batch, of which each process takes its part. So W
processes make what one alone would have made, up to rounding.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist
from torch.autograd.function import once_differentiable

T = TypeVar("T")

_PATIENCE = timedelta(days=1)  # others wait while the first computes distances


class Group:
    """The processes that train together: here one alone.

    Attributes:
        rank: Number of this process; the first is 0, and only it writes and prints.
        size: Number of processes.
    """

    rank, size = 0, 1

    def part(self, n: int) -> slice:
        """This process' rows of a batch of n."""
        if n % self.size:
            raise ValueError(
                f"a batch has {n} series, which {self.size} processes cannot share evenly; choose "
                f"a batch_size that is a multiple of {self.size} and not above the number of series"
            )
        own = n // self.size
        return slice(self.rank * own, (self.rank + 1) * own)

    def gather(self, x: Tensor, dim: int) -> Tensor:
        """The parts of all processes side by side, with a gradient.

        The gradient is right if every process computes the same from the result, and gradients of
        parameters are then averaged over processes, as DistributedDataParallel does.
        """
        return x

    def average_(self, tensors: Sequence[Tensor]) -> None:
        """Replace each by its mean over processes, all in one message."""

    def any(self, flag: bool) -> bool:
        """Whether it is true in any process; all must ask."""
        return flag

    def from_first(self, work: Callable[[], T]) -> T:
        """What ``work`` gives in the first process, which alone does it; or the error it raises."""
        return work()

    @contextmanager
    def first_then_others(self) -> Iterator[None]:
        """The first process goes ahead, and the others may find what it has put into a cache."""
        yield


class _Processes(Group):
    """Several of them: the default group of ``torch.distributed``."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def gather(self, x: Tensor, dim: int) -> Tensor:
        gathered: Tensor = _Gather.apply(x, dim, self.rank, self.size)  # type: ignore[no-untyped-call]
        return gathered

    @torch.no_grad()
    def average_(self, tensors: Sequence[Tensor]) -> None:
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        dist.all_reduce(flat)
        flat /= self.size
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def any(self, flag: bool) -> bool:
        answers: list[Any] = [None] * self.size
        dist.all_gather_object(answers, flag)
        return any(answers)

    def from_first(self, work: Callable[[], T]) -> T:
        message: list[Any] = [None, None]  # the result and the error
        if self.rank == 0:
            try:
                message[0] = work()
            except Exception as error:
                message[1] = error
        dist.broadcast_object_list(message, src=0)
        if message[1] is not None:
            raise message[1]
        return message[0]  # type: ignore[no-any-return]

    @contextmanager
    def first_then_others(self) -> Iterator[None]:
        if self.rank > 0:
            dist.barrier()
        try:
            yield
        finally:
            if self.rank == 0:
                dist.barrier()


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, rank: int, size: int) -> Tensor:
        ctx.place = dim, rank * x.shape[dim], x.shape[dim], size
        sent = x.contiguous().view(torch.uint8) if x.dtype == torch.bool else x.contiguous()
        parts = [torch.empty_like(sent) for _ in range(size)]
        dist.all_gather(parts, sent)
        return torch.cat([part.view(x.dtype) for part in parts], dim=dim)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        dim, start, length, size = ctx.place
        # Every process has the whole gradient; times their number, since a mean follows.
        return size * grad.narrow(dim, start, length), None, None, None


def current_group() -> Group:
    """The processes that train together, if ``torch.distributed`` has been initialised."""
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return Group()
    return _Processes()


@contextmanager
def processes_of_torchrun() -> Iterator[None]:
    """Join the processes that torchrun has started, for a while; alone, nothing happens."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield
        return
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo", timeout=_PATIENCE)
    try:
        yield
        dist.barrier()  # none hangs up on another
    finally:
        dist.destroy_process_group()
