"""A phase of training: its own folder, what is frozen, and killed is as good as not killed."""

import json
from dataclasses import replace

import pytest
import torch
from torch import nn

from softclt.encoders import Encoder
from softclt.encoders.stacked import Linear
from softclt.training import loop
from softclt.training.checkpoint import CheckpointError
from softclt.training.course import Course
from softclt.training.phases import Phase, PhaseMissingError, run_phase


class Tiny(Encoder):
    """Two layers, of which the first may be frozen."""

    mask_padding, n_layers = True, 1

    def __init__(self):
        super().__init__()
        self.encoder, self.head = Linear(3, 4), Linear(4, 2)
        self.seen_in_training: list[bool] = []

    def forward(self, x, *others):
        self.seen_in_training.append(self.encoder.training)
        return self.head(self.encoder(x.mT))

    def all_layers(self, x, keep=None):
        return self(x)


def labels_are_given(module, batch, draws):
    assert batch.labels.shape == batch.index.shape
    known = nn.functional.one_hot(batch.labels, 2).to(batch.x.dtype)
    return (module(batch.x).mean(dim=2) - known).square().mean(dim=(1, 2))


@pytest.fixture(autouse=True)
def frequent_looks(monkeypatch):
    monkeypatch.setattr(loop, "_LOOK_EVERY", 5)


@pytest.fixture
def phase():
    torch.manual_seed(0)
    task = Course(
        objective=labels_are_given,
        x=torch.randn(7, 3, 6),
        weights=None,
        temporal=None,
        lam=0.5,
        seeds=[3],
        batch_size=4,
        max_length=6,
        layout=lambda length, step: length,
        labels=torch.tensor([0, 1, 0, 1, 1, 0, 0]),
    )
    return Phase("fine-tune", 2, task, 18, lambda own: torch.optim.AdamW(list(own), lr=1e-2), 1e-2)


@pytest.fixture
def network():
    torch.manual_seed(1)
    return Tiny()


def copy_of(network):
    copy = Tiny()
    copy.load_state_dict(network.state_dict())
    return copy


class PowerCutError(Exception):
    pass


def power_cut_at(step):
    def callback(progress):
        if progress.step == step:
            raise PowerCutError

    return callback


def test_labels_reach_the_loss_with_their_rows(phase, network):
    rows = []

    def objective(module, batch, draws):
        rows.append((batch.index.clone(), batch.labels.clone()))
        return labels_are_given(module, batch, draws)

    run_phase(replace(phase, course=replace(phase.course, objective=objective)), network)
    assert len(rows) == 18
    assert all(torch.equal(own, phase.course.labels[index]) for index, own in rows)


def test_a_killed_phase_goes_on_to_the_same_bits(phase, network, tmp_path):
    straight, killed = copy_of(network), copy_of(network)
    losses = run_phase(phase, straight)[0]["loss"]
    with pytest.raises(PowerCutError):
        run_phase(phase, killed, tmp_path, callbacks=[power_cut_at(15)])
    gone_on = copy_of(network)
    assert run_phase(phase, gone_on, tmp_path)[0]["loss"] == losses
    for name, value in straight.state_dict().items():
        assert torch.equal(gone_on.state_dict()[name], value), name


def test_a_phase_has_a_folder_of_its_own_with_a_line_a_step(phase, network, tmp_path):
    run_phase(phase, network, tmp_path)
    assert (tmp_path / "2-fine-tune" / "stack-0.safetensors").is_file()
    lines = (tmp_path / "2-fine-tune" / "history-0.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, 19))


def test_a_finished_phase_is_not_run_again(phase, network, tmp_path):
    first, second = copy_of(network), copy_of(network)
    losses = run_phase(phase, first, tmp_path)[0]["loss"]

    def never(module, batch, draws):
        raise AssertionError

    again = replace(phase, course=replace(phase.course, objective=never))
    assert run_phase(again, second, tmp_path)[0]["loss"] == losses
    assert torch.equal(second.head.weight, first.head.weight)


def test_a_phase_that_is_only_looked_for_must_have_ended(phase, network, tmp_path):
    with pytest.raises(PhaseMissingError, match="'fine-tune' has not been run to its end in"):
        run_phase(phase, copy_of(network), tmp_path, found_only=True)
    run_phase(phase, copy_of(network), tmp_path)
    (found,) = run_phase(phase, copy_of(network), tmp_path, found_only=True)
    assert len(found["loss"]) == 18


def test_a_phase_that_starts_from_other_weights_is_another_run(phase, network, tmp_path):
    run_phase(phase, copy_of(network), tmp_path)
    with pytest.raises(CheckpointError, match="starts_from"):
        run_phase(phase, Tiny(), tmp_path)


@pytest.mark.parametrize("frozen", [(), ("encoder.",)])
def test_what_is_frozen_stays_as_it_is_and_in_evaluation_mode(phase, network, frozen):
    before = copy_of(network).state_dict()
    run_phase(replace(phase, frozen=frozen), network)
    after = network.state_dict()
    assert torch.equal(before["encoder.weight"], after["encoder.weight"]) == bool(frozen)
    assert not torch.equal(before["head.weight"], after["head.weight"])
    assert set(network.seen_in_training) == {not frozen}
    assert not network.training
    assert all(parameter.requires_grad for parameter in network.parameters())


def test_progress_has_the_name_of_the_phase(phase, network, capsys, monkeypatch):
    monkeypatch.setattr("softclt.progress.EVERY", 0.001)
    run_phase(phase, network, progress=True)
    assert "fine-tune" in capsys.readouterr().err
