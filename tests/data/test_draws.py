"""Rows that keep their labels: rules, and files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from softclt.data import DataError, draw_labels, load_rows, save_rows


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    share=st.floats(0.5, 100),
    seed=st.integers(0, 5),
)
def test_a_stratified_draw_has_every_class_in_proportion(sizes, share, seed):
    y = np.repeat(np.arange(len(sizes)), sizes)
    rows = draw_labels(y, share, seed=seed)
    wanted = max(len(sizes), round(len(y) * share / 100))
    assert len(rows) == len(set(rows.tolist())) == wanted
    counts = np.bincount(y[rows], minlength=len(sizes))
    assert counts.min() >= 1
    quotas = wanted * np.array(sizes) / len(y)
    if quotas.min() >= 1:  # nobody was given one beyond its share
        assert (np.abs(counts - quotas) < 1).all()


def test_a_rare_class_takes_its_label_from_the_largest():
    y = np.repeat([0, 1, 2], [960, 30, 10])
    counts = np.bincount(y[draw_labels(y, 1)], minlength=3)
    assert counts.tolist() == [8, 1, 1]  # by size alone it would be 10, 0, 0


def test_a_seed_fixes_the_draw_and_another_changes_it():
    y = np.arange(200) % 2
    assert draw_labels(y, 10, seed=1).tolist() == draw_labels(y, 10, seed=1).tolist()
    assert draw_labels(y, 10, seed=1).tolist() != draw_labels(y, 10, seed=2).tolist()


def test_larger_shares_of_equal_classes_hold_the_smaller_ones():
    y = np.arange(400) % 4
    few, more = (set(draw_labels(y, share, seed=3).tolist()) for share in (1, 5))
    assert few < more


def test_the_plain_draw_is_that_of_the_older_papers():
    y = np.arange(150) % 3
    _, wanted = train_test_split(np.arange(150), test_size=0.05, random_state=0)
    assert draw_labels(y, 5, rule="plain").tolist() == sorted(wanted.tolist())


def test_the_plain_draw_does_not_look_at_labels():
    y = np.arange(150) % 3
    shuffled = np.random.default_rng(0).permutation(y)
    assert (draw_labels(y, 5, "plain") == draw_labels(shuffled, 5, "plain")).all()


@pytest.mark.parametrize("rule", ["stratified", "plain"])
def test_the_whole_is_everything(rule):
    assert draw_labels(["a", "b", "b"], 100, rule).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], 0), "share"),
        (([0, 1], 101), "share"),
        (([0, 1], 5, "fair"), "'fair'.*'stratified'"),
        (([[0, 1]], 5), r"shape \(1, 2\)"),
    ],
)
def test_wrong_arguments_are_told_so(arguments, message):
    with pytest.raises(ValueError, match=message):
        draw_labels(*arguments)


def test_rows_come_back_from_their_file(tmp_path):
    y = np.arange(300) % 3
    rows = {share: draw_labels(y, share) for share in (1, 2.5)}
    save_rows(tmp_path / "rows.json", rows, n_series=300, dataset="made", seed=0)
    read = load_rows(tmp_path / "rows.json", n_series=300)
    assert list(read) == [1.0, 2.5]
    assert all((read[share] == rows[share]).all() for share in rows)


def test_rows_of_other_data_or_beyond_the_end_are_refused(tmp_path):
    path = tmp_path / "rows.json"
    save_rows(path, {1: [0, 5]}, n_series=10)
    with pytest.raises(DataError, match="of 10 training series, but here are 11"):
        load_rows(path, n_series=11)
    save_rows(path, {1: [0, 10]}, n_series=10)
    with pytest.raises(DataError, match=r"not all in 0\.\.9"):
        load_rows(path)
    save_rows(path, {1: [3, 3]}, n_series=10)
    with pytest.raises(DataError, match="twice"):
        load_rows(path)
    path.write_text("[]")
    with pytest.raises(DataError, match="is no file of rows"):
        load_rows(path)
