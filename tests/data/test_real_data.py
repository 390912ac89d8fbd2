"""Real files: aeon's samples against aeon's own reader, and the archives beside the checkout."""

from pathlib import Path

import numpy as np
import pytest

from softclt.data import load, read_arff, read_tsv
from softclt.data.catalog import AEON_SAMPLES
from softclt.validation import series_lengths

SHIPPED = [f"{archive}/{name}" for archive in AEON_SAMPLES for name in AEON_SAMPLES[archive]]


@pytest.fixture(autouse=True)
def no_roots(monkeypatch):
    monkeypatch.delenv("SOFTCLT_DATA", raising=False)


@pytest.fixture(scope="module")
def aeon_datasets():
    return pytest.importorskip("aeon.datasets", reason="the extra `data` is not installed")


@pytest.mark.parametrize("name", SHIPPED)
def test_samples_equal_what_aeon_reads(name, aeon_datasets):
    data = load(name)
    assert data.meta["source"] == "aeon"
    for split in ("train", "test"):
        X, y = aeon_datasets.load_classification(
            name.split("/")[1], split=split, load_equal_length=False, load_no_missing=False
        )
        ours = getattr(data, f"X_{split}")
        lengths = series_lengths(ours)
        for i, series in enumerate(X):
            assert lengths[i] == series.shape[1]
            np.testing.assert_array_equal(ours[i, :, : lengths[i]], series)
        labels = data.table(split).labels
        assert [label.lower() for label in labels] == y.tolist()  # aeon writes names small


def test_arff_and_tsv_hold_the_same_series_as_ts(aeon_datasets):
    samples = Path(aeon_datasets.__file__).parent / "data"
    gun = load("GunPoint", split="train")
    for table in (
        read_tsv(samples / "GunPoint" / "GunPoint_TRAIN.tsv"),
        read_arff(samples / "GunPoint" / "GunPoint_TRAIN.arff"),
    ):
        np.testing.assert_allclose(table.X, gun.X_train, rtol=1e-6)
        assert table.y.tolist() == gun.y_train.tolist()
    motions = load("BasicMotions", split="train")
    table = read_arff(samples / "BasicMotions" / "BasicMotions_TRAIN.arff")
    np.testing.assert_array_equal(table.X, motions.X_train)
    assert table.labels == motions.table().labels


@pytest.mark.parametrize("archive", ["ucr", "uea"])
def test_archives_beside_the_checkout_load(archive, shared_folder, monkeypatch):
    folder = shared_folder / "data" / archive
    names = sorted(path.stem for path in folder.glob("*.npz"))
    if not names:
        pytest.skip(f"no {archive} files in the shared folder")
    monkeypatch.setenv("SOFTCLT_DATA", str(shared_folder / "data"))
    for name in names:
        data = load(f"{archive}/{name}")
        stored = np.load(folder / f"{name}.npz")
        assert (data.X_train.shape[1] == 1) == (archive == "ucr")
        np.testing.assert_array_equal(
            data.X_train.squeeze(1 if archive == "ucr" else ()), stored["x_train"]
        )
        classes = np.unique(stored["y_train"])
        np.testing.assert_array_equal(classes[data.y_train], stored["y_train"])
        np.testing.assert_array_equal(classes[data.y_test], stored["y_test"])
