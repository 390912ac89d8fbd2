"""What a trained network is used for: embeddings of series, of steps and of streams."""

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from softclt import inference
from softclt.data.preparation import Scale, scaled
from softclt.data.sources import SeriesSource, left_on_disk
from softclt.encoders import Encoder
from softclt.inference import causal
from softclt.inference.stream import CausalStream
from softclt.methods.feeding import encode_source
from softclt.validation import Floats, Floats32, check_series, observed_steps, taken_out

if TYPE_CHECKING:
    import pandas as pd


class SeriesTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What scikit-learn is told of everything that turns series into vectors."""

    encode: Callable[..., NDArray[np.float32]]
    get_feature_names_out: Callable[..., NDArray[np.object_]]

    @overload
    def transform(self, X: Any, *, as_frame: Literal[False] = False) -> NDArray[np.float32]: ...

    @overload
    def transform(self, X: Any, *, as_frame: Literal[True]) -> "pd.DataFrame": ...

    def transform(self, X: Any, *, as_frame: bool = False) -> Any:
        """One vector a series, ``(N, M)``: the steps pooled as ``pooling`` says.

        Args:
            X: Series.
            as_frame: Give a pandas frame, whose index has the ids of the series where X names
                them: in a column, in its index, or as a source. ``set_output`` does so for all
                calls, as elsewhere in scikit-learn; a frame of polars has no index, so no ids.
        """
        kind = _get_output_config("transform", self)["dense"]
        if as_frame and kind == "polars":
            raise ValueError(
                "as_frame=True gives a frame of pandas, but set_output asks for polars; "
                "leave one of them out"
            )
        held = taken_out(X)
        R = self.encode(held.series, level="instance")
        a_row_each = hasattr(X, "iloc") and len(X) == len(R)  # then scikit-learn keeps X's index
        if not as_frame and (kind != "pandas" or a_row_each):
            return R
        import pandas as pd

        ids = held.ids
        if (source := left_on_disk(X)) is not None and isinstance(source, SeriesSource):
            ids = source.ids()
        index = None if ids is None else pd.Index(ids, name="id")
        return pd.DataFrame(R, index=index, columns=self._names_of(R.shape[1]))

    def _names_of(self, n_numbers: int) -> NDArray[np.object_]:
        """Names of the numbers that `transform` gave."""
        return self.get_feature_names_out()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


class Embedder(SeriesTransformer):
    """A network with the scale of the series that it was trained on, and how it is read out.

    Attributes:
        module_: The network.
        n_features_in_: Channels D of the series.
        scale_: What is removed from series before the network sees them.
    """

    pooling: str
    layers: str
    n_features_in_: int
    scale_: Scale
    module_: Encoder

    def encode(
        self,
        X: Any,
        level: str = "instance",
        *,
        window: int | None = None,
        stride: int | None = None,
        causal: bool = False,
        context: int = 200,
        layer: int | None = None,
    ) -> NDArray[np.float32]:
        """Representations at a level: see :func:`softclt.inference.encode` for the arguments."""
        if (source := left_on_disk(X)) is not None:
            options: dict[str, Any] = {"window": window, "stride": stride, "layer": layer}
            options |= {"level": level, "causal": causal, "context": context}
            return encode_source(partial(self.encode, **options), source, level)
        pooling, layers = self.read_out()
        at_steps = level != "instance" or causal
        seen = self._seen_at_steps(X, causal) if at_steps else self._seen(X)
        return inference.encode(
            self.module_,
            seen,
            level=level,
            window=window,
            stride=stride,
            causal=causal,
            context=context,
            pooling=pooling,
            layers=layers,
            layer=layer,
        )

    def encode_masked(
        self, X: Any, *, context: int = 200
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Every step from itself and ``context`` steps before it, and from those before it alone.

        Two arrays ``(N, T, M)``: what ``encode(X, "timestamp", causal=True)`` gives, and the same
        with each step's own values hidden. The two differ most where a step is a surprise.
        """
        seen = self._seen_at_steps(X, causal=True)
        return causal.encode_masked(self.module_, seen, self._reading(context))

    def last_step_change(
        self, X: Any, *, context: int = 200, norm: float = 1
    ) -> NDArray[np.float32]:
        """Distance ``(N, T)`` between the two of `encode_masked`, in memory for a part of them.

        Args:
            X: Series.
            context: How far back a step sees.
            norm: 1 sums up the differences of all dimensions; 2 is Euclidean.
        """
        if (source := left_on_disk(X)) is not None:
            own = partial(self.last_step_change, context=context, norm=norm)
            return encode_source(own, source, "timestamp")
        seen = self._seen_at_steps(X, causal=True)
        return causal.last_step_change(self.module_, seen, self._reading(context), norm)

    def stream(self, *, context: int = 200) -> CausalStream:
        """For a series that arrives step by step: its ``push`` gives the newest step's vector."""
        check_is_fitted(self, "module_")
        reading = self._reading(context)
        scaled = partial(self._scaled_at_steps, causal=True)
        return CausalStream(self.module_, reading, self.n_features_in_, scaled)

    def read_outs(
        self, X: Any, wanted: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], NDArray[np.float32]]:
        """What `transform` gives for several ``(pooling, layers)``, from one pass."""
        seen = self._seen(X)
        return inference.read_outs(self.module_, seen, wanted)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the embedding's dimensions: ts2vec0, ts2vec1, ..."""
        check_is_fitted(self, "module_")
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{i}" for i in range(self._n_numbers())], dtype=object)

    def _n_numbers(self) -> int:
        """M of `transform`."""
        pooling, layers = self.read_out()
        widths = self.module_.widths if layers == "all" else [self.module_.output_dims]
        return sum(widths) * len(pooling.split("+"))

    def _reading(self, context: int) -> causal.Lookback:
        return causal.Lookback(context, self.read_out()[1])

    def read_out(self) -> tuple[str, str]:
        """Pooling and layers of `transform`."""
        return self.pooling, self.layers

    def _seen(self, X: Any) -> Floats32:
        """Series as the fitted network sees them."""
        return self._scaled(self._checked(X), self.scale_)

    def _seen_at_steps(self, X: Any, causal: bool) -> Floats32:
        """Series as the network sees them where each step has a representation of its own."""
        return self._scaled_at_steps(self._checked(X), causal)

    def _checked(self, X: Any) -> Floats:
        check_is_fitted(self, "module_")
        series = check_series(X, n_channels=self.n_features_in_)
        self._refuse_empty(series)
        return series

    def _refuse_empty(self, X: Floats) -> None:
        """Refuse series of which nothing can be seen."""
        empty = np.flatnonzero(~observed_steps(X).any(axis=1))
        if len(empty):
            raise ValueError(
                f"series {empty[0]} of X has no step at which all its channels have a value "
                f"({len(empty)} such series); leave it out"
            )

    def _scaled(self, X: Floats, scale: Scale) -> Floats32:
        """Series as a network sees them that was trained on series of this scale."""
        return scaled(X, scale)

    def _scaled_at_steps(self, X: Floats, causal: bool) -> Floats32:
        """The same, with the steps of X; ``causal``: no value may depend on later ones."""
        if causal and isinstance(self.scale_, str):
            raise ValueError(
                f"scale is {self.scale_!r}, which looks at whole series, so that no step is "
                "encoded without its future; fit with scale='channel'"
            )
        return self._scaled(X, self.scale_)
