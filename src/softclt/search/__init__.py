"""Find series that are like others, and groups of alike ones, by their embeddings."""

from softclt.search.clusters import Clusters as Clusters
from softclt.search.clusters import find_clusters as find_clusters
from softclt.search.index import SeriesIndex as SeriesIndex
