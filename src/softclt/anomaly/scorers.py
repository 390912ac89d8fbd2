"""What makes a step strange: the table of scorers, and the two that read a model's embeddings."""

import inspect
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from softclt.methods import TS2Vec
from softclt.registry import Registry
from softclt.validation import Floats, check_known, check_range, check_series, observed_steps

ADJUST = 21  # steps of the trailing mean that a change is measured by
_STEPS_AT_ONCE = 1 << 16  # of one series, so that embeddings of a long one need not fit into memory


class Scorer(Protocol):
    """Learns from series what is normal, and scores the steps of another.

    All settings are keyword arguments of ``__init__`` with defaults. A scorer that takes ``model``,
    ``context`` or ``random_state`` gets those of the detector. One that can follow a series step by
    step has a method ``stream`` that gives a function ``x_t (D,) -> score``.
    """

    def fit(self, series: Sequence[Floats]) -> Self:
        """Learn from series ``(D, T_i)``; NaN is missing. A scorer may have nothing to learn."""
        ...

    def score(self, series: Floats) -> Floats:
        """Scores ``(T,)`` of the steps of a series ``(D, T)``: NaN where a step is not scored."""
        ...


#: Classes that follow `Scorer`. Tag ``model``: whether it reads the embeddings of a model.
scorers: Registry[type[Scorer]] = Registry("scorer")

StepScore = Callable[[Floats], float]


def new_scorer(name: str, params: Mapping[str, Any] | None = None, **fallbacks: Any) -> Scorer:
    """An unfitted scorer; ``fallbacks`` that it does not take, or that ``params`` has, are left."""
    kind = scorers[name]
    known = inspect.signature(kind).parameters
    given = dict(params or {})
    check_known(given, known, f"the scorer {name!r}", "setting")
    return kind(**{key: value for key, value in fallbacks.items() if key in known} | given)


def default_model(random_state: Any = None) -> Any:
    """The paper's choice for anomalies: soft over time, and no contrast between series."""
    return TS2Vec(lam=0.0, tau_instance=None, random_state=random_state)


class _ModelScorer:
    """What the scorers that read a model share: they fit a clone of it."""

    def __init__(self, model: Any, context: int, random_state: Any) -> None:
        self.model = model
        self.context = context
        self.random_state = random_state

    def fit(self, series: Sequence[Floats]) -> Self:
        """Train a clone of the model on the series; one in a FrozenEstimator stays as it is."""
        check_range(self.context, "context", 1)
        model = default_model() if self.model is None else clone(self.model)
        if self.random_state is not None and "random_state" in model.get_params(deep=False):
            model.set_params(random_state=self.random_state)
        self.model_ = model.fit(list(series), None)
        return self


@scorers.register("masked", model=True)
class MaskedScorer(_ModelScorer):
    """The paper's: how much the embedding of a step changes when the step itself is hidden.

    The L1 distance e between both embeddings becomes (e - m) / m, m being the mean of the 21
    distances before it; the first 21 steps are not scored. Missing steps are not scored, and left
    out of the mean.

    Args:
        model: Trained by ``fit``, as a clone; `default_model` if None.
        context: Steps before a step that its embedding sees.
        adjust: Steps of the trailing mean; 0 leaves the distances as they are.
        random_state: Of the model, instead of its own.
    """

    def __init__(
        self,
        model: Any = None,
        *,
        context: int = 200,
        adjust: int = ADJUST,
        random_state: Any = None,
    ) -> None:
        super().__init__(model, context, random_state)
        self.adjust = adjust

    def score(self, series: Floats) -> Floats:
        """Scores ``(T,)`` of a series ``(D, T)``."""
        series = check_series(series[None])[0]
        changes = self.model_.last_step_change(series[None], context=self.context)[0]
        errors = np.where(observed_steps(series[None])[0], changes, np.nan).astype(np.float64)
        return adjusted(errors, self.adjust)

    def stream(self) -> StepScore:
        """A function from the newest values ``(D,)`` to their score; keeps ``context`` steps."""
        steps = self.model_.stream(context=self.context)
        before: deque[float] = deque(maxlen=max(1, self.adjust))

        def push(x: Floats) -> float:
            error = float(steps.push_change(x))
            if np.isnan(x).any():
                return np.nan
            if self.adjust == 0:
                return error
            mean = float(np.mean(before)) if len(before) == self.adjust else np.nan
            before.append(error)
            return (error - mean) / max(mean, _TINY)

        return push


_TINY = 1e-12


