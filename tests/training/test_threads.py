"""Fits side by side in threads, and what a fit may not change outside of itself."""

import json
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from softclt import TSTCC, CoST, TS2Vec, precision
from softclt.training.randomness import own_draws

X = np.random.default_rng(0).normal(size=(10, 2, 24)).cumsum(axis=-1)
SMALL = {"max_iter": 5, "output_dims": 4, "hidden_dims": 4, "depth": 2, "device": "cpu"}


def embedding(seed):
    return TS2Vec(**SMALL, random_state=seed).fit(X).transform(X)


def fitted(method):
    own = {"output_dims": 8, "hidden_dims": 4, "depth": 2} if method is CoST else {}
    return method(max_iter=2, device="cpu", random_state=0, **own).fit(X).transform(X)


@pytest.fixture
def rounded_products():
    """As after torch.set_float32_matmul_precision("medium"): products may round to bfloat16."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    yield
    torch.set_float32_matmul_precision(before)


def switches():
    """What torch rounds, and the state of its generator and NumPy's."""
    backends = torch.backends
    return [
        torch.get_float32_matmul_precision(),
        backends.cuda.matmul.allow_tf32,
        backends.cudnn.allow_tf32,
        backends.cudnn.benchmark,
        torch.get_num_threads(),
        torch.get_rng_state().tolist(),
        repr(np.random.get_state()),  # noqa: NPY002, the global one is meant
    ]


@pytest.mark.parametrize("n_threads", [2, 4])
def test_fits_in_threads_have_the_bits_that_each_has_alone(n_threads):
    seeds = range(10)
    alone = [embedding(seed) for seed in seeds]
    before = switches()
    with ThreadPoolExecutor(n_threads) as threads:
        together = list(threads.map(embedding, seeds))
    np.testing.assert_array_equal(together, alone)
    assert switches() == before


def test_methods_with_other_losses_and_networks_do_so_too():
    kinds = [TSTCC, CoST] * 2
    alone = [fitted(kind) for kind in kinds[:2]] * 2
    with ThreadPoolExecutor(2) as threads:
        for own, other in zip(threads.map(fitted, kinds), alone, strict=True):
            np.testing.assert_array_equal(own, other)


def test_it_is_so_where_products_are_rounded(rounded_products):
    alone = [embedding(seed) for seed in range(6)]
    with ThreadPoolExecutor(3) as threads:
        np.testing.assert_array_equal(list(threads.map(embedding, range(6))), alone)
    assert torch.get_float32_matmul_precision() == "medium"


def test_a_new_network_leaves_the_global_generator_alone_all_the_time(monkeypatch):
    """Not even for a moment, in which another thread might draw."""
    monkeypatch.setattr(torch, "manual_seed", lambda seed: pytest.fail("global generator seeded"))
    states = []

    class Watched(TS2Vec):
        def _build(self, n_channels):
            states.append(torch.get_rng_state())
            module = super()._build(n_channels)
            states.append(torch.get_rng_state())
            return module

    before = torch.get_rng_state()
    Watched(**SMALL, random_state=0).fit(X)
    assert len(states) == 2
    assert all(torch.equal(state, before) for state in states)


def test_own_draws_are_those_of_a_generator_with_that_seed():
    def draw():
        weight = torch.nn.Linear(5, 3).weight.detach()
        drawn = [torch.randn(3), torch.rand(4), torch.randperm(5), torch.randint(9, (4,))]
        normal = torch.nn.init.kaiming_normal_(torch.empty(4, 4))
        like = [torch.rand_like(normal), torch.randn_like(normal)]
        mixed = torch.nn.init.trunc_normal_(torch.empty(20))
        return [weight, *drawn, normal, *like, torch.normal(0.0, 1.0, (3,)), mixed]

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        expected = draw()
    before = torch.get_rng_state()
    with own_draws(7):
        own = draw()
    for one, other in zip(own, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), before)


def test_switches_of_a_gpu_are_set_by_one_thread_at_a_time():
    """The flags can be looked at without a GPU."""
    device, wrong, products = torch.device("cuda"), [], torch.backends.cuda.matmul

    def step(_):
        with precision.quick_products(device, "auto"):
            wrong.append(not products.allow_tf32)
            with precision.full_precision(device):
                wrong.append(products.fp32_precision != "ieee")
            wrong.append(not torch.backends.cudnn.benchmark)

    before = switches()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(step, range(200)))
    assert not any(wrong)
    assert switches() == before


@pytest.mark.slow
def test_neither_import_nor_fit_changes_the_environment_filters_or_switches():
    """In a process of its own: packages that softclt needs are imported before the first look."""
    program = """
        import json, os, warnings
        import numba, numpy as np, pandas, safetensors, scipy.sparse, scipy.stats, torch
        import sklearn.svm, sklearn.pipeline, sklearn.model_selection

        def world():
            return {
                "environment": dict(os.environ),
                "filters": [str(f) for f in warnings.filters],
                "products": torch.get_float32_matmul_precision(),
                "tf32": [torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32],
                "threads": torch.get_num_threads(),
                "dtype": str(torch.get_default_dtype()),
                "torch": torch.get_rng_state().tolist(),
                "numpy": repr(np.random.get_state()),
                "errors": np.geterr(),
            }

        before = world()
        import softclt
        for name in softclt.__all__:
            getattr(softclt, name)
        imported = world()
        X = np.random.default_rng(0).normal(size=(10, 1, 30)).cumsum(axis=-1)
        y = np.arange(10) % 2
        small = {"max_iter": 2, "output_dims": 4, "hidden_dims": 4, "depth": 2}
        model = softclt.TS2Vec(**small).fit(X)
        model.transform(X)
        softclt.SemiSupervisedClassifier(model, random_state=0).fit(X, y).predict(X)
        softclt.AnomalyDetector(softclt.TS2Vec(**small)).fit(X[:2]).decision_function(X[:2])
        fitted = world()
        changed = [k for new in (imported, fitted) for k in before if new[k] != before[k]]
        print(json.dumps(changed))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []
