"""The last step of every window of a series, without running through the windows.

A network of dilated convolutions makes its last step from few of a window's steps: a block of
dilation d from every d-th, counted back from the last. And what a layer has far from both ends of a
window, it has there in every window. So a layer is kept as a table with three kinds of rows: each
step of the series once, for all windows in which it is far from the ends; those few steps of each
window from which one of its ends can be seen, and the zeros behind it; and a row of zeros. A
convolution is then a product of each tap with rows that are looked up in the table before. Nothing
is approximated.

To hide the last step from the network is a second set of those rows that see it.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softclt.validation import Flags, Ints


class Layout(NamedTuple):
    """Series one behind the other, each ``context`` steps and then one for each of its windows."""

    n_series: int
    n_windows: int
    context: int

    @property
    def n_steps(self) -> int:
        """Of all series."""
        return self.n_series * (self.context + self.n_windows)

    def ends(self) -> Ints:
        """The last step of each window."""
        steps = np.arange(self.n_steps).reshape(self.n_series, -1)
        return steps[:, self.context :].ravel()


class Tap(NamedTuple):
    """A tap of a convolution: rows of the new table that it adds to, and rows that it sees."""

    number: int
    to: slice
    seen: slice | Tensor


class Step(NamedTuple):
    """A convolution from one table to the next.

    Attributes:
        n_shared: Rows of the new table that are steps of the series; they stand first.
        n_own: Rows behind them that are steps of single windows. The row of zeros follows.
        taps: What makes these rows.
        before: Where the windows' own rows were two convolutions ago, at the start of a block.
        last: The last steps of all windows; behind them, if asked for, the hidden ones.
    """

    n_shared: int
    n_own: int
    taps: list[Tap]
    before: Tensor
    last: Tensor


class _Windows(NamedTuple):
    """Where windows begin and end.

    Attributes:
        ends: Their last steps.
        far: From there back to the first step that is observed; what lies before is zero.
        near: From there back to the last step that is observed; what lies behind is zero.
        hide: Whether the last steps are wanted hidden as well.
    """

    ends: Ints
    far: Ints
    near: Ints
    hide: bool

    def inside(self, offsets: Ints) -> Flags:
        """Whether a step is one that is not zero, ``(offsets, 1, windows)``."""
        inside: Flags = (offsets >= self.near) & (offsets <= self.far)
        return inside


class _Table(NamedTuple):
    """Where steps of windows are in a table.

    Attributes:
        offsets: How far the steps are before the end of their window, ``(offsets, 1, 1)``.
        row: ``(offsets, V, windows)``; V is 2 if the last step is also hidden.
        inside: As above.
        zero: The row of zeros.
    """

    offsets: Ints
    row: Ints
    inside: Flags
    zero: int

    def rows_at(self, offsets: Ints) -> Ints:
        """The rows of some of the offsets."""
        return self.row[np.searchsorted(self.offsets.ravel(), offsets.ravel())]

    def seen_at(self, offsets: Ints) -> Ints:
        """What a tap sees at any offsets: the row of zeros where there is nothing."""
        own, asked = self.offsets.ravel(), offsets.ravel()
        place = np.searchsorted(own, asked).clip(max=len(own) - 1)
        seen = self.inside[place] & (own[place] == asked)[:, None, None]
        return np.where(seen, self.row[place], self.zero)


def observed_ends(observed: Tensor, layout: Layout) -> tuple[Ints, Ints]:
    """From the end of each window back to its first and to its last observed step."""
    seen = observed.cpu().numpy()
    steps, ends = np.arange(len(seen)), layout.ends()
    following = np.minimum.accumulate(np.where(seen, steps, len(seen))[::-1])[::-1]
    preceding = np.maximum.accumulate(np.where(seen, steps, -1))
    return ends - following[ends - layout.context], ends - preceding[ends]


def plan(
    layout: Layout,
    dilations: tuple[int, ...],
    ends: tuple[Ints, Ints] | None,
    hide: bool,
    device: torch.device,
) -> list[Step]:
    """How to get to the last steps through convolutions with these dilations, two a block.

    Args:
        layout: The windows.
        dilations: Of all convolutions, one behind the other.
        ends: What `observed_ends` found; None where all steps of a window count.
        hide: Whether the last steps are wanted hidden as well.
        device: Where rows are looked up.
    """
    if ends is None or ((ends[0] == layout.context).all() and (ends[1] == 0).all()):
        return _plan_of_whole_windows(layout, dilations, hide, device)
    return _plan(layout, dilations, _Windows(layout.ends(), *ends, hide), device)


@lru_cache(maxsize=4)  # the parts of a long series are all alike
def _plan_of_whole_windows(
    layout: Layout, dilations: tuple[int, ...], hide: bool, device: torch.device
) -> list[Step]:
    ends = layout.ends()
    windows = _Windows(ends, np.full_like(ends, layout.context), np.zeros_like(ends), hide)
    return _plan(layout, dilations, windows, device)


def _plan(
    layout: Layout, dilations: tuple[int, ...], windows: _Windows, device: torch.device
) -> list[Step]:
    offsets, *all_offsets = _wanted(dilations, layout.context)
    n_shared = layout.n_steps
    row = np.repeat(windows.ends - offsets, 1 + windows.hide, axis=1)
    row[0, 1:] = n_shared  # what is hidden is zero
    tables = [_Table(offsets, row, windows.inside(offsets), zero=n_shared)]
    steps: list[Step] = []
    reach = 0  # how far a row sees to either side
    for d, offsets in zip(dilations, all_offsets, strict=True):
        reach += d
        n_far_from_ends = int(((offsets >= reach) & (offsets <= layout.context - reach)).sum())
        if n_far_from_ends * len(windows.ends) <= n_shared:  # one by one they are no more
            n_shared = 0
        own, table = _next_table(windows, offsets, reach, n_shared)
        start_of_block = tables[-2] if len(tables) % 2 == 0 else tables[-1]
        steps.append(
            Step(
                n_shared,
                table.zero - n_shared,
                _shared_taps(d, n_shared)
                + _own_taps(d, own, offsets, tables[-1], n_shared, device),
                torch.as_tensor(start_of_block.rows_at(offsets)[own], device=device),
                torch.as_tensor(table.row[0].ravel(), device=device),
            )
        )
        tables.append(table)
    return steps


def _wanted(dilations: Sequence[int], context: int) -> list[Ints]:
    """Offsets that each table needs, so that the last one has the ends of the windows."""
    wanted = [{0}]
    for d in reversed(dilations):
        seen = {offset + shift for offset in wanted[0] for shift in (-d, 0, d)}
        wanted.insert(0, {offset for offset in seen if 0 <= offset <= context})
    return [np.array(sorted(offsets))[:, None, None] for offsets in wanted]


def _next_table(
    windows: _Windows, offsets: Ints, reach: int, n_shared: int
) -> tuple[Flags, _Table]:
    """Which steps get rows of their own ``(offsets, V, windows)``, and where all are."""
    inside = windows.inside(offsets)
    shared = inside & (offsets - windows.near >= reach) & (windows.far - offsets >= reach)
    shared &= n_shared > 0
    needed = inside | (offsets == 0)
    own = needed & ~shared
    if windows.hide:
        own = np.concatenate([own, needed & (offsets <= reach)], axis=1)
    zero = n_shared + int(own.sum())
    row = np.repeat(np.where(shared, windows.ends - offsets, zero), own.shape[1], axis=1)
    row[own] = np.arange(n_shared, zero)
    # What does not see the last step is the same, whether that is hidden or not.
    row[:, 1:] = np.where(own[:, 1:], row[:, 1:], row[:, :1])
    return own, _Table(offsets, row, inside, zero)


def _shared_taps(d: int, n_steps: int) -> list[Tap]:
    """Taps of the steps of the series. Near its ends what they make is wrong, and never read."""
    if n_steps == 0:
        return []
    inner = max(0, n_steps - d)
    earlier, later = slice(0, inner), slice(n_steps - inner, n_steps)
    whole = slice(0, n_steps)
    return [Tap(0, later, earlier), Tap(1, whole, whole), Tap(2, earlier, later)]


def _own_taps(
    d: int, own: Flags, offsets: Ints, source: _Table, first_row: int, device: torch.device
) -> list[Tap]:
    """Taps of the steps of single windows."""
    some = own.any(axis=(1, 2))
    own, offsets = own[some], offsets[some]
    taps = []
    for number, shift in enumerate((d, 0, -d)):  # what is earlier is further from the end
        seen = source.seen_at(offsets + shift)[own]
        alive = np.flatnonzero(seen != source.zero)
        if len(alive):  # rows are in the order of their offsets: those without it stand at an end
            start, stop = alive[0], alive[-1] + 1
            to = slice(first_row + start, first_row + stop)
            taps.append(Tap(number, to, torch.as_tensor(seen[start:stop], device=device)))
    return taps
