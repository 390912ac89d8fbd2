"""The explore page as a person meets it, in a headless Chromium."""

import csv
import statistics
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("jinja2")
from browser import Browser, Tab

from softclt.data import SeriesTable
from softclt.reports.explore import explore_page
from softclt.reports.projection import nearest_neighbours, standardise

N = 60
ODD = 'a "quoted", <b>id</b>'  # what CSV and HTML have to take as it is
FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def embeddings() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, 5)) + np.repeat(np.eye(3, 5) * 12, N // 3, axis=0)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    ids = [f"s{i:02d}" for i in range(N)]
    ids[5] = ODD
    series = SeriesTable(rng.normal(size=(N, 2, 40)).cumsum(-1), ids=ids, source="some series")
    columns = pd.DataFrame(
        {
            "label": np.repeat(["left", "middle", "right"], N // 3),
            "age": np.where(np.arange(N) % 10, np.arange(N, dtype=float), np.nan),
            "site": [f"site {i % 50}" for i in range(N)],
        }
    )
    html = explore_page(
        series, embeddings(), columns, model="model/ (TS2Vec)", projection="pca", n_neighbors=4
    ).html
    path = tmp_path_factory.mktemp("explore") / "explore.html"
    path.write_text(html, encoding="utf-8")
    return path


def dot(tab: Tab, i: int) -> tuple[float, float]:
    x, y = tab.evaluate(f"explore.where({i})")
    return x, y


def alone(tab: Tab, among: range = range(N)) -> int:
    """A dot that no other one lies on."""
    places = np.array(tab.evaluate(f"Array.from({{length: {N}}}, (_, i) => explore.where(i))"))
    far = np.linalg.norm(places[:, None] - places[None], axis=-1) + 1e9 * np.eye(N)
    return max(among, key=lambda i: far[i].min())


# Share of the pixels of the dots that are hardly transparent.
FIRM = """(() => {
  const canvas = document.querySelector("#dots"), context = canvas.getContext("2d");
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
  const alphas = pixels.filter((value, at) => at % 4 === 3 && value > 0);
  return alphas.filter(value => value > 200).length / alphas.length;
})()"""


def picture(tab: Tab, selector: str) -> str:
    text: str = tab.evaluate(f"document.querySelector('{selector}').toDataURL()")
    return text


def test_it_loads_in_silence_and_says_what_it_shows(browser: Browser, page: Path) -> None:
    with browser.open(page) as tab:
        tab.evaluate(FRAMES)
        header = tab.text("header")
        for words in ("some series", "60 series, 2 channels", "model/ (TS2Vec)", "PCA", "mislead"):
            assert words in header
        assert "Neighbours are from the full embedding: the 4 nearest" in header
        drawn = "new Set(document.querySelector('#dots').getContext('2d')"
        assert tab.evaluate(f"{drawn}.getImageData(0, 0, 2000, 2000).data).size") > 10
        tab.assert_quiet()


def test_pointing_at_a_dot_draws_its_series_and_its_neighbours(
    browser: Browser, page: Path
) -> None:
    rows, distances = nearest_neighbours(standardise(embeddings()), 4)
    with browser.open(page) as tab:
        assert "Point at a dot" in tab.text("#panel")
        first, second = alone(tab, range(20)), alone(tab, range(20, 40))
        tab.hover(dot(tab, first))
        assert tab.text("#focus .id") == f"s{first:02d}"
        assert "label: left" in tab.text("#focus .facts")
        names = tab.evaluate("[...document.querySelectorAll('#neighbors b')].map(e => e.innerText)")
        assert [n for n in names if n != ODD] == [f"s{j:02d}" for j in rows[first] if j != 5]
        shown = tab.evaluate("[...document.querySelectorAll('.far')].map(e => +e.innerText)")
        np.testing.assert_allclose(shown, distances[first], rtol=6e-3)
        before = picture(tab, "#focus .plot"), picture(tab, "#neighbors .plot")
        tab.hover(dot(tab, second))
        assert tab.text("#focus .id") == f"s{second:02d}"
        assert picture(tab, "#focus .plot") != before[0]
        assert picture(tab, "#neighbors .plot") != before[1]
        tab.assert_quiet()


def test_a_click_pins_and_escape_lets_go(browser: Browser, page: Path) -> None:
    with browser.open(page) as tab:
        first, second = alone(tab, range(20)), alone(tab, range(20, 40))
        tab.click(dot(tab, first))
        tab.hover(dot(tab, second))
        assert tab.text("#focus .id") == f"s{first:02d}"  # still
        assert f"s{second:02d}" in tab.text("#tip")
        tab.click("#neighbors li:nth-child(2) button")
        assert tab.evaluate("explore.state.pinned") == nearest(first)[1]
        tab.evaluate("document.querySelector('#marks').focus()")
        tab.press("Escape")
        assert tab.evaluate("explore.state.pinned") == -1
        tab.hover(dot(tab, second))
        assert tab.text("#focus .id") == f"s{second:02d}"


def nearest(i: int) -> list[int]:
    return nearest_neighbours(standardise(embeddings()), 4)[0][i].tolist()


def test_search_finds_an_id_and_goes_there(browser: Browser, page: Path) -> None:
    with browser.open(page) as tab:
        tab.press("/")
        tab.write("S4")
        found = "[...document.querySelectorAll('#found li')].map(e => e.innerText)"
        assert tab.evaluate(found) == [f"s4{k}" for k in range(8)]
        tab.press("ArrowDown")
        tab.press("Enter")
        assert tab.evaluate("explore.state.pinned") == 41
        x, y = tab.point("#stage")
        np.testing.assert_allclose(dot(tab, 41), (x, y), atol=1.0)  # in the middle of the map
        tab.evaluate("document.querySelector('#search').value = ''")
        tab.click("#search")
        tab.write("quoted")
        tab.press("Enter")
        assert tab.text("#focus .id") == ODD
        tab.evaluate("document.querySelector('#search').value = ''")
        tab.write("nobody")
        assert tab.text("#found") == "No such id"
        tab.assert_quiet()


def choose(tab: Tab, name: str) -> None:
    tab.evaluate(
        f"(s => {{ s.value = [...s.options].find(o => o.text === '{name}').value;"
        " s.dispatchEvent(new Event('change')) })(document.querySelector('#color'))"
    )
    tab.evaluate(FRAMES)


def test_colours_change_with_the_column_and_the_legend_with_them(
    browser: Browser, page: Path
) -> None:
    with browser.open(page) as tab:
        tab.evaluate(FRAMES)
        assert tab.text("#legend").split() == ["left", "20", "middle", "20", "right", "20"]
        by_label = picture(tab, "#dots")
        choose(tab, "age")
        assert "6 without a value" in tab.text("#legend")
        by_age = picture(tab, "#dots")
        choose(tab, "site")
        names = tab.evaluate("[...document.querySelectorAll('#legend span')].map(e => e.innerText)")
        assert len(names) == 42  # 41 looks of their own
        assert names[-1] == "9 others"
        assert len({by_label, by_age, picture(tab, "#dots")}) == 3
        tab.assert_quiet()


def test_the_legend_leaves_only_what_is_chosen(browser: Browser, page: Path) -> None:
    with browser.open(page) as tab:
        hidden = alone(tab, range(20))
        tab.click("#legend button:nth-child(2)")
        tab.hover(dot(tab, hidden))
        assert tab.evaluate("explore.state.hover") == -1
        tab.click("#legend button:nth-child(2)")
        tab.hover(dot(tab, hidden))
        assert tab.evaluate("explore.state.hover") == hidden


def around(tab: Tab, rows: range) -> list[tuple[float, float]]:
    """A rectangle about some dots."""
    places = np.array([dot(tab, i) for i in rows])
    (left, top), (right, bottom) = places.min(axis=0) - 5, places.max(axis=0) + 5
    return [(left, top), (right, top), (right, bottom), (left, bottom), (left, top + 1)]


@pytest.mark.parametrize("by", ["shift", "button"])
def test_a_lasso_exports_the_ids_inside(browser: Browser, page: Path, by: str) -> None:
    with browser.open(page) as tab:
        clipboard = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        browser.call("Browser.grantPermissions", permissions=clipboard)
        line = around(tab, range(20))
        tab.evaluate(FRAMES)
        before = tab.evaluate(FIRM)
        if by == "button":
            tab.click("#lasso")
        tab.drag(line, modifiers=["Shift"] if by == "shift" else [])
        places = np.array([dot(tab, i) for i in range(N)])
        (left, top), (right, bottom) = line[0], line[2]
        within = (places > (left, top)).all(axis=1) & (places < (right, bottom)).all(axis=1)
        ids = tab.evaluate("explore.selected()")
        tab.evaluate(FRAMES)
        assert 0.1 * before < tab.evaluate(FIRM) < 0.8 * before  # the others are pale
        assert len(ids) == within.sum() >= 20
        assert tab.text("#count") == f"{len(ids)} selected"
        saved = browser.downloads / "selected.csv"
        saved.unlink(missing_ok=True)
        tab.click("#save")
        with tab.downloaded("selected.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert [row["id"] for row in rows] == ids
        assert ODD in ids
        assert {row["label"] for row in rows} >= {"left"}
        assert rows[0]["age"] == ""  # missing
        tab.click("#copy")
        assert "ids copied" in tab.wait_for("document.querySelector('#said').innerText")
        assert tab.evaluate("navigator.clipboard.readText()").split("\n") == ids
        tab.click("#clear")
        assert tab.evaluate("explore.selected()") == []
        tab.assert_quiet()


def test_wheel_drag_and_keys_move_the_map(browser: Browser, page: Path) -> None:
    with browser.open(page) as tab:
        x, y = dot(tab, 0)
        tab.wheel((x, y), -240)
        tab.evaluate(FRAMES)
        np.testing.assert_allclose(dot(tab, 0), (x, y), atol=1.0)  # zooms about the pointer
        far = np.hypot(*np.subtract(dot(tab, 1), dot(tab, 0)))
        (x1, y1), centre = dot(tab, 0), tab.point("#stage")
        tab.drag([centre, (centre[0] + 40, centre[1] + 30)])
        np.testing.assert_allclose(dot(tab, 0), (x1 + 40, y1 + 30), atol=0.01)
        tab.evaluate("document.querySelector('#marks').focus()")
        tab.press("0")
        np.testing.assert_allclose(dot(tab, 0), (x, y), atol=0.01)
        assert far > np.hypot(*np.subtract(dot(tab, 1), dot(tab, 0)))
        tab.press("ArrowLeft")
        start = tab.evaluate("explore.state.shown")
        tab.press("ArrowRight")
        assert dot(tab, tab.evaluate("explore.state.shown"))[0] > dot(tab, start)[0]
        tab.press("Enter")
        assert tab.evaluate("explore.state.pinned === explore.state.shown")
        tab.assert_quiet()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_phone_shows_it_without_scrolling_sideways_and_a_tap_pins(
    browser: Browser, page: Path, dark: bool
) -> None:
    with browser.open(page, width=390, height=844, dark=dark, touch=True) as tab:
        assert not tab.scrolls_sideways()
        i = alone(tab)
        tab.tap(dot(tab, i))
        tab.wait_for(f"explore.state.pinned === {i}")
        below = "document.querySelector('#panel').getBoundingClientRect().top >= "
        below += "document.querySelector('#map').getBoundingClientRect().bottom"
        assert tab.evaluate(below)
        assert not tab.scrolls_sideways()
        choose(tab, "site")
        assert not tab.scrolls_sideways()
        back = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (back == "rgb(255, 255, 255)") is not dark
        tab.assert_quiet()


def test_a_change_of_the_colour_scheme_repaints(browser: Browser, page: Path) -> None:
    with browser.open(page) as tab:
        tab.evaluate(FRAMES)
        light = picture(tab, "#dots")
        tab.color_scheme(dark=True)
        tab.evaluate(FRAMES)
        assert picture(tab, "#dots") != light


@pytest.mark.parametrize(("channels", "steps"), [(1, 1), (3, 500), (20, 30)])
def test_any_shape_of_series_and_no_column_can_be_drawn(
    browser: Browser, tmp_path: Path, channels: int, steps: int
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, channels, steps))
    X[1, 0, :] = np.nan
    X[2] = 3.0
    X[3, :, steps // 2 :] = np.nan
    X[3, :, 0] = 1.0
    frame = pd.DataFrame(index=range(5))
    path = tmp_path / "page.html"
    path.write_text(explore_page(SeriesTable(X), rng.normal(size=(5, 3)), frame, model="m").html)
    with browser.open(path) as tab:
        for i in range(5):
            tab.evaluate(f"explore.jump({i}, false)")
            tab.evaluate(FRAMES)
        tab.assert_quiet()
        assert tab.evaluate("document.querySelector('#color-by').hidden")


HOVERS = """(async () => {
  const marks = document.querySelector("#marks"), times = [];
  for (let i = 0; i < 2000; i += 50) {
    const [clientX, clientY] = explore.where(i), start = performance.now();
    marks.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, bubbles: true }));
    times.push(performance.now() - start);
    await new Promise(requestAnimationFrame);
  }
  return times;
})()"""


@pytest.mark.slow
def test_ten_thousand_series_open_and_answer_at_once(browser: Browser, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 1, 200)).cumsum(-1)
    frame = pd.DataFrame({"label": rng.integers(0, 9, 10_000)})
    page = explore_page(
        SeriesTable(X), rng.normal(size=(10_000, 6)), frame, model="m", projection="pca"
    )
    path = tmp_path / "big.html"
    path.write_text(page.html)
    with browser.open(path) as tab:
        drawn = tab.wait_for("performance.getEntriesByName('drawn')[0]?.startTime")
        times = tab.evaluate(HOVERS)
        tab.assert_quiet()
    assert drawn < 8000  # ms; the machine may be busy
    assert statistics.median(times) < 100


def test_neighbours_on_another_scale_are_no_flat_lines(browser: Browser, page: Path) -> None:
    with browser.open(page) as tab:
        tab.evaluate("explore.jump(3, true)")
        own = picture(tab, "#neighbors .plot")
        tab.click("#own-scale")
        assert picture(tab, "#neighbors .plot") != own
        tab.click("#own-scale")
        assert picture(tab, "#neighbors .plot") == own
        tab.assert_quiet()


def test_the_first_series_is_shown_before_anyone_points(browser: Browser, page: Path) -> None:
    with browser.open(page) as tab:
        assert tab.text("#focus .id") == "s00"
        assert "Point at a dot" in tab.text("#hint")
        tab.hover(dot(tab, alone(tab, range(20, 40))))
        assert tab.evaluate("document.querySelector('#hint').hidden")
        tab.assert_quiet()


def test_the_title_is_the_name_of_the_file(browser: Browser, tmp_path: Path) -> None:
    X = np.random.default_rng(1).normal(size=(N, 1, 40))
    series = SeriesTable(X, source="/data/plant 3/pumps.csv")
    frame = pd.DataFrame(index=range(N))
    page = explore_page(series, embeddings(), frame, model="m", projection="pca")
    (tmp_path / "page.html").write_text(page.html, encoding="utf-8")
    with browser.open(tmp_path / "page.html") as tab:
        assert tab.text("h1") == "pumps.csv"
        assert tab.evaluate("document.title") == "pumps.csv: explore the embedding"
        assert tab.evaluate("document.querySelector('h1').title") == "/data/plant 3/pumps.csv"
