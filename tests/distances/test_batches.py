import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import naive
from softclt import BatchDistances, SoftContrastiveLoss
from softclt.distances import (
    batches,
    distances,
    normalize_distances,
    pair_engines,
    pairwise_distance,
)
from softclt.distances.batches import SAMPLE_SIZE, choose_mode, sample_pairs
from softclt.distances.measure import Measure
from softclt.distances.prepare import without_missing_steps

PAGE = Path(__file__).parents[2] / "docs" / "batches.md"
BATCH = [17, 3, 29, 0, 8, 21, 5]

every_metric = pytest.mark.parametrize("metric", distances.names())


def series(n=30, d=2, t=16, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d, t)).astype(dtype)


def with_gaps():
    X = series()
    X[3, 1, 4:7] = X[17, :, 0] = X[29, 0, 9] = np.nan
    return X


def of_many_lengths():
    X = series(dtype=np.float32)
    for i, x in enumerate(X):
        x[:, 5 + i % 12 :] = np.nan
    return X


def larger_mean(x, y):
    return max(0.0, x.mean() - y.mean()) + 1.0


def block_of_the_matrix(X, how="minmax", rows=BATCH, **arguments):
    return normalize_distances(pairwise_distance(X, **arguments), how)[np.ix_(rows, rows)]


# ----------------------------------------------------------------------------- lazy equals dense
@every_metric
@pytest.mark.parametrize("data", [series, with_gaps, of_many_lengths], ids=lambda f: f.__name__)
def test_lazy_and_dense_are_the_normalised_matrix_where_the_sample_has_all_pairs(metric, data):
    X = data()
    expected = block_of_the_matrix(X, metric=metric, unequal="resample")
    for mode in ("lazy", "dense"):
        got = BatchDistances(X, metric, mode=mode, unequal="resample")(BATCH)
        assert got.dtype == torch.float32
        np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize("metric", distances.names(window=True))
@pytest.mark.slow
def test_a_window_is_the_same_in_both_modes(metric):
    lazy, dense = (
        BatchDistances(series(), metric, mode=mode, window=0.1)(BATCH) for mode in ("lazy", "dense")
    )
    torch.testing.assert_close(lazy, dense, rtol=0, atol=1e-6)
    assert not torch.allclose(lazy, BatchDistances(series(), metric, mode="lazy")(BATCH), atol=1e-3)


@pytest.mark.parametrize("how", ["minmax", "max"])
@pytest.mark.parametrize("metric", ["dtw", larger_mean])
def test_normalisations_are_those_of_the_matrix(how, metric):
    lazy, dense = (
        BatchDistances(series(), metric, mode=mode, normalize=how) for mode in ("lazy", "dense")
    )
    expected = block_of_the_matrix(series(), how, metric=metric)
    np.testing.assert_allclose(lazy(BATCH), expected, atol=1e-6)
    np.testing.assert_allclose(dense(BATCH), expected, atol=1e-6)
    assert (lazy.low, lazy.high) == pytest.approx((dense.low, dense.high), rel=1e-12)
    assert (lazy.low == 0.0) == (how == "max")


def test_parameters_reach_the_metric():
    got = BatchDistances(series(), "dtw", mode="lazy", squared=True)(BATCH)
    np.testing.assert_allclose(got, block_of_the_matrix(series(), squared=True), atol=1e-6)


@pytest.mark.parametrize(("how", "expected"), [("minmax", 0.0), ("max", 1.0)])
def test_where_all_distances_are_equal_both_modes_give_what_the_matrix_has(how, expected):
    X = np.eye(5)  # 0 1 0 0 0 and the like: all euclidean distances are sqrt(2)
    for mode in ("lazy", "dense"):
        block = BatchDistances(X, "euclidean", mode=mode, normalize=how)([0, 1, 3])
        np.testing.assert_array_equal(block, expected * (1 - np.eye(3)))
        same = BatchDistances(np.ones((4, 6)), mode=mode, normalize=how)([0, 1, 3])
        np.testing.assert_array_equal(same, 0.0)


