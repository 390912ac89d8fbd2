"""Few-label and transfer sets in their published forms, made small."""

import numpy as np
import pytest
import torch

from softclt.data import DataError, available, load, read_epilepsy, read_har, read_parts
from softclt.data.few_labels import HAR_GROUPS, ValidatedDataset

OFFICIAL_TEST = [2, 4, 9, 10, 12, 13, 18, 20, 24]


@pytest.fixture
def har(tmp_path):
    """Two series a person, whose value is the person's number."""
    people = np.repeat(np.arange(1, 31), 2)
    X = np.broadcast_to(people[:, None, None], (60, 9, 8)).astype(np.float16)
    y, test = np.arange(60) % 6, np.isin(people, OFFICIAL_TEST)
    path = tmp_path / "few_labels" / "HAR.npz"
    path.parent.mkdir()
    own = {}
    for part, rows in (("train", ~test), ("test", test)):
        own |= {f"x_{part}": X[rows], f"y_{part}": y[rows], f"subject_{part}": people[rows]}
    np.savez(path, **own)
    return path


@pytest.fixture
def epilepsy(tmp_path):
    """Ten series, whose values are their row; row 0 and 5 are seizures."""
    path = tmp_path / "few_labels" / "Epilepsy.npz"
    path.parent.mkdir(exist_ok=True)
    np.savez(
        path,
        x=np.broadcast_to(np.arange(10)[:, None], (10, 6)).astype(np.int16),
        y=np.arange(10, dtype=np.int8) % 5 + 1,
        tstcc_test_rows=np.array([5, 7]),
        tfc_train_rows=np.array([0, 1]),
        tfc_val_rows=np.array([2]),
    )
    return path


def test_har_keeps_the_official_split_and_says_who_did_what(har):
    data = read_har(har)
    assert set(data.meta["subjects_test"]) == set(OFFICIAL_TEST)
    assert (data.X_test[:, 0, 0] == data.meta["subjects_test"]).all()
    assert data.X_train.shape == (42, 9, 8)
    assert data.meta["name"] == "few_labels/HAR"
    assert data.meta["classes"][0] == "walking"


def test_the_groups_of_har_share_no_person_and_neither_do_their_parts(har):
    seen = []
    for group in HAR_GROUPS:
        data = read_har(har, group)
        parts = [set(data.meta[f"subjects_{part}"]) for part in ("train", "test")]
        assert parts[0] | parts[1] == set(HAR_GROUPS[group])
        assert len(parts[1]) == 2
        assert (data.X_train[:, 0, 0] == data.meta["subjects_train"]).all()
        seen += [*parts[0], *parts[1]]
    assert sorted(seen) == list(range(1, 31))
    with pytest.raises(ValueError, match=r"'E'.*'A', 'B', 'C'"):
        read_har(har, "E")


def test_epilepsy_is_seizure_or_not_with_the_rows_of_either_paper(epilepsy):
    data = read_epilepsy(epilepsy)
    assert data.X_test[:, 0, 0].tolist() == [5, 7]
    assert data.y_test.tolist() == [1, 0]
    assert data.X_train[:, 0, 0].tolist() == [0, 1, 2, 3, 4, 6, 8, 9]
    assert data.meta["classes"] == ["no seizure", "seizure"]
    assert data.X_val is None
    other = read_epilepsy(epilepsy, "tfc")
    assert other.X_train[:, 0, 0].tolist() == [0, 1]
    assert other.X_val[:, 0, 0].tolist() == [2]
    assert other.X_test[:, 0, 0].tolist() == [3, 4, 5, 6, 7, 8, 9]


def test_a_file_without_an_array_is_told_what_is_expected(tmp_path):
    np.savez(tmp_path / "HAR.npz", x_train=np.zeros((2, 9, 8)))
    with pytest.raises(DataError, match="has no array 'y_train'; expected x_train, y_train"):
        read_har(tmp_path / "HAR.npz")


def test_people_and_series_must_be_as_many(har):
    own = dict(np.load(har))
    np.savez(har, **own | {"subject_train": own["subject_train"][1:]})
    with pytest.raises(DataError, match=r"of shape \(41,\); expected one a series"):
        read_har(har)


