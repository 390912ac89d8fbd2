"""What is kept between results, and until when."""

from softclt import TS2Vec
from softclt.bench.runs import Run, run_all
from softclt.bench.sets import Sets
from softclt.data import datasets, waves
from softclt.tasks import kept as room
from softclt.tasks.kept import keeping, kept, load_once
from softclt.tasks.result import Result
from tables import as_before

TINY = TS2Vec(output_dims=4, hidden_dims=4, depth=1, max_iter=1)


def test_nothing_is_kept_unless_asked_for():
    kept()["a"] = 1
    assert kept() == {}


def test_what_is_kept_ends_with_the_outermost():
    with keeping():
        kept()["a"] = 1
        with keeping():
            assert kept() == {"a": 1}
        assert kept() == {"a": 1}
    assert kept() == {}


def test_a_data_set_is_loaded_once_while_there_is_room(monkeypatch):
    with keeping():
        assert load_once("synthetic/waves") is load_once("synthetic/waves")
        assert load_once("synthetic/waves") is not load_once("synthetic/waves", "train")
    monkeypatch.setattr(room, "_LOADED", 1)
    with keeping():
        assert load_once("synthetic/waves") is not load_once("synthetic/waves")


def test_runs_and_plans_load_each_set_once():
    loaded = []

    def counted():
        loaded.append(1)
        return waves(n_per_class=2, length=12, random_state=0)

    with as_before(datasets):
        datasets.register("made/counted")(counted)
        runs = [Run("classification", TINY, "made/counted", seed) for seed in (0, 1)]
        results = run_all(runs)
        assert len(loaded) == 1
        with keeping():
            Sets().find(["made/counted"])
            Sets().find(["made/counted"])
        assert len(loaded) == 2
    assert all(isinstance(result, Result) for result in results)
