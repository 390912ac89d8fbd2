"""Models in ONNX files at work, without torch."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softclt.data.preparation import blocks_of
from softclt.data.sources import left_on_disk
from softclt.export.checksum import trouble
from softclt.files import too_large
from softclt.optional import needed
from softclt.progress import progress_bar
from softclt.validation import Floats, Floats32, Ints, check_series, observed_steps, series_lengths

NEEDED = "ONNX files need onnx and onnxruntime: pip install 'softclt[export]'"
_VALUES_AT_ONCE = 1 << 15
_ERRORS_ONLY = 3  # of what onnxruntime says
_COPIES = 3  # of a file that are in memory when it is opened
#: Facts that say how series go in, and what they may be.
_FACTS = {
    "softclt.n_channels": "any|[1-9][0-9]{0,8}",
    "softclt.missing": "values|steps",
    "softclt.padding": "kept|ignored|trimmed",
}


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
        self._path = Path(path)
        data = _sound(self._path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads or int(os.environ.get("OMP_NUM_THREADS") or 0)
        options.log_severity_level = _ERRORS_ONLY
        try:
            self._session: Any = onnxruntime.InferenceSession(
                data, options, providers=list(providers)
            )
        except Exception as error:  # it has a class for each kind of damage
            reason = " ".join(str(error).split())
            raise ValueError(f"{path} cannot be run as an ONNX model: {reason}") from error
        self.facts: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)
        ends = [own.name for own in (*self._session.get_inputs(), *self._session.get_outputs())]
        facts = [
            re.fullmatch(known, self.facts.get(key, "")) is not None
            for key, known in _FACTS.items()
        ]
        if ends != ["series", "embeddings"] or not all(facts):
            raise ValueError(
                f"{path} is an ONNX model, but not one that 'softclt export' wrote: it does not "
                "say how series go in"
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
            R = self._run(part)
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

    def _run(self, X: Floats) -> Floats32:
        """What the graph gives for some series."""
        try:
            (R,) = self._session.run(None, {"series": X.astype(np.float64)})
        except Exception as error:  # as in opening
            reason = " ".join(str(error).split())
            raise ValueError(
                f"{self._path} cannot be run on series of the shape {X.shape}: {reason}"
            ) from error
        if not isinstance(R, np.ndarray) or R.ndim != 2 or len(R) != len(X):
            raise ValueError(f"{self._path} does not give one vector for each series")
        return R

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


def _sound(path: Path) -> bytes:
    """The bytes of a file that is as it was written."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not an ONNX file: there is no such file")
    if problem := too_large(_COPIES * path.stat().st_size):
        raise ValueError(f"{path} is too large to load: it {problem}")
    data = path.read_bytes()
    if wrong := trouble(data):
        raise ValueError(f"{path} {wrong}")
    return data
