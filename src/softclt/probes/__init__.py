"""What reads an embedding: classifiers, their probabilities, and their scores."""

from softclt.probes.classifiers import probes as probes
