"""What comes in from outside, made up by hypothesis: right, or refused by a meant error."""

import json
import math
import traceback
from contextlib import contextmanager, suppress

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from softclt import SoftContrastiveLoss, TS2Vec, pairwise_distance
from softclt.bench.suites import read_suite
from softclt.data import read_series
from softclt.data.label_tables import labels_by_id
from softclt.data.partial_labels import read_labels
from softclt.distances import distances
from softclt.persistence import read_config
from softclt.selection import criteria, embedding_score
from softclt.tasks.result import Result
from softclt.validation import check_series

# The examples are the same every time (tests/conftest.py); the machine may be busy.
BUDGET = {"suppress_health_check": list(HealthCheck)}
MANY, SOME, FEW = (settings(max_examples=n, **BUDGET) for n in (80, 30, 8))

NUMBERS = st.floats(width=64) | st.sampled_from([0.0, 1e300, -1e300, 1e-320, math.nan, math.inf])
SERIES = arrays(np.float64, array_shapes(min_dims=1, max_dims=4, max_side=6), elements=NUMBERS)
RAGGED = st.lists(arrays(np.float64, array_shapes(min_dims=1, max_dims=2, max_side=6)), max_size=4)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
HUGE = st.lists(st.lists(st.just(10**400) | st.integers(), min_size=1, max_size=3), max_size=3)
ANYTHING = SERIES | RAGGED | JSON | HUGE


@contextmanager
def meant():
    """Let errors through that the library raised to say something."""
    try:
        yield
    except (ValueError, TypeError, FileNotFoundError) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        if not (frame.line.startswith("raise") and str(error)):
            raise AssertionError(f"not meant, in {frame.filename}, {frame.lineno}") from error


@MANY
@given(ANYTHING)
def test_series_are_three_axes_of_finite_numbers_or_gaps(X):
    with meant():
        checked = check_series(X)
        assert checked.ndim == 3
        assert checked.size > 0
        assert checked.dtype in (np.float32, np.float64)
        assert not np.isinf(checked).any()


MODERATE = st.floats(-1e6, 1e6, width=32) | st.just(math.nan)
SMALL = arrays(
    np.float64,
    array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=6),
    elements=MODERATE,
)


@pytest.mark.parametrize("metric", ["dtw", "euclidean", "cosine", "fastdtw", "tam"])
@FEW
@given(SMALL, st.none() | st.floats(-0.5, 1.5), st.sampled_from([None, "minmax", "max"]))
def test_distances_are_symmetric_and_at_least_zero(metric, X, window, normalize):
    options = {"window": window} if distances.tags(metric)["window"] else {}
    with meant():
        D = pairwise_distance(X, metric=metric, normalize=normalize, n_jobs=1, **options)
        assert D.shape == (len(X), len(X))
        assert np.isfinite(D).all()
        assert (D >= 0).all()
        np.testing.assert_array_equal(D, D.T)


@FEW
@given(SMALL)
def test_embeddings_are_finite(X):
    with meant():
        model = TS2Vec(
            output_dims=3, hidden_dims=2, depth=1, max_iter=1, random_state=0, device="cpu"
        )
        R = model.fit(X).transform(X)
        assert R.shape == (len(X), 3)
        assert np.isfinite(R).all()


@SOME
@given(
    arrays(np.float32, (2, 3, 4, 2), elements=st.floats(-100, 100, width=32)),
    arrays(np.float32, (3, 3), elements=st.floats(0, 1, width=32)),
    st.none() | st.floats(),
    st.none() | st.floats(),
)
def test_losses_are_finite(z, D, tau, sharp):
    with meant():
        criterion = SoftContrastiveLoss(tau_instance=tau, tau_temporal=sharp)
        loss = criterion(*torch.from_numpy(z), distances=torch.from_numpy(D))
        assert torch.isfinite(loss)


@pytest.mark.parametrize("name", criteria.names())
@FEW
@given(
    arrays(np.float64, (6, 3), elements=st.floats(-1e3, 1e3)),
    st.lists(st.integers(0, 2), max_size=7),
)
def test_criteria_give_a_number(name, R, y):
    D = np.abs(R[:, :1] - R[:, :1].T)
    with meant():
        score = embedding_score(name, R, y, distances=D, others=[R + 1, R[::-1]])
        assert not math.isinf(score)


CELL = LEAVES | st.just(10**400) | st.lists(st.floats() | st.integers() | st.none(), max_size=3)
NAMES = st.sampled_from(["id", "time", "t", "x", "y", "label", "0", 1])
FRAMES = st.integers(1, 4).flatmap(
    lambda n: st.dictionaries(NAMES, st.lists(CELL, min_size=n, max_size=n), max_size=4)
)


