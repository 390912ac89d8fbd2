"""Choosing among configurations by the training series alone."""

from softclt.selection.comparison import data_distances as data_distances
from softclt.selection.comparison import data_distances_key as data_distances_key
from softclt.selection.criteria import criteria as criteria
from softclt.selection.evidence import Evidence as Evidence
from softclt.selection.scores import choose as choose
from softclt.selection.scores import criterion_of as criterion_of
from softclt.selection.scores import embedding_score as embedding_score
from softclt.selection.scores import metric_of as metric_of
from softclt.selection.scores import training_scores as training_scores
from softclt.selection.search import DEFAULT_GRID as DEFAULT_GRID
from softclt.selection.search import Selection as Selection
from softclt.selection.search import configurations as configurations
from softclt.selection.search import select as select
