"""Rivals of TS-TCC and CA-TCC on the same encoder, views and budget: see docs/rivals.md."""

from softclt.methods.rivals.cpc import CPC as CPC
from softclt.methods.rivals.fixmatch import FixMatch as FixMatch
from softclt.methods.rivals.mean_teacher import MeanTeacher as MeanTeacher
from softclt.methods.rivals.semitime import SemiTime as SemiTime
from softclt.methods.rivals.simclr import SimCLR as SimCLR
from softclt.methods.rivals.ssl_ecg import SSLECG as SSLECG
from softclt.methods.rivals.tloss import TLoss as TLoss
