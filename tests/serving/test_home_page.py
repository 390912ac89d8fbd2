"""The page of a server in a real browser: a CSV becomes a map, alarms and neighbours."""

import json
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "reports"))

from browser import Browser, find_chromium
from served import normal_series

from softclt.serving.limits import Limits

uvicorn = pytest.importorskip("uvicorn", reason="needs the `serve` extra")
pytest.importorskip("jinja2")
pytestmark = pytest.mark.slow

TOKEN = "a-token-of-letters"
DROP = """(csv => {
  const data = new DataTransfer();
  data.items.add(new File([csv], "pumps.csv", { type: "text/csv" }));
  const about = { dataTransfer: data, bubbles: true, cancelable: true };
  document.dispatchEvent(new DragEvent("drop", about));
})(%s)"""
REFUSED = "document.querySelector('#status.wrong') !== null"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if find_chromium() is None:
        pytest.skip("needs Chromium or Chrome on the path")
    with Browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture(scope="module")
def address(served):
    from softclt.serving.app import create_app

    config = uvicorn.Config(create_app(served, Limits(seconds=600), TOKEN), port=0, log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    host, port = server.servers[0].sockets[0].getsockname()
    yield f"http://{host}:{port}"
    server.should_exit = True
    thread.join(30)


@pytest.fixture(scope="module")
def csv():
    X = normal_series(4, 200)
    X[2, 150] += 8
    lines = [f"pump-{i},{t},{x:.4f}" for i, own in enumerate(X) for t, x in enumerate(own)]
    return "\n".join(["id,time,x", *lines])


@pytest.mark.parametrize("width", [1280, 390])
def test_a_dropped_csv_becomes_a_map_alarms_and_neighbours(browser, address, csv, width):
    with browser.open(f"{address}/", width=width, height=900, dark=width < 500) as tab:
        tab.evaluate(DROP % json.dumps(csv))
        tab.wait_for(REFUSED, 600)
        assert "token" in tab.text("#status")
        tab.click("#token")
        tab.write(TOKEN)
        tab.click("#enter")
        tab.wait_for("!document.querySelector('#tabs').hidden", 600)
        assert tab.text("#status") == ""
        assert "pump-3" in tab.evaluate("document.querySelector('iframe').srcdoc")
        tab.click("#tab-alarms")
        assert tab.text("#view-alarms .card h2") == "pump-2"  # the worst first
        assert "150 to 150" in tab.text("#view-alarms .card")
        assert tab.evaluate("document.querySelectorAll('#view-alarms svg').length") == 8
        tab.click("#tab-neighbours")
        assert tab.evaluate("document.querySelectorAll('#view-neighbours .card').length") == 4
        assert tab.evaluate("document.querySelectorAll('#view-neighbours tr').length") == 4 * 6
        assert not tab.scrolls_sideways()
        assert all(request.startswith(address) for request in tab.requests)
        assert all("401" in error for error in tab.errors)


def test_what_is_wrong_with_a_csv_stands_on_the_page(browser, address):
    with browser.open(f"{address}/") as tab:
        tab.evaluate(f"void (document.querySelector('#token').value = '{TOKEN}')")
        tab.evaluate(DROP % json.dumps("id,time,x\na,0,1\na,1,<b>two</b>\n"))
        tab.wait_for(REFUSED, 600)
        assert "line 3" in tab.text("#status")
        assert "<b>two</b>" in tab.text("#status")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_of_paths_fits_every_screen(browser, address, width):
    with browser.open(f"{address}/docs", width=width) as tab:
        assert "/detect" in tab.text("#docs")
        assert not tab.scrolls_sideways()
        assert tab.errors == []
        assert tab.requests == [f"{address}/docs"]
