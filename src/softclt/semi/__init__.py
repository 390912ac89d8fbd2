"""Classifiers for many series of which few have labels."""

from softclt.semi.classifier import SemiSupervisedClassifier as SemiSupervisedClassifier
