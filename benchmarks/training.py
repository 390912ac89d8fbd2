"""Training against the textbook way and PyPOTS, and on a GPU alone; one JSON line a row.

    python benchmarks/training.py --pypots-python pypots-env/bin/python
    python benchmarks/training.py --lengths 128 --turns 1 --steps 16    # quick
    python benchmarks/training.py --device cuda                   # steps fit many encode tstcc
    python benchmarks/training.py --device cuda --only many --lengths 500

peers, on a CPU: each time is of a fresh process that has fitted a few steps of other series, so it
has no imports in it, but what a library plans anew for each crop length. Contestants take turns, so
that a busy machine slows all; medians of times, and of ratios by turn. Crops are random, so short
fits differ in their work (48 steps at T = 1500: PyPOTS by 10 %; the textbook, whose overlaps spread
evenly, by 1 %). Take fewer threads than free cores: threads that wait for each other spin.

share: multiply-adds of a step as TS2Vec describes it, a mean over random crops, over the time, as a
part of the rate of a large float32 matrix product with as many threads. The encoder counts three
times forward (gradients of inputs and of weights) at all steps of both views; no_padding is without
what taps multiply with zeros beside the series. Both have the losses: all similarities, twice.
Of steps and many: the difference of a long and a short warm fit; fit and encode have T = 128.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

Rows = Iterator[dict[str, Any]]
Fit = Callable[[int, int], None]  # T, n steps
N, B, HIDDEN, DEPTH, DIMS = 64, 8, 64, 10, 320
WIDTHS = [HIDDEN] * (DEPTH + 1) + [DIMS]
TAUS = 20.0, 1.0  # the library's defaults
PAPER_TAUS = list(product([1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0], [0.5, 1.0, 1.5, 2.0, 2.5]))
PEER_STEPS = {128: 192, 500: 96, 1500: 48}  # whole epochs: PyPOTS counts in them
RATIO_GOALS = {
    ("ours, soft", "textbook, soft"): 0.4,
    ("ours, soft", "pypots, hard"): 0.4,
    ("ours, soft", "ours, hard"): 1.05,
    ("ours, soft, bfloat16", "textbook, soft"): 0.4,
    ("ours, soft, bfloat16", "pypots, hard"): 0.4,
}
WARM_LENGTH, MATRIX = 48, 2048
TSTCC_LOSSES: dict[str, dict[str, Any]] = {
    "no auxiliary losses": {"lambda_aux": 0.0, "tau_instance": None, "tau_temporal": None},
    "soft": {},
}


def walks(t: int, n: int = N) -> NDArray[np.float32]:
    """Random walks ``(N, 1, T)``."""
    X = np.random.default_rng(0).standard_normal((n, 1, t), dtype=np.float32)
    return np.cumsum(X, axis=-1, out=X) / np.float32(t**0.5)


def random_distances(n: int = N) -> Tensor:
    """Below 1, for nothing here is about computing them."""
    D = torch.rand(n, n, generator=torch.Generator().manual_seed(0)).triu(1)
    return D + D.T


class TextbookEncoder(nn.Module):
    """TS2Vec's network as it is described: a mask hides half of the steps, then residual blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.input = nn.Linear(1, HIDDEN)
        self.convs = nn.ModuleList(
            nn.Conv1d(n_in, WIDTHS[i + 1], 3, padding=2**i, dilation=2**i)
            for i in range(DEPTH + 1)
            for n_in in WIDTHS[i : i + 2]
        )
        self.project = nn.Conv1d(HIDDEN, DIMS, 1)

    def forward(self, x: Tensor, rng: np.random.Generator) -> Tensor:
        """Series ``(B, T, D)`` to embeddings ``(B, T, M)``."""
        hidden = torch.from_numpy(rng.binomial(1, 0.5, size=x.shape[:2])).bool()
        h = self.input(x).masked_fill(hidden[..., None], 0.0).mT  # (B, HIDDEN, T)
        for i in range(DEPTH + 1):
            out = self.convs[2 * i + 1](F.gelu(self.convs[2 * i](F.gelu(h))))
            h = out + (self.project(h) if i == DEPTH else h)
        return F.dropout(h, 0.1).mT