def written(folder, suffix, **parts):
    folder.mkdir(parents=True)
    for part, (X, y) in parts.items():
        if suffix == "npz":
            np.savez(folder / f"{part}.npz", samples=X, labels=y)
        else:
            torch.save({"samples": X, "labels": y}, folder / f"{part}.pt")
    return folder


def parts_of(kind):
    rng = np.random.default_rng(0)
    made = {}
    for part, n in (("train", 4), ("val", 2), ("test", 3)):
        X, y = rng.normal(size=(n, 1, 20)), np.arange(n, dtype=np.float64) % 2 + 3
        made[part] = (torch.tensor(X), torch.tensor(y)) if kind == "tensor" else (X, y)
    return made


@pytest.mark.parametrize(("suffix", "kind"), [("pt", "tensor"), ("pt", "array"), ("npz", "array")])
def test_published_parts_are_read_with_their_validation_part(tmp_path, suffix, kind):
    data = read_parts(written(tmp_path / "EMG", suffix, **parts_of(kind)))
    assert isinstance(data, ValidatedDataset)
    assert (data.X_train.shape, data.X_val.shape, data.X_test.shape) == (
        (4, 1, 20), (2, 1, 20), (3, 1, 20),
    )  # fmt: skip
    assert data.y_val.tolist() == [0, 1]
    assert data.meta["classes"] == ["3.0", "4.0"]
    assert data.meta["name"] == "few_labels/EMG"


def test_the_shorter_axis_is_the_channels_and_flat_samples_have_one(tmp_path):
    y = np.array([0, 1])
    last = written(tmp_path / "Gesture", "pt", train=(np.zeros((2, 20, 3)), y),
                   test=(np.zeros((2, 3, 20)), y))  # fmt: skip
    assert read_parts(last).X_train.shape == (2, 3, 20)
    flat = written(
        tmp_path / "EMG", "npz", train=(np.zeros((2, 20)), y), test=(np.zeros((2, 20)), y)
    )
    assert read_parts(flat).X_train.shape == (2, 1, 20)


def test_a_validation_part_changes_the_fingerprint(tmp_path):
    made = parts_of("array")
    whole = read_parts(written(tmp_path / "a" / "EMG", "pt", **made))
    del made["val"]
    without = read_parts(written(tmp_path / "b" / "EMG", "pt", **made))
    assert whole.fingerprint != without.fingerprint


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ((np.zeros((2, 1, 20)), np.zeros(3)), r"labels have shape \(3,\) for 2 samples"),
        ((np.zeros(4), np.zeros(4)), r"samples have shape \(4,\); expected \(N, D, T\)"),
        ((np.zeros((2, 2, 20)), np.zeros(2)), "differ in channels"),
    ],
)
def test_parts_of_a_wrong_shape_are_told_so(tmp_path, part, message):
    good = (np.zeros((2, 1, 20)), np.arange(2))
    folder = written(tmp_path / "EMG", "pt", train=part, test=good)
    with pytest.raises(DataError, match=message):
        read_parts(folder)


def test_a_missing_part_or_key_is_named(tmp_path):
    made = parts_of("array")
    folder = written(tmp_path / "EMG", "pt", train=made["train"])
    with pytest.raises(DataError, match=r"has no test\.pt and no test\.npz"):
        read_parts(folder)
    torch.save({"samples": made["test"][0]}, folder / "test.pt")
    with pytest.raises(DataError, match="has no 'labels'; expected samples and labels"):
        read_parts(folder)


def test_sets_are_found_by_name_and_a_published_folder_comes_first(har, epilepsy, monkeypatch):
    root = har.parent.parent
    monkeypatch.setenv("SOFTCLT_DATA", str(root))
    written(root / "few_labels" / "FD-B", "pt", **parts_of("array"))
    names = [name for name in available() if name.startswith("few_labels/")]
    groups = [f"HAR-{group}" for group in HAR_GROUPS]
    wanted = ["Epilepsy", "Epilepsy-TFC", "FD-B", "HAR", *groups]
    assert names == [f"few_labels/{name}" for name in wanted]
    assert [load(name).meta["name"] for name in names] == names
    written(root / "few_labels" / "Epilepsy", "pt", **parts_of("array"))
    assert load("few_labels/Epilepsy").X_train.shape == (4, 1, 20)
