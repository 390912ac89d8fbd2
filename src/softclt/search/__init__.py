"""Find series that are like others, and groups of alike ones, by their embeddings."""

from softclt.search.index import SeriesIndex as SeriesIndex
