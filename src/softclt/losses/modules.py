"""The losses as modules that own the sharpness: plug them into any training loop with two views."""

from functools import lru_cache

import torch
from torch import Tensor, nn

from softclt.assignments import assignments, check_assignment, instance_weights, temporal_weights
from softclt.losses import functional
from softclt.validation import check_range


class InstancePolicy(nn.Module):
    """Turns normalised distances into instance weights."""

    def __init__(self, tau: float | None, alpha: float, assignment: str) -> None:
        super().__init__()
        check_assignment(assignment, tau, kind="instance")
        check_range(alpha, "alpha", 0, 1, open_low=True)
        self.tau, self.alpha, self.assignment = tau, alpha, assignment

    def forward(self, n: int, distances: Tensor | None) -> Tensor | None:
        """Weights ``(N, N)`` for a batch of n series, or None: hard."""
        if self.tau is None or self.assignment == "hard":
            return None
        if distances is None:
            raise ValueError(
                "tau_instance is set, so the loss needs `distances` of shape (N, N) in [0, 1]"
            )
        distances = torch.as_tensor(distances)
        distances = distances.to(torch.promote_types(distances.dtype, torch.float32))
        if distances.shape[-2:] != (n, n):
            raise ValueError(
                f"distances have shape {tuple(distances.shape)}; "
                f"expected ({n}, {n}) for a batch of {n} series"
            )
        # On a GPU this look would stall every step; there the contract is the caller's.
        if not distances.is_cuda and not bool(((distances >= 0) & (distances <= 1)).all()):
            raise ValueError(
                "distances must be in [0, 1]; normalise them over the data set first, "
                'e.g. pairwise_distance(X, normalize="minmax")'
            )
        return instance_weights(distances, self.tau, self.alpha, self.assignment)

    def extra_repr(self) -> str:
        """What the module prints as."""
        return f"tau={self.tau}, alpha={self.alpha}, assignment={self.assignment!r}"


def check_temporal(tau: float | None, assignment: str, growth: float, cut: float) -> None:
    """Refuse what a `TemporalPolicy` cannot be made of."""
    check_assignment(assignment, tau, kind="temporal")
    check_range(growth, "tau_growth", 0, open_low=True)
    check_range(cut, "weight_cut", 0, 1)


class TemporalPolicy(nn.Module):
    """Makes the weights by lag of a length and level."""

    def __init__(self, tau: float | None, assignment: str, growth: float, cut: float) -> None:
        super().__init__()
        check_temporal(tau, assignment, growth, cut)
        self.tau, self.assignment, self.growth, self.cut = tau, assignment, growth, cut

    def forward(self, z: Tensor) -> functional.TemporalWeights | None:
        """The function that :func:`softclt.functional.hierarchical_loss` wants, or None: hard."""
        if self.tau is None or self.assignment == "hard":
            return None
        dtype = torch.promote_types(z.dtype, torch.float32)

        def by_lag(length: int, level: int) -> Tensor:
            return _weights_by_lag(
                length, self.tau, self.assignment, level, self.growth, self.cut, dtype, z.device
            )

        return functional.LagWeights(by_lag, assignments.tags(self.assignment)["grows"])

    def extra_repr(self) -> str:
        """What the module prints as."""
        return (
            f"tau={self.tau}, assignment={self.assignment!r}, growth={self.growth}, cut={self.cut}"
        )


