"""Embeddings of files of any size: as one table, or part by part, on one machine or many."""

from softclt.embedding.parts import Embedded as Embedded
from softclt.embedding.parts import PartsError as PartsError
from softclt.embedding.parts import embed_parts as embed_parts
from softclt.embedding.recipe import Recipe as Recipe
from softclt.embedding.recipe import embedded_blocks as embedded_blocks
from softclt.embedding.tables import embedding_table as embedding_table
from softclt.embedding.tables import embedding_writer as embedding_writer
