"""Methods: scikit-learn estimators that learn representations without labels."""

from softclt.methods.catcc import CATCC as CATCC
from softclt.methods.cost import CoST as CoST
from softclt.methods.ensemble import EmbeddingEnsemble as EmbeddingEnsemble
from softclt.methods.learner import RepresentationLearner as RepresentationLearner
from softclt.methods.learner import load_model as load_model
from softclt.methods.learner import methods as methods
from softclt.methods.many import fit_many as fit_many
from softclt.methods.patch_contrast import PatchContrast as PatchContrast
from softclt.methods.presets import preset_names as preset_names
from softclt.methods.pretrained import Pretrained as Pretrained
from softclt.methods.pretrained import load_pretrained as load_pretrained
from softclt.methods.rivals import CPC as CPC
from softclt.methods.rivals import SSLECG as SSLECG
from softclt.methods.rivals import FixMatch as FixMatch
from softclt.methods.rivals import MeanTeacher as MeanTeacher
from softclt.methods.rivals import SemiTime as SemiTime
from softclt.methods.rivals import SimCLR as SimCLR
from softclt.methods.rivals import TLoss as TLoss
from softclt.methods.series_contrast import SeriesContrast as SeriesContrast
from softclt.methods.tnc import TNC as TNC
from softclt.methods.ts2vec import TS2Vec as TS2Vec
from softclt.methods.tstcc import TSTCC as TSTCC
