"""Many data sets as one to learn from."""

import numpy as np
import pytest

from softclt.data import DataError, datasets, write_corpus
from softclt.data.corpus import Corpus, gather, half_of, read_corpus
from softclt.data.dataset import Dataset


@pytest.fixture
def sets(rng):
    """Two registered sets: `own/one` of two channels, and `own/two`, which shares a test series."""
    X = rng.normal(size=(10, 2, 30))
    shared = 3 * X[0, :1] + 1

    def one():
        return Dataset(X, np.arange(10) % 2, meta={"name": "own/one", "archive": "own"})

    def two():
        test = np.concatenate([rng.normal(size=(4, 1, 30)), shared[None]])
        return Dataset(rng.normal(size=(3, 1, 50)), None, test, meta={"name": "own/two"})

    datasets.register("own/one")(one)
    datasets.register("own/two")(two)
    yield
    datasets.unregister("own/one")
    datasets.unregister("own/two")


def test_channels_are_series_of_one_length_standardised(sets):
    corpus = gather({"length": 32, "sets": [{"data": "own/*"}]})
    assert corpus.values.shape == (23, 1, 32)
    assert corpus.names == ("own/one", "own/two")
    assert corpus.sizes == (20, 3)
    np.testing.assert_allclose(corpus.values.mean(axis=-1), 0, atol=0.2)


def test_a_set_gives_no_more_than_asked_and_weighs_by_the_root_of_it(sets):
    corpus = gather({"length": 16, "most": 9, "sets": [{"data": ["own/one", "own/two"]}]})
    assert corpus.sizes == (9, 3)
    np.testing.assert_allclose(corpus.weights, np.sqrt([9, 3]))


def test_a_series_that_equals_a_test_series_is_dropped(sets):
    asked = {"length": 32, "sets": [{"data": "own/one"}], "not_in_tests_of": ["own/two"]}
    corpus = gather(asked)
    assert corpus.sizes == (19,)
    assert corpus.manifest["dropped_as_equal_to_tests"] == 1


def test_synthetic_series_have_their_share_and_are_not_alike(sets):
    made = {"count": 12, "share": 0.25}
    corpus = gather({"length": 16, "sets": [{"data": "own/one"}], "synthetic": made})
    assert corpus.names[-1] == "synthetic"
    assert corpus.siblings == (0, 1)
    assert corpus.weights[1] / sum(corpus.weights) == pytest.approx(0.25)


def test_the_manifest_tells_names_numbers_and_fingerprints(sets):
    (one,) = gather({"sets": [{"data": "own/*", "except": ["own/two"]}]}).manifest["sets"]
    assert (one["name"], one["series"], len(one["fingerprint"])) == ("own/one", 20, 16)


def test_windows_are_of_the_first_share_of_half_of_the_series(rng):
    X = np.arange(4000.0).reshape(4, 1, 1000) ** 2  # every window has its own shape
    X[:, :, 600:] = np.nan
    X[half_of(4, 5)[:, None], 0, 300:600] = -7.0  # what lies behind must not be seen
    datasets.register("own/long")(lambda: Dataset(X, meta={"name": "own/long"}))
    try:
        asked = {"data": "own/long", "half_of_series": 5, "first": 0.5, "count": 30}
        corpus = gather({"length": 16, "windows": [asked | {"steps": [20, 60]}]})
    finally:
        datasets.unregister("own/long")
    assert corpus.sizes == (30,)
    assert (np.diff(corpus.values, axis=-1) > 0).all()  # it never falls to -7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lenght = 3", "unknown key 'lenght'"),
        ("[[sets]]\ndata = 'nowhere/*'", "no data set is called 'nowhere/"),
        ("length = 16", "no series in it"),
        ("[synthetic]\ncount = 5\nshare = 1.0", "share is 1"),
        ("length = [", "is no TOML file"),
    ],
)
def test_a_file_that_cannot_be_followed_is_refused_with_the_reason(text, words, tmp_path):
    (tmp_path / "corpus.toml").write_text(text)
    with pytest.raises(DataError, match=words):
        read_corpus(tmp_path / "corpus.toml")


def test_a_missing_file_is_told():
    with pytest.raises(DataError, match="cannot be read"):
        read_corpus("nowhere.toml")


def test_sets_and_series_have_to_fit():
    with pytest.raises(DataError, match="expected as many in all"):
        Corpus(np.zeros((3, 1, 8), np.float32), ("a",), (4,), (1.0,), (True,))


@pytest.fixture
def described(sets, tmp_path):
    path = tmp_path / "corpus.toml"
    path.write_text('length = 16\n[[sets]]\ndata = "own/*"\n[synthetic]\ncount = 8\nsiblings = 2\n')
    return path


def test_a_kept_corpus_is_the_same_in_half_precision(described, tmp_path):
    assert write_corpus(described, tmp_path / "kept.npz") == 23
    one, kept = read_corpus(described), read_corpus(tmp_path / "kept.npz")
    assert (kept.names, kept.sizes, kept.weights) == (one.names, one.sizes, one.weights)
    assert kept.siblings == (0, 0, 2)
    assert kept.manifest["sets"][0] == one.manifest["sets"][0]  # the other one is always new
    np.testing.assert_allclose(kept.values[:20], one.values[:20], atol=2e-3)
    np.testing.assert_array_equal(kept.values[23:], one.values[23:])  # made anew


def test_other_synthetic_series_can_be_asked_for(described):
    corpus = read_corpus(described, synthetic={"count": 5, "share": 0.5})
    assert corpus.sizes == (20, 3, 5)
    assert corpus.weights[2] == pytest.approx(sum(corpus.weights[:2]))
    assert corpus.manifest["asked"]["synthetic"]["count"] == 5


def test_a_file_that_holds_no_corpus_is_refused(described, tmp_path):
    with pytest.raises(ValueError, match=r"ends with \.npz; got .*kept\.bin"):
        write_corpus(described, tmp_path / "kept.bin")
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(DataError, match="holds no corpus"):
        read_corpus(tmp_path / "other.npz")
    (tmp_path / "torn.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(DataError, match="no NumPy file"):
        read_corpus(tmp_path / "torn.npz")
    with pytest.raises(DataError, match="no such file"):
        read_corpus(tmp_path / "nowhere.npz")
