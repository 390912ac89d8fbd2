"""Training: one loop, and randomness from counters."""

from softclt.training.callbacks import Callback as Callback
from softclt.training.callbacks import Progress as Progress
from softclt.training.callbacks import stop_on_plateau as stop_on_plateau
from softclt.training.course import Batch as Batch
from softclt.training.distributed import current_group as current_group
from softclt.training.loop import fit_loop as fit_loop
from softclt.training.randomness import StepDraws as StepDraws
from softclt.training.randomness import Stream as Stream
from softclt.training.state import TrainingState as TrainingState