@lru_cache(maxsize=1024)  # a training run meets the same lengths and levels again and again
def _weights_by_lag(
    length: int,
    tau: float | None,
    assignment: str,
    level: int,
    growth: float,
    cut: float,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    weights = temporal_weights(length, tau, assignment, level, growth, cut, dtype)
    assert weights is not None
    return weights.to(device)


class SoftInstanceLoss(nn.Module):
    """Soft instance-wise contrastive loss at one resolution.

    Args:
        tau_instance: Sharpness of the assignment; ``None`` keeps it hard.
        alpha: Upper bound of the weight between two different series.
        instance_assignment: sigmoid, gaussian, laplacian, linear or hard.
        normalize_weights: Divide the weights of each anchor by their sum.

    Example:
        >>> criterion = SoftInstanceLoss(tau_instance=5.0)
        >>> z1, z2 = torch.randn(4, 16, 8), torch.randn(4, 16, 8)
        >>> criterion(z1, z2, distances=torch.rand(4, 4)).shape
        torch.Size([])
    """

    def __init__(
        self,
        tau_instance: float | None = 20.0,
        alpha: float = 0.5,
        instance_assignment: str = "sigmoid",
        normalize_weights: bool = False,
    ) -> None:
        super().__init__()
        self.instance = InstancePolicy(tau_instance, alpha, instance_assignment)
        self.normalize_weights = normalize_weights

    def forward(
        self, z1: Tensor, z2: Tensor, distances: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Loss of two views ``(N, T, M)``; ``distances`` ``(N, N)`` in [0, 1], mask True = real."""
        weights = self.instance(z1.shape[-3], distances)
        return functional.soft_instance_loss(z1, z2, weights, mask, self.normalize_weights)


class SoftTemporalLoss(nn.Module):
    """Soft temporal contrastive loss at one resolution.

    Args:
        tau_temporal: Sharpness of the assignment, by step of lag; ``None`` keeps it hard.
        temporal_assignment: sigmoid, gaussian, laplacian, linear, neighbor or hard. For neighbor,
            ``tau_temporal`` is the window as a share of the length.
        normalize_weights: Divide the weights of each anchor by their sum.
        weight_cut: Weights below it become 0.

    Example:
        >>> z1, z2 = torch.randn(4, 16, 8), torch.randn(4, 16, 8)
        >>> SoftTemporalLoss(tau_temporal=1.0)(z1, z2).shape
        torch.Size([])
    """

    def __init__(
        self,
        tau_temporal: float | None = 1.0,
        temporal_assignment: str = "sigmoid",
        normalize_weights: bool = False,
        weight_cut: float = 0.0,
    ) -> None:
        super().__init__()
        self.temporal = TemporalPolicy(tau_temporal, temporal_assignment, 1, weight_cut)
        self.normalize_weights = normalize_weights

    def forward(self, z1: Tensor, z2: Tensor, mask: Tensor | None = None) -> Tensor:
        """Loss of two views ``(N, T, M)``; mask ``(N, T)`` is True where a step is real."""
        return functional.hierarchical_loss(
            z1, z2, None, self.temporal(z1), 0.0, mask, self.normalize_weights, max_levels=1
        )


class SoftContrastiveLoss(nn.Module):
    """Soft contrastive loss over instances and time, at every resolution of the series.

    Args:
        tau_instance: Sharpness of the instance assignment; ``None`` keeps it hard.
        tau_temporal: Sharpness of the temporal assignment; ``None`` keeps it hard.
        alpha: Upper bound of the weight between two different series.
        lam: Share of the instance term.
        instance_assignment: sigmoid, gaussian, laplacian, linear or hard.
        temporal_assignment: sigmoid, gaussian, laplacian, linear, neighbor or hard.
        hierarchical: Average over all resolutions (max-pooling by 2) instead of the full one alone.
        tau_growth: Temporal sharpness grows by this factor a level; 1 keeps it constant.
        normalize_weights: Divide the weights of each anchor by their sum.
        weight_cut: Temporal weights below it become 0 (1e-6 in the authors' code).

    Example:
        >>> criterion = SoftContrastiveLoss(tau_instance=10.0, tau_temporal=2.0)
        >>> z1, z2 = torch.randn(4, 16, 8), torch.randn(4, 16, 8)
        >>> criterion(z1, z2, distances=torch.rand(4, 4)).shape
        torch.Size([])
    """

    def __init__(
        self,
        tau_instance: float | None = 20.0,
        tau_temporal: float | None = 1.0,
        alpha: float = 0.5,
        lam: float = 0.5,
        instance_assignment: str = "sigmoid",
        temporal_assignment: str = "sigmoid",
        hierarchical: bool = True,
        tau_growth: float = 2,
        normalize_weights: bool = False,
        weight_cut: float = 0.0,
    ) -> None:
        super().__init__()
        check_range(lam, "lam", 0, 1)
        self.instance = InstancePolicy(tau_instance, alpha, instance_assignment)
        self.temporal = TemporalPolicy(tau_temporal, temporal_assignment, tau_growth, weight_cut)
        self.lam, self.hierarchical, self.normalize_weights = lam, hierarchical, normalize_weights

    def forward(
        self,
        z1: Tensor,
        z2: Tensor,
        distances: Tensor | None = None,
        mask: Tensor | None = None,
        group: functional.SharedBatch | None = None,
    ) -> Tensor:
        """Loss of two views ``(N, T, M)``; ``distances`` ``(N, N)`` in [0, 1], mask True = real.

        With a ``group`` of processes (see :func:`softclt.functional.hierarchical_loss`), distances
        are those between the series of all of them.
        """
        n = z1.shape[-3] * (1 if group is None else group.size)
        instance = self.instance(n, distances) if self.lam > 0 else None
        return functional.hierarchical_loss(
            z1,
            z2,
            instance,
            self.temporal(z1),
            self.lam,
            mask,
            self.normalize_weights,
            max_levels=None if self.hierarchical else 1,
            group=group,
        )

    def extra_repr(self) -> str:
        """What the module prints as."""
        return (
            f"lam={self.lam}, hierarchical={self.hierarchical}, "
            f"normalize_weights={self.normalize_weights}"
        )
