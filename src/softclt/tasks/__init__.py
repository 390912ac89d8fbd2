"""What representations are good for: tasks that fit a model, score it and say so in one line."""

from softclt.probes.classifiers import probes as probes
from softclt.tasks import alarms as alarms  # registers itself, as those below do
from softclt.tasks import anomaly as anomaly
from softclt.tasks import classification as classification
from softclt.tasks import forecasting as forecasting
from softclt.tasks import semi_supervised as semi_supervised
from softclt.tasks import supervised as supervised
from softclt.tasks import transfer as transfer
from softclt.tasks import windows as windows
from softclt.tasks.evaluation import Outcome as Outcome
from softclt.tasks.evaluation import Reading as Reading
from softclt.tasks.evaluation import evaluate as evaluate
from softclt.tasks.evaluation import tasks as tasks
from softclt.tasks.result import Result as Result
from softclt.tasks.result import read_results as read_results
from softclt.tasks.scaling import protocol_scaling as protocol_scaling
from softclt.tasks.together import evaluate_many as evaluate_many
