"""Weights that come with the package, with what they have seen."""

from softclt.pretrained.shelf import Weights as Weights
from softclt.pretrained.shelf import about as about
from softclt.pretrained.shelf import find_weights as find_weights
from softclt.pretrained.shelf import folder_of as folder_of
from softclt.pretrained.shelf import is_pretrained as is_pretrained
from softclt.pretrained.shelf import manifest_of as manifest_of
from softclt.pretrained.shelf import names as names
from softclt.pretrained.shelf import versions as versions
from softclt.pretrained.shelf import write_manifest as write_manifest