def adjusted(errors: Floats, window: int = ADJUST) -> Floats:
    """(e - m) / m with m the mean of the ``window`` errors before e; NaN errors are passed over.

    Example:
        >>> adjusted(np.array([1.0, 1.0, np.nan, 3.0, 2.0]), window=2)
        array([nan, nan, nan,  2.,  0.])
    """
    if window == 0:
        return errors
    known = errors[~np.isnan(errors)]
    scores = np.full(len(known), np.nan)
    if len(known) > window:
        means = np.lib.stride_tricks.sliding_window_view(known, window)[:-1].mean(axis=-1)
        scores[window:] = (known[window:] - means) / np.maximum(means, _TINY)
    result = np.full(len(errors), np.nan)
    result[~np.isnan(errors)] = scores
    return result


@scorers.register("bank", model=True)
class BankScorer(_ModelScorer):
    """How far the embedding of a step is from those of normal steps: a bank of training steps.

    The score is the mean Euclidean distance to the ``k`` nearest of the bank. A step of the bank
    finds itself among them, so scores of training steps are a little low.

    Args:
        model: As for `MaskedScorer`.
        context: Steps before a step that its embedding sees.
        k: Neighbours.
        max_size: Steps that the bank keeps at most, drawn evenly from all training steps.
        random_state: Of the model, instead of its own, and of the draw.
    """

    def __init__(
        self,
        model: Any = None,
        *,
        context: int = 200,
        k: int = 10,
        max_size: int = 10_000,
        random_state: Any = None,
    ) -> None:
        super().__init__(model, context, random_state)
        self.k = k
        self.max_size = max_size

    def fit(self, series: Sequence[Floats]) -> Self:
        """Train the model, and keep embeddings of some steps."""
        check_range(self.k, "k", 1)
        check_range(self.max_size, "max_size", self.k)
        super().fit(series)
        series = [check_series(one[None])[0] for one in series]
        steps = [np.flatnonzero(observed_steps(one[None])[0]) for one in series]
        chosen = evenly_drawn(steps, self.max_size, self.random_state)
        bank = [self._embed(one)[own] for one, own in zip(series, chosen, strict=True) if len(own)]
        self.bank_ = np.concatenate(bank)  # (steps, M)
        return self.ready()

    def ready(self) -> Self:
        """Make the bank one that can be searched."""
        self._search = _neighbours(self.bank_, min(self.k, len(self.bank_)))
        return self

    def score(self, series: Floats) -> Floats:
        """Scores ``(T,)`` of a series ``(D, T)``."""
        series = check_series(series[None])[0]
        real = observed_steps(series[None])[0]
        scores = np.full(series.shape[-1], np.nan)
        scores[real] = self._search(self._embed(series)[real])
        return scores

    def stream(self) -> StepScore:
        """A function from the newest values ``(D,)`` to their score; keeps ``context`` steps."""
        steps = self.model_.stream(context=self.context)

        def push(x: Floats) -> float:
            newest = steps.push(x)
            return np.nan if np.isnan(x).any() else float(self._search(newest[None])[0])

        return push

    def _embed(self, series: Floats) -> Floats:
        """Causal embeddings ``(T, M)`` of a series, a stretch at a time."""
        parts: list[Floats] = []
        for start in range(0, series.shape[-1], _STEPS_AT_ONCE):
            first = max(0, start - self.context)
            stretch = series[:, first : start + _STEPS_AT_ONCE]
            options = {"level": "timestamp", "causal": True, "context": self.context}
            if not observed_steps(stretch[None]).any():  # nothing to see, and nothing is scored
                width = parts[0].shape[-1] if parts else 1
                parts.append(np.full((stretch.shape[-1] - start + first, width), np.nan))
                continue
            parts.append(self.model_.encode(stretch[None], **options)[0, start - first :])
        return np.concatenate(parts)


def evenly_drawn(steps: Sequence[Any], size: int, random_state: Any) -> list[Any]:
    """At most ``size`` of all steps, each as likely as any other; sorted within its series."""
    total = sum(map(len, steps))
    if total <= size:
        return list(steps)
    rng = np.random.default_rng(0 if random_state is None else random_state)
    taken = np.sort(rng.choice(total, size, replace=False))
    ends = np.cumsum([len(own) for own in steps])
    parts = np.split(taken, np.searchsorted(taken, ends[:-1]))
    return [own[part - (end - len(own))] for own, part, end in zip(steps, parts, ends, strict=True)]


def _neighbours(bank: Floats, k: int) -> Callable[[Floats], Floats]:
    """A function from vectors ``(n, M)`` to their mean distance to the k nearest of a bank."""
    index = NearestNeighbors(n_neighbors=k).fit(bank)
    return lambda vectors: np.asarray(index.kneighbors(vectors)[0].mean(axis=1), np.float64)
