"""Older detectors as scorers: none of them reads a learned embedding."""

from softclt.anomaly.baselines.donut import Donut as Donut
from softclt.anomaly.baselines.fourier import FourierResidual as FourierResidual
from softclt.anomaly.baselines.luminol import LuminolBitmap as LuminolBitmap
from softclt.anomaly.baselines.moving import MovingZ as MovingZ
from softclt.anomaly.baselines.spectral_residual import SpectralResidual as SpectralResidual
from softclt.anomaly.baselines.spot import DSpotScorer as DSpotScorer
from softclt.anomaly.baselines.spot import SpotScorer as SpotScorer
from softclt.anomaly.baselines.subsequences import IsolationWindows as IsolationWindows
from softclt.anomaly.baselines.subsequences import MatrixProfile as MatrixProfile
from softclt.anomaly.baselines.subsequences import SubKNN as SubKNN
from softclt.anomaly.baselines.subsequences import SubPCA as SubPCA
from softclt.anomaly.baselines.twitter import SeasonalHybridESD as SeasonalHybridESD
