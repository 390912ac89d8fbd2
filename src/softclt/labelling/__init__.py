"""Help for those who label: how good their labels are, what more would give, which come next."""

from softclt.labelling.advice import margins, to_label_next
from softclt.labelling.predictions import Predictions
from softclt.labelling.study import Interval, LabelStudy, study_labels

__all__ = ["Interval", "LabelStudy", "Predictions", "margins", "study_labels", "to_label_next"]
