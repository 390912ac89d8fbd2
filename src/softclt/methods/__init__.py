"""Methods: scikit-learn estimators that learn representations without labels."""

from softclt.methods.base import RepresentationLearner as RepresentationLearner
from softclt.methods.base import load_model as load_model
from softclt.methods.base import methods as methods
from softclt.methods.cost import CoST as CoST
from softclt.methods.ensemble import EmbeddingEnsemble as EmbeddingEnsemble
from softclt.methods.many import fit_many as fit_many
from softclt.methods.presets import preset_names as preset_names
from softclt.methods.ts2vec import TS2Vec as TS2Vec
