"""Many series of which few have labels: a classifier, and help for those who label."""

from softclt.few_labels.advice import margins, to_label_next
from softclt.few_labels.classifier import SemiSupervisedClassifier
from softclt.few_labels.predictions import Predictions
from softclt.few_labels.study import Interval, LabelStudy, study_labels

__all__ = [
    "Interval",
    "LabelStudy",
    "Predictions",
    "SemiSupervisedClassifier",
    "margins",
    "study_labels",
    "to_label_next",
]
