"""Methods that learn from the labels of some series as well as from all series without."""

import copy
import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from numpy.typing import NDArray

from softclt.data.labels import UNLABELLED
from softclt.data.partial_labels import PartialLabels
from softclt.methods.fitted import Fitted
from softclt.methods.head import ClassifierNetwork
from softclt.methods.learner import RepresentationLearner
from softclt.training import Callback
from softclt.validation import Floats, check_random_state_seed


class LabelLearner(RepresentationLearner):
    """A method with a classifier of its own; it adds ``fit_labelled_many`` to the hooks.

    Attributes:
        network_: The classifier; None before the phase that trains it, and in a loaded model, whose
            files hold the encoder alone.
        classes_: The classes of its outputs.
        n_phases: Phases of training that it has.
    """

    n_phases: int
    network_: ClassifierNetwork | None = None
    classes_: NDArray[Any]
    unlabelled: Any = UNLABELLED

    def _become(self, fitted: Fitted) -> None:
        super()._become(fitted)
        self.network_ = None  # which was that of another encoder

    def fit_labelled(
        self,
        X: Floats,
        labels: PartialLabels,
        *,
        pretrained: RepresentationLearner | None = None,
        **options: Any,
    ) -> Self:
        """`fit_labelled_many` of this learner alone."""
        self.fit_labelled_many([self], X, [labels], pretrained=[pretrained], **options)
        return self

    @staticmethod
    @abstractmethod
    def fit_labelled_many(
        learners: Sequence[Any],
        X: Floats,
        labels: Sequence[PartialLabels],
        *,
        pretrained: Sequence[RepresentationLearner | None],
        checkpoint: str | os.PathLike[str] | None = None,
        callbacks: Sequence[Callback] = (),
        with_classifier: bool = True,
    ) -> None:
        """Learn from series ``(N, D, T)`` and the labels of some, each learner from its own labels.

        Args:
            learners: Of this method; those that can be trained side by side are.
            X: Series.
            labels: Of some of them, for each learner.
            pretrained: Take the place of the self-supervised phases.
            checkpoint: Holds a folder for each phase; of a single learner.
            callbacks: See ``fit``.
            with_classifier: Whether the classifiers are wanted; if not, the encoders are all.
        """

    def first_phase(self) -> RepresentationLearner | None:
        """An unfitted method that can be trained in place of the phase without labels, if any."""
        return None


def adopt(
    learner: RepresentationLearner, pretrained: RepresentationLearner, seed: int | None = None
) -> None:
    """Make an unfitted learner one that has a copy of a trained one's encoder and scaling.

    Its seed is the one given; else its own, or that of the trained one if it leaves it open.
    """
    before = pretrained._so_far()
    learner._check_parameters()
    if seed is None:
        seed = before.seed
        if learner.random_state is not None:
            seed = check_random_state_seed(learner.random_state)
    device = learner._torch_device()
    module = learner._new_training(seed, device, before.n_channels).averaged
    if type(module) is not type(before.module) or _shapes(module) != _shapes(before.module):
        raise ValueError(
            f"pretrained is a {type(pretrained).__name__} whose network is not that of this "
            f"{type(learner).__name__}; give both the same widths, depths and kernels"
        )
    module.load_state_dict(before.module.state_dict())
    module.requires_grad_(True)
    history = copy.deepcopy(before.history)
    learner._become(replace(before, seed=seed, device=device, module=module, history=history))


def _shapes(module: torch.nn.Module) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in module.state_dict().items()}
