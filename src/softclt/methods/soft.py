"""Soft assignments, between series and in time, for every method that has them."""

from typing import Any

from torch import Tensor

from softclt.assignments import check_assignment, instance_weights
from softclt.distances.batches import MODES, NORMALIZATIONS
from softclt.losses.functional import TemporalWeights
from softclt.losses.modules import TemporalPolicy, check_temporal
from softclt.methods.learner import RepresentationLearner
from softclt.methods.signature import with_parameters_of
from softclt.validation import Floats32, check_choice, check_range


class SoftLearner(RepresentationLearner):
    """A method with soft assignments between series: they come as ``batch.weights``.

    Args:
        tau_instance: Sharpness of the soft assignment between series; None is hard.
        alpha: Upper bound of the weight between two different series.
        instance_assignment: sigmoid, gaussian, laplacian, linear or hard.
        distance: Between series: dtw, fastdtw, tam, euclidean, cosine, or a function of two series.
        distance_params: Of the distance, e.g. ``{"window": 0.1}``.
        distance_scale: ``series`` scales each series to [0, 1] before distances are taken.
        distance_normalize: minmax (over all pairs), max, column (the authors' code), or local: by
            the distances of both series to their tenth neighbour; see `softclt.pairwise_distance`.
        distance_mode: dense: all distances once, before training. lazy: those of each batch when it
            comes, scaled by the extremes of a sample, for more series than a matrix can hold. auto:
            dense unless it would be much more to compute; see `softclt.BatchDistances`.
        neighbours: Half of a batch are then anchors, the other half one of so many nearest series
            of each; needs dense distances. 0: batches are drawn at random.
    """

    _differing = frozenset(["tau_instance", "alpha", "instance_assignment"])

    @with_parameters_of(RepresentationLearner)
    def __init__(
        self,
        *,
        tau_instance: float | None = 20.0,
        alpha: float = 0.5,
        instance_assignment: str = "sigmoid",
        distance: Any = "dtw",
        distance_params: dict[str, Any] | None = None,
        distance_scale: str | None = None,
        distance_normalize: str = "minmax",
        distance_mode: str = "auto",
        neighbours: int = 0,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.tau_instance = tau_instance
        self.alpha = alpha
        self.instance_assignment = instance_assignment
        self.distance = distance
        self.distance_params = distance_params
        self.distance_scale = distance_scale
        self.distance_normalize = distance_normalize
        self.distance_mode = distance_mode
        self.neighbours = neighbours

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_assignment(self.instance_assignment, self.tau_instance, kind="instance")
        check_range(self.alpha, "alpha", 0, 1, open_low=True)
        check_choice(self.distance_scale, (None, "series"), "distance_scale")
        check_choice(self.distance_mode, MODES, "distance_mode")
        check_range(self.neighbours, "neighbours", 0)
        if self.neighbours > 0 and self.distance_mode == "lazy":
            raise ValueError("neighbours need all distances; leave distance_mode='lazy' out")
        check_choice(self.distance_normalize, NORMALIZATIONS, "distance_normalize")

    def _as_compared(self, seen: Floats32) -> Floats32:
        """The series that distances are taken between, from those that the network sees."""
        return seen

    def _needs_distances(self) -> bool:
        return self.neighbours > 0 or super()._needs_distances()

    def _instance_weights(self, distances: Tensor) -> Tensor | None:
        return instance_weights(distances, self.tau_instance, self.alpha, self.instance_assignment)


class TemporalLearner(RepresentationLearner):
    """Soft assignments between the steps of a series: they come as ``batch.temporal``.

    Args:
        tau_temporal: Sharpness of the soft assignment between steps; None is hard.
        temporal_assignment: sigmoid, gaussian, laplacian, linear, neighbor or hard.
        weight_cut: Temporal weights below it become 0.
    """

    _differing = frozenset(["tau_temporal", "temporal_assignment", "weight_cut"])

    @with_parameters_of(RepresentationLearner)
    def __init__(
        self,
        *,
        tau_temporal: float | None = 1.0,
        temporal_assignment: str = "sigmoid",
        weight_cut: float = 0.0,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.tau_temporal = tau_temporal
        self.temporal_assignment = temporal_assignment
        self.weight_cut = weight_cut

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_temporal(*self._in_time())

    def _in_time(self) -> tuple[float | None, str, float, float]:
        """What the soft assignment between steps is made of."""
        return self.tau_temporal, self.temporal_assignment, self._growth(), self.weight_cut

    def _growth(self) -> float:
        """Of the sharpness in time, by level."""
        return 1

    def _temporal_weights(self, z: Tensor) -> TemporalWeights | None:
        weights: TemporalWeights | None = TemporalPolicy(*self._in_time())(z)
        return weights


class SoftInTimeLearner(TemporalLearner, SoftLearner):
    """Soft assignments both between series and between the steps of a series.

    Args:
        normalize_weights: Divide the weights of each anchor by their sum.
    """

    @with_parameters_of(TemporalLearner, SoftLearner)
    def __init__(self, *, normalize_weights: bool = False, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.normalize_weights = normalize_weights


class SoftAtAllLevels(SoftInTimeLearner):
    """Both kinds of soft assignments in one loss, and steps at several resolutions.

    Args:
        lam: Share of the instance term in the loss.
        tau_growth: Temporal sharpness grows by this factor a level of the hierarchy.
    """

    _differing = frozenset(["lam", "tau_growth"])

    @with_parameters_of(SoftInTimeLearner)
    def __init__(self, *, lam: float = 0.5, tau_growth: float = 2, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.lam = lam
        self.tau_growth = tau_growth

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_range(self.lam, "lam", 0, 1)

    def _growth(self) -> float:
        return self.tau_growth

    def _instance_share(self) -> float:
        return self.lam
