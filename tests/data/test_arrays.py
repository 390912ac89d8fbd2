import numpy as np
import pytest

from softclt.data import DataError, from_channels_last, load, read_npy, read_npz, read_series


def test_npz_with_two_splits(tmp_path, rng):
    X = rng.normal(size=(5, 2, 7)).astype(np.float32)
    path = tmp_path / "Two.npz"
    np.savez(path, x_train=X[:3], y_train=[3, -1, 3], x_test=X[3:], y_test=[-1, 3], subject=[1])
    data = load(path)
    np.testing.assert_array_equal(data.X_train, X[:3])
    np.testing.assert_array_equal(data.X_test, X[3:])
    assert data.X_train.dtype == np.float32
    assert data.y_train.tolist() == [1, 0, 1]
    assert data.y_test.tolist() == [0, 1]
    assert data.meta["classes"] == ["-1", "3"]
    assert read_series(path, split="test").labels == ["-1", "3"]
    assert read_series(path, split="all").X.shape == (5, 2, 7)


@pytest.mark.parametrize("key", ["X", "x", "data"])
def test_npz_of_one_table_keeps_ids_and_labels(tmp_path, key):
    path = tmp_path / "one.npz"
    np.savez(path, **{key: [[1.0, 2.0], [3.0, 4.0]]}, y=["b", "a"], ids=["p", "q"])
    table = read_series(path)
    np.testing.assert_array_equal(table.X[:, 0], [[1, 2], [3, 4]])
    assert table.ids == ["p", "q"]
    assert table.labels == ["b", "a"]
    assert table.y.tolist() == [1, 0]


@pytest.mark.parametrize("shape", [(4, 6), (4, 3, 6)])
def test_npy_of_two_or_three_axes(tmp_path, rng, shape):
    X = rng.normal(size=shape)
    np.save(tmp_path / "a.npy", X)
    table = read_npy(tmp_path / "a.npy")
    np.testing.assert_array_equal(table.X, X.reshape(4, -1, 6))
    assert table.ids == ["0", "1", "2", "3"]
    assert not table.has_ids


def test_malformed_npz_says_what_is_wrong(tmp_path):
    path = tmp_path / "bad.npz"

    def refused(message, **arrays):
        if arrays:
            np.savez(path, **arrays)
        with pytest.raises(DataError, match=message) as caught:
            read_npz(path)
        assert "bad.npz" in str(caught.value)

    refused("no such file")
    path.write_bytes(b"")
    refused("is no NumPy file, or a damaged one")
    path.write_bytes(b"\x93rubbish\x00\xff" * 9)
    refused("is no NumPy file, or a damaged one")
    refused("holds the arrays a, b; expected x_train", a=[1], b=[2])
    refused("y has shape \\(3,\\) for 2 series", X=np.zeros((2, 4)), y=[1, 2, 3])
    refused("label 1 is missing", X=np.zeros((2, 4)), y=[1.0, np.nan])
    refused("expected series as \\(N, D, T\\)", X=np.zeros(4))
    refused("contains infinity", X=np.full((2, 4), np.inf))
    refused("holds Python objects", X=np.array([{}], dtype=object))
    path.write_bytes(path.read_bytes()[:-40])
    refused("is no NumPy file, or a damaged one")


def test_malformed_npy_says_what_is_wrong(tmp_path):
    path = tmp_path / "bad.npy"
    np.save(path, np.array(["a", "b"]))
    with pytest.raises(DataError, match=r"bad\.npy: the data is not numeric"):
        read_npy(path)
    np.save(path, np.arange(3.0))
    with pytest.raises(DataError, match=r"bad\.npy: .*a single series is"):
        read_npy(path)
    path.write_text("1,2,3")
    with pytest.raises(DataError, match=r"bad\.npy: is no NumPy file"):
        read_npy(path)


def test_npz_without_its_test_part_is_refused_unless_only_training_is_asked(tmp_path):
    path = tmp_path / "half.npz"
    np.savez(path, x_train=np.zeros((2, 4)))
    with pytest.raises(DataError, match="x_train has no x_test"):
        load(path)
    assert load(path, split="train").X_test is None
    assert len(read_series(path)) == 2


def test_channels_last_arrays_and_lists_become_channels_first(rng):
    X = rng.normal(size=(4, 9, 2))
    np.testing.assert_array_equal(from_channels_last(X), X.swapaxes(1, 2))
    ragged = from_channels_last([X[0], X[1, :5]])
    np.testing.assert_array_equal(ragged[1, :, :5], X[1, :5].T)
    assert np.isnan(ragged[1, :, 5:]).all()


def test_channels_last_takes_torch_tensors():
    torch = pytest.importorskip("torch")
    assert from_channels_last(torch.zeros(4, 9, 2)).shape == (4, 2, 9)


def test_channels_last_refuses_two_axes():
    with pytest.raises(DataError, match=r"shape \(4, 9\); expected \(N, T, D\)"):
        from_channels_last(np.zeros((4, 9)))
