"""--set reaches every parameter, and a slip is told what would be right."""

import pytest

from softclt import TS2Vec
from softclt.cli.settings import build_model, parse_settings, parse_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("1e-4", 1e-4),
        ("none", None),
        ("None", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("dtw", "dtw"),
        ("'3'", "3"),
        ('{"window": 0.1}', {"window": 0.1}),
        ('{"a": true}', {"a": True}),
        ("[1, 2]", [1, 2]),
        ("", ""),
        ("a=b", "a=b"),
        ("-", "-"),
    ],
)
def test_values_are_read_as_what_they_look_like(text, value):
    parsed = parse_value(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize("text", ["lr", "=3", ""])
def test_a_setting_without_key_or_value_is_refused(text):
    with pytest.raises(ValueError, match="is not KEY=VALUE"):
        parse_settings([text])


@pytest.mark.parametrize("name", sorted(TS2Vec().get_params()))
def test_every_parameter_can_be_set(name):
    assert getattr(build_model("ts2vec", None, [f"{name}=7"]), name) == 7


def test_settings_win_over_presets_and_presets_over_fallbacks():
    model = build_model("ts2vec", "hard", ["lr=0.5", "random_state=4"], random_state=0)
    assert (model.lr, model.tau_instance, model.random_state) == (0.5, None, 4)
    assert build_model("ts2vec", None, None, random_state=3).random_state == 3


def test_an_unknown_parameter_is_told_the_known_ones():
    with pytest.raises(ValueError, match=r"no parameter 'tau'; known: .*tau_instance"):
        build_model("ts2vec", None, ["tau=3"])