def textbook_contrast(z: Tensor, weights: Tensor | None) -> Tensor:
    """Each of ``(..., 2K, M)`` against all others: weights ``(K, K)``, or None: hard."""
    k = z.shape[-2] // 2
    itself = torch.eye(2 * k, dtype=torch.bool)
    log_p = (z @ z.mT).masked_fill(itself, float("-inf")).log_softmax(dim=-1)
    if weights is None:
        return -(log_p.diagonal(k, -2, -1).mean() + log_p.diagonal(-k, -2, -1).mean()) / 2
    return -(weights.repeat(2, 2) * log_p.masked_fill(itself, 0.0)).sum(dim=-1).mean()


def textbook_loss(z1: Tensor, z2: Tensor, instance: Tensor | None, tau: float | None) -> Tensor:
    """The hierarchical loss of views ``(B, T, M)``: weights ``(B, B)`` and tau, or None: hard."""
    total, level = torch.tensor(0.0), 0
    while True:
        t = z1.shape[1]
        total = total + 0.5 * textbook_contrast(torch.cat([z1, z2]).transpose(0, 1), instance)
        if t > 1:
            lags = (torch.arange(t)[:, None] - torch.arange(t)).abs()
            weights = None if tau is None else 2 * torch.sigmoid(-tau * 2**level * lags)
            total = total + 0.5 * textbook_contrast(torch.cat([z1, z2], dim=1), weights)
        level += 1
        if t == 1:
            return total / level
        z1, z2 = (F.max_pool1d(z.mT, 2).mT for z in (z1, z2))


def random_crop(rng: np.random.Generator, t: int, share: float) -> tuple[int, int, int, int]:
    """Views [first, end) and [start, last); they share [start, end), short at 0, all at 1."""
    overlap = 2 + int(share * (t - 1))
    start = int(rng.integers(0, t - overlap + 1))
    end = start + overlap
    return int(rng.integers(0, start + 1)), start, end, int(rng.integers(end, t + 1))


