import tomllib
from importlib.resources import files

import pytest

from softclt import CoST, TS2Vec
from softclt.methods import methods, preset_names

OFFICIAL = {
    "tau_instance": 5.0,
    "tau_temporal": 1.0,
    "distance_scale": "series",
    "distance_normalize": "column",
    "weight_cut": 1e-6,
    "mask_padding": False,
    "scale": None,
}


def test_every_preset_makes_its_method():
    presets = tomllib.loads(files("softclt.methods").joinpath("presets.toml").read_text())
    for method, named in presets.items():
        assert preset_names(method) == sorted(named)
        for name, settings in named.items():
            required = dict.fromkeys(settings.get("requires", []), 2.0)
            assert isinstance(methods[method].from_preset(name, **required), methods[method])


def test_hard_is_the_original():
    parameters = TS2Vec.from_preset("hard").get_params()
    assert parameters["tau_instance"] is None
    assert parameters["tau_temporal"] is None
    assert parameters["mask_padding"] is False
    assert parameters["scale"] is None


def test_official_has_the_conventions_of_the_authors_code():
    parameters = TS2Vec.from_preset("official").get_params()
    assert {key: parameters[key] for key in OFFICIAL} == OFFICIAL


def test_paper_asks_for_the_taus_that_it_tuned_on_each_set():
    with pytest.raises(ValueError, match="needs tau_instance and tau_temporal"):
        TS2Vec.from_preset("paper")
    model = TS2Vec.from_preset("paper", tau_instance=3.0, tau_temporal=2.5)
    assert (model.tau_instance, model.distance_normalize) == (3.0, "minmax")


def test_overrides_win_and_unknown_names_list_the_known():
    assert TS2Vec.from_preset("hard", output_dims=8).output_dims == 8
    with pytest.raises(ValueError, match="known: hard, official, paper"):
        TS2Vec.from_preset("soft")


def test_hard_cost_is_the_original_whose_sizes_are_the_defaults():
    changed = {"tau_instance": None, "tau_temporal": None, "scale": None, "mask_padding": False}
    parameters = CoST.from_preset("hard").get_params()
    defaults = CoST().get_params() | changed
    assert parameters == defaults | {"kernel_sizes": list(defaults["kernel_sizes"])}
