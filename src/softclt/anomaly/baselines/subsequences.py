"""The classics on overlapping windows: their principal components, neighbours, and isolation."""

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import NearestNeighbors

from softclt.anomaly.baselines.channels import ChannelScorer, without_gaps
from softclt.anomaly.patching import FARTHEST, by_overlap, in_blocks, patches_of
from softclt.anomaly.scorers import evenly_drawn, scorers
from softclt.optional import needed
from softclt.validation import Floats, Floats64, check_range

_LEAST_SPREAD = 1e-8  # of a window, relative to its values, that is more than rounding


class WindowScorer(ChannelScorer):
    """Each window of a channel gets a score, each step the mean of the windows that cover it.

    Channels are in units of the training series' standard deviation.
    """

    window: int

    def _learn(self, series: list[Floats64]) -> None:
        check_range(self.window, "window", 2)
        whole = np.concatenate(series, axis=1)
        mean, std = (np.array([f(x[~np.isnan(x)]) if (~np.isnan(x)).any() else 0.0 for x in whole])
                     for f in (np.mean, np.std))  # fmt: skip
        self.mean_, self.std_ = mean, np.where(std > 0, std, 1.0)
        self.width_ = max(2, min(self.window, max(x.shape[1] for x in series) // 4))
        self.models_ = []
        for d in range(len(whole)):
            channels = [self._scaled(d, x[d]) for x in series if not np.isnan(x[d]).all()]
            self.models_.append(self._model_of([x for x in channels if len(x) >= self.width_]))

    def _scaled(self, channel: int, x: Floats64) -> Floats64:
        scaled = (without_gaps(x) - self.mean_[channel]) / self.std_[channel]
        return np.asarray(np.clip(scaled, -FARTHEST, FARTHEST))

    def _score_channel(self, channel: int, x: Floats64) -> Floats64:
        if len(x) < self.width_ or self.models_[channel] is None:
            return np.full(len(x), np.nan)
        found = self._of_windows(self.models_[channel], self._scaled(channel, x))
        return by_overlap(found, self.width_)

    @abstractmethod
    def _of_windows(self, model: Any, x: Floats64) -> Floats64:
        """A score of each window of a channel, ``(T - width + 1,)``."""

    def _drawn(self, channels: list[Floats64], size: int, seed: Any = 0) -> Floats64:
        """At most so many windows, drawn evenly."""
        counts = [np.arange(len(x) - self.width_ + 1) for x in channels]
        chosen = evenly_drawn(counts, size, seed)
        pairs = zip(channels, chosen, strict=True)
        return np.concatenate([patches_of(x, self.width_)[own] for x, own in pairs])

    @abstractmethod
    def _model_of(self, channels: list[Floats64]) -> Any:
        """What is learned of a channel in several series; None if there is none."""


class EachWindowScorer(WindowScorer):
    """A scorer that looks at one window after the other."""

    def _of_windows(self, model: Any, x: Floats64) -> Floats64:
        windows = patches_of(x, self.width_)
        blocks = in_blocks(len(windows), self.width_)
        return np.concatenate([self._strangeness(model, windows[own]) for own in blocks])

    @abstractmethod
    def _strangeness(self, model: Any, windows: Floats) -> Floats64:
        """Scores of windows ``(n, width)``, ``(n,)``."""


@scorers.register("sub-pca", model=False)
class SubPCA(EachWindowScorer):
    """What the principal components of normal windows leave of a window (scikit-learn's PCA).

    Args:
        window: Its steps.
        explained: Share of the variance that the components keep.
        most: Training windows that they are learned from at most.
    """

    def __init__(self, *, window: int = 64, explained: float = 0.9, most: int = 20_000) -> None:
        self.window, self.explained, self.most = window, explained, most

    def _model_of(self, channels: list[Floats64]) -> Any:
        if not channels:
            return None
        windows = self._drawn(channels, self.most)
        if np.ptp(windows, axis=0).max() <= _LEAST_SPREAD:  # one shape: all else is left over
            return windows[0], np.zeros((0, self.width_))
        fitted = PCA(self.explained, svd_solver="full").fit(windows)
        return fitted.mean_, fitted.components_

    def _strangeness(self, model: Any, windows: Floats) -> Floats64:
        mean, components = model
        rest = windows - mean
        rest = rest - rest @ components.T @ components
        return np.asarray(np.sqrt(np.mean(rest**2, axis=1)))


@scorers.register("sub-knn", model=False)
class SubKNN(EachWindowScorer):
    """Distance of a window to its nearest neighbours among normal ones (scikit-learn's).

    Args:
        window: Its steps.
        standardised: Compare shapes alone: each window has mean 0 and spread 1.
        k: Neighbours.
        most: Training windows that are kept.
    """

    def __init__(
        self, *, window: int = 64, standardised: bool = False, k: int = 3, most: int = 1000
    ) -> None:
        self.window, self.standardised, self.k, self.most = window, standardised, k, most

    def _model_of(self, channels: list[Floats64]) -> Any:
        if not channels:
            return None
        windows = self._compared(self._drawn(channels, self.most))
        return NearestNeighbors(n_neighbors=min(self.k, len(windows))).fit(windows)

    def _strangeness(self, model: Any, windows: Floats) -> Floats64:
        far = model.kneighbors(self._compared(windows))[0].mean(axis=1)
        return np.asarray(far / np.sqrt(self.width_))

    def _compared(self, windows: Floats) -> Floats64:
        if not self.standardised:
            return np.asarray(windows, np.float64)
        own = windows - windows.mean(axis=1, keepdims=True)
        spread = own.std(axis=1, keepdims=True)
        flat = spread <= _LEAST_SPREAD * np.abs(windows).max(axis=1, keepdims=True)
        return np.where(flat, 0.0, own / np.where(flat, 1.0, spread))


@scorers.register("isolation-forest", model=False)
class IsolationWindows(EachWindowScorer):
    """How few random cuts set a window apart from normal ones (scikit-learn's isolation forest).

    Args:
        window: Its steps.
        trees: Of the forest.
        most: Training windows that it is learned from.
        random_state: Of the forest.
    """

    def __init__(
        self, *, window: int = 16, trees: int = 100, most: int = 10_000, random_state: Any = None
    ) -> None:
        self.window, self.trees, self.most = window, trees, most
        self.random_state = random_state

    def _model_of(self, channels: list[Floats64]) -> Any:
        if not channels:
            return None
        seed = 0 if self.random_state is None else self.random_state
        windows = self._drawn(channels, self.most, seed)
        return IsolationForest(n_estimators=self.trees, random_state=seed).fit(windows)

    def _strangeness(self, model: Any, windows: Floats) -> Floats64:
        return -np.asarray(model.score_samples(windows), np.float64)


@scorers.register("matrix-profile", model=False)
class MatrixProfile(WindowScorer):
    """Distance of a window's shape to the nearest of all training windows (stumpy's AB-join).

    Costs the product of both lengths. Needs stumpy: ``pip install "softclt[anomaly]"``.

    Args:
        window: Its steps.
    """

    def __init__(self, *, window: int = 64) -> None:
        self.window = window

    def _model_of(self, channels: list[Floats64]) -> Any:
        _stumpy()
        return np.concatenate([np.r_[x, np.nan] for x in channels])[:-1] if channels else None

    def _of_windows(self, model: Any, x: Floats64) -> Floats64:
        if self.width_ < 3 or len(x) < 3:  # stumpy's least
            return np.full(len(x) - self.width_ + 1, np.nan)
        found = _stumpy().stump(x, self.width_, model, ignore_trivial=False)[:, 0]
        far = np.asarray(found, np.float64)
        return np.where(np.isfinite(far), far, np.nan)


def _stumpy() -> Any:
    with needed('the matrix profile needs stumpy: pip install "softclt[anomaly]"'):
        import stumpy
    return stumpy
