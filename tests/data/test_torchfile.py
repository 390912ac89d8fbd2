"""Files of torch.save: arrays come out, and nothing that they carry is run."""

import os
import pickle

import numpy as np
import pytest
import torch

from softclt.data import DataError
from softclt.data.torchfile import read_torch_arrays


class Harm:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_tensors_and_numpy_arrays_come_out_as_they_were(tmp_path):
    whole = {"a": torch.arange(3), "b": np.arange(4.0).reshape(2, 2), "c": np.array([True, False])}
    torch.save(whole, tmp_path / "own.pt")
    read = read_torch_arrays(tmp_path / "own.pt")
    for name, value in whole.items():
        np.testing.assert_array_equal(read[name], np.asarray(value))


def test_arrays_of_older_numpy_versions_are_read(tmp_path):
    torch.save({"samples": np.arange(3.0)}, tmp_path / "new.pt")
    from zipfile import ZipFile

    with ZipFile(tmp_path / "new.pt") as new, ZipFile(tmp_path / "old.pt", "w") as old:
        for name in new.namelist():
            content = new.read(name).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
            old.writestr(name, content)
    assert read_torch_arrays(tmp_path / "old.pt")["samples"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("inside", [False, True])
def test_a_harmful_pickle_is_refused_and_not_run(tmp_path, inside):
    path, target = tmp_path / "harm.pt", tmp_path / "was-run"
    harm = Harm(target)
    torch.save({"samples": np.array([harm], dtype=object) if inside else harm, "labels": 1}, path)
    with pytest.raises(DataError, match="something else than arrays, and is not opened"):
        read_torch_arrays(path)
    assert not target.exists()


def test_a_bare_harmful_pickle_is_refused_too(tmp_path):
    path, target = tmp_path / "harm.pt", tmp_path / "was-run"
    path.write_bytes(pickle.dumps(Harm(target), protocol=2))
    with pytest.raises(DataError, match=r"harm\.pt"):
        read_torch_arrays(path)
    assert not target.exists()


def test_what_is_no_dictionary_or_no_file_of_torch_is_told_so(tmp_path):
    torch.save(torch.zeros(2), tmp_path / "bare.pt")
    with pytest.raises(DataError, match="holds a Tensor; expected a dictionary"):
        read_torch_arrays(tmp_path / "bare.pt")
    (tmp_path / "text.pt").write_text("no such thing")
    with pytest.raises(DataError, match=r"text\.pt"):
        read_torch_arrays(tmp_path / "text.pt")
