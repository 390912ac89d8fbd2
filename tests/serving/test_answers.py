"""What a server answers is what the models give in Python, in every form of body and answer."""

import io
import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from served import normal_series

from softclt.serving.bodies import ARROW, CSV, JSON, PARQUET

pa = pytest.importorskip("pyarrow", reason="needs the `serve` extra")
pq = pytest.importorskip("pyarrow.parquet")

SERIES = [[1.0, 3.0, None, 5.0, 4.0], [2.0, 2.5, 0.0]]
ARRAYS = [np.array(one, dtype=float) for one in SERIES]
IDS = ["a", "b"]


def arrow_stream(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def parquet(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


NESTED = pa.table({"id": IDS, "series": SERIES})
LONG = pa.table(
    {
        "id": ["a"] * 5 + ["b"] * 3,
        "time": [*range(5), *range(3)],
        "x": [value for one in SERIES for value in one],
    }
)
LINES = ["id,time,x", *(f"{i},{t},{'' if x is None else x}" for i, t, x in zip(
    *(LONG.column(name).to_pylist() for name in ("id", "time", "x")), strict=True))]  # fmt: skip

BODIES = {
    "json": (JSON, json.dumps({"series": SERIES, "ids": IDS})),
    "json of channels": (JSON, json.dumps({"series": [[one] for one in SERIES], "ids": IDS})),
    "csv": (CSV, "\n".join(LINES)),
    "arrow, a row a series": (ARROW, arrow_stream(NESTED)),
    "arrow, a row a step": (ARROW, arrow_stream(LONG)),
    "parquet, a row a series": (PARQUET, parquet(NESTED)),
    "parquet, a row a step": (PARQUET, parquet(LONG)),
}


def post(client, path, kind, body, status=200, **headers):
    reply = client.post(path, content=body, headers={"content-type": kind, **headers})
    assert reply.status_code == status, reply.text
    return reply


def json_of(client, path, series, **more):
    return post(client, path, JSON, json.dumps({"series": series, **more})).json()


@pytest.mark.parametrize("name", BODIES)
def test_embeddings_are_those_of_transform_in_every_form(client, embedder, name):
    answer = post(client, "/embed", *BODIES[name]).json()
    assert answer["id"] == IDS
    expected = embedder.transform(ARRAYS)
    np.testing.assert_allclose(answer["embedding"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [ARROW, PARQUET])
def test_an_answer_is_a_table_where_accept_asks_for_one(client, embedder, kind):
    reply = post(client, "/embed", *BODIES["json"], accept=f"{kind}, */*;q=0.1")
    assert reply.headers["content-type"] == kind
    source = io.BytesIO(reply.content)
    table = pq.read_table(source) if kind == PARQUET else pa.ipc.open_stream(source).read_all()
    assert table.column("id").to_pylist() == IDS
    found = np.array(table.column("embedding").to_pylist())
    np.testing.assert_allclose(found, embedder.transform(ARRAYS), rtol=1e-4, atol=1e-5)


def test_series_without_ids_are_numbered(client):
    assert json_of(client, "/embed", SERIES)["id"] == ["0", "1"]


def test_requests_at_the_same_time_each_get_their_own(client, embedder):
    X = np.random.default_rng(0).normal(size=(24, 60))
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda x: json_of(client, "/embed", [x.tolist()]), X))
    found = np.concatenate([answer["embedding"] for answer in answers])
    np.testing.assert_allclose(found, embedder.transform(X), rtol=1e-3, atol=1e-4)


def test_columns_of_a_csv_have_the_names_that_the_query_gives(client):
    body = "\n".join(LINES).replace("id,time,x", "store,day,price")
    query = "/embed?id=store&time=day&values=price"
    assert post(client, query, CSV, body).json()["id"] == IDS


def test_classes_and_probabilities_are_those_of_the_classifier(client, classifier):
    X = np.random.default_rng(0).normal(size=(3, 40))
    answer = json_of(client, "/classify", X.tolist())
    probabilities = classifier.predict_proba(X)
    np.testing.assert_allclose(answer["probabilities"], probabilities, atol=1e-5)
    assert answer["classes"] == classifier.classes_.tolist()
    assert answer["label"] == classifier.predict(X).tolist()
    np.testing.assert_allclose(answer["probability"], probabilities.max(axis=1), atol=1e-5)


def test_hits_are_those_of_the_index(client, index):
    X = np.random.default_rng(0).normal(size=(3, 40))
    expected = index.search(X, k=4)
    answer = json_of(client, "/search?k=4", X.tolist(), ids=["a", "b", "c"])
    assert answer["query"] == ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    assert answer["id"] == expected["id"].tolist()
    assert answer["rank"] == [1, 2, 3, 4] * 3
    np.testing.assert_allclose(answer["distance"], expected["distance"], atol=1e-5)


def test_hits_meet_the_condition_and_one_that_is_none_is_refused(client):
    answer = json_of(client, "/search?where=site = 'north'", SERIES)
    assert set(answer["site"]) == {"north"}
    wrong = post(client, "/search?where=nonsense(", JSON, json.dumps({"series": SERIES}), 422)
    assert "nonsense" in wrong.json()["detail"]


def strange_series():
    X = normal_series(1)
    X[0, 200] += 8
    return X


def test_alarms_are_those_of_the_detector(client, detector):
    X = strange_series()
    (expected,) = detector.alarms(X)
    answer = json_of(client, "/detect", X.tolist(), ids=["pump"])
    assert expected
    assert answer["start"] == [alarm.start for alarm in expected]
    assert answer["end"] == [alarm.end for alarm in expected]
    np.testing.assert_allclose(answer["severity"], [alarm.severity for alarm in expected])
    assert set(answer["id"]) == {"pump"}


def test_alarms_of_a_table_with_times_have_times(client):
    lines = [
        f"p,2026-01-01 00:{t // 60:02}:{t % 60:02},{x}" for t, x in enumerate(strange_series()[0])
    ]
    answer = post(client, "/detect", CSV, "\n".join(["id,time,x", *lines])).json()
    assert answer["start_time"] == [
        f"2026-01-01 00:{t // 60:02}:{t % 60:02}" for t in answer["start"]
    ]


def test_steps_have_scores_and_levels_and_null_where_there_is_none(client, detector):
    X = strange_series()
    answer = json_of(client, "/detect?per=step", [X[0].tolist(), X[0, :250].tolist()])
    scores = detector.anomaly_scores(X)[0]
    assert answer["step"] == [*range(300), *range(250)]
    assert answer["score"][0] is None
    np.testing.assert_allclose(answer["score"][21:300], scores[21:])
    assert answer["alarm"][:300] == (scores > detector.levels(scores[None])[0]).tolist()


def test_a_stream_gives_what_all_steps_at_once_give(client, detector):
    X = strange_series()
    parts = [X[0, :100], X[0, 100:101], X[0, 101:]]
    answers = [json_of(client, "/detect?stream=one", [part.tolist()]) for part in parts]
    scores = [math.nan if s is None else s for own in answers for s in own["score"]]
    np.testing.assert_allclose(scores, detector.anomaly_scores(X)[0], rtol=1e-3, atol=1e-4)
    assert [own["step"][0] for own in answers] == [0, 100, 101]
    assert sum(own["alarm"].count(True) for own in answers) > 0
    assert client.delete("/detect?stream=one").status_code == 204
    assert client.delete("/detect?stream=one").status_code == 404
    assert json_of(client, "/detect?stream=one", [[0.0]])["step"] == [0]
    client.delete("/detect?stream=one")


def test_a_map_is_a_page_with_the_ids(client):
    pytest.importorskip("jinja2")
    X = np.random.default_rng(0).normal(size=(5, 30)).tolist()
    body = json.dumps({"series": X, "ids": [f"pump-{i}" for i in range(5)]})
    page = post(client, "/explore", JSON, body).text
    assert "pump-3" in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_health_says_what_is_served(client):
    answer = client.get("/health").json()
    assert answer["status"] == "ok"
    assert answer["serves"] == ["/embed", "/explore", "/classify", "/detect", "/search"]


def test_metrics_count_requests_and_series(client):
    json_of(client, "/embed", SERIES)
    text = client.get("/metrics").text
    assert 'softclt_requests_total{path="/embed",status="200"}' in text
    assert "softclt_batch_series_count" in text


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_ask_nobody_for_anything(client, path):
    page = client.get(path)
    assert page.status_code == 200
    assert "src=" not in page.text.replace('src="data:', "")
    assert "default-src 'none'" in page.headers["content-security-policy"]