def test_columns_of_their_own_are_the_authors_matrix():
    got = BatchDistances(series(), normalize="column")
    assert got.mode == "dense"
    np.testing.assert_allclose(got(BATCH), block_of_the_matrix(series(), "column"), atol=1e-6)


def test_given_distances_are_taken_for_the_matrix():
    D = np.random.default_rng(1).uniform(2, 5, size=(30, 30))
    given = BatchDistances(series(), distances=D)
    assert given.mode == "dense"
    assert given.facts["engine"] is None
    assert given.facts["pairs_before"] == 0
    expected = normalize_distances(D)[np.ix_(BATCH, BATCH)]
    np.testing.assert_allclose(given(BATCH), expected, atol=1e-6)
    assert given.low == D[~np.eye(30, dtype=bool)].min()


# ------------------------------------------------------------------------------------- the block
@pytest.mark.parametrize("mode", ["lazy", "dense"])
def test_a_series_is_at_distance_zero_of_itself_wherever_it_stands(mode):
    block = BatchDistances(series(), mode=mode)([4, 9, 4])
    assert (block[[0, 1, 2, 0, 2], [0, 1, 2, 2, 0]] == 0).all()
    assert block[0, 1] == block[2, 1] > 0


@every_metric
def test_rows_of_several_processes_stack_to_the_block_of_the_whole_batch(metric):
    # Whole numbers, so that paths tie: tam and fastdtw then depend on which series comes first.
    X = np.random.default_rng(2).integers(0, 3, size=(30, 1, 12)).astype(np.float32)
    lazy = BatchDistances(X, metric, mode="lazy")
    whole = lazy(BATCH)
    ranks = [lazy(rows, BATCH) for rows in (BATCH[:3], BATCH[3:4], BATCH[4:])]
    assert [tuple(rank.shape) for rank in ranks] == [(3, 7), (1, 7), (3, 7)]
    assert torch.equal(torch.cat(ranks), whole)
    assert torch.equal(whole, whole.T)
    dense = BatchDistances(X, metric, mode="dense")
    torch.testing.assert_close(whole, dense(BATCH), rtol=0, atol=1e-6)
    assert torch.equal(dense(BATCH[:3], BATCH), dense(BATCH)[:3])


