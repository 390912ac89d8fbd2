"""Steps that do not belong: scores, thresholds, alarms, and the detector that joins them."""

from softclt.anomaly import baselines as baselines  # registers scorers
from softclt.anomaly import ensemble as ensemble
from softclt.anomaly import patches as patches
from softclt.anomaly.detection import Detection as Detection
from softclt.anomaly.detection import watch as watch
from softclt.anomaly.detector import AnomalyDetector as AnomalyDetector
from softclt.anomaly.detector import AnomalyStream as AnomalyStream
from softclt.anomaly.events import Alarm as Alarm
from softclt.anomaly.events import find_alarms as find_alarms
