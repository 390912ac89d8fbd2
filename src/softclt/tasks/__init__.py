"""What representations are good for: tasks that fit a model, score it and say so in one line."""

from softclt.probes.classifiers import probes
from softclt.tasks import anomaly as anomaly  # registers itself, as those below do
from softclt.tasks import classification as classification
from softclt.tasks import forecasting as forecasting
from softclt.tasks import semi_supervised as semi_supervised
from softclt.tasks import transfer as transfer
from softclt.tasks.evaluation import Outcome, Reading, evaluate, tasks
from softclt.tasks.result import Result, read_results
from softclt.tasks.scaling import protocol_scaling
from softclt.tasks.together import evaluate_many

__all__ = [
    "Outcome",
    "Reading",
    "Result",
    "evaluate",
    "evaluate_many",
    "probes",
    "protocol_scaling",
    "read_results",
    "tasks",
]
