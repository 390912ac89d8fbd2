"""Scores of patches while a series comes in, with memory that does not grow."""

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from softclt.anomaly.patching import FARTHEST, complete_enough
from softclt.validation import Flags, Floats, Floats64

if TYPE_CHECKING:
    from softclt.anomaly.bank import PatchBank
    from softclt.anomaly.patches import PatchScorer


class PatchStream:
    """A function from the newest values ``(D,)`` to the score of the step `delay` before.

    A step's score waits for the last patch that covers it. The first `delay` calls give NaN;
    `finish` gives what is still due once the series has ended. Together they are the scores of the
    whole series.

    Attributes:
        delay: Steps between a value and its score.
    """

    def __init__(self, scorer: "PatchScorer") -> None:
        self._scorer = scorer
        # Patches at a stride: the last of a series, which lies off it, must find its steps due.
        strided = any(bank.stride > 1 for banks in scorer.banks_ for bank in banks)
        self.delay = max(scorer.windows_) - 1 + strided
        size = self.delay + 1
        self._values: deque[Floats64] = deque(maxlen=size)
        self._known: deque[Flags] = deque(maxlen=size)
        self._found = [[deque[float](maxlen=size) for _ in banks] for banks in scorer.banks_]
        self._n = 0  # steps so far

    def __call__(self, x: Floats) -> float:
        """Take a step ``(D,)``, and give the score of an earlier one."""
        scorer = self._scorer
        own = (np.asarray(x, np.float64) - scorer.mean_[:, 0]) / scorer.std_[:, 0]
        own = np.clip(own, -FARTHEST, FARTHEST)
        known = ~np.isnan(own)
        before = self._values[-1] if self._values else np.zeros(len(own))
        self._values.append(np.where(known, own, before))
        self._known.append(known)
        self._n += 1
        for group, banks, found in zip(scorer.groups_, scorer.banks_, self._found, strict=True):
            for bank, distances in zip(banks, found, strict=True):
                if self._n >= bank.width:
                    due = (self._n - bank.width) % bank.stride == 0
                    distances.append(self._newest(group, bank) if due else np.nan)
        return self._score(self._n - 1 - self.delay)

    def finish(self) -> list[float]:
        """Scores of the last steps, in their order; at most `delay` of them."""
        for group, banks, found in zip(
            self._scorer.groups_, self._scorer.banks_, self._found, strict=True
        ):
            for bank, distances in zip(banks, found, strict=True):
                if distances and (self._n - bank.width) % bank.stride:
                    distances[-1] = self._newest(group, bank)
        return [self._score(t) for t in range(max(0, self._n - self.delay), self._n)]

    def _newest(self, group: list[int], bank: "PatchBank") -> float:
        """Distance of the patch that has just been completed; NaN if too much of it is missing."""
        values = np.array(self._values)[-bank.width :, group].T  # (C, width)
        known = np.asarray(np.array(self._known)[-bank.width :, group].any(axis=1), dtype=bool)
        return bank.distance(values) if complete_enough(known, bank.width)[0] else np.nan

    def _score(self, step: int) -> float:
        if step < 0:
            return np.nan
        known = self._known[step - self._n]
        scores = np.full(len(self._found), np.nan)
        for g, (group, banks, found) in enumerate(
            zip(self._scorer.groups_, self._scorer.banks_, self._found, strict=True)
        ):
            if known[group].any():
                own = [self._mean(step, *pair) for pair in zip(banks, found, strict=True)]
                there = [mean for mean in own if not np.isnan(mean)]
                scores[g] = np.mean(there) if there else np.nan
        return float(self._scorer.strongest(scores[:, None])[0])

    def _mean(self, step: int, bank: "PatchBank", distances: deque[float]) -> float:
        """Of the patches of one length that cover a step."""
        last = self._n - bank.width  # first step of the newest patch
        newest = max(0, last - step)
        oldest = min(len(distances) - 1, last - step + bank.width - 1)
        own = np.array(distances)[::-1][newest : oldest + 1]
        own = own[~np.isnan(own)]
        return float(own.mean()) if len(own) else np.nan
