"""The harness itself: what it must notice, and that it leaves nothing behind."""

from pathlib import Path

import pytest
from browser import Browser, BrowserError

PAGE = """<!doctype html><meta charset="utf-8"><title>t</title>
<style>body { margin: 0; background: white } #wide { width: 10px; height: 1px }
@media (prefers-color-scheme: dark) { body { background: black } }</style>
<button id="b">one</button><input id="i"><canvas id="c" width="200" height="200"></canvas>
<div id="wide"></div>
<script>
const seen = [];
const b = document.querySelector("#b"), c = document.querySelector("#c");
b.onclick = e => { b.textContent = "clicked"; seen.push(e.shiftKey); };
b.onmouseenter = () => seen.push("over");
c.onpointerdown = c.onpointermove = c.onpointerup = e => seen.push(e.type + e.buttons);
c.onwheel = e => seen.push("wheel" + Math.sign(e.deltaY));
function save() {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob(["id\\n1\\n"])); a.download = "ids.csv"; a.click();
}
</script>"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(PAGE)
    return path


def test_a_person_can_point_click_type_drag_and_turn_the_wheel(
    browser: Browser, page: Path
) -> None:
    with browser.open(page) as tab:
        tab.hover("#b")
        assert tab.evaluate("seen") == ["over"]
        tab.click("#b", modifiers=["Shift"])
        assert tab.text("#b") == "clicked"
        assert tab.evaluate("seen.pop()") is True
        tab.click("#i")
        tab.write("hello")
        tab.press("Backspace")
        assert tab.evaluate("document.querySelector('#i').value") == "hell"
        x, y = tab.point("#c")
        tab.evaluate("void (seen.length = 0)")
        tab.drag([(x, y), (x + 9, y + 9)])
        assert tab.evaluate("seen") == [
            "pointermove0",
            "pointerdown1",
            "pointermove1",
            "pointerup0",
        ]
        tab.wheel("#c", -100)
        assert tab.wait_for("seen.at(-1) === 'wheel-1'")
        tab.assert_quiet()


def test_size_and_colour_scheme_are_what_the_page_sees(
    browser: Browser, page: Path, tmp_path: Path
) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    with browser.open(page, width=390, height=700, dark=True) as tab:
        assert tab.evaluate("[innerWidth, innerHeight]") == [390, 700]
        assert tab.evaluate(background) == "rgb(0, 0, 0)"
        tab.color_scheme(dark=False)
        assert tab.evaluate(background) == "rgb(255, 255, 255)"
        png = tab.screenshot(tmp_path / "shot.png").read_bytes()
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        assert int.from_bytes(png[16:20], "big") == 390
        assert not tab.scrolls_sideways()
        tab.evaluate("void (document.querySelector('#wide').style.width = '500px')")
        assert tab.scrolls_sideways()


def test_errors_and_requests_are_noticed(browser: Browser, page: Path) -> None:
    with browser.open(page) as tab:
        tab.assert_quiet()
        tab.evaluate("void setTimeout(() => { throw new Error('thrown late') }, 0)")
        tab.evaluate("console.error('said aloud')")
        tab.evaluate("fetch('http://127.0.0.1:9/x').catch(() => 0)")
        with pytest.raises(BrowserError, match="thrown late"):
            tab.assert_quiet()
        assert any("said aloud" in error for error in tab.errors)
        assert tab.requests == ["http://127.0.0.1:9/x"]


def test_a_bad_script_a_missing_element_and_a_missing_page_are_errors(
    browser: Browser, page: Path
) -> None:
    with browser.open(page) as tab:
        with pytest.raises(BrowserError, match="nowhere is not defined"):
            tab.evaluate("nowhere")
        with pytest.raises(BrowserError, match="nothing matches #none"):
            tab.click("#none")
        with pytest.raises(BrowserError, match="not true within"):
            tab.wait_for("false", timeout=0.05)
    with pytest.raises(BrowserError, match="ERR_FILE_NOT_FOUND"):
        browser.open(page.with_name("absent.html"))


def test_what_a_page_saves_can_be_read(browser: Browser, page: Path) -> None:
    with browser.open(page) as tab:
        tab.evaluate("save()")
        assert tab.downloaded("ids.csv").read_text() == "id\n1\n"
