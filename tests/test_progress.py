"""Progress where there is no terminal: a line now and then, and nothing when nobody asked."""

import time

import pytest

from softclt import progress
from softclt.progress import progress_bar


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.05)


def test_in_a_log_a_line_says_how_far_it_is_and_how_long_it_may_take(often, capsys):
    with progress_bar("training", 10, enabled=True) as advance:
        advance(4)
        time.sleep(0.12)
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 3
    assert lines[0].startswith("softclt: training: after 0 s 4 of 10, about")


def test_work_that_nobody_counts_is_still_told(often, capsys):
    with progress_bar("embedding\x1b[31m", None, enabled=True):
        time.sleep(0.12)
    assert capsys.readouterr().err.startswith(r"softclt: embedding\x1b[31m: after 0 s" + "\n")


def test_short_work_and_work_without_progress_say_nothing(capsys):
    with progress_bar("training", 10, enabled=True) as advance:
        advance(10)
    with progress_bar("training", 10, enabled=False) as advance:
        advance(10)
    assert capsys.readouterr().err == ""
