"""How unlike all normal patches of a series the patches around a step are."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from softclt.anomaly.bank import PatchBank, filled, known_steps
from softclt.anomaly.baselines.channels import as_channels
from softclt.anomaly.patch_stream import PatchStream
from softclt.anomaly.patching import FARTHEST, by_overlap, complete_enough, patches_of
from softclt.anomaly.scorers import evenly_drawn, scorers
from softclt.methods import load_pretrained
from softclt.silence import without_warnings
from softclt.validation import Floats, Floats64, check_choice, check_range

WINDOWS = 8, 64  # steps: what is sudden, and what has another shape
CHANNELS = ("apart", "together")
_SHARE = 4  # of the longest training series that a patch may have: one over it
_CALIBRATED = 20_000  # training steps that are scored as if they were new, at most


@scorers.register("patches", model=False)
class PatchScorer(BaseEstimator):  # type: ignore[misc]
    """Distance of the patches around a step to the nearest of a bank of normal ones.

    Patches of several lengths are compared, each with a bank of patches drawn from the training
    series. A step gets the mean distance of the patches that cover it, and of these the mean over
    lengths. Units are standard deviations of the training series, so a score of 1 means: in this
    stretch, values are off by one standard deviation.

    A gap counts as the value before it; patches that miss more than a quarter of their steps are
    not compared. Missing steps have no score; nor have series shorter than the shortest patch.
    Lengths are at most a quarter of the longest training series.

    Args:
        encoder: None compares patches as they are. An estimator embeds those of 16 steps and more
            (`PatchContrast`, trained on the series; `load_pretrained("base")`, or a name of such
            weights): see `PatchBank`. One in a FrozenEstimator stays as it is.
        windows: Lengths of patches, in steps.
        bank: Patches of each length that are kept, drawn evenly from all training series.
        k: Nearest neighbours whose mean distance counts.
        stride: Steps between patches of 16 and more; None: 1, with an encoder an eighth of a patch.
        channels: ``apart``: each channel has banks of its own; their scores are standardised and
            the largest counts. ``together``: a patch has all channels.
        random_state: Of the draw, and of the encoder.

    Attributes:
        windows_: The lengths that fit the training series.
        training_scores_: Of the training series, at most their last 20,000 steps in all, each as if
            it were new: patches that overlap it are left out of the bank.
    """

    def __init__(
        self,
        *,
        encoder: Any = None,
        windows: Sequence[int] = WINDOWS,
        bank: int = 1000,
        k: int = 3,
        stride: int | None = None,
        channels: str = "apart",
        random_state: Any = None,
    ) -> None:
        self.encoder = encoder
        self.windows = windows
        self.bank = bank
        self.k = k
        self.stride = stride
        self.channels = channels
        self.random_state = random_state

    def fit(self, series: Sequence[Floats]) -> Self:
        """Draw the banks from series ``(D, T_i)``, after training the encoder on them."""
        self._check_parameters()
        raw = [as_channels(x) for x in series]
        self.n_channels_ = len(raw[0])
        whole = np.concatenate(raw, axis=1)
        with without_warnings(RuntimeWarning):  # about channels without a value
            mean, std = np.nanmean(whole, axis=1), np.nanstd(whole, axis=1)
        self.mean_ = np.nan_to_num(mean)[:, None]
        self.std_ = np.where(std > 0, std, 1.0)[:, None]
        own = [(x - self.mean_) / self.std_ for x in raw]
        longest = max(x.shape[1] for x in own)
        most = max(1, longest // _SHARE)
        self.windows_ = sorted({min(int(width), most) for width in self.windows})
        self.encoder_ = self._trained(own)
        self.groups_ = self._groups()
        self.banks_ = [
            [self._bank_of(own, group, w) for w in self.windows_] for group in self.groups_
        ]
        self.centre_, self.spread_ = np.zeros(len(self.groups_)), np.ones(len(self.groups_))
        found = self._calibrate(own)
        if len(self.groups_) > 1:
            for g, scores in enumerate(np.concatenate(found, axis=1)):
                known = scores[~np.isnan(scores)]
                if len(known) and np.ptp(known) > 0:
                    self.centre_[g], self.spread_[g] = known.mean(), known.std()
        self.training_scores_ = [self.strongest(scores) for scores in found]
        return self

    def score(self, series: Floats) -> Floats64:
        """Scores ``(T,)`` of a series ``(D, T)``."""
        return self.strongest(self._of_groups(self._scaled(series)))

    def channel_scores(self, series: Floats) -> Floats64:
        """How strange each channel is at each step of a series, ``(D, T)``: what explains a score.

        Apart, each channel's standardised score; together, its part of the distance.
        """
        x = self._scaled(series)
        scores = self._of_groups(x)
        if self.channels == "apart":
            return self._standardised(scores)
        parts = np.full((len(self.windows_), *x.shape), np.nan)
        for bank, part in zip(self.banks_[0], parts, strict=True):
            starts = bank.starts(x)
            shares = np.full((len(x), max(0, x.shape[1] - bank.width + 1)), np.nan)
            if len(starts):
                shares[:, starts] = bank.shares(
                    patches_of(filled(x), bank.width)[:, starts].swapaxes(0, 1)
                ).T
                part[:] = [by_overlap(share, bank.width) for share in shares]
        with without_warnings(RuntimeWarning):  # about steps without a score
            share = np.nanmean(parts, axis=0)
        return np.asarray(share * scores[0])

    def stream(self) -> PatchStream:
        """Scores of a series step by step, each ``max(windows) - 1`` steps after its step."""
        check_is_fitted(self, "banks_")
        return PatchStream(self)

    def state(self) -> dict[str, NDArray[Any]]:
        """What was learned as numbers, without the encoder; `restore` takes it back."""
        check_is_fitted(self, "banks_")
        plain = ("mean_", "std_", "windows_", "centre_", "spread_")
        state = {name: np.asarray(getattr(self, name)) for name in plain}
        for g, banks in enumerate(self.banks_):
            for w, bank in enumerate(banks):
                state[f"vectors_{g}_{w}"] = bank.vectors_
                state[f"middle_{g}_{w}"] = np.asarray(bank.centre_)
        return state

    def restore(self, state: Mapping[str, NDArray[Any]], encoder: Any = None) -> Self:
        """Become what `state` was taken from.

        Args:
            state: Of `state`.
            encoder: Trained, where there was one.
        """
        self._check_parameters()
        self.mean_, self.std_ = state["mean_"], state["std_"]
        self.n_channels_, self.encoder_ = len(self.mean_), encoder
        self.groups_, self.windows_ = self._groups(), [int(w) for w in state["windows_"]]
        self.centre_, self.spread_ = state["centre_"], state["spread_"]
        self.banks_ = [
            [
                self._new_bank(width).restore(state[f"vectors_{g}_{w}"], state[f"middle_{g}_{w}"])
                for w, width in enumerate(self.windows_)
            ]
            for g in range(len(self.groups_))
        ]
        return self

    def strongest(self, scores: Floats64) -> Floats64:
        """One score ``(T,)`` of those of all groups of channels ``(G, T)``."""
        own = self._standardised(scores)
        best = np.where(np.isnan(own), -np.inf, own).max(axis=0)
        return np.where(best == -np.inf, np.nan, best)

    def _standardised(self, scores: Floats64) -> Floats64:
        return np.asarray((scores - self.centre_[:, None]) / self.spread_[:, None])

    def _scaled(self, series: Floats) -> Floats64:
        check_is_fitted(self, "banks_")
        x = as_channels(series)
        if len(x) != self.n_channels_:
            raise ValueError(f"series has {len(x)} channels; it was fitted on {self.n_channels_}")
        return np.asarray(np.clip((x - self.mean_) / self.std_, -FARTHEST, FARTHEST))

    def _of_groups(self, x: Floats64, part_of: tuple[int, int] | None = None) -> Floats64:
        """Scores of each group of channels by itself, ``(G, T)``."""
        scores = np.full((len(self.groups_), x.shape[1]), np.nan)
        for row, group, banks in zip(scores, self.groups_, self.banks_, strict=True):
            own = x[group]
            found = np.full((len(banks), x.shape[1]), np.nan)
            for scale, bank in zip(found, banks, strict=True):
                if x.shape[1] >= bank.width:
                    scale[:] = by_overlap(bank.distances(own, part_of), bank.width)
            row[:] = mean_of_known(found)
            row[~known_steps(own)] = np.nan
        return scores

    def _calibrate(self, own: Sequence[Floats64]) -> list[Floats64]:
        """Scores of the ends of training series ``(G, T)``, as if they were new."""
        most = max(4 * max(self.windows_), _CALIBRATED // len(own))
        found = []
        for i, x in enumerate(own):
            first = max(0, x.shape[1] - most)
            found.append(self._of_groups(x[:, first:], (i, first)))
        return found

    def _groups(self) -> list[list[int]]:
        """Channels that are compared together."""
        channels = list(range(self.n_channels_))
        return [[d] for d in channels] if self.channels == "apart" else [channels]

    def _new_bank(self, width: int) -> PatchBank:
        stride = 1
        if width >= 16:
            stride = self.stride or (1 if self.encoder_ is None else max(1, width // 8))
        return PatchBank(width, stride, self.k, self.encoder_)

    def _bank_of(self, own: Sequence[Floats64], group: list[int], width: int) -> PatchBank:
        bank = self._new_bank(width)
        parts = [x[group] for x in own]
        usable = [
            np.flatnonzero(complete_enough(known_steps(x), width))
            if x.shape[1] >= width
            else np.empty(0, np.int64)
            for x in parts
        ]
        if not sum(map(len, usable)):  # no stretch without gaps: what there is, filled
            usable = [np.arange(max(0, x.shape[1] - width + 1)) for x in parts]
        return bank.fit(parts, evenly_drawn(usable, self.bank, self.random_state))

    def _trained(self, own: Sequence[Floats64]) -> Any:
        if self.encoder is None:
            return None
        named = isinstance(self.encoder, str)
        encoder = load_pretrained(self.encoder) if named else clone(self.encoder)
        if self.random_state is not None and "random_state" in encoder.get_params(deep=False):
            encoder.set_params(random_state=self.random_state)
        channels = [row for x in own for row in x if not np.isnan(row).all()]
        return encoder.fit(channels, None)

    def _check_parameters(self) -> None:
        check_choice(self.channels, CHANNELS, "channels")
        check_range(self.bank, "bank", 1)
        check_range(self.k, "k", 1)
        if self.stride is not None:
            check_range(self.stride, "stride", 1)
        if not len(self.windows):
            raise ValueError("windows is empty; expected lengths of patches, e.g. (8, 64)")
        for width in self.windows:
            check_range(width, "windows", 1)


def mean_of_known(scores: Floats64) -> Floats64:
    """Mean over the first axis of what is not NaN; NaN where all is."""
    known = ~np.isnan(scores)
    n = known.sum(axis=0)
    return np.where(n > 0, np.where(known, scores, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)
