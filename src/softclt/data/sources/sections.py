"""What `preparation` does to arrays, for series that are read batch by batch."""

from collections.abc import Callable

import numpy as np

from softclt.data.preparation import blocks_of, scale_each_series
from softclt.data.sources import SeriesSource
from softclt.validation import Floats, Floats32, Ints, observed_steps, series_lengths


class StreamedSeries(SeriesSource):
    """Series of a source as a network sees them: cut into sections, scaled.

    The same rows have the same values as after `preparation` of the whole array. Where the source
    has shards, sections of a series follow each other; elsewhere, as there, all first ones come
    first.

    Args:
        source: The series, none of them empty.
        scaled: Scales series ``(N, D, T)``.
        max_length: Series of at least twice as many steps are cut into sections.
        trimmed: Whether steps behind the end of the longest series are left out.
    """

    def __init__(
        self,
        source: SeriesSource,
        scaled: Callable[[Floats], Floats32],
        max_length: int,
        trimmed: bool,
    ) -> None:
        survey = source.survey
        self.source, self.scaled, self.name = source, scaled, source.name
        self.dtype = np.dtype(np.float32)
        t = max(2, survey.longest) if trimmed else source.shape[-1]
        self.n_sections = max(1, t // max_length)
        # As numpy.array_split has it: the first ones are longer by one.
        longer = np.arange(self.n_sections) < t % self.n_sections
        ends = np.cumsum(t // self.n_sections + longer)
        self._bounds = np.concatenate([[0], ends])
        self._kept: Ints | None = None
        n = len(source) * self.n_sections
        self.shape = n, source.shape[1], int(self._bounds[1])
        self.complete = survey.complete and t % self.n_sections == 0
        self._lengths = survey.shortest, survey.longest
        if source.shards is not None:
            self.shards = self.n_sections * source.shards
        if self.n_sections > 1:
            self._lengths = t // self.n_sections, self.shape[-1]
            if not survey.complete:
                self._look_at_sections()

    @property
    def lengths(self) -> tuple[int, int]:
        """See `SeriesSource`."""
        return self._lengths

    def take(self, rows: Ints, start: int = 0, stop: int | None = None) -> Floats32:
        """See `SeriesSource`."""
        if self._kept is not None:
            rows = self._kept[rows]
        if self.source.shards is None:
            sections, series = np.divmod(rows, len(self.source))
        else:
            series, sections = np.divmod(rows, self.n_sections)
        taken = np.full((len(rows), *self.shape[1:]), np.nan, np.float32)
        for s in np.unique(sections).tolist():
            here, (begin, end) = sections == s, self._bounds[s : s + 2].tolist()
            values = self.source.take(series[here], begin, end)
            taken[here, :, : end - begin] = self.scaled(values)
        return taken[..., start:stop]

    def _look_at_sections(self) -> None:
        """Leave out those without a value, and see how long the others are."""
        kept, shortest, longest = [], self.shape[-1], 0
        for rows in blocks_of(self.shape):
            index = np.arange(*rows.indices(len(self)))
            X = self.take(index)
            observed = observed_steps(X).any(axis=1)
            kept.append(index[observed])
            ends = series_lengths(X[observed])
            shortest = min(shortest, int(ends.min(initial=shortest)))
            longest = max(longest, int(ends.max(initial=0)))
        self._kept, self._lengths = np.concatenate(kept), (shortest, longest)
        if self.shards is not None:
            self.shards = np.searchsorted(self._kept, self.shards)
        self.shape = len(self._kept), *self.shape[1:]


class EachScaled(SeriesSource):
    """Every series of a source scaled by itself, see `scale_each_series`."""

    def __init__(self, source: SeriesSource) -> None:
        self.source, self.name, self.dtype = source, source.name, source.dtype
        self.shape, self.shards = source.shape, source.shards

    @property
    def lengths(self) -> tuple[int, int]:
        """See `SeriesSource`."""
        return self.source.lengths

    def take(self, rows: Ints, start: int = 0, stop: int | None = None) -> Floats:
        """See `SeriesSource`."""
        return scale_each_series(self.source.take(rows))[..., start:stop]
