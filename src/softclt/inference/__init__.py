"""From a trained encoder to representations of series, of steps, and of steps as they arrive."""

from softclt.inference.encoding import LAYERS as LAYERS
from softclt.inference.encoding import check_pooling as check_pooling
from softclt.inference.encoding import encode as encode
from softclt.inference.encoding import pool as pool
from softclt.inference.encoding import read_outs as read_outs
