"""The table of classifiers: ours, and those of others that are run beside them."""

from typing import Any

from softclt.few_labels import SemiSupervisedClassifier
from softclt.registry import Registry

#: Classes of scikit-learn classifiers that take series and say how likely each class is. Tag
#: ``unlabelled``: whether it also learns from series without a label, which -1 stands for.
classifiers: Registry[type[Any]] = Registry("classifier")

classifiers.register("semi-supervised", unlabelled=True)(SemiSupervisedClassifier)