def test_a_symmetric_metric_computes_each_pair_once_and_a_function_both_orders():
    lazy = BatchDistances(series(), mode="lazy")
    assert lazy.facts["pairs_before"] == 30 * 29 // 2
    lazy(BATCH)
    lazy(BATCH)
    assert lazy.facts["pairs_in_batches"] == 2 * (7 * 6 // 2)
    there = BatchDistances(series(), larger_mean, mode="lazy")
    assert there.facts["pairs_before"] == 30 * 29
    assert not torch.equal(there(BATCH), there(BATCH).T)


def test_indices_come_as_lists_arrays_and_tensors():
    lazy = BatchDistances(series(), mode="lazy")
    expected = lazy(BATCH)
    for index in (np.array(BATCH), torch.tensor(BATCH), torch.tensor(BATCH, dtype=torch.int32)):
        assert torch.equal(lazy(index), expected)


def test_one_series_has_a_block_of_one_zero():
    for mode in ("lazy", "dense"):
        np.testing.assert_array_equal(BatchDistances(series(), mode=mode)([3]), [[0.0]])
        np.testing.assert_array_equal(BatchDistances(series(n=1), mode=mode)([0]), [[0.0]])


def test_the_loss_takes_the_block_as_it_is():
    z = torch.randn(2, 7, 16, 4, generator=torch.Generator().manual_seed(0))
    loss = SoftContrastiveLoss()(*z, distances=BatchDistances(series(), mode="lazy")(BATCH))
    assert torch.isfinite(loss)


def test_batches_are_computed_in_the_calling_thread():
    threads = set()

    def metric(x, y):
        threads.add(threading.current_thread())
        return 1.0

    BatchDistances(series(), metric, mode="lazy", n_jobs=2)(BATCH)
    assert threads == {threading.current_thread()}


def test_one_channel_without_gaps_is_read_where_it_lies():
    X = series(d=1, dtype=np.float32)
    assert np.shares_memory(without_missing_steps(X, "X").values, X)
    assert not np.shares_memory(without_missing_steps(series(), "X").values, series())


# ------------------------------------------------------------------------------------ the sample
def test_what_is_beyond_the_sample_is_clipped(monkeypatch):
    monkeypatch.setattr(batches, "SAMPLE_SIZE", 6)
    lazy = BatchDistances(series(), mode="lazy")
    raw = pairwise_distance(series())
    first, second = sample_pairs(30, True, 0)
    assert (lazy.low, lazy.high) == pytest.approx(
        (raw[first, second].min(), raw[first, second].max())
    )
    scaled = (raw - lazy.low) / (lazy.high - lazy.low)
    np.fill_diagonal(scaled, 0.0)
    assert scaled.min() < 0
    assert scaled.max() > 1
    np.testing.assert_allclose(lazy(range(30)), scaled.clip(0, 1), atol=1e-6)


def test_the_sample_depends_on_the_seed_and_the_number_of_series_alone():
    X = series(n=120)
    np.random.seed(3)  # noqa: NPY002 - the global state is what is tested
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = (BatchDistances(X, mode="lazy", random_state=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert first.facts == again.facts
    assert first.facts["pairs_before"] == SAMPLE_SIZE < 120 * 119 // 2
    assert (first.low, first.high) != (other.low, other.high)
    one_thread = BatchDistances(X, mode="lazy", n_jobs=1)
    assert one_thread.facts == first.facts
    # A number itself, so that another machine and version draw the same.
    assert [int(index[0]) for index in sample_pairs(1000, True, 0)] == [218, 437]


def test_every_pair_of_different_series_is_drawn_as_often_as_any_other():
    n, repeats = 100, 200
    counts = np.zeros((n, n))
    for seed in range(repeats):
        np.add.at(counts, sample_pairs(n, True, seed), 1)
    assert (np.diag(counts) == 0).all()
    drawn = counts[~np.eye(n, dtype=bool)]
    expected = repeats * SAMPLE_SIZE / (n * (n - 1))  # 93 times; Poisson, so +- 9.6
    assert abs(drawn - expected).max() < 6 * expected**0.5
    assert abs(drawn.std() - expected**0.5) < 0.05 * expected**0.5


def test_the_extremes_of_a_sample_leave_out_a_thousandth_of_the_pairs_once_in_a_hundred(rng):
    """The promise of the docstring, on values whose distances are all known."""
    values = rng.standard_cauchy(size=1000)  # a heavy tail, where the maximum says least
    distance = abs(values[:, None] - values)
    every = np.sort(distance[np.triu_indices(1000, 1)])
    highest, lowest = every[int(0.999 * len(every))], every[int(0.001 * len(every))]
    too_low = too_high = short_sample_too_low = 0
    for seed in range(400):
        sample = distance[sample_pairs(1000, True, seed)]
        too_low += sample.max() < highest
        too_high += sample.min() > lowest
        short_sample_too_low += sample[: SAMPLE_SIZE // 4].max() < highest
    # 4 of 400 expected; more than 12 would have a chance of 1 in 3,000.
    assert too_low <= 12
    assert too_high <= 12
    assert short_sample_too_low > 80  # and the size is not larger than it has to be


# ---------------------------------------------------------------------------------------- choice
def test_auto_takes_the_matrix_if_its_cells_are_few():
    assert choose_mode(1000, 10**6, 10**4, "minmax", None, 8) == "dense"
    assert choose_mode(1000, 10**6, 10**4 + 1, "minmax", None, 8) == "lazy"


def test_auto_takes_the_matrix_if_the_steps_need_as_many_pairs():
    needed = 100 * 28 + SAMPLE_SIZE
    assert choose_mode(1000, needed, 1e9, "minmax", 100, 8) == "dense"
    assert choose_mode(1000, needed + 1, 1e9, "minmax", 100, 8) == "lazy"
    assert choose_mode(1000, needed, 1e9, "minmax", 99, 8) == "lazy"
    assert choose_mode(5, 10, 1e12, "minmax", 0, 8) == "dense"  # the sample has all pairs
    assert choose_mode(5, 10, 1e12, "minmax", None, 8) == "lazy"


def test_auto_never_takes_a_matrix_that_is_too_large_unless_columns_need_it():
    assert choose_mode(16_384, 1, 1.0, "minmax", 10**9, 8) == "dense"
    assert choose_mode(16_385, 1, 1.0, "minmax", 10**9, 8) == "lazy"
    assert choose_mode(16_385, 1, 1.0, "column", 10**9, 8) == "dense"


def test_auto_counts_the_pairs_and_cells_of_its_data(monkeypatch):
    pairs, cells = 30 * 29 // 2, 16 * 16 * 2
    for limit, mode in ((pairs * cells, "dense"), (pairs * cells - 1, "lazy")):
        monkeypatch.setattr(batches, "FEW_CELLS", limit)
        assert BatchDistances(series()).mode == mode
    assert BatchDistances(series(), steps=0).mode == "dense"
    assert BatchDistances(series(), mode="lazy", steps=10**9).mode == "lazy"
    assert BatchDistances(series(), mode="dense").mode == "dense"
    assert repr(BatchDistances(series())) == "BatchDistances(dtw, lazy, 30 series)"


# ---------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mode": "eager"}, "mode is 'eager'; expected one of 'auto', 'dense', 'lazy'"),
        ({"normalize": None}, "normalize is None"),
        ({"mode": "lazy", "normalize": "column"}, "needs the whole matrix"),
        ({"mode": "lazy", "distances": np.ones((30, 30))}, "use 'auto' or 'dense'"),
        ({"distances": np.ones((3, 3))}, r"expected \(30, 30\)"),
        ({"metric": "dwt"}, "unknown distance 'dwt'"),
        ({"radius": 2}, "dtw has no parameter 'radius'"),
        ({"mode": "lazy", "bound": 1e-3}, "leave `bound` out"),
        ({"mode": "lazy", "random_state": -1}, "random_state is -1"),
        ({"mode": "lazy", "n_jobs": 0}, "n_jobs"),
    ],
)
def test_wrong_arguments_are_explained(arguments, words):
    with pytest.raises(ValueError, match=words):
        BatchDistances(series(), **arguments)


@pytest.mark.parametrize("mode", ["lazy", "dense"])
def test_wrong_indices_are_explained(mode):
    between = BatchDistances(series(), mode=mode)
    for wrong in (-1, 30):
        with pytest.raises(IndexError, match=f"series {wrong}; X has 0 to 29"):
            between([2, wrong])
    for wrong in ([0.5, 1.0], [True, False], [[0, 1]], 3):
        with pytest.raises(ValueError, match="whole numbers"):
            between(wrong)


def test_a_series_without_values_and_an_impossible_distance_are_named():
    X = with_gaps()
    X[4] = np.nan
    with pytest.raises(ValueError, match=r"X\[4\] has no step"):
        BatchDistances(X, mode="lazy")

    def metric(x, y):
        return np.nan if calls and x[0, 0] == X[17, 0, 0] else 1.0

    calls = []
    X = series()
    lazy = BatchDistances(X, metric, mode="lazy")
    calls.append("from now on")
    with pytest.raises(ValueError, match=r"metric gave nan for X\[17\] and X\[3\]"):
        lazy([3, 17])


# ------------------------------------------------------------------------------- other processes
def test_a_process_that_computes_a_matrix_does_not_load_torch():
    script = "import sys, softclt.distances; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("mode", ["lazy", "dense"])
def test_it_can_be_pickled(mode):
    between = BatchDistances(series(), mode=mode)
    copy = pickle.loads(pickle.dumps(between))
    assert torch.equal(copy(BATCH), between(BATCH))
    assert copy.facts == between.facts


@pytest.mark.slow
def test_workers_of_a_data_loader_compute_the_blocks_of_shuffled_batches():
    lazy = BatchDistances(series(dtype=np.float32), mode="lazy")
    order = np.random.default_rng(5).permutation(30)[:16].tolist()
    loader = DataLoader(
        range(30),  # a data set that returns its index
        batch_size=8,
        sampler=order,
        collate_fn=lazy,
        num_workers=1,
        multiprocessing_context="spawn",
    )
    blocks = list(loader)
    assert len(blocks) == 2
    for block, rows in zip(blocks, (order[:8], order[8:]), strict=True):
        assert torch.equal(block, lazy(rows))


@pytest.mark.slow
def test_the_examples_of_the_page_run(tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    start, ts2vec, own_loop, loader, processes = code
    exec(compile("\n".join([start, ts2vec, own_loop, processes]), "<page>", "exec"), {})
    script = tmp_path / "page.py"  # its workers have to find it
    script.write_text("\n".join([start, own_loop, loader]))
    command = [sys.executable, str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------------------------------- GPU
def test_the_gpu_is_asked_for_the_pairs_that_the_cpu_would_compute(monkeypatch):
    """With plain loops in the place of the kernel, which is tested elsewhere."""

    def loops(x, y, rows, cols, *, window, squared):
        def own(series, i):
            return series.values[: series.lengths[i], :, i].T.double().numpy()

        pairs = zip(rows, cols, strict=True)
        costs = torch.tensor([naive.dtw(own(x, i), own(y, j), window) for i, j in pairs])
        return costs.square() if squared else costs

    monkeypatch.setattr(pair_engines, "dtw_on_device", loops)
    measure = Measure("dtw", 0.3, {"squared": True})
    x, _ = measure.prepare(of_many_lengths())
    index, first, second = (torch.tensor(i) for i in (BATCH, [0, 2, 4, 6], [1, 0, 5, 3]))
    there = pair_engines.OnDevice(x, measure, torch.device("cpu"))
    here = pair_engines.pair_engine(x, measure, torch.device("cpu"))
    expected = here.pairs(index, first, second)
    np.testing.assert_allclose(there.pairs(index, first, second), expected, rtol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("window", [None, 0.2])
def test_lazy_dtw_on_a_gpu_stays_there_and_agrees_with_the_cpu(window):
    X = of_many_lengths()
    there = BatchDistances(X, mode="lazy", window=window, device="cuda")
    here = BatchDistances(X, mode="lazy", window=window)
    assert there.engine == "cuda"
    rows = torch.tensor(BATCH, device="cuda")
    with torch.cuda.device(0):
        there(rows)  # compiled
        torch.cuda.set_sync_debug_mode("error")
        try:
            block, part = there(rows), there(rows[:3], rows)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert block.is_cuda
    np.testing.assert_allclose(block.cpu(), here(BATCH), atol=1e-4)
    assert torch.equal(block, block.T)
    assert torch.equal(part, block[:3])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_other_metrics_are_computed_on_the_cpu_and_copied():
    there = BatchDistances(series(), "tam", mode="lazy", device="cuda")
    assert there.engine == "cpu"
    block = there(torch.tensor(BATCH, device="cuda"))
    assert block.is_cuda
    assert torch.equal(block.cpu(), BatchDistances(series(), "tam", mode="lazy")(BATCH))
