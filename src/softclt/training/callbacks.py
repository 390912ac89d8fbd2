"""What a caller is told while models are trained, and how he ends it early."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True)
class Progress:
    """Where the training of a stack of R models stands.

    Attributes:
        step: Steps taken, those of earlier fits among them.
        n_steps: Steps at which training ends.
        losses: Of the last step, by model ``(R,)``.
        history: Of all steps, by model ``(R, step)``; to look at, not to change.
    """

    step: int
    n_steps: int
    losses: Sequence[float]
    history: Sequence[Sequence[float]]


Callback = Callable[[Progress], object]  # True ends the training of the stack


def stop_on_plateau(patience: int = 200, gain: float = 0.01) -> Callback:
    """A callback that ends training when the loss no longer falls.

    It compares the mean loss of the last ``patience`` steps with that of as many before, since the
    loss of a single step is mostly noise, and ends when no model gained more than ``gain`` of it.
    All that it knows it reads from the history, so a run that was interrupted stops where it would
    have stopped.

    Example:
        >>> stop = stop_on_plateau(patience=2)
        >>> stop(Progress(4, 100, [2.0], [[3.0, 3.0, 2.0, 2.0]]))
        False
        >>> stop(Progress(6, 100, [2.0], [[3.0, 3.0, 2.0, 2.0, 2.0, 2.0]]))
        True
    """

    def stop(progress: Progress) -> bool:
        if progress.step < 2 * patience:
            return False
        return all(
            fmean(losses[-patience:]) > (1 - gain) * fmean(losses[-2 * patience : -patience])
            for losses in progress.history
        )

    return stop
