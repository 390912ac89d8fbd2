"""Classifiers of whole series, from the series themselves to a class."""

from softclt.classification.blocks import blocks as blocks
from softclt.classification.classifier import SeriesClassifier as SeriesClassifier
