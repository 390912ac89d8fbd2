"""Detectors that the paper compares with, as scorers: none of them reads a learned embedding."""

from softclt.anomaly.baselines.donut import Donut
from softclt.anomaly.baselines.fourier import FourierResidual
from softclt.anomaly.baselines.luminol import LuminolBitmap
from softclt.anomaly.baselines.spectral_residual import SpectralResidual
from softclt.anomaly.baselines.spot import DSpotScorer, SpotScorer
from softclt.anomaly.baselines.twitter import SeasonalHybridESD

__all__ = [
    "DSpotScorer",
    "Donut",
    "FourierResidual",
    "LuminolBitmap",
    "SeasonalHybridESD",
    "SpectralResidual",
    "SpotScorer",
]
