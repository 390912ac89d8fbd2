"""The page on serving runs from top to bottom, but for the ports."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the `serve` extra")
pytest.importorskip("lancedb", reason="needs the `search` extra")
pytest.importorskip("httpx")
pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "serve.md"
ADDRESS = "http://127.0.0.1:8000"


def blocks():
    return re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


def served(command, folder):
    """The process of a command of the page, at a free port, and its address; it has time."""
    words = [*command.replace("--port 8000", "--port 0").split(), "--limit", "seconds=600"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, process.stdout.readline().split()[-1]


def test_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    process, names, answered = None, {"__name__": "__main__"}, 0
    try:
        for language, text in blocks():
            if text.startswith("openssl"):  # takes the place of another server
                continue
            if text.startswith("softclt serve"):
                if process is not None:
                    process.terminate()
                    assert process.wait(600) == 0
                process, address = served(text, tmp_path)
            elif language == "bash":
                script = text.replace(ADDRESS, address).replace("curl -s", "curl --fail-with-body")
                done = subprocess.run(["bash", "-e", "-c", script], capture_output=True, text=True)
                assert done.returncode == 0, done.stdout + done.stderr
                answered += script.count("curl")
            else:
                own = text.replace(ADDRESS, address).replace("timeout=60", "timeout=600")
                exec(compile(own, str(PAGE), "exec"), names)
    finally:
        if process is not None:
            process.kill()
            process.wait(30)
    assert answered == 4
    assert names["frame"].shape == (3, 3)
    assert names["embeddings"].column_names == ["id", "embedding"]
    assert names["embeddings"].num_rows == len(names["names"])


def test_the_page_names_every_path_limit_and_status():
    from dataclasses import asdict

    from softclt.serving.describing import _ERRORS
    from softclt.serving.limits import Limits
    from softclt.serving.opening import PARTS

    text = PAGE.read_text()
    assert [path for path in PARTS if f"`POST {path}" not in text] == []
    assert [str(status) for status in _ERRORS if str(status) not in text] == []
    for name, value in asdict(Limits()).items():
        assert f"`{name}`" in text
        assert f"{value:g}" in text or str(value) in text
