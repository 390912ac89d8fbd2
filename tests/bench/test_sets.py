"""Which data sets a suite takes, by name, pattern or rule, and what kind each is."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from softclt.bench import sets
from softclt.bench.sets import Sets, facts_of, groups, rules
from softclt.data import Dataset

ARCHIVES = {"ucr": ["Absent", "Long", "Ragged", "Small", "Wide"]}


@pytest.fixture
def root(tmp_path, monkeypatch, rng):
    """A folder with four sets of the archive, one of which varies in length."""
    (tmp_path / "ucr").mkdir()
    for name, n, t in (("Small", 6, 10), ("Wide", 20, 10), ("Long", 4, 300), ("Ragged", 8, 12)):
        X = rng.normal(size=(n, t))
        if name == "Ragged":
            X[0, 9:] = np.nan
        y = np.arange(n) % 2
        np.savez(tmp_path / "ucr" / f"{name}.npz", x_train=X, y_train=y, x_test=X, y_test=y)
    monkeypatch.setenv("SOFTCLT_DATA", str(tmp_path))
    monkeypatch.setattr(sets, "available", lambda: ["ucr/Long", "ucr/Small", "ucr/Wide"])
    return tmp_path


def names(found):
    return [one.asked for one in found]


def test_a_pattern_stands_for_the_whole_archive_and_what_is_missing_is_listed(root):
    here = Sets(ARCHIVES)
    assert names(here.find(["ucr/*"])) == ["ucr/Long", "ucr/Ragged", "ucr/Small", "ucr/Wide"]
    assert here.missing == ["ucr/Absent"]


def test_a_name_that_is_nowhere_and_a_pattern_without_match_are_missing(root):
    here = Sets(ARCHIVES)
    assert here.find(["ucr/Nowhere", "uea/*"]) == []
    assert here.missing == ["uea/*", "ucr/Nowhere"]


def test_only_keeps_what_a_pattern_matches_with_or_without_the_archive(root):
    here = Sets(ARCHIVES)
    assert names(here.find(["ucr/*"], ["Sm*", "ucr/Wide"])) == ["ucr/Small", "ucr/Wide"]
    assert here.missing == []  # what was not asked for is not missed


def test_a_set_that_cannot_be_read_is_told_with_the_reason_and_left_out(root):
    (root / "ucr" / "Small.npz").write_bytes(b"rubbish")
    here = Sets(ARCHIVES)
    assert names(here.find(["ucr/Small", "ucr/Wide"])) == ["ucr/Wide"]
    assert "Small.npz" in here.damaged["ucr/Small"]


def test_the_smallest_sets_have_the_fewest_training_values(root):
    entry = {"rule": "smallest", "from": "ucr/*", "n": 2, "max_length": 200}
    assert names(Sets(ARCHIVES).find([entry])) == ["ucr/Small", "ucr/Ragged"]  # 60 and 96 values


def test_rules_of_size_and_varying_length(root):
    here = Sets(ARCHIVES)
    few = {"rule": "at_most", "from": "ucr/*", "max_train": 8, "max_length": 12}
    assert names(here.find([few])) == ["ucr/Ragged", "ucr/Small"]
    varying = {"rule": "varying", "from": ["ucr/*"]}
    assert names(here.find([varying, "ucr/Ragged"])) == ["ucr/Ragged"]  # named twice, taken once


@pytest.mark.parametrize("rule", rules.names())
def test_no_rule_looks_at_labels(rule, root):
    facts = Sets(ARCHIVES).find(["ucr/*"])
    settings = {"n": 2} if rule == "smallest" else {}
    other = [replace(one, fingerprint="0" * 16, groups={}) for one in facts]
    assert rules[rule](facts, **settings) == rules[rule](other, **settings)


@pytest.mark.parametrize("group", groups.names())
def test_a_group_depends_on_the_training_series_alone(group, rng):
    if group == "adf":
        pytest.importorskip("statsmodels")
    X = rng.normal(size=(6, 1, 60))
    first = Dataset(X, [0, 1] * 3, rng.normal(size=(4, 1, 60)), [0, 1] * 2)
    other = Dataset(X, [1, 0] * 3, 100 * np.sin(np.arange(600).reshape(1, 1, 600)), [1])
    assert groups[group](first) == groups[group](other)


def test_groups_by_length(rng):
    X = rng.normal(size=(4, 1, 300))
    assert groups["length"](Dataset(X)) == "long"
    X[:, :, 200:] = np.nan
    assert groups["length"](Dataset(X)) == "short"
    assert groups["varying"](Dataset(X)) == "equal"
    X[0, :, 100:] = np.nan
    assert groups["varying"](Dataset(X)) == "varying"


def test_groups_by_seasonality(rng):
    season = np.sin(np.arange(200) / 4)[None, None] + 0.1 * rng.normal(size=(4, 1, 200))
    noisy = season + rng.normal(size=(4, 1, 200)) * 0.8
    assert groups["seasonality"](Dataset(season)) == "strong"
    assert groups["seasonality"](Dataset(noisy)) == "some"
    assert groups["seasonality"](Dataset(rng.normal(size=(4, 1, 200)))) == "weak"


def test_a_group_that_needs_a_missing_package_is_left_out_with_a_warning(rng, monkeypatch, caplog):
    def lacking(X):
        raise ModuleNotFoundError("the ADF test needs statsmodels")

    monkeypatch.setattr(sets, "adf_p_value", lacking)
    with caplog.at_level(logging.WARNING, logger="softclt"):
        facts = facts_of("mine", Dataset(rng.normal(size=(2, 1, 30))), ["adf", "length"])
    assert facts.groups == {"length": "short"}
    assert "statsmodels" in caplog.text
