"""Every criterion against its plain loops, and what holds for all that are registered."""

import numpy as np
import pytest

import naive
from softclt.probes.classifiers import RIDGE_ALPHAS
from softclt.selection import Evidence, criteria, embedding_score, training_scores
from softclt.selection.evidence import LIMIT, sample_rows
from tables import registered

N = 24


@pytest.fixture
def example(rng):
    """An embedding of three classes, their labels, distances in data space, two other seeds."""
    y = np.arange(N) % 3
    means = rng.normal(size=(3, 6))
    R = means[y] + 0.8 * rng.normal(size=(N, 6))
    series = means[y] + rng.normal(size=(N, 6))
    D = np.array(naive.embedding_distances(series))
    others = [R[:, :4] + 0.3 * rng.normal(size=(N, 4)), np.exp(R)]
    return R, y, D, others


def score(name, R, y, D, others):
    return embedding_score(name, R, y, distances=D, others=others)


TWINS = {
    "loo": lambda R, y, D, o: np.mean(
        naive.ridge_without_each(R, naive.one_hot(y, 3), RIDGE_ALPHAS).argmax(axis=1) == y
    ),
    "loo_r2": lambda R, y, D, o: naive.explained(
        naive.one_hot(y, 3), naive.ridge_without_each(R, naive.one_hot(y, 3), RIDGE_ALPHAS)
    ),
    "loo_knn": lambda R, y, D, o: naive.nearest_neighbour_accuracy(R, y),
    "neighbours": lambda R, y, D, o: naive.neighbour_overlap(
        naive.neighbour_sets(naive.embedding_distances(R)), naive.neighbour_sets(D)
    ),
    "distance_agreement": lambda R, y, D, o: naive.pearson(
        naive.pairs_of(naive.embedding_distances(R)), naive.pairs_of(D)
    ),
    "alignment": lambda R, y, D, o: naive.alignment(R, D),
    "pseudo_labels": lambda R, y, D, o: naive.pseudo_label_r2(R, D, RIDGE_ALPHAS),
    "uniformity": lambda R, y, D, o: naive.uniformity(R),
    "effective_rank": lambda R, y, D, o: naive.effective_rank(R),
    "participation": lambda R, y, D, o: naive.participation_ratio(R),
    "intrinsic_dimension": lambda R, y, D, o: naive.two_nearest_dimension(R),
    "clusters": lambda R, y, D, o: naive.best_silhouette(R),
    "no_hubs": lambda R, y, D, o: naive.evenness_of_neighbours(R),
    "stability": lambda R, y, D, o: np.mean([naive.linear_cka(R, S) for S in o]),
    "stability_neighbours": lambda R, y, D, o: np.mean(
        [
            naive.neighbour_overlap(
                *(naive.neighbour_sets(naive.embedding_distances(Z)) for Z in (R, S))
            )
            for S in o
        ]
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_criterion_equals_its_plain_loops(name, example):
    assert score(name, *example) == pytest.approx(float(TWINS[name](*example)), rel=1e-6)


def test_every_criterion_has_a_twin():
    own = [name for name in criteria.names() if criteria[name].__module__.startswith("softclt.")]
    assert sorted(TWINS) == own


@pytest.mark.parametrize("wide", [False, True])
def test_leave_one_out_is_the_same_by_features_and_by_series(wide, rng):
    R = rng.normal(size=(9, 20 if wide else 3))
    y = np.arange(9) % 2
    Y = naive.one_hot(y, 2)
    expected = naive.explained(Y, naive.ridge_without_each(R, Y, RIDGE_ALPHAS))
    assert embedding_score("loo_r2", R, y) == pytest.approx(expected, rel=1e-6)


def test_leave_one_out_finds_the_penalty_of_the_ridge_probe(rng):
    from softclt.probes import probes

    y = np.arange(30) % 3
    R = rng.normal(size=(3, 40))[y] + rng.normal(size=(30, 40))
    alpha = probes["ridge"](R, y)[-1].alpha_
    Y = naive.one_hot(y, 3)
    at_alpha = naive.ridge_without_each(R, Y, [alpha])
    assert embedding_score("loo", R, y) == np.mean(at_alpha.argmax(axis=1) == y)


@pytest.mark.parametrize("name", criteria.names())
class TestEveryCriterion:
    def test_it_says_what_it_needs(self, name):
        assert set(criteria.tags(name)["needs"]) <= {"labels", "distances", "others"}

    def test_it_refuses_to_go_without(self, name, example):
        needs = criteria.tags(name)["needs"]
        if needs:
            with pytest.raises(ValueError, match=f"{name}.*needs"):
                embedding_score(name, example[0])
        else:
            assert np.isfinite(embedding_score(name, example[0]))

    def test_scaling_changes_nothing(self, name, example):
        R, y, D, others = example
        larger = (1000 * R, y, 0.01 * D, [3 * o for o in others])
        assert score(name, *larger) == pytest.approx(score(name, *example), rel=1e-9)

    def test_shifting_changes_nothing(self, name, example):
        R, y, D, others = example
        moved = (R + 7.0, y, D, [o - 5.0 for o in others])
        assert score(name, *moved) == pytest.approx(score(name, *example), rel=1e-6)

    def test_rotation_changes_nothing_but_what_a_ridge_on_standardised_features_says(
        self, name, example, rng
    ):
        R, y, D, others = example
        turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
        if name not in ("loo", "loo_r2", "pseudo_labels"):
            turned = score(name, R @ turn, y, D, others)
            assert turned == pytest.approx(score(name, *example), rel=1e-9)

    def test_the_order_of_the_series_changes_nothing(self, name, example, rng):
        R, y, D, others = example
        p = rng.permutation(N)
        mixed = (R[p], y[p], D[np.ix_(p, p)], [o[p] for o in others])
        assert score(name, *mixed) == pytest.approx(score(name, *example), rel=1e-9)

    @pytest.mark.parametrize("n", [2, 3, 5])
    def test_fewer_series_than_neighbours_have_a_score(self, name, n, rng):
        R = rng.normal(size=(n, 4)).astype(np.float32)
        D = np.array(naive.embedding_distances(R))
        assert np.isfinite(score(name, R, np.arange(n) % 2, D, [R + 1]))

    @pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
    def test_an_embedding_that_tells_nothing_apart_is_never_the_better_one(
        self, name, value, example
    ):
        R, y, D, _ = example
        flat = np.full_like(R, value)
        assert score(name, flat, y, D, [flat]) <= score(name, R, y, D, [R])

    def test_twins_have_a_score(self, name, example):
        R, y, D, others = (np.repeat(part, 2, axis=0) for part in (*example[:3], example[3][0]))
        D = np.repeat(D, 2, axis=1)
        assert np.isfinite(score(name, R, y, D, [others]))

    def test_it_says_the_same_twice(self, name, example):
        assert score(name, *example) == score(name, *example)


def test_a_copy_of_the_data_agrees_with_it_and_noise_does_not(example, rng):
    R = example[0]
    own = np.array(naive.embedding_distances(R))
    noise = rng.normal(size=R.shape)
    for name, most in [("neighbours", 1.0), ("distance_agreement", 1.0)]:
        assert embedding_score(name, R, distances=own) == pytest.approx(most)
    for name in criteria.names(needs=("distances",)):
        told = embedding_score(name, R, distances=own)
        assert told > embedding_score(name, noise, distances=own), name


def test_the_same_embedding_under_all_seeds_is_stable(example):
    R = example[0]
    for name in criteria.names(needs=("others",)):
        assert embedding_score(name, R, others=[R, 2 * R]) == pytest.approx(1.0)


def test_ranks_count_dimensions(rng):
    line = rng.normal(size=(50, 1)) @ rng.normal(size=(1, 8))
    ball = np.linalg.qr(rng.normal(size=(50, 8)) - 0.0)[0]
    for name in ("effective_rank", "participation"):
        assert embedding_score(name, line) == pytest.approx(1.0, abs=1e-3)
        assert embedding_score(name, ball) == pytest.approx(8.0, rel=0.05)


def test_two_far_clusters_have_a_silhouette_near_one(rng):
    R = rng.normal(size=(20, 3)) + 1000 * (np.arange(20) % 2)[:, None]
    assert embedding_score("clusters", R) > 0.99


def test_all_scores_at_once_are_the_single_ones(example):
    R, y, D, others = example
    found = training_scores(R, y, D, others)
    labelled = criteria.names(needs=("labels",))
    assert {"loo", "criterion.neighbours", "criterion.stability"} <= found.keys()
    assert len(found) == len(criteria.names())
    for name in criteria.names():
        key = name if name in labelled else f"criterion.{name}"
        assert found[key] == score(name, *example)


def test_scores_without_labels_do_not_see_labels(example, rng):
    R, y, D, others = example
    first = training_scores(R, y, D, others)
    second = training_scores(R, rng.permutation(y), D, others)
    assert first["loo_r2"] != second["loo_r2"]
    for key in first:
        if key.startswith("criterion."):
            assert first[key] == second[key]


def test_only_what_is_given_is_scored(example):
    R, y, D, _ = example
    without = training_scores(R)
    assert "loo" not in without
    assert set(without) == {f"criterion.{name}" for name in criteria.names(needs=())}
    assert "criterion.stability" not in training_scores(R, y, D)


def test_of_many_series_the_same_thousand_are_compared(rng):
    n = LIMIT + 200
    R = rng.normal(size=(n, 3))
    D = np.abs(R[:, :1] - R[:, :1].T)
    rows = sample_rows(n)
    assert len(np.unique(rows)) == LIMIT
    assert (rows == sample_rows(n)).all()
    whole = embedding_score("neighbours", R, distances=D)
    part = embedding_score("neighbours", R, distances=D[np.ix_(rows, rows)])
    few = embedding_score("neighbours", R[rows], distances=D[np.ix_(rows, rows)])
    assert whole == part == few


def test_a_criterion_of_ones_own_is_one_function():
    def spread(seen: Evidence) -> float:
        return float(seen.points.std())

    with registered(criteria, "spread", spread, needs=()):
        assert embedding_score("spread", [[0.0], [2.0]]) == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"R": [1.0, 2.0]}, "R has shape"),
        ({"R": [[1.0]]}, "two series or more"),
        ({"R": [[np.nan], [1.0]]}, "finite"),
        ({"R": [[0.0], [1.0]], "y": [0]}, "y has shape"),
        ({"R": [[0.0], [1.0]], "y": ["a", "a"]}, "do not differ"),
        ({"R": [[0.0], [1.0]], "distances": np.zeros((3, 3))}, "distances has shape"),
        ({"R": [[0.0], [1.0]], "others": [[[0.0]] * 3]}, "others"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(arguments, words):
    with pytest.raises(ValueError, match=words):
        training_scores(**arguments)


def test_an_unknown_strategy_is_told_the_known_ones():
    with pytest.raises(ValueError, match=r"oracle.*known: train, unlabelled, .*neighbours"):
        embedding_score("oracle", [[0.0], [1.0]])
