"""``softclt serve``: a process that answers, stops when told to, and says what it cannot do."""

import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from softclt import SeriesIndex, TS2Vec
from softclt.cli import app

httpx = pytest.importorskip("httpx", reason="needs httpx to ask")
pytest.importorskip("uvicorn", reason="needs the `serve` extra")


def refused(*words, **environment):
    done = CliRunner().invoke(app, ["serve", *map(str, words)], env=environment)
    assert done.exit_code == 2, done.output
    (line,) = done.stderr.strip().splitlines()
    return line


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "model"
    X = np.random.default_rng(0).normal(size=(6, 30))
    TS2Vec(output_dims=4, hidden_dims=4, depth=1, max_iter=1, random_state=0).fit(X).save(folder)
    return folder


def test_what_cannot_be_served_is_one_line(model, tmp_path):
    assert "both served as embedder" in refused(model, "base", "--port", 0)
    assert "no folder of a model" in refused(tmp_path / "nothing", "--port", 0)
    assert "config.json is missing" in refused(tmp_path, "--port", 0)
    assert "nothing" in refused("nothing", "--port", 0)


def test_limits_are_checked_before_anything_is_loaded():
    assert "has no limit 'size'" in refused("nothing", "--limit", "size=3")
    assert "whole number" in refused("nothing", "--limit", "series=1.5")
    assert "> 0" in refused("nothing", "--limit", "seconds=0")


def test_a_port_that_is_taken_is_said_before_anything_is_loaded():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port}" in refused("nothing", "--port", port)


def test_a_token_that_is_none_is_refused(tmp_path):
    path = tmp_path / "token.txt"
    path.write_text("short\n")
    assert "holds no token" in refused("base", "--token-file", path)
    assert "SOFTCLT_TOKEN holds no token" in refused("base", SOFTCLT_TOKEN="two words of a token")
    assert "token.txt" in refused("base", "--token-file", tmp_path / "no" / "token.txt")


class Process:
    """A server in a process of its own; `ask` is a client of it."""

    def __init__(self, *words, seconds=600, **environment):
        own = ["--port", "0", "--limit", f"seconds={seconds}"]
        command = [sys.executable, "-m", "softclt", "serve", *own, *map(str, words)]
        variables = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"} | environment
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=variables, **pipes)
        line = self.process.stdout.readline()
        assert " at http://127.0.0.1:" in line, self.process.stderr.read()
        self.ask = httpx.Client(base_url=line.split()[-1], timeout=600)

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(600)
        self.ask.close()
        return code, self.process.stderr.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(600)


@pytest.mark.slow
def test_a_request_that_is_under_way_is_answered_before_the_server_stops(model):
    series = np.random.default_rng(0).normal(size=(2000, 100)).tolist()
    with Process(model) as server, concurrent.futures.ThreadPoolExecutor() as threads:
        body = json.dumps({"series": series})
        kind = {"content-type": "application/json"}
        answer = threads.submit(server.ask.post, "/embed", content=body, headers=kind)
        counts = ""
        while "softclt_requests_running 2.0" not in counts and not answer.done():
            counts = httpx.get(f"{server.ask.base_url}/metrics").text
        server.process.send_signal(signal.SIGTERM)
        assert len(answer.result(600).json()["embedding"]) == 2000
        assert server.end() == (0, "")


@pytest.mark.slow
def test_a_killed_server_begins_again_with_all_rows_of_its_index(model, tmp_path):
    pytest.importorskip("lancedb", reason="needs the `search` extra")
    X = np.random.default_rng(0).normal(size=(20, 30))
    SeriesIndex(model).add(X, [f"s{i}" for i in range(20)]).save(tmp_path / "index")
    body = {"series": X[:2].tolist()}
    answers = []
    for how in (signal.SIGKILL, signal.SIGTERM):
        with Process(tmp_path / "index", SOFTCLT_TOKEN="a-token-of-letters") as server:
            assert server.ask.post("/search?k=20", json=body).status_code == 401
            server.ask.headers["authorization"] = "Bearer a-token-of-letters"
            answers.append(server.ask.post("/search?k=20", json=body).json())
            server.end(how)
    assert answers[0] == answers[1]
    assert sorted(answers[0]["id"][:20]) == sorted(f"s{i}" for i in range(20))
    assert answers[0]["id"][0] == "s0"


@pytest.mark.slow
def test_a_body_that_does_not_arrive_is_given_up_and_others_are_answered(model):
    with Process(model, seconds=5) as server:
        host, port = server.ask.base_url.host, server.ask.base_url.port
        with socket.create_connection((host, port)) as slow:
            slow.sendall(
                b"POST /embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                b"content-length: 100\r\n\r\n{"
            )
            assert server.ask.get("/health").status_code == 200
            assert slow.recv(100).startswith(b"HTTP/1.1 408")
        too_large = server.ask.post("/embed", content=b"x" * (17 * 2**20))
        assert too_large.status_code == 413
