"""Steps that do not belong: scores, thresholds, alarms, and the detector that joins them."""

from softclt.anomaly import baselines as baselines  # registers scorers
from softclt.anomaly.detection import Detection, watch
from softclt.anomaly.detector import AnomalyDetector, AnomalyStream
from softclt.anomaly.events import Alarm, find_alarms

__all__ = [
    "Alarm",
    "AnomalyDetector",
    "AnomalyStream",
    "Detection",
    "find_alarms",
    "watch",
]
