"""Many series of which few have labels: a classifier, and help for those who label."""

from softclt.few_labels.advice import margins as margins
from softclt.few_labels.advice import to_label_next as to_label_next
from softclt.few_labels.classifier import SemiSupervisedClassifier as SemiSupervisedClassifier
from softclt.few_labels.predictions import Predictions as Predictions
from softclt.few_labels.study import Interval as Interval
from softclt.few_labels.study import LabelStudy as LabelStudy
from softclt.few_labels.study import study_labels as study_labels
from softclt.few_labels.study import wilson as wilson
