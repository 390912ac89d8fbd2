import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from softclt import BatchDistances, EmbeddingEnsemble, TS2Vec, fit_many
from softclt.cli import app
from softclt.data import open_series
from softclt.data.sources import opening
from softclt.training.feed import Feed

SMALL = {
    "output_dims": 6,
    "hidden_dims": 4,
    "depth": 2,
    "max_iter": 10,
    "batch_size": 4,
    "random_state": 0,
    "device": "cpu",
    "distance_mode": "lazy",
}


@pytest.fixture
def series(rng):
    return rng.normal(size=(26, 2, 30)).astype(np.float32).cumsum(axis=-1)


@pytest.fixture
def gappy(series):
    series[3, :, 20:] = series[5, 0, 10:12] = series[8, :, :4] = np.nan
    series[..., 27:] = np.nan
    return series


@pytest.fixture
def stored(tmp_path):
    def store(X, name="x.npy"):
        np.save(tmp_path / name, X)
        return open_series(tmp_path / name)

    return store


@pytest.fixture
def sets(rng, stored):
    long, wide = rng.normal(size=(21, 1, 40)), rng.normal(size=(6, 3, 25))
    return open_series([stored(long, "long.npy"), wide, rng.normal(size=(3, 12))])


def fitted(X, **parameters):
    return TS2Vec(**SMALL | parameters).fit(X)


def assert_same(one, other):
    assert one.history_["loss"] == other.history_["loss"]
    for own, theirs in zip(one.module_.parameters(), other.module_.parameters(), strict=True):
        assert torch.equal(own, theirs)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"tau_instance": None, "max_iter": None, "max_epochs": 2},
        {"max_train_length": 20},  # random windows
        {"max_train_length": 9},  # sections, and windows of them
        {"precision": "float64", "scale": None},
        {"distance": "euclidean", "distance_scale": "series", "distance_normalize": "max"},
    ],
    ids=str,
)
def test_a_file_trains_to_the_weights_of_the_array_in_memory(series, stored, parameters):
    in_memory, streamed = fitted(series, **parameters), fitted(stored(series), **parameters)
    assert_same(in_memory, streamed)
    assert streamed.fingerprint_ == in_memory.fingerprint_
    np.testing.assert_array_equal(streamed.transform(series), in_memory.transform(series))


@pytest.mark.parametrize("parameters", [{}, {"max_train_length": 9}, {"mask_padding": False}])
def test_so_it_does_with_missing_values(gappy, stored, parameters):
    assert_same(fitted(gappy, **parameters), fitted(stored(gappy), **parameters))


def test_an_empty_series_of_a_file_is_refused_by_its_number(gappy, stored):
    gappy[11] = np.nan
    with pytest.raises(ValueError, match=r"series 11 of .* has no step"):
        fitted(stored(gappy))


def test_other_numbers_than_float32_lose_their_offset_first(series, stored):
    X = series.astype(np.float64) + 1e6
    assert_same(fitted(X), fitted(stored(X)))
    counts = (10 * series).astype(np.int16)
    assert_same(fitted(counts), fitted(stored(counts)))


