"""A headless Chromium for tests of pages: the DevTools protocol over two pipes, nothing installed.

    with Browser(tmp_path) as browser, browser.open(page, width=390, dark=True) as tab:
        tab.click("#sort")
        assert tab.evaluate("document.title") == "softclt"
        tab.assert_quiet()

Chromium leaves when its pipes close, so that even a test run that is killed leaves none behind.
"""

import base64
import contextlib
import fcntl
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # there is none for root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--mute-audio",
    "--remote-debugging-pipe",
)
# Chromium reads commands from descriptor 3 and writes to 4: put the pipes there, then become it.
_SHIM = "import os,sys; r,w=map(int,sys.argv[1:3]); os.dup2(r,3); os.dup2(w,4); " + (
    "os.execv(sys.argv[3], sys.argv[3:])"
)
_KEYS = {
    "Backspace": 8,
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    " ": 32,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}
_TEXT = {"Enter": "\r", " ": " "}
_MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}

Point = tuple[float, float]
Place = str | Point
"""A CSS selector, which means the middle of its first element, or ``(x, y)`` in the viewport."""


def find_chromium() -> str | None:
    """Path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class BrowserError(AssertionError):
    """The page or the browser did not do what the test asked for."""


class Browser:
    """A running Chromium with a profile of its own.

    Args:
        folder: Where the profile and, under ``downloads``, what pages save is put.
        executable: The browser.
        timeout: Seconds that any one answer may take.
    """

    def __init__(self, folder: Path, executable: str | None = None, timeout: float = 30.0) -> None:
        executable = executable or find_chromium()
        if executable is None:
            raise BrowserError(f"no browser: none of {', '.join(NAMES)} is on the path")
        self.timeout = timeout
        self.downloads = Path(folder) / "downloads"
        self.downloads.mkdir(parents=True, exist_ok=True)
        self._numbers = count(1)
        self._replies: dict[int, queue.Queue[dict[str, Any]]] = {}
        self._tabs: dict[str, Tab] = {}
        self._lock = threading.Lock()
        self._start([executable, *_FLAGS, f"--user-data-dir={Path(folder) / 'profile'}"])
        try:
            self.call(
                "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads)
            )
        except BaseException:
            self.close()
            raise

    def _start(self, command: list[str]) -> None:
        its_read, self._write, self._read, its_write = map(_above_9, (*os.pipe(), *os.pipe()))
        shim = [sys.executable, "-I", "-S", "-c", _SHIM, str(its_read), str(its_write)]
        self._process = subprocess.Popen(
            [*shim, *command, "about:blank"],
            pass_fds=(its_read, its_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that its children can be ended with it
        )
        os.close(its_read)
        os.close(its_write)
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        """Hand each message to the call that waits for it or to the tab that it is about."""
        rest = b""
        while chunk := os.read(self._read, 1 << 20):
            *messages, rest = (rest + chunk).split(b"\0")
            for text in messages:
                message = json.loads(text)
                if "id" in message:
                    if (waiting := self._replies.pop(message["id"], None)) is not None:
                        waiting.put(message)
                elif (tab := self._tabs.get(message.get("sessionId", ""))) is not None:
                    tab._hear(message["method"], message["params"])
        for waiting in list(self._replies.values()):
            waiting.put({"error": {"message": "the browser has ended"}})

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send one DevTools command and wait for its result."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        waiting = self._replies[number] = queue.Queue(1)
        data = json.dumps(message).encode() + b"\0"
        try:
            with self._lock:
                while data:
                    data = data[os.write(self._write, data) :]
            reply = waiting.get(timeout=self.timeout)
        except OSError as error:
            raise BrowserError(f"{method}: the browser has ended ({error})") from None
        except queue.Empty:
            raise BrowserError(f"{method}: no answer within {self.timeout:g} s") from None
        finally:
            self._replies.pop(number, None)
        if "error" in reply:
            raise BrowserError(f"{method}: {reply['error']['message']}")
        result: dict[str, Any] = reply["result"]
        return result

    def open(
        self,
        page: str | Path,
        *,
        width: int = 1280,
        height: int = 800,
        dark: bool = False,
        touch: bool = False,
    ) -> "Tab":
        """A tab with ``page``, a file or an address, loaded at this size and colour scheme."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        tab = self._tabs[attached["sessionId"]] = Tab(self, target, attached["sessionId"])
        try:
            for domain in ("Page", "Runtime", "Log", "Network"):
                tab.call(f"{domain}.enable")
            tab.call("Emulation.setFocusEmulationEnabled", enabled=True)
            tab.resize(width, height, touch=touch)
            tab.color_scheme(dark=dark)
            tab.goto(page)
        except BaseException:
            tab.close()
            raise
        return tab

    def close(self) -> None:
        """End Chromium and all of its children."""
        with contextlib.suppress(BrowserError):
            if self._process.poll() is None and self._reader.is_alive():
                patience, self.timeout = self.timeout, 5.0
                self.call("Browser.close")
                self.timeout = patience
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10.0)
        self._reader.join(5.0)
        os.close(self._write)
        os.close(self._read)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Tab:
    """One page, and what it said and asked for since it was opened.

    Attributes:
        errors: Console errors and warnings of the browser, and exceptions that nobody caught.
        requests: Addresses asked for, other than ``file:``, ``data:`` and ``blob:``.
    """

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self._browser = browser
        self._target = target
        self._session = session
        self._loaded = threading.Event()
        self.errors: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a DevTools command to this tab."""
        return self._browser.call(method, self._session, **params)

    def _hear(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded.set()
        elif method == "Runtime.exceptionThrown":
            self.errors.append(_exception_text(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            words = [str(a.get("value", a.get("description", ""))) for a in params["args"]]
            self.errors.append(" ".join(words))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(("file:", "data:", "blob:", "about:")):
                self.requests.append(url)

    def assert_quiet(self) -> None:
        """The page raised nothing and asked nobody for anything."""
        self.evaluate("new Promise(done => setTimeout(done, 0))")  # what is under way arrives
        if self.errors or self.requests:
            raise BrowserError(f"errors {self.errors}, requests {self.requests}")

    # What it shows -------------------------------------------------------------------------------

    def goto(self, page: str | Path) -> None:
        """Load a file or an address and wait for its load event."""
        url = page.resolve().as_uri() if isinstance(page, Path) else page
        self._loaded.clear()
        failed = self.call("Page.navigate", url=url).get("errorText")
        if failed:
            raise BrowserError(f"{url}: {failed}")
        if not self._loaded.wait(self._browser.timeout):
            raise BrowserError(f"{url} was not loaded within {self._browser.timeout:g} s")

    def resize(self, width: int, height: int, *, touch: bool = False) -> None:
        """Give the viewport a size; ``touch`` makes it a phone's."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=touch,
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)

    def color_scheme(self, *, dark: bool) -> None:
        """What the page sees as the person's preference."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def evaluate(self, script: str) -> Any:
        """Value of an expression of JavaScript; a promise is awaited."""
        reply = self.call(
            "Runtime.evaluate",
            expression=script,
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
        )
        if "exceptionDetails" in reply:
            raise BrowserError(f"{script}: {_exception_text(reply['exceptionDetails'])}")
        return reply["result"].get("value")

    def wait_for(self, condition: str, timeout: float = 10.0) -> Any:
        """Value of an expression as soon as it is true."""
        end = time.monotonic() + timeout
        while not (value := self.evaluate(condition)):
            if time.monotonic() > end:
                raise BrowserError(f"not true within {timeout:g} s: {condition}")
            time.sleep(0.02)
        return value

    def text(self, selector: str) -> str:
        """The text that a person sees in the first element."""
        found: str | None = self.evaluate(f"document.querySelector({_js(selector)})?.innerText")
        if found is None:
            raise BrowserError(f"nothing matches {selector}")
        return found

    def scrolls_sideways(self) -> bool:
        """Whether the page is wider than the viewport."""
        wide: bool = self.evaluate(
            "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
            " > document.documentElement.clientWidth"
        )
        return wide

    def screenshot(self, path: Path, *, full: bool = False) -> Path:
        """Write a PNG of the viewport, or of the whole page, at its size in CSS pixels."""
        options: dict[str, Any] = {"format": "png", "captureBeyondViewport": full}
        if full:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {**size, "scale": 1}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))
        return path

    def downloaded(self, name: str, timeout: float = 10.0) -> Path:
        """The file that the page has saved under this name, once it is whole."""
        path = self._browser.downloads / name
        end = time.monotonic() + timeout
        while not path.is_file():
            if time.monotonic() > end:
                there = sorted(p.name for p in self._browser.downloads.iterdir())
                raise BrowserError(f"{name} was not saved within {timeout:g} s; there is {there}")
            time.sleep(0.02)
        return path

    # What a person does --------------------------------------------------------------------------

    def point(self, place: Place) -> Point:
        """Where a place is in the viewport; an element is scrolled into view first."""
        if not isinstance(place, str):
            return place
        found = self.evaluate(
            f"(e => {{ if (!e) return null; e.scrollIntoView({{block: 'nearest'}});"
            " const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })"
            f"(document.querySelector({_js(place)}))"
        )
        if found is None:
            raise BrowserError(f"nothing matches {place}")
        x, y = found
        return x, y

    def _mouse(self, kind: str, at: Point, modifiers: Sequence[str] = (), **more: Any) -> None:
        held = sum(_MODIFIERS[name] for name in modifiers)
        self.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], modifiers=held, **more)

    def hover(self, place: Place) -> None:
        """Move the pointer there."""
        self._mouse("mouseMoved", self.point(place))

    def click(self, place: Place, modifiers: Sequence[str] = ()) -> None:
        """Move the pointer there, press and release."""
        at = self.point(place)
        self._mouse("mouseMoved", at, modifiers)
        for kind in ("mousePressed", "mouseReleased"):
            self._mouse(kind, at, modifiers, button="left", clickCount=1)

    def drag(self, way: Sequence[Place], modifiers: Sequence[str] = ()) -> None:
        """Press at the first place, move through the others, release at the last."""
        first, *others = [self.point(place) for place in way]
        self._mouse("mouseMoved", first, modifiers)
        self._mouse("mousePressed", first, modifiers, button="left", buttons=1, clickCount=1)
        for at in others:
            self._mouse("mouseMoved", at, modifiers, button="left", buttons=1)
        self._mouse("mouseReleased", others[-1], modifiers, button="left", clickCount=1)

    def wheel(self, place: Place, dy: float, modifiers: Sequence[str] = ()) -> None:
        """Turn the wheel there; a negative ``dy`` is away from the person."""
        self._mouse("mouseWheel", self.point(place), modifiers, deltaX=0, deltaY=dy)

    def tap(self, place: Place) -> None:
        """Touch and let go."""
        x, y = self.point(place)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, key: str, modifiers: Sequence[str] = ()) -> None:
        """Press a key by its DOM name: ``Enter``, ``ArrowLeft``, ``a``."""
        code = _KEYS.get(key, ord(key[0].upper()))
        text = _TEXT.get(key, key if len(key) == 1 else "")
        held = sum(_MODIFIERS[name] for name in modifiers)
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": held}
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {})
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def write(self, text: str) -> None:
        """Write into what has the focus."""
        self.call("Input.insertText", text=text)

    def close(self) -> None:
        """Close the tab."""
        self._browser._tabs.pop(self._session, None)
        with contextlib.suppress(BrowserError):
            self._browser.call("Target.closeTarget", targetId=self._target)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _above_9(descriptor: int) -> int:
    """The same pipe under a number that 3 and 4 cannot meet."""
    higher = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return higher


def _js(text: str) -> str:
    return json.dumps(text)


def _exception_text(details: dict[str, Any]) -> str:
    thrown = details.get("exception", {})
    return str(thrown.get("description", thrown.get("value", details.get("text"))))