def fit_textbook(soft: bool, seed: int, t: int, n: int) -> None:
    """Train for n steps, series one by one out of a loader, two passes of the encoder a step."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    series: Any = [(torch.from_numpy(x.T), i) for i, x in enumerate(walks(t))]
    loader = torch.utils.data.DataLoader(series, batch_size=B, shuffle=True, drop_last=True)
    weights = torch.sigmoid(-TAUS[0] * random_distances()).fill_diagonal_(1.0) if soft else None
    encoder = TextbookEncoder()
    averaged = torch.optim.swa_utils.AveragedModel(encoder)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
    spread = (rng.permutation(n) + rng.random(n)) / max(1, n)  # uniform, but evenly
    batches = (batch for _ in range(n * B // N) for batch in loader)
    for share, (x, index) in zip(spread, batches, strict=True):
        first, start, end, last = random_crop(rng, t, share)
        rows, offsets = np.arange(B)[:, None], rng.integers(-first, t - last + 1, size=(B, 1))
        left = encoder(x[rows, offsets + np.arange(first, end)], rng)[:, start - end :]
        right = encoder(x[rows, offsets + np.arange(start, last)], rng)[:, : end - start]
        soft_targets = (None, None) if weights is None else (weights[index][:, index], TAUS[1])
        loss = textbook_loss(left, right, *soft_targets)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        averaged.update_parameters(encoder)
        loss.item()  # for the log


def check_textbook() -> None:
    """Its losses are ours, and its network has the published size."""
    from softclt import SoftContrastiveLoss

    D = random_distances(B)
    z1, z2 = 0.3 * torch.randn(2, B, 37, DIMS, generator=torch.Generator().manual_seed(0))
    weights = torch.sigmoid(-TAUS[0] * D).fill_diagonal_(1.0)
    soft, hard = SoftContrastiveLoss(*TAUS)(z1, z2, D), SoftContrastiveLoss(None, None)(z1, z2)
    torch.testing.assert_close(textbook_loss(z1, z2, weights, TAUS[1]), soft)
    torch.testing.assert_close(textbook_loss(z1, z2, None, None), hard)
    assert sum(p.numel() for p in TextbookEncoder().parameters()) == 637_248


def fit_ours(
    soft: bool,
    device: str,
    seed: int,
    t: int,
    n: int,
    given: bool = True,
    precision: str = "auto",
) -> None:
    """With distances given, or its own."""
    from softclt import TS2Vec

    settings: dict[str, Any] = {"max_iter": n, "random_state": seed, "device": device}
    settings |= {"precision": precision}
    settings |= {} if soft else {"tau_instance": None, "tau_temporal": None}
    TS2Vec(**settings).fit(walks(t), distances=random_distances().numpy() if given else None)


def fit_pypots(seed: int, t: int, n: int) -> None:
    """TS2Vec of PyPOTS with the same network."""
    from pypots.representation import TS2Vec  # type: ignore[import-not-found]

    np.random.seed(seed)  # noqa: NPY002 (it draws from there)
    torch.manual_seed(seed)
    size = {"n_output_dims": DIMS, "d_hidden": HIDDEN, "n_layers": DEPTH, "batch_size": B}
    model = TS2Vec(t, 1, **size, epochs=max(1, n * B // N), device="cpu", verbose=False)
    if n > 0:  # it refuses to train for no epoch
        model.fit({"X": walks(t).swapaxes(1, 2)})


def multiply_matrices(seed: int, t: int, n: int) -> None:
    """As many products as others take steps."""
    a = torch.ones(MATRIX, MATRIX)
    for _ in range(n):
        a @ a


CONTESTANTS: dict[str, Callable[[int, int, int], None]] = {  # of seed, T, n steps
    "ours, soft": partial(fit_ours, True, "cpu"),
    "ours, hard": partial(fit_ours, False, "cpu"),
    "ours, soft, bfloat16": partial(fit_ours, True, "cpu", precision="bfloat16"),
    "textbook, soft": partial(fit_textbook, True),
    "textbook, hard": partial(fit_textbook, False),
    "pypots, hard": fit_pypots,
    "matrix product": multiply_matrices,
}


def seconds(work: Callable[..., object], *arguments: Any) -> float:
    """Of one call, until the device is done."""
    start = time.perf_counter()
    work(*arguments)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def peers(options: Namespace) -> Rows:
    """A step of ours, of the textbook way and of PyPOTS, and what the machine could do."""
    check_textbook()
    pythons = dict.fromkeys(CONTESTANTS, sys.executable) | {"pypots, hard": options.pypots_python}
    if options.pypots_python is None:
        del pythons["pypots, hard"]
        print("no --pypots-python: no rows of PyPOTS", file=sys.stderr)
    for t in options.lengths or PEER_STEPS:
        n = options.steps or PEER_STEPS.get(t, 96)
        times: dict[str, list[float]] = {name: [] for name in pythons}
        for turn, (name, python) in product(range(options.turns), pythons.items()):
            run = ["--contestant", name, turn, t, n, "--threads", torch.get_num_threads()]
            answer = subprocess.check_output([python, __file__, *map(str, run)], text=True)
            times[name].append(float(answer.splitlines()[-1]))
        medians = {name: statistics.median(own) for name, own in times.items()}
        rate = MATRIX**3 / medians.pop("matrix product")
        work, shared = multiply_adds(t), {"T": t, "n_steps": n, "device": "cpu"}
        for name, own in medians.items():
            row = {"benchmark": f"training step, {name}", **shared, "ms": round(1e3 * own, 2)}
            row |= {"ms_by_turn": [round(1e3 * turn, 2) for turn in times[name]]}
            for part in ("all_taps", "no_padding"):
                row[f"share_{part}"] = round((work[part] + work["losses"]) / own / rate, 3)
            yield row
        for (ours, name), goal in RATIO_GOALS.items():
            if name not in medians:
                continue
            by_turn = [a / b for a, b in zip(times[ours], times[name], strict=True)]
            ratio = round(statistics.median(by_turn), 3)
            row = {"benchmark": f"ratio of times, {ours} / {name}", **shared, "ratio": ratio}
            yield row | {"goal": goal, "reached": ratio <= goal}
        counts = {f"gmac_{part}": round(count / 1e9, 3) for part, count in work.items()}
        row = {"benchmark": "arithmetic of a step", **shared, **counts}
        yield row | {"matrix_product_gmac_a_second": round(rate / 1e9, 1)}


def multiply_adds(t: int) -> dict[str, float]:
    """Of one step, a mean over crops: see the top of this file."""
    rng = np.random.default_rng(0)
    first, start, end, last = np.array([random_crop(rng, t, i / 4000) for i in range(4000)]).T
    lengths, overlap = np.stack([end - first, last - start]), end - start
    taps = {2**i: WIDTHS[i + 1] * (WIDTHS[i] + WIDTHS[i + 1]) for i in range(DEPTH + 1)}
    centre = lengths * (HIDDEN + HIDDEN * DIMS + sum(taps.values()))  # and layers of one tap
    inside = sum(2 * tap * np.maximum(0, lengths - dilation) for dilation, tap in taps.items())
    losses = 0.0
    while overlap.any():
        along = B * np.where(overlap > 1, 2 * overlap, 0) ** 2
        losses += 2 * DIMS * float(np.mean(along + overlap * (2 * B) ** 2))
        overlap //= 2
    everywhere = 2 * lengths * sum(taps.values())
    encoder = {"all_taps": centre + everywhere, "no_padding": centre + inside}
    return {part: 6 * B * own.mean() for part, own in encoder.items()} | {"losses": losses}


def steps(options: Namespace) -> Rows:
    """One model in steady state."""
    return steady(partial(fit_ours, True, options.device, 0), 1, {128: 3.5, 500: 5.0}, options)


def many(options: Namespace) -> Rows:
    """The taus of the paper's grid trained side by side."""
    import softclt

    def fit(t: int, n: int) -> None:
        shared: dict[str, Any] = {"max_iter": n, "random_state": 0, "device": options.device}
        models = [softclt.TS2Vec(tau_instance=i, tau_temporal=k, **shared) for i, k in taus]
        fit_many(models, walks(t))

    taus = PAPER_TAUS[: options.models]
    fit_many: Any = getattr(softclt, "fit_many", None)
    if fit_many is None:
        print("this softclt has no fit_many: no rows of it", file=sys.stderr)
        return iter(())
    return steady(fit, len(taus), {128: 0.3, 500: 1.0}, options)


