"""Files that declare, or unpack to, more than there is: refused in words and at once."""

import gzip
import io
import time
import zipfile

import numpy as np
import pytest

from softclt import files
from softclt.data import read_npz, read_series, read_table
from softclt.data.anomaly import read_kpi
from softclt.data.corpus import read_corpus
from softclt.data.errors import DataError
from softclt.distances.manifest import StoreError
from softclt.distances.manifest import read_series as read_kept
from softclt.validation import check_series

WORDS = "declares|memory"
SHAPES = [(10**6, 10**3, 10**6), (2**62, 2), (2**33,), (10**9, 10**3), (2**63, 2**63)]


def header(shape, dtype="<f8"):
    """A NumPy file that ends where its numbers should begin."""
    file = io.BytesIO()
    shown = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, shown)
    return file.getvalue()


def archive(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)


def quarter_of_a_gigabyte(path, name):
    """Add an array of zeros, all of which are there."""
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file,
        file.open(f"{name}.npy", "w") as member,
    ):
        member.write(header((2**10, 2**15)))
        for _ in range(256):
            member.write(bytes(2**20))


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.fixture
def small_machine(monkeypatch):
    """A tenth of a gigabyte is free."""
    monkeypatch.setattr(files, "available_memory", lambda: 100_000_000)


def refused(read, *args, error=DataError, words=WORDS):
    began = time.perf_counter()
    with pytest.raises(error, match=words):
        read(*args)
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["<f8", "<U1000000"])
def test_a_header_that_claims_more_than_its_file_holds_is_refused(tmp_path, shape, dtype):
    path = tmp_path / "a.npy"
    path.write_bytes(header(shape, dtype) + bytes(800))
    refused(read_series, path)
    archive(tmp_path / "a.npz", {"x": header(shape, dtype) + bytes(800)})
    refused(read_npz, tmp_path / "a.npz")


@pytest.mark.parametrize("shape", SHAPES[:2], ids=str)
def test_so_it_is_wherever_arrays_are_kept(tmp_path, shape):
    names = ("id", "length", "timestamp_delta", "value", "label", "values", "about", "starts")
    archive(tmp_path / "a.npz", dict.fromkeys(names, header(shape)))
    refused(read_kpi, tmp_path / "a.npz")
    refused(read_corpus, tmp_path / "a.npz")
    (tmp_path / "a.npz").rename(tmp_path / "series.npz")
    refused(read_kept, tmp_path, "0", error=StoreError, words="damaged")


def test_an_array_that_nobody_asked_for_is_not_unpacked(tmp_path, small_machine):
    bomb = header((10**8,)) + bytes(2**20)
    archive(tmp_path / "a.npz", {"x": npy(np.zeros((3, 9))), "unused": bomb})
    quarter_of_a_gigabyte(tmp_path / "a.npz", "bomb")
    assert read_npz(tmp_path / "a.npz")["all"].X.shape == (3, 1, 9)


def test_an_array_that_memory_cannot_hold_is_refused_before_it_is_unpacked(tmp_path, small_machine):
    quarter_of_a_gigabyte(tmp_path / "a.npz", "x")
    refused(read_npz, tmp_path / "a.npz", words="256 MiB|768 MiB")


def test_text_that_unpacks_to_more_than_memory_holds_is_refused(tmp_path, small_machine):
    with gzip.open(tmp_path / "a.csv.gz", "wb", compresslevel=9) as file:
        file.write(b"a,b\n")
        for _ in range(100):
            file.write(b"1,2\n" * 2**18)  # 100 MiB
    refused(read_table, tmp_path / "a.csv.gz")


def test_a_parquet_file_that_unpacks_to_more_than_memory_holds_is_refused(tmp_path, small_machine):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    column = pa.array(np.zeros(10**6))
    table = pa.table({f"t{i}": column for i in range(20)})  # equal values take no room in the file
    pq.write_table(table, tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 10**6
    refused(read_table, tmp_path / "a.parquet")


def test_a_tensor_that_repeats_a_number_without_end_is_refused(tmp_path, small_machine):
    import torch

    from softclt.data.torchfile import read_torch_arrays

    torch.save({"samples": torch.zeros(1).expand(10**12)}, tmp_path / "a.pt")
    refused(read_torch_arrays, tmp_path / "a.pt")


def test_one_long_series_among_many_short_ones_is_refused_before_all_are_padded(small_machine):
    series = [np.zeros(10**5), *(np.zeros(2) for _ in range(1000))]
    refused(check_series, series, error=ValueError)


def test_so_it_is_in_a_long_table(tmp_path, small_machine):
    lines = [f"a,{t},0" for t in range(30_000)] + [f"b{i},0,0" for i in range(3_000)]
    (tmp_path / "a.csv").write_text("id,time,x\n" + "\n".join(lines))
    refused(read_table, tmp_path / "a.csv")


def test_what_is_free_is_told_in_words(monkeypatch):
    monkeypatch.setattr(files, "available_memory", lambda: 3 * 2**30)
    assert files.too_large(2**30) == ""
    assert files.too_large(7 * 2**50) == "takes 7 PiB of memory, of which 3 GiB are free"
    monkeypatch.setattr(files, "available_memory", lambda: None)
    assert files.too_large(2**80) == ""


def test_some_memory_is_free_here():
    free = files.available_memory()
    assert free is None or 10**6 < free < 2**60
