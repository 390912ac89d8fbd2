"""Classifiers of whole series, from the series themselves to a class."""

from softclt.classification import nearest as nearest  # registers itself, as the next one does
from softclt.classification import peers as peers
from softclt.classification.blocks import blocks as blocks
from softclt.classification.classifier import SeriesClassifier as SeriesClassifier
from softclt.classification.left_out import LeftOut as LeftOut
from softclt.classification.registration import classifiers as classifiers
from softclt.classification.reliability import Reliability as Reliability
from softclt.classification.reliability import reliability as reliability
