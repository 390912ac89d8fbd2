"""A server in this process, with tiny models; this folder is on the path, for `import served`."""

import sys
from pathlib import Path

import pytest

from softclt import AnomalyDetector, SeriesClassifier, SeriesIndex, TS2Vec, load_pretrained
from softclt.data.synthetic import waves
from softclt.serving.limits import Limits
from softclt.serving.opening import Served

sys.path.insert(0, str(Path(__file__).parent))

from served import normal_series

LIMITS = Limits(body=200_000, series=50, channels=3, steps=500, values=10_000, streams=2)


@pytest.fixture(scope="session")
def detector():
    tiny = TS2Vec(output_dims=4, hidden_dims=4, depth=2, tau_instance=None, max_iter=2)
    own = {"scorer": "masked", "context": 20, "random_state": 0}
    return AnomalyDetector(tiny, **own).fit(normal_series())


@pytest.fixture(scope="session")
def classifier():
    data = waves(n_per_class=5, length=40, random_state=0)
    return SeriesClassifier(features="compact", random_state=0).fit(data.X_train, data.y_train)


@pytest.fixture(scope="session")
def embedder():
    return load_pretrained("base")


@pytest.fixture(scope="session")
def index(tmp_path_factory, embedder):
    pytest.importorskip("lancedb", reason="needs the `search` extra")
    X = waves(n_per_class=5, length=40, random_state=0).X_train
    sites = ["north" if i % 2 else "south" for i in range(len(X))]
    made = SeriesIndex(embedder).add(X, [f"s{i}" for i in range(len(X))], {"site": sites})
    made.save(tmp_path_factory.mktemp("served") / "index")
    return made


@pytest.fixture(scope="session")
def served(embedder, classifier, detector, index):
    return Served(embedder, classifier, detector, index, names=(("embedder", "base"),))


@pytest.fixture(scope="module")
def client(served):
    testclient = pytest.importorskip("fastapi.testclient", reason="needs the `serve` extra")
    from softclt.serving.app import create_app

    with testclient.TestClient(create_app(served, LIMITS)) as running:
        yield running
