"""Models in ONNX files at work, without torch."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softclt.data.preparation import blocks_of
from softclt.data.sources import left_on_disk
from softclt.optional import needed
from softclt.progress import progress_bar
from softclt.validation import Floats, Floats32, Ints, check_series, observed_steps, series_lengths

NEEDED = "ONNX files need onnx and onnxruntime: pip install 'softclt[export]'"
_VALUES_AT_ONCE = 1 << 15
_ERRORS_ONLY = 3  # of what onnxruntime says
_KEYS = ("softclt.n_channels", "softclt.missing", "softclt.padding")


class OnnxModel:
    """A model that ``softclt export`` wrote: its ``transform`` runs without torch.

    Args:
        path: The file.
        n_threads: None takes what OMP_NUM_THREADS says, or all cores.
        providers: Of onnxruntime: where the graph runs.
        progress: Show a bar.

    Attributes:
        facts: The file's metadata: model, hash, versions.
        n_features_in_: Channels; None where any number will do.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        n_threads: int | None = None,
        providers: Sequence[str] = ("CPUExecutionProvider",),
        progress: bool = False,
    ) -> None:
        with needed(NEEDED):
            import onnxruntime
        if not Path(path).is_file():
            raise FileNotFoundError(f"{path} is not an ONNX file: there is no such file")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads or int(os.environ.get("OMP_NUM_THREADS") or 0)
        options.log_severity_level = _ERRORS_ONLY
        try:
            self._session: Any = onnxruntime.InferenceSession(
                os.fspath(path), options, providers=list(providers)
            )
        except Exception as error:  # it has a class for each kind of damage
            reason = " ".join(str(error).split())
            raise ValueError(f"{path} cannot be run as an ONNX model: {reason}") from error
        self.facts: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)
        if any(key not in self.facts for key in _KEYS):
            raise ValueError(
                f"{path} is an ONNX model, but not one that 'softclt export' wrote: its metadata "
                "do not say how series go in"
            )
        self.progress = progress
        channels = self.facts["softclt.n_channels"]
        self.n_features_in_ = None if channels == "any" else int(channels)

    def transform(self, X: Any) -> Floats32:
        """One vector a series, ``(N, M)``, as `transform` of the model that was exported.

        Args:
            X: ``(N, D, T)``, ``(N, T)``, or a list of ``(D, T_i)`` or ``(T_i,)``; NaN is missing.
                What `softclt.data.open_series` gives is read in parts.
        """
        parts: Iterable[Any]
        if (source := left_on_disk(X)) is not None:
            sets = getattr(source, "sets", [source])
            n_series = sum(map(len, sets))
            blocks = ((own, rows) for own in sets for rows in blocks_of(own.shape))
            parts = (own.take(np.arange(*rows.indices(len(own)))) for own, rows in blocks)
        else:
            X = check_series(X)
            n_series, parts = len(X), [X]
        with progress_bar("embedding", n_series, enabled=self.progress) as advance:
            found = [self._of_array(part, advance) for part in parts]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _of_array(self, X: Any, advance: Callable[[int], None]) -> Floats32:
        X = check_series(X, n_channels=self.n_features_in_)
        self._refuse_empty(X)
        out = None
        for rows, part in self._batches(X):
            (R,) = self._session.run(None, {"series": part.astype(np.float64)})
            wrong = ~np.isfinite(R).all(axis=1)
            if wrong.any():
                raise ValueError(
                    f"series {rows[wrong.argmax()]} of X has values so large that the network's "
                    "numbers overflow; use NaN for what is missing"
                )
            out = np.empty((len(X), R.shape[1]), np.float32) if out is None else out
            out[rows] = R
            advance(len(rows))
        assert out is not None
        return out

    def _refuse_empty(self, X: Floats) -> None:
        if self.facts["softclt.missing"] == "values":
            empty, words = np.isnan(X).all(axis=(1, 2)), "with a value"
        else:
            empty = ~observed_steps(X).any(axis=1)
            words = "at which all its channels have a value"
        if empty.any():
            raise ValueError(
                f"series {empty.argmax()} of X has no step {words} ({empty.sum()} such series); "
                "leave it out"
            )

    def _batches(self, X: Floats) -> Iterator[tuple[Ints, Floats]]:
        """Rows and their series, without what pads all of them; where nobody sees it, by length."""
        n, d, t = X.shape
        padding = self.facts["softclt.padding"]
        lengths = np.full(n, t) if padding == "kept" else series_lengths(X)
        order = np.argsort(lengths, kind="stable") if padding == "ignored" else np.arange(n)
        start = 0
        while start < n:
            size = max(1, _VALUES_AT_ONCE // (d * t))
            rows = order[start : start + size]
            yield rows, X[rows, :, : max(1, int(lengths[rows].max()))]
            start += size
