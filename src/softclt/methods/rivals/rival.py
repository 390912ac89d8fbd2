"""What the rivals share: the encoder, the views, the optimiser and the budget of TS-TCC."""

from typing import Any

from torch import Tensor

from softclt.methods.signature import with_parameters_of
from softclt.methods.soft import SoftLearner
from softclt.methods.tstcc import TCCLearner
from softclt.training import StepDraws
from softclt.training import views as augment
from softclt.validation import check_choice


class Rival(TCCLearner):
    """A method to compare TS-TCC and CA-TCC with; nothing differs but what it learns from.

    The weak view has half of the numbers of TS-TCC's, whose factors lie around 2: a classifier is
    asked about series as they are, and must have learned from series of their size.
    """

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.pooling, ("max", "mean"), "pooling")  # their networks learn through it

    def _weak(self, x: Tensor, draws: StepDraws) -> Tensor:
        """Series ``(R, B, D, T)`` times numbers around 1."""
        return augment.jitter_and_scale(x, draws, self.scale_sigma) / 2

    def _strong(self, x: Tensor, draws: StepDraws, complete: bool) -> Tensor:
        """Segments of series ``(R, B, D, T)`` in another order, and noise."""
        return augment.permute_and_jitter(
            x, draws, self.max_segments, self.jitter_sigma, complete or not self.mask_padding
        )


class SoftRival(Rival, SoftLearner):
    """A rival with a natural place for soft assignments between series; hard by default.

    Args:
        tau_instance: Sharpness of the soft assignment between series; None, the original, is hard.
    """

    @with_parameters_of(Rival, SoftLearner, tau_instance=None)
    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