def tstcc(options: Namespace) -> Rows:
    """TS-TCC on series like HAR's, B = 128 and D = 9: one model, ten, and ten with soft losses."""
    from softclt import TSTCC, fit_many

    between = random_distances(4 * N).numpy()
    for (title, losses), n_models in product(TSTCC_LOSSES.items(), (1, 10)):

        def fit(t: int, n: int) -> None:
            shared: dict[str, Any] = {"max_iter": n, "device": options.device, **losses}  # noqa: B023
            models = [TSTCC(random_state=seed, **shared) for seed in range(n_models)]  # noqa: B023
            X = np.random.default_rng(0).standard_normal((4 * N, 9, t), dtype=np.float32)
            fit_many(models, X, distances=between)

        rows = steady(fit, n_models, dict.fromkeys(options.lengths or [128]), options)
        yield from (row | {"benchmark": f"TS-TCC step, {title}", "B": 128, "D": 9} for row in rows)


def steady(fit: Fit, models: int, goals: Mapping[int, float | None], options: Namespace) -> Rows:
    """Milliseconds of one more step of one model; a first fit is not counted."""
    n = options.steps or 200
    for t in options.lengths or goals:
        fit(t, n)
        turns = [seconds(fit, t, 3 * n) - seconds(fit, t, n) for _ in range(options.turns)]
        ms = 1e3 * statistics.median(turns) / (2 * n * models)
        row = {"benchmark": "training step in steady state", "T": t, "models": models}
        yield row | against(goals.get(t), "ms_a_model", ms, options)


