"""What two processes do in test_distributed.py: ``torchrun --nproc-per-node 2 pair.py FOLDER``."""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import distributed as dist

from softclt import SoftContrastiveLoss, TS2Vec, fit_many
from softclt.methods import CoST
from softclt.methods.learner import RepresentationLearner
from softclt.training import current_group

SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 3, "device": "cpu", "batch_size": 64}
EXACT = SMALL | {"precision": "float64", "max_iter": 50}
COST = EXACT | {"max_iter": 8, "max_train_length": 15, "kernel_sizes": (1, 4), "queue_size": 80}
CASES = {
    "soft": [EXACT | {"random_state": 0}],
    "hard": [EXACT | {"tau_instance": None, "tau_temporal": None, "random_state": 1}],
    "missing": [EXACT | {"random_state": 2}],
    "float32": [SMALL | {"max_iter": 10, "random_state": 3}],
    "lazy": [EXACT | {"max_iter": 20, "distance_mode": "lazy", "random_state": 4}],
    "windows": [EXACT | {"max_iter": 20, "max_train_length": 15, "random_state": 5}],
    "command": [SMALL | {"max_iter": 400, "random_state": 0}],
    "stack": [
        EXACT | {"max_iter": 20, "random_state": 6},
        EXACT | {"max_iter": 20, "random_state": 7, "lam": 0.2, "lr": 3e-3},
    ],
    "cost": [COST | {"random_state": 8}],
    "cost, missing": [COST | {"random_state": 9}],
}


def learner(settings):
    """CoST where a setting is of it alone, else TS2Vec."""
    return CoST(**settings) if "queue_size" in settings else TS2Vec(**settings)


def series(case):
    """70 series: an epoch is a batch of 64."""
    X = np.random.default_rng(0).normal(size=(70, 2, 20))
    if case.endswith("missing"):
        X[::3, :, 12:] = np.nan
        X[5, 0, 2:6] = np.nan
        X[:20, :, 8:] = np.nan  # ranks have anchors of different number
    return X


def views(with_mask):
    """z1, z2, normalised distances and mask of six series."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2, 6, 13, 5, dtype=torch.float64, generator=generator)
    D = torch.rand(6, 6, dtype=torch.float64, generator=generator)
    mask = torch.ones(6, 13, dtype=torch.bool)
    mask[0, 7:], mask[4, 3:], mask[5] = False, False, False
    return z[0], z[1], (D + D.T) / 2, mask if with_mask else None


def loss_of(z1, z2, D, mask, group=None):
    criterion = SoftContrastiveLoss(5.0, 1.5, lam=0.4, temporal_assignment="linear")
    return criterion(z1, z2, D, mask, group)


def main(folder):
    """Leave models and numbers in a folder: those of the losses by each process."""
    dist.init_process_group("gloo")
    group = current_group()
    rank = group.rank
    for with_mask in (False, True):
        z1, z2, D, mask = views(with_mask)
        own = group.part(6)
        # stands for a parameter
        scale = torch.ones((), dtype=torch.float64, requires_grad=True)
        z = scale * z1[own]
        z.retain_grad()
        loss = loss_of(z, z2[own], D, None if mask is None else mask[own], group)
        loss.backward()
        found = {"loss": loss.detach(), "to_z": z.grad, "to_scale": scale.grad}
        torch.save(found, folder / f"loss-{with_mask}-{rank}.pt")
    RepresentationLearner._stack_size = lambda self, x: 100  # type: ignore[method-assign]
    for case, settings in CASES.items():
        models = fit_many(map(learner, settings), series(case))
        for i, model in enumerate(models):
            parameters = {name: p.detach() for name, p in model.module_.named_parameters()}
            found = {"loss": model.history_["loss"], "parameters": parameters}
            torch.save(found, folder / f"{case}-{i}-{rank}.pt")
            model.save(folder / f"{case}-{i}")  # by the first process
    unseeded = TS2Vec(**SMALL | {"max_iter": 1}).fit(series("soft"))
    torch.save(unseeded.seed_, folder / f"seed-{rank}.pt")
    try:
        TS2Vec(**SMALL | {"batch_size": 7, "max_iter": 1}).fit(series("soft"))
    except ValueError as error:
        (folder / f"uneven-{rank}.txt").write_text(str(error))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
