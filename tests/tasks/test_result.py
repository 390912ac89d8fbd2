"""A result is one line that survives killed writers, and says everything needed to run it again."""

import gzip
import json
import logging
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from softclt.persistence import json_safe
from softclt.tasks import Result, read_results


@pytest.fixture
def result():
    return Result(
        task="classification",
        dataset="GunPoint",
        fingerprint="0123456789abcdef",
        method="ts2vec",
        params={"tau_instance": None, "lr": 0.001, "distance": "dtw"},
        tau_choice="fixed",
        seed=3,
        metrics={"accuracy": 0.5, "auprc": 0.25},
        probe="svm",
        seconds={"fit": 1.5},
        versions={"softclt": "0.1.0"},
        device="cpu",
    )


def test_a_result_comes_back_from_its_line(result):
    assert "\n" not in result.to_json()
    assert Result.from_json(result.to_json()) == result


def test_a_line_from_before_suites_still_reads(result):
    line = json.loads(result.to_json())
    for name in ("suite", "configuration", "control", "groups", "error", "trained_together"):
        del line[name]
    assert Result.from_json(json.dumps(line)) == result


def test_a_failed_run_is_a_line_with_its_error(result):
    failed = replace(result, metrics={}, error="out of memory")
    assert Result.from_json(failed.to_json()) == failed
    assert "failed: out of memory" in failed.summary()


def test_nan_is_null_in_the_line_and_nan_again_when_read(result):
    line = replace(result, metrics={"accuracy": math.nan}).to_json()
    assert json.loads(line)["metrics"] == {"accuracy": None}
    assert math.isnan(Result.from_json(line).metrics["accuracy"])


def test_parameters_become_json_whatever_they_are():
    params = {
        "a": np.float32(0.5),
        "b": np.arange(2),
        "c": (1, None),
        "d": math.sqrt,
        "e": {"x": np.bool_(True)},
        "f": math.inf,
    }
    safe = json_safe(params)
    assert json.loads(json.dumps(safe)) == safe
    assert safe == {
        "a": 0.5,
        "b": [0, 1],
        "c": [1, None],
        "d": "math.sqrt",
        "e": {"x": True},
        "f": None,
    }


def test_results_are_appended_and_read_in_order(result, tmp_path):
    path = tmp_path / "new folder" / "results.jsonl"
    for seed in range(3):
        replace(result, seed=seed).append_to(path)
    assert [r.seed for r in read_results(path)] == [0, 1, 2]


def test_a_torn_last_line_is_left_out_with_a_warning_and_cut_off_by_the_next(
    result, tmp_path, caplog
):
    path = tmp_path / "results.jsonl"
    result.append_to(path)
    with path.open("a") as file:
        file.write(result.to_json()[:50])
    with caplog.at_level(logging.WARNING, logger="softclt"):
        assert len(read_results(path)) == 1
    assert "torn" in caplog.text
    replace(result, seed=7).append_to(path)
    assert [r.seed for r in read_results(path)] == [3, 7]
    assert path.read_bytes().endswith(b"}\n")


def test_a_torn_line_longer_than_one_read_is_cut_off(result, tmp_path):
    path = tmp_path / "results.jsonl"
    result.append_to(path)
    with path.open("a") as file:
        file.write("{" + "x" * 200_000)
    replace(result, seed=7).append_to(path)
    assert [r.seed for r in read_results(path)] == [3, 7]


def test_a_whole_last_line_without_line_end_is_kept(result, tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(result.to_json())
    assert len(read_results(path)) == 1
    result.append_to(path)
    assert len(read_results(path)) == 2


@pytest.mark.parametrize(
    "damage", ["{rubbish\n", '{"a": 1}\n', "[]\n", '{"task": "x", "metrics": {}}\n']
)
def test_damage_in_the_middle_is_an_error_that_names_file_and_line(result, tmp_path, damage):
    path = tmp_path / "results.jsonl"
    path.write_text(result.to_json() + "\n" + damage + result.to_json() + "\n")
    with pytest.raises(ValueError, match=r"results\.jsonl, line 2: "):
        read_results(path)


def test_writers_side_by_side_lose_no_line(result, tmp_path):
    path = tmp_path / "results.jsonl"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: replace(result, seed=seed).append_to(path), range(40)))
    assert sorted(r.seed for r in read_results(path)) == list(range(40))


def test_identity_changes_with_what_was_run_not_with_how_it_went(result):
    same = replace(result, metrics={"accuracy": 1.0}, seconds={}, device="cuda", created="later")
    assert same.identity() == result.identity()
    for other in (
        replace(result, seed=4),
        replace(result, fingerprint="f" * 16),
        replace(result, params=result.params | {"lr": 0.1}),
        replace(result, versions={"softclt": "0.2.0"}),
        replace(result, configuration="soft"),
    ):
        assert other.identity() != result.identity()


def test_the_summary_names_data_method_tau_and_scores(result):
    for word in ("GunPoint", "ts2vec", "fixed", "seed 3", "accuracy 0.5000"):
        assert word in result.summary()


def test_a_compressed_file_reads_as_the_plain_one(result, tmp_path):
    plain, small = tmp_path / "results.jsonl", tmp_path / "results.jsonl.gz"
    result.append_to(plain)
    small.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_results(small) == read_results(plain)
    assert len(read_results(small)) == 1
