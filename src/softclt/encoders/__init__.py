"""Networks from series to representations."""

from softclt.encoders.cost import CoSTEncoder as CoSTEncoder
from softclt.encoders.dilated import DilatedEncoder as DilatedEncoder
from softclt.encoders.encoder import Encoder as Encoder
from softclt.encoders.encoder import Piece as Piece
from softclt.encoders.foreign import ForeignEncoder as ForeignEncoder
from softclt.encoders.recurrent import WindowEncoder as WindowEncoder
from softclt.encoders.tcc import TCCEncoder as TCCEncoder
from softclt.encoders.tcc_heads import TCCNetwork as TCCNetwork