@MANY
@given(FRAMES, st.booleans())
def test_frames_are_series(columns, indexed):
    frame = pd.DataFrame({name: pd.Series(own, dtype=object) for name, own in columns.items()})
    if indexed and frame.shape[1] > 2:
        with suppress(TypeError):  # lists are no index
            frame = frame.set_index(list(frame.columns[:2]))
    with meant():
        assert check_series(frame).ndim == 3


@SOME
@given(FRAMES)
def test_tables_of_other_packages_are_series(columns):
    pa = pytest.importorskip("pyarrow")
    with suppress(pa.ArrowException, OverflowError):  # cells of which it makes no column
        table = pa.table({str(name): own for name, own in columns.items()})
        with meant():
            assert check_series(table).ndim == 3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64, torch.bool])
@FEW
@given(arrays(np.float32, array_shapes(min_dims=0, max_dims=4, max_side=4)))
def test_tensors_are_series(dtype, values):
    with meant():
        assert check_series(torch.from_numpy(np.asarray(np.nan_to_num(values))).to(dtype)).ndim == 3


@MANY
@given(st.lists(JSON, max_size=6), st.integers(0, 7))
def test_labels_are_codes_of_classes(y, n):
    with meant():
        labels = read_labels(y, n)
        assert len(labels.codes) == n
        assert labels.codes.max() < len(labels.classes)


CELLS = st.text(st.sampled_from("0123456789.,;-e?'\"naNt \t\x00é"), max_size=9)
TABLES = st.lists(st.lists(CELLS, max_size=5), max_size=6)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".ts", ".arff"])
@SOME
@given(TABLES | st.text(max_size=60) | st.binary(max_size=60))
def test_files_of_text_are_series(tmp_path_factory, suffix, content):
    path = tmp_path_factory.mktemp("door") / f"a{suffix}"
    if isinstance(content, list):
        comma = "\t" if suffix == ".tsv" else ","
        content = "\n".join(comma.join(row) for row in content)
        content = "@univariate true\n@data\n" + content if suffix == ".ts" else content
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    path.write_bytes(data)
    with meant():
        assert not np.isinf(read_series(path).X).any()


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet"])
@SOME
@given(data=st.binary(max_size=200), header=st.sampled_from([b"", b"\x93NUMPY\x01\x00", b"PK"]))
def test_binary_files_are_series(tmp_path_factory, suffix, data, header):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path_factory.mktemp("door") / f"a{suffix}"
    path.write_bytes(header + data)
    with meant():
        read_series(path)


@SOME
@given(TABLES)
def test_tables_of_labels_are_labels(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("door") / "labels.csv"
    path.write_text("\n".join(",".join(row) for row in rows))
    with meant():
        assert len(labels_by_id(path, ["1", "2"])) == 2


WHOLE = json.loads(
    Result(
        task="a",
        dataset="b",
        fingerprint="0",
        method="c",
        params={},
        tau_choice="d",
        seed=0,
        metrics={},
    ).to_json()
)


@MANY
@given(st.sampled_from(sorted(WHOLE)), JSON)
def test_lines_of_results_are_results(key, value):
    with meant():
        result = Result.from_json(json.dumps(WHOLE | {key: value}))
        assert isinstance(result.identity(), str)
        assert isinstance(result.summary(), str)


@MANY
@given(st.dictionaries(st.sampled_from(["format", "method", "params", "fitted", "sha256"]), JSON))
def test_descriptions_are_of_models(tmp_path_factory, config):
    folder = tmp_path_factory.mktemp("door")
    (folder / "config.json").write_text(json.dumps({"format": 1} | config))
    with meant():
        assert isinstance(read_config(folder)["params"], dict)


KEYS = st.sampled_from(
    ["seeds", "data", "task", "probe", "grid", "params", "replicas", "select", "control", "members"]
)
VALUES = st.sampled_from(
    [
        "3",
        "-1",
        "true",
        '"one"',
        "[]",
        "[1, 2]",
        '["a"]',
        "{ }",
        "{ alpha = [0.1] }",
        "1e400",
        "2.5",
    ]
)


@MANY
@given(st.lists(st.tuples(KEYS, VALUES), max_size=3), st.lists(st.tuples(KEYS, VALUES), max_size=3))
def test_suites_are_rows(tmp_path_factory, outside, inside):
    path = tmp_path_factory.mktemp("door") / "mine.toml"
    lines = ["[mine]", *(f"{key} = {value}" for key, value in dict(outside).items())]
    lines += ["[mine.configurations.one]", *(f"{k} = {v}" for k, v in dict(inside).items())]
    path.write_text("\n".join(lines))
    with meant():
        assert read_suite(str(path)).rows
