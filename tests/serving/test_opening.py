"""Each folder says itself what it is."""

import pytest

from softclt.persistence import ModelFileError
from softclt.serving.opening import PARTS, WANTED, Served, open_served


def test_folders_and_names_become_what_they_are(classifier, detector, index, tmp_path):
    classifier.save(tmp_path / "c")
    detector.save(tmp_path / "d")
    served = open_served([str(tmp_path / "d"), "base", str(tmp_path / "c"), str(index.folder)])
    assert type(served.classifier) is type(classifier)
    assert type(served.detector) is type(detector)
    assert len(served.index) == len(index)
    assert served.embedder.weights_.startswith("base")
    assert served.paths() == list(PARTS)
    assert dict(served.names)["classifier"] == "c"  # and not where it is


def test_an_index_alone_embeds_with_its_model(index):
    served = open_served([str(index.folder)])
    assert served.paths() == ["/embed", "/explore", "/search"]
    assert served.embedder is served.index.model


def test_two_of_a_kind_are_refused():
    with pytest.raises(ValueError, match="both served as embedder"):
        open_served(["base", "synthetic"])


def test_what_is_nothing_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match="no folder"):
        open_served([str(tmp_path / "nothing")])


def test_each_part_has_words_for_its_absence():
    assert set(PARTS.values()) == set(WANTED)
    assert Served().paths() == []
