"""Losses: soft contrast as pure functions, and as modules that hold the taus."""

from softclt.losses.modules import SoftContrastiveLoss as SoftContrastiveLoss
from softclt.losses.modules import SoftInstanceLoss as SoftInstanceLoss
from softclt.losses.modules import SoftTemporalLoss as SoftTemporalLoss
