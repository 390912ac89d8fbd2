"""The soft contrastive losses as pure functions: the public name of `softclt.losses.functional`."""

from softclt.losses.functional import LagWeights as LagWeights
from softclt.losses.functional import TemporalWeights as TemporalWeights
from softclt.losses.functional import hierarchical_loss as hierarchical_loss
from softclt.losses.functional import soft_instance_loss as soft_instance_loss
from softclt.losses.functional import soft_temporal_loss as soft_temporal_loss
