"""`softclt doctor` says what is here, and its self-test fails where something is broken."""

import json
import os
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import naive
import softclt.methods
from softclt import pretrained
from softclt.cli import app, self_test
from softclt.cli.doctor import CORE, EXTRAS

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
NOT_FOR_USERS = {"dev", "docs", "all"}


def doctor(*words, code=0):
    done = CliRunner().invoke(app, ["doctor", *words])
    assert done.exit_code == code, done.output
    return done.stdout


def bare(requirement):
    return re.match(r"[\w-]+", requirement)[0]


@pytest.fixture
def quick(monkeypatch):
    """Without the checks that take long."""
    for name in ("_embedding", "_distances", "_training", "_files"):
        monkeypatch.setattr(self_test, name, lambda: "not tried")


def test_extras_and_core_packages_are_those_of_the_project():
    wanted = {
        extra: [bare(one) for one in requirements]
        for extra, requirements in PROJECT["optional-dependencies"].items()
        if extra not in NOT_FOR_USERS
    }
    assert {extra: list(packages) for extra, (_, packages) in EXTRAS.items()} == wanted
    assert list(CORE) == [bare(one) for one in PROJECT["dependencies"]]


@pytest.mark.slow
def test_all_checks_pass_here_and_json_has_every_fact():
    found = json.loads(doctor("--json"))
    assert found["ok"]
    assert found["versions"]["softclt"] == softclt.__version__
    assert found["machine"]["threads"]["cores"] >= 1
    assert found["data"]["sets by name"] >= 2
    assert [check["name"] for check in found["checks"]] == [
        *("libraries", "models", "embedding", "distances", "training", "files")
    ]
    models = next(check for check in found["checks"] if check["name"] == "models")
    assert all(name in models["detail"] for name in pretrained.versions())


def test_a_missing_extra_is_named_with_the_way_to_get_it(quick, monkeypatch):
    monkeypatch.setitem(EXTRAS, "tune", ("search for settings", ("no-such-package",)))
    assert "no-such-package missing; pip install 'softclt[tune]'" in doctor()


def test_folders_of_data_are_named_whether_or_not_they_are_there(quick, monkeypatch, tmp_path):
    monkeypatch.setenv("SOFTCLT_DATA", f"{tmp_path}{os.pathsep}{tmp_path}/gone")
    roots = json.loads(doctor("--json"))["data"]["SOFTCLT_DATA"]
    assert roots == {str(tmp_path): "there", f"{tmp_path}/gone": "no such folder"}


def test_a_broken_package_fails_its_check_and_the_others_go_on(quick, monkeypatch):
    monkeypatch.setattr(self_test, "LIBRARIES", ("numpy", "no_such_library"))
    told = doctor(code=1)
    assert re.search(r"libraries +FAILED: ModuleNotFoundError: .*no_such_library", told)
    assert re.search(r"models +ok", told)
    assert told.splitlines()[-1].startswith("Something is broken")


def test_damaged_weights_fail(quick, monkeypatch, tmp_path):
    def damaged(name):
        raise pretrained.shelf.ModelFileError(f"{name} is damaged")

    monkeypatch.setattr(pretrained, "find_weights", damaged)
    assert re.search(r"models +FAILED: .*is damaged", doctor(code=1))


def test_an_embedding_that_is_off_fails(monkeypatch):
    class Off:
        def transform(self, X):
            return np.array(self_test.KNOWN_VALUES) + 2 * self_test.TOLERANCE

    monkeypatch.setattr(softclt.methods, "load_pretrained", lambda *words, **more: Off())
    with pytest.raises(self_test.CheckFailed, match=r"is 0\.02 from its known values"):
        self_test._embedding()


def test_a_distance_that_is_off_fails(monkeypatch):
    monkeypatch.setattr(self_test, "KNOWN_DISTANCES", (((0.0, 1.0), (0.0, 1.0), 1.0),))
    with pytest.raises(self_test.CheckFailed, match="it should be 1"):
        self_test._distances()


def test_known_distances_are_those_of_plain_loops():
    for x, y, known in self_test.KNOWN_DISTANCES:
        found = naive.dtw(np.array([x]), np.array([y]))
        assert found == pytest.approx(known)
