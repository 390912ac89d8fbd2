"""A few cases of the campaign, so that it stays able to run; `benchmarks/attack.py` has all."""

import sys
from functools import partial
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def attacks():
    """The parts of the campaign, as the script finds them."""
    if not BENCHMARKS.is_dir():
        pytest.skip("the benchmarks are not here")
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from attacks import api, cases, readers, threads

        yield {"cases": cases, "readers": readers, "api": api, "threads": threads}
    finally:
        sys.path.remove(str(BENCHMARKS))


def tried(attacks, case, numbers, tmp_path):
    wrong = []
    for number in numbers:
        folder = tmp_path / str(number)
        folder.mkdir()
        outcome, detail = attacks["cases"].outcome_of(partial(case, 0), number, folder)
        if outcome == attacks["cases"].WRONG:
            wrong.append((number, detail))
    return wrong


def test_sound_files_of_all_forms_are_read(attacks, tmp_path):
    for number, (write, read) in enumerate(attacks["readers"].FORMS.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        read(write(folder))


def test_damaged_files_of_all_forms_are_read_or_refused(attacks, tmp_path):
    assert tried(attacks, attacks["readers"].reader_case, range(51), tmp_path) == []


def test_wild_calls_are_right_or_refused(attacks, tmp_path):
    n = len(attacks["api"].doors())
    assert tried(attacks, attacks["api"].api_case, range(0, n, 7), tmp_path) == []


def test_what_is_wrong_is_told_from_what_is_refused(attacks, tmp_path):
    def unclear(seed, number, folder):
        return {}["nothing"]

    def meant(seed, number, folder):
        from softclt.validation import check_series

        return check_series([])

    ((number, detail),) = tried(attacks, unclear, [3], tmp_path)
    assert number == 3
    assert detail.startswith("KeyError in test_campaign.py")
    assert tried(attacks, meant, [4], tmp_path) == []
