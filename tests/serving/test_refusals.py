"""What a server refuses: one line that says what came and what was expected, and never a 500."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softclt.serving.bodies import ARROW, CSV, JSON, PARQUET
from softclt.serving.limits import Limits
from softclt.serving.opening import Served

pa = pytest.importorskip("pyarrow", reason="needs the `serve` extra")
pq = pytest.importorskip("pyarrow.parquet")
testclient = pytest.importorskip("fastapi.testclient", reason="needs the `serve` extra")

PATHS = ["/embed", "/classify", "/detect", "/search", "/explore"]
GOOD = {"series": [[1.0, 2.0, 0.5, None, 3.0]] * 3}


def stream_of(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def parquet_of(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def refused(client, status, body, kind=JSON, path="/embed", **headers):
    body = body if isinstance(body, (bytes, str)) else json.dumps(body)
    reply = client.post(path, content=body, headers={"content-type": kind, **headers})
    assert reply.status_code == status, reply.text
    detail = reply.json()["detail"]
    assert "\n" not in detail
    return detail


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "no JSON"),
        ('{"series": [[NaN]]}', "null"),
        ('{"series": [[1, 2]', "no JSON"),
        ([[1, 2]], "no list of series"),
        ({"series": []}, "empty"),
        ({"series": [1, 2]}, "series 0 is no list"),
        ({"series": [[1], []]}, "series 1"),
        ({"series": [["1", 2]]}, "no number"),
        ({"series": [[True, 2]]}, "no number"),
        ({"series": [[[1, 2], [3]]]}, "channels of series 0 differ"),
        ({"series": [[1, 2], [[1, 2], [3, 4]]]}, "different numbers of channels"),
        ({"series": [[None, None]]}, "series 0 has no value"),
        ('{"series": [[1e400, 2]]}', "infinity"),
        ({"series": [[1e200, 2]]}, "too large"),
        ('{"series": [[1' + "0" * 400 + ", 2]]}", ""),
        ({"series": [[1, 2]], "ids": ["a", "b"]}, "2 ids for 1 series"),
        ({"series": [[1, 2]], "ids": [["a"]]}, "ids"),
        ({"series": [[1, 2]], "ids": ""}, "ids"),
        ({"series": [[1, 2]], "path": "/etc/passwd"}, "'path'"),
        ("[" * 100_000, "no JSON"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_body_that_is_no_series_is_refused_with_what_is_wrong(client, body, words):
    assert words in refused(client, 422, body)


@pytest.mark.parametrize(
    ("series", "words"),
    [
        ([[1.0, 2.0]] * 51, "51 series"),
        ([[[1.0, 2.0]] * 4], "4 channels"),
        ([[1.0] * 501], "501 steps"),
        ([[1.0] * 400] + [[1.0]] * 49, "20,000 values"),
    ],
)
def test_series_that_are_too_many_or_too_large_are_refused(client, series, words):
    assert words in refused(client, 413, {"series": series})


def test_sizes_of_tables_are_known_before_they_are_unpacked(client):
    many = pa.table({"series": [[1.0]] * 49 + [[1.0] * 400]})
    ids = ["a"] * 400 + [f"b{i}" for i in range(30)]
    long = pa.table({"id": ids, "time": range(430), "x": [1.0] * 430})
    same = pa.table({"series": [[0.0] * 499] * 50_000})  # which packs well
    assert "20,000 values" in refused(client, 413, stream_of(many), ARROW)
    assert "12,400 values" in refused(client, 413, parquet_of(long), PARQUET)
    assert "cells" in refused(client, 413, parquet_of(same), PARQUET)
    rows = [f"{'a' if i < 400 else i},{i},1" for i in range(430)]
    assert "12,400 values" in refused(client, 413, "\n".join(["id,time,x", *rows]), CSV)


def test_packed_bodies_are_refused(client):
    table = pa.table({"series": [[0.0] * 100] * 10})
    assert "packed" in refused(client, 415, stream_of(table, compression="zstd"), ARROW)
    assert "packed" in refused(client, 415, b"\x1f\x8b rest", CSV)
    encoding = {"content-encoding": "gzip"}
    assert "packed" in refused(client, 415, GOOD, **encoding)


def test_columns_that_may_be_larger_than_what_was_sent_are_refused(client):
    for column in (pa.nulls(5), pa.array(["a"] * 5).dictionary_encode(), pa.array([{"x": 1}] * 5)):
        table = pa.table({"series": column, "x": [1.0] * 5})
        assert "column" in refused(client, 422, stream_of(table), ARROW)


def test_a_body_that_is_too_large_is_refused(client):
    assert "200,000 bytes" in refused(client, 413, b"x" * 200_001)
    parts = (b"x" * 50_000 for _ in range(5))  # without a length
    reply = client.post("/embed", content=parts, headers={"content-type": JSON})
    assert reply.status_code == 413


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_without_a_known_type_is_refused(client, kind):
    assert "expected one of" in refused(client, 415, GOOD, kind)


def test_an_answer_that_there_is_not_is_refused(client):
    assert "answers are" in refused(client, 406, GOOD, accept="text/html")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/search?k=0", 422),
        ("/search?k=100000", 413),
        ("/detect?per=week", 422),
        ("/detect?stream=" + "x" * 201, 422),
        ("/detect?stream=a", 422),  # three series
        ("/embed?id=store", 422),  # JSON has no columns
    ],
)
def test_parameters_out_of_bounds_are_refused(client, path, status):
    refused(client, status, GOOD, path=path)


def test_a_message_about_a_table_names_no_file_of_the_server(client):
    detail = refused(client, 422, "id,time,x\na,1,2\na,2,what\n", CSV)
    assert detail.startswith("the table, line 3")
    assert "/" not in detail.split(";")[0]


def test_series_with_other_channels_than_the_model_are_refused(client):
    series = [[[1.0] * 40] * 2]
    assert "2 channel(s); the model takes 1" in refused(
        client, 422, {"series": series}, path="/detect"
    )


def test_what_is_not_served_says_what_to_start_with(embedder):
    from softclt.serving.app import create_app

    with testclient.TestClient(create_app(Served(embedder))) as client:
        assert "softclt index" in refused(client, 404, GOOD, path="/search")
        assert client.get("/nothing").status_code == 404
        assert client.get("/embed").status_code == 405
        assert "/detect" not in client.get("/openapi.json").json()["paths"]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)
NEARLY = st.fixed_dictionaries(
    {
        "series": JSON_VALUES
        | st.lists(st.lists(st.none() | st.floats() | st.integers(), max_size=4), max_size=3)
    },
    optional={"ids": JSON_VALUES, "other": JSON_VALUES},
)
TABLE = pa.table({"id": ["a", "b"], "series": [[1.0, 2.0, 3.0], [4.0, 5.0]]})
WHOLE = {
    ARROW: stream_of(TABLE),
    PARQUET: parquet_of(TABLE),
    CSV: b"id,time,x\na,0,1\na,1,3\nb,0,2\n",
}


@st.composite
def bodies(draw):
    kind = draw(st.sampled_from([JSON, *WHOLE]))
    if kind == JSON:
        return kind, json.dumps(draw(JSON_VALUES | NEARLY)).encode()
    body = bytearray(WHOLE[kind])
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(body) - 1))
        body[at] = draw(st.integers(0, 255))
    cut = draw(st.integers(0, len(body)))
    return kind, bytes(body[:cut]) if draw(st.booleans()) else bytes(body)


@pytest.mark.slow
@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(bodies(), st.sampled_from(PATHS))
def test_no_body_makes_the_server_fail(client, given_body, path):
    kind, body = given_body
    reply = client.post(path, content=body, headers={"content-type": kind})
    assert reply.status_code < 500, (reply.status_code, reply.text)
    if reply.status_code >= 400:
        assert reply.json()["detail"]


class Slow:
    """An embedder that takes its time."""

    def __init__(self, seconds):
        self.seconds, self.calls = seconds, 0

    def transform(self, X):
        self.calls += 1
        time.sleep(self.seconds)
        return np.zeros((len(X), 2))


def test_what_takes_too_long_is_given_up():
    from softclt.serving.app import create_app

    app = create_app(Served(Slow(0.5)), Limits(seconds=0.1))
    with testclient.TestClient(app) as client:
        assert "0.1 seconds" in refused(client, 504, GOOD)


def test_one_request_too_many_is_sent_away_but_health_answers():
    from softclt.serving.app import create_app

    app = create_app(Served(slow := Slow(0.5)), Limits(requests=1))
    with testclient.TestClient(app) as client, ThreadPoolExecutor() as threads:
        first = threads.submit(client.post, "/embed", json=GOOD)
        while not slow.calls:
            time.sleep(0.01)
        reply = client.post("/embed", json=GOOD)
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
        assert client.get("/health").status_code == 200
        assert first.result().status_code == 200


def test_a_failure_of_the_model_is_a_500_without_its_words():
    from softclt.serving.app import create_app

    class Broken:
        def transform(self, X):
            raise RuntimeError("a secret")

    app = create_app(Served(Broken()))
    with testclient.TestClient(app, raise_server_exceptions=False) as client:
        reply = client.post("/embed", json=GOOD)
        assert reply.status_code == 500
        assert "secret" not in reply.text
        assert client.get("/health").status_code == 200


def test_a_token_keeps_others_out_but_not_from_health(embedder):
    from softclt.serving.app import create_app

    token = "correct-horse-battery"
    with testclient.TestClient(create_app(Served(embedder), token=token)) as client:
        assert "Bearer" in refused(client, 401, GOOD)
        assert "Bearer" in refused(client, 401, GOOD, authorization="Bearer wrong")
        assert "Bearer" in refused(client, 401, GOOD, authorization=f"Basic {token}")
        assert client.get("/metrics").status_code == 401
        assert client.get("/health").status_code == 200
        allowed = {"authorization": f"Bearer {token}"}
        assert client.post("/embed", json=GOOD, headers=allowed).status_code == 200


def test_a_name_that_the_server_does_not_have_is_refused(embedder):
    from softclt.serving.app import create_app
    from softclt.serving.running import LOCAL

    app = create_app(Served(embedder), hosts=LOCAL)
    with testclient.TestClient(app, base_url="http://evil.example") as client:
        assert client.get("/health").status_code == 421
        for name in ("localhost:8000", "127.0.0.1", "[::1]:8000"):
            assert client.get("/health", headers={"host": name}).status_code == 200
