"""A browser for the tests of pages; this folder is on the path, so that `import browser` works."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browser import Browser, find_chromium


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One headless Chromium for all tests of pages, or a skip."""
    if find_chromium() is None:
        pytest.skip("needs Chromium or Chrome on the path")
    with Browser(tmp_path_factory.mktemp("browser")) as running:
        yield running