def whole_fit(options: Namespace) -> Rows:
    """All that one waits for in 200 steps, distances too: the first, a warm one, another seed."""
    for state, seed in {"cold": 0, "warm": 0, "warm, another seed": 1}.items():
        duration = seconds(fit_ours, True, options.device, seed, 128, 200, False)
        row = {"benchmark": f"whole fit, {state}", "T": 128, "n_steps": 200}
        yield row | against(3.0, "seconds", duration, options)


def encode(options: Namespace) -> Rows:
    """Vectors of 100,000 series, from and to the host's memory; the first time is not counted."""
    from softclt import TS2Vec

    model = TS2Vec(max_iter=0, tau_instance=None, device=options.device).fit(walks(128))
    X = walks(128, 100_000)
    _, *warm = (seconds(model.transform, X) for _ in range(1 + options.turns))
    row = {"benchmark": "encode", "T": 128, "series": len(X)}
    yield row | against(3.0, "seconds", statistics.median(warm), options)


def against(goal: float | None, name: str, value: float, options: Namespace) -> dict[str, Any]:
    """A column, and on a GPU whether it is as low as was wanted of an H200."""
    if goal is None or options.device == "cpu":
        return {name: round(value, 3)}
    return {name: round(value, 3), "goal": goal, "reached": value <= goal}


QUESTIONS = {
    "peers": peers,
    "steps": steps,
    "fit": whole_fit,
    "many": many,
    "encode": encode,
    "tstcc": tstcc,
}


def main() -> None:
    """Print the rows of the questions asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", nargs="+", choices=QUESTIONS, help="default: peers on a CPU, else all others")
    add("--device", default="cpu", help="of all questions but peers")
    add("--threads", type=int, default=torch.get_num_threads())
    add("--lengths", type=int, nargs="+", metavar="T", help="default: 128 500, and 1500 for peers")
    add("--steps", type=int, help="of a fit; default: by length in peers; 200 in steps and many")
    add("--turns", type=int, default=3)
    add("--models", type=int, default=len(PAPER_TAUS), help="of question many")
    add("--pypots-python", metavar="PATH", help="of an environment with PyPOTS, same torch")
    add("--contestant", nargs=4, help=SUPPRESS)  # name, seed, T, n: peers calls itself
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.contestant:
        fit, (seed, t, n) = CONTESTANTS[options.contestant[0]], map(int, options.contestant[1:])
        fit(seed, WARM_LENGTH, N // B)
        print((seconds(fit, seed, t, n) - seconds(fit, seed, t, 0)) / n)
        return
    if (options.steps or 0) * B % N:
        parser.error(f"--steps {options.steps}: an epoch has {N // B} steps; take a multiple")
    gpu = options.device.startswith("cuda")
    where = {"device": torch.cuda.get_device_name() if gpu else "cpu", "threads": options.threads}
    where |= {"B": B, "D": 1, "load_before": round(os.getloadavg()[0], 2)}
    for question in options.only or (
        ["steps", "fit", "many", "encode", "tstcc"] if gpu else ["peers"]
    ):
        for row in QUESTIONS[question](options):
            print(json.dumps(row | where | row), flush=True)


if __name__ == "__main__":
    main()
