"""Soft assignments: from a distance between series or a lag between steps to a weight in [0, 1]."""

import math
from typing import Protocol

import torch
from torch import Tensor

from softclt.registry import Registry
from softclt.validation import check_range


class Assignment(Protocol):
    """Elementwise weight of a distance or lag; 1 at zero, falling, in [0, 1].

    ``span`` is the largest value d can take: 1 for normalised distances, T - 1 for lags.
    """

    def __call__(self, d: Tensor, tau: float, span: float) -> Tensor:
        """Weights of the shape of ``d``."""
        ...


_SHARPEST = 1e20  # still a number in float32 when it has grown by levels

assignments: Registry[Assignment] = Registry("assignment")


@assignments.register("sigmoid", instance=True, temporal=True, grows=True)
def sigmoid(d: Tensor, tau: float, span: float) -> Tensor:
    """2 / (1 + exp(tau d)): the paper's choice."""
    return 2 * torch.sigmoid(-tau * d)


@assignments.register("gaussian", instance=True, temporal=True, grows=True)
def gaussian(d: Tensor, tau: float, span: float) -> Tensor:
    """exp(-(tau d)^2 / 2): tau is one over the standard deviation."""
    return torch.exp(-((tau * d) ** 2) / 2)


@assignments.register("laplacian", instance=True, temporal=True, grows=True)
def laplacian(d: Tensor, tau: float, span: float) -> Tensor:
    """exp(-tau d)."""
    return torch.exp(-tau * d)


@assignments.register("plateau", instance=True, temporal=False, grows=False)
def plateau(d: Tensor, tau: float, span: float) -> Tensor:
    """Near 1 for the nearer half of the span, near 0 for the other; tau is how sharply it falls."""
    middle = span / 2
    return torch.sigmoid(-tau * (d - middle)) / torch.sigmoid(d.new_tensor(tau * middle))


@assignments.register("linear", instance=True, temporal=True, grows=False)
def linear(d: Tensor, tau: float, span: float) -> Tensor:
    """1 - d / span: the most distant gets 0. tau is ignored (the paper's «without kernel»)."""
    return 1 - d / max(span, 1.0)


@assignments.register("neighbor", instance=False, temporal=True, grows=False)
def neighbor(d: Tensor, tau: float, span: float) -> Tensor:
    """1 within a window of tau times the length, else 0; tau is a share, so it has no growth."""
    return (d <= tau * (span + 1)).to(d)


@assignments.register("hard", instance=True, temporal=True, grows=False)
def hard(d: Tensor, tau: float, span: float) -> Tensor:
    """1 for the same series or step, 0 for any other: the usual contrastive loss."""
    return (d == 0).to(d)


def instance_weights(
    distances: Tensor, tau: float | None, alpha: float = 0.5, assignment: str = "sigmoid"
) -> Tensor | None:
    """Weights ``(..., N, N)`` of pairs of series, ones on the diagonal; None means hard.

    Args:
        distances: Normalised to [0, 1].
        tau: Sharpness; None is hard.
        alpha: Upper bound of the weight between two different series.
        assignment: Name of a registered assignment.
    """
    if tau is None or assignment == "hard":
        return None
    weights = alpha * assignments[assignment](distances, tau, 1.0)
    same = torch.eye(distances.shape[-1], dtype=torch.bool, device=distances.device)
    return weights.masked_fill(same, 1.0)


def temporal_weights(
    length: int,
    tau: float | None,
    assignment: str = "sigmoid",
    level: int = 0,
    growth: float = 2,
    cut: float = 0.0,
    dtype: torch.dtype = torch.float32,
) -> Tensor | None:
    """Weights by lag of the steps at one level, ``(length,)`` or shorter; None means hard.

    The vector ends where the weights die out within the dtype's epsilon: what follows is 0.

    Args:
        length: Steps at this level.
        tau: Sharpness at full resolution; None is hard.
        assignment: Name of a registered assignment.
        level: How many times the series were halved.
        growth: Sharpness grows by this factor a level: 2 keeps one decay in original time.
        cut: Weights below it become 0 (the authors' code has 1e-6).
        dtype: Of the result; computed in float64.
    """
    if tau is None or assignment == "hard":
        return None
    if assignments.tags(assignment)["grows"]:
        tau = tau * growth**level
    lags = torch.arange(length, dtype=torch.float64)
    weights = assignments[assignment](lags, tau, length - 1.0)
    alive = weights >= max(cut, torch.finfo(dtype).eps / 2)
    last = int(alive.nonzero().max()) if alive.any() else 0
    return (weights * (weights >= cut))[: last + 1].to(dtype)


def weights_by_time(
    times: Tensor,
    tau: float | None,
    assignment: str = "sigmoid",
    level: int = 0,
    growth: float = 2,
    cut: float = 0.0,
) -> Tensor | None:
    """As :func:`temporal_weights`, ``(..., T, T)``, of steps at real times; None means hard.

    Args:
        times: ``(..., T)``, in units of a step at full resolution.
        tau, assignment, level, growth, cut: See there. Evenly spaced times give the same weights.
    """
    if tau is None or assignment == "hard":
        return None
    if assignments.tags(assignment)["grows"]:
        tau = tau * growth**level
    lags = (times[..., :, None] - times[..., None, :]).abs() / 2**level
    weights = assignments[assignment](lags, tau, times.shape[-1] - 1.0).clamp_min(0.0)
    return weights * (weights >= cut)


def check_assignment(name: str, tau: float | None, *, kind: str) -> None:
    """Refuse an unknown assignment, one of the other kind, or a tau that is not positive."""
    if not assignments.tags(name)[kind]:
        known = ", ".join(assignments.names(**{kind: True}))
        raise ValueError(f"{kind}_assignment {name!r} is not for {kind} weights; known: {known}")
    if tau is not None:
        check_range(tau, f"tau_{kind}", 0, open_low=True)
        if tau == math.inf:
            raise ValueError(f"tau_{kind} is infinite; None is hard")
        check_range(tau, f"tau_{kind}", 0, _SHARPEST)