def test_a_map_is_read_if_it_is_small_and_streamed_if_not(series, tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", series)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    auto = {"distance_mode": "auto"}
    small = fitted(mapped, **auto)
    assert small.history_["distance_mode"] == "dense"
    assert_same(small, fitted(series, **auto))
    monkeypatch.setattr(opening, "IN_MEMORY", 100)
    large = fitted(mapped, **auto)
    assert large.history_["distance_mode"] == "lazy"
    assert_same(large, fitted(series))
    np.testing.assert_array_equal(large.transform(mapped), large.transform(series))


def test_stacked_models_and_a_warm_start_train_as_from_memory(series, stored):
    grid = [TS2Vec(**SMALL | {"random_state": seed, "lr": 0.001 * (seed + 1)}) for seed in range(2)]
    twins = [
        TS2Vec(**SMALL | {"random_state": seed, "lr": 0.001 * (seed + 1)}) for seed in range(2)
    ]
    for one, other in zip(fit_many(grid, series), fit_many(twins, stored(series)), strict=True):
        assert_same(one, other)
    halves = TS2Vec(**SMALL | {"max_iter": 5, "warm_start": True})
    halves.fit(stored(series)).fit(series)
    assert_same(halves, fitted(series))


def test_encoding_goes_chunk_by_chunk(series, stored, monkeypatch):
    model, source = fitted(series), stored(series)
    monkeypatch.setattr("softclt.data.preparation._BLOCK", 5 * series[0].size)
    for options in (
        {"level": "timestamp"},
        {"level": "window", "window": 7, "stride": 3},
        {"level": "instance", "causal": True, "context": 5},
    ):
        np.testing.assert_allclose(
            model.encode(source, **options), model.encode(series, **options), atol=1e-6
        )
    series[13, 1] = np.nan
    with pytest.raises(ValueError, match="series 10 to 14: series 3 of X has no step"):
        model.transform(stored(series))
    with pytest.raises(ValueError, match=r"1 channel.*fitted with 2"):
        model.transform(stored(series[:, :1]))


def test_a_folder_of_tables_trains_with_lengths_of_all_kinds(rng, tmp_path):
    for i in range(3):
        lengths = rng.integers(10, 25, size=5)
        frame = pd.DataFrame(
            {
                "id": np.repeat([f"{i}-{j}" for j in range(5)], lengths),
                "t": np.concatenate([np.arange(n) for n in lengths]),
                "v": rng.normal(size=lengths.sum()),
            }
        )
        frame.to_parquet(tmp_path / f"{i}.parquet", row_group_size=9)
    source = open_series(tmp_path)
    for length in (100, 8):
        model = fitted(source, max_train_length=length)
        assert np.isfinite(model.history_["loss"]).all()
        assert_same(model, fitted(open_series(tmp_path), max_train_length=length))
    assert model.transform(source).shape == (15, 6)
    with pytest.raises(ValueError, match="compares step with step"):
        fitted(source, distance="euclidean")
    resampled = {"distance": "euclidean", "distance_params": {"unequal": "resample"}}
    assert np.isfinite(fitted(source, **resampled).history_["loss"]).all()


def test_euclidean_distances_of_stretched_series_are_those_of_all_in_memory(gappy, stored):
    options = {"metric": "euclidean", "mode": "lazy", "unequal": "resample"}
    in_memory, streamed = BatchDistances(gappy, **options), BatchDistances(stored(gappy), **options)
    for rows in ([3, 1], [0, 5, 8]):
        assert torch.equal(in_memory(rows), streamed(rows))


# ------------------------------------------------------------------------------------------- sets


def test_a_batch_of_several_sets_comes_from_one_and_is_not_padded(sets):
    seen = []

    class Watched(TS2Vec):
        def _loss(self, module, batch, draws):
            seen.append((tuple(batch.x.shape), batch.mask, batch.index[0].tolist()))
            return super()._loss(module, batch, draws)

    model = Watched(**SMALL | {"max_iter": None, "max_epochs": 2}).fit(sets)
    # 21 // 4 + 18 // 4 + 3 // 3 batches, twice
    shapes = [shape for shape, _, _ in seen]
    assert len(shapes) == 20
    assert shapes.count((1, 4, 1, 40)) == 10
    assert shapes.count((1, 4, 1, 25)) == 8
    assert shapes.count((1, 3, 1, 12)) == 2
    for (_, _, _, t), mask, rows in seen:
        assert mask is None
        low, high = {40: (0, 21), 25: (21, 39), 12: (39, 42)}[t]
        assert low <= min(rows) <= max(rows) < high
    assert model.n_features_in_ == 1
    values = np.concatenate([own.take(np.arange(len(own))).ravel() for own in sets.sets])
    np.testing.assert_allclose(np.ravel(model.scale_), [values.mean(), values.std()], rtol=1e-12)


def test_models_of_several_sets_can_be_stacked_and_encode_them(sets):
    ensemble = EmbeddingEnsemble(TS2Vec(**SMALL), n_members=2).fit(sets)
    embedded = ensemble.transform(sets)
    assert embedded.shape == (42, 12)
    first = sets.sets[1].take(np.arange(18))
    np.testing.assert_allclose(ensemble.transform(first), embedded[21:39], atol=1e-6)
    facts = ensemble.members_[0].history_["distances"]
    assert len(facts["low"]) == len(facts["high"]) == 3
    with pytest.raises(ValueError, match="encode each alone"):
        ensemble.encode(sets, level="timestamp")


def test_one_set_of_one_channel_in_a_list_is_that_set(series, stored):
    alone = stored(series[:, :1])
    assert_same(fitted(alone), fitted(open_series([alone])))


# ------------------------------------------------------------------------------- what goes wrong


def test_a_matrix_of_all_pairs_is_refused_with_the_reason(series, stored):
    source = stored(series)
    with pytest.raises(ValueError, match="'dense', but the 26 series are not in memory"):
        fitted(source, distance_mode="dense")
    with pytest.raises(ValueError, match="column"):
        fitted(source, distance_normalize="column", distance_mode="auto")
    with pytest.raises(ValueError, match="distances are given, but"):
        TS2Vec(**SMALL | {"distance_mode": "auto"}).fit(source, distances=np.ones((26, 26)))
    hard = TS2Vec(**SMALL | {"tau_instance": None})
    assert hard.fit(source, distances=np.ones((26, 26))).history_["distance_mode"] is None


def test_series_to_learn_nothing_from_are_refused(series, stored):
    with pytest.raises(ValueError, match="nothing can be learned"):
        fitted(stored(np.full_like(series, np.nan)))
    with pytest.raises(ValueError, match="at least 2 steps"):
        fitted(stored(series[..., :1]))
    with pytest.warns(UserWarning, match="more channels"):
        fitted(stored(series.swapaxes(1, 2).copy()), tau_instance=None)


def test_a_loss_that_is_no_number_names_the_rows_of_the_file(series, stored):
    with pytest.raises(FloatingPointError, match=r"rows \[\d+, \d+, \d+, \d+\] of the 26"):
        fitted(stored(series * 1e3), lr=1e12, max_iter=30, scale=None)


@pytest.mark.slow
def test_killed_training_from_a_file_goes_on_to_the_same_bits(series, stored, tmp_path):
    source, parameters = stored(series), SMALL | {"max_iter": 202, "tau_instance": None}
    script = f"""
import os
from softclt import TS2Vec
from softclt.data import open_series

def die(progress):
    if progress.step == 200:
        os.kill(os.getpid(), 9)

source = open_series({source.name!r})
TS2Vec(**{parameters!r}).fit(source, checkpoint={str(tmp_path / "kept")!r}, callbacks=[die])
"""
    killed = subprocess.run([sys.executable, "-c", script], check=False)
    assert killed.returncode == -9
    steps, model = [], TS2Vec(**parameters)
    callbacks = [lambda progress: steps.append(progress.step)]
    model.fit(source, checkpoint=tmp_path / "kept", callbacks=callbacks)
    assert steps == [200, 202]  # not 100
    assert_same(model, TS2Vec(**parameters).fit(series))
    series[0, 0, 0] += 1
    with pytest.raises(ValueError, match="another run: data"):
        model.fit(stored(series), checkpoint=tmp_path / "kept")


# ------------------------------------------------------------------------------- the command line


def test_the_command_streams_large_files_and_folders(series, tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "IN_MEMORY", 100)
    np.save(tmp_path / "x.npy", series)
    tables = tmp_path / "tables"
    tables.mkdir()
    pd.DataFrame(series[:, 0]).rename(columns=str).to_parquet(tables / "a.parquet")
    settings = [
        word for k, v in SMALL.items() if k != "random_state" for word in ("--set", f"{k}={v}")
    ]
    opened = []
    monkeypatch.setattr(Feed, "__init__", _watched(Feed.__init__, opened))
    for data, channels in ((tmp_path / "x.npy", 2), (tables, 1)):
        out = tmp_path / f"model{channels}"
        words = ["fit", str(data), "--out", str(out), "--json", *settings]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        told = json.loads(result.stdout)
        assert (told["series"], told["channels"], told["length"]) == (26, channels, 30)
    assert len(opened) == 2
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-9])
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "x.npy"), "--out", str(tmp_path / "m")])
    assert result.exit_code == 2
    assert "truncated" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def _watched(function, calls):
    def watched(*args, **options):
        calls.append(args)
        return function(*args, **options)

    return watched
