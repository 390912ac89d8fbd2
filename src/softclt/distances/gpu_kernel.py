"""The Triton kernel behind `softclt.distances.gpu`: DTW of one pair a lane.

The lanes of a program walk their cost matrices together, in strips of R rows that stay in
registers, C columns at a time; the last row of a strip waits in memory for the next one. So R x C
cells cost C values of y and C cells to read, and C cells to write.

Rows i of a cost matrix are steps of x, columns j steps of y. A `tensor` holds one number a lane,
or is a number of the whole program. `blocks` are tuples of them: arrays in registers, the loops
over which are unrolled. A series is the tuple of the pointers to its first values, the distance
of two values in memory, and the index of the last step, which is all FILLER.
"""

from collections.abc import Callable
from typing import Any

try:
    import triton  # type: ignore[import-not-found, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, unused-ignore]
    from triton.language import constexpr, tensor
    from triton.language import tuple as blocks
except ImportError:  # this file can be read; `check_gpu` tells those who want to run it
    triton = tl = None
    constexpr = tensor = blocks = Any

AVAILABLE = triton is not None

# They change from call to call; 1 and multiples of 16 shall not be compiled again.
_SIZES = ["x_count", "y_count", "x_last", "y_last", "pairs", "steps"]


def _jit(function: Callable[..., Any]) -> Any:
    return triton.jit(function, do_not_specialize=_SIZES) if AVAILABLE else function


@_jit
def dtw_of_pairs(
    x: tensor,
    y: tensor,
    x_lengths: tensor,
    y_lengths: tensor,
    rows: tensor,
    cols: tensor,
    window: tensor,
    scratch: tensor,
    ticket: tensor,
    out: tensor,
    x_count: tensor,
    y_count: tensor,
    x_last: tensor,
    y_last: tensor,
    pairs: tensor,
    steps: tensor,
    D: constexpr,
    R: constexpr,
    C: constexpr,
    LANES: constexpr,
    RESIDENT: constexpr,
    BANDED: constexpr,
    SQUARED: constexpr,
) -> None:
    """Take LANES pairs after LANES pairs until there are none left."""
    lane = tl.arange(0, LANES)
    nowhere = tl.full((LANES,), float("inf"), tl.float32)
    # The row above a strip: entry j + 1 belongs to column j, entry 0 to the border.
    above = scratch + tl.program_id(0).to(tl.int64) * steps * LANES + lane
    start = tl.atomic_add(ticket, LANES)
    while start < pairs:
        pair = tl.minimum(start + lane, pairs - 1)
        row = tl.load(rows + pair).to(tl.int64)
        col = tl.load(cols + pair).to(tl.int64)
        n = tl.load(x_lengths + row)
        m = tl.load(y_lengths + col)
        # One grid for all lanes: their own if that is the same and whole strips, else larger by a
        # step at least in x and in y, so that each path can leave its pair through FILLER. With a
        # band it is square, so that its corner is in the band of all.
        height = tl.max(n)
        breadth = tl.max(m)
        fits = (tl.min(n) == height) & (tl.min(m) == breadth)
        if BANDED:
            fits = fits & (height == breadth)
            height = tl.maximum(height, breadth)
            breadth = height
        fits = fits & (height % R == 0) & (breadth % C == 0)
        height = tl.where(fits, height, (height // R + 1) * R)
        breadth = tl.where(fits, breadth, (breadth // C + 1) * C)
        if BANDED:
            breadth = height
            share = tl.load(window) * tl.maximum(n, m).to(tl.float64)
            band = tl.maximum(tl.floor(share).to(tl.int32), tl.abs(n - m))
        else:
            band = n  # not looked at
        tl.store(above, tl.zeros((LANES,), tl.float32))
        for j in range(breadth):
            tl.store(above + (j + 1) * LANES, nowhere)
        for i in range(0, height, R):
            _strip(
                (x + row, x_count, x_last),
                (y + col, y_count, y_last),
                above,
                i,
                breadth,
                band,
                nowhere,
                D,
                R,
                C,
                LANES,
                RESIDENT,
                BANDED,
            )
            tl.store(above, nowhere)
        total = tl.load(above + breadth * LANES)
        if not SQUARED:
            total = tl.sqrt_rn(total)
        tl.store(out + pair, total, mask=start + lane < pairs)
        start = tl.atomic_add(ticket, LANES)


@_jit
def _strip(
    x: blocks,
    y: blocks,
    above: tensor,
    i: tensor,
    breadth: tensor,
    band: tensor,
    nowhere: tensor,
    D: constexpr,
    R: constexpr,
    C: constexpr,
    LANES: constexpr,
    RESIDENT: constexpr,
    BANDED: constexpr,
) -> None:
    """Replace the row above row i by row i + R - 1, C columns at a time."""
    first = 0
    stop = breadth
    if BANDED:
        widest = tl.max(band)
        narrowest = tl.min(band)
        first = tl.maximum(i - widest, 0) // C * C
        stop = tl.minimum((i + R + widest + C - 1) // C * C, breadth)
    left: blocks = ()
    for _ in tl.static_range(R):
        left += (nowhere,)
    corner = tl.load(above + first * LANES)
    x_here = x
    y_next = y
    if RESIDENT:
        x_here = _steps(x, i, D, R)
        y_next = _steps(y, first, D, C)
    up_next = _entries(above, first, C, LANES)
    for j in range(first, stop, C):
        up = up_next
        y_here = y_next
        # What the next columns need is asked for before these are computed: memory is far away.
        up_next = _entries(above, j + C, C, LANES)
        if RESIDENT:
            y_next = _steps(y, j + C, D, C)
        if BANDED:
            if (j >= i + R - 1 - narrowest) & (j + C - 1 <= i + narrowest):
                left, last = _cells(
                    x_here, y_here, left, corner, up, i, j, band, D, R, C, RESIDENT, False
                )
            else:
                left, last = _cells(
                    x_here, y_here, left, corner, up, i, j, band, D, R, C, RESIDENT, True
                )
        else:
            left, last = _cells(
                x_here, y_here, left, corner, up, i, j, band, D, R, C, RESIDENT, False
            )
        corner = up[C - 1]
        for c in tl.static_range(C):
            tl.store(above + (j + 1 + c) * LANES, last[c])


@_jit
def _cells(
    x: blocks,
    y: blocks,
    left: blocks,
    corner: tensor,
    above: blocks,
    i: tensor,
    j: tensor,
    band: tensor,
    D: constexpr,
    R: constexpr,
    C: constexpr,
    RESIDENT: constexpr,
    MASKED: constexpr,
) -> blocks:
    """R x C cells from the column left of them and the row above: their last column and row."""
    if RESIDENT:
        costs = _costs_in_registers(x, y, D, R, C)
    else:
        costs = _costs_in_memory(x, y, i, j, tl.zeros_like(corner), D, R, C)
    last: blocks = ()
    for c in tl.static_range(C):
        up = above[c]
        column: blocks = ()
        for r in tl.static_range(R):
            # No cell is negative, so integers of the same bits are in the same order; and of three
            # integers newer GPUs find the least in one step.
            best = tl.minimum(left[r].to(tl.int32, bitcast=True), corner.to(tl.int32, bitcast=True))
            best = tl.minimum(best, up.to(tl.int32, bitcast=True))
            up = best.to(tl.float32, bitcast=True)
            if D == 1:
                up = tl.fma(costs[r * C + c], costs[r * C + c], up)
            else:
                up += costs[r * C + c]
            if MASKED:
                up = tl.where(tl.abs(i - j + (r - c)) <= band, up, float("inf"))
            corner = left[r]
            column += (up,)
        left = column
        corner = above[c]
        last += (up,)
    return left, last


@_jit
def _costs_in_registers(x: blocks, y: blocks, D: constexpr, R: constexpr, C: constexpr) -> blocks:
    """Squared differences of R steps of x and C of y, (R * C,), from what `_steps` gave.

    With one channel the differences only: to square and to add them is a single step.
    """
    costs: blocks = ()
    for r in tl.static_range(R):
        for c in tl.static_range(C):
            cost = x[r * D] - y[c * D]
            if D > 1:
                cost *= cost
            for d in tl.static_range(1, D):
                difference = x[r * D + d] - y[c * D + d]
                cost = tl.fma(difference, difference, cost)
            costs += (cost,)
    return costs


@_jit
def _costs_in_memory(
    x: blocks,
    y: blocks,
    i: tensor,
    j: tensor,
    zero: tensor,
    D: constexpr,
    R: constexpr,
    C: constexpr,
) -> blocks:
    """The same for any number of channels, each read from memory where it is needed."""
    costs: blocks = ()
    for _ in tl.static_range(R * C):
        costs += (zero,)
    for d in range(D):
        x_here: blocks = ()
        for r in tl.static_range(R):
            x_here += (_value(x, i + r, d, D),)
        y_here: blocks = ()
        for c in tl.static_range(C):
            y_here += (_value(y, j + c, d, D),)
        sums: blocks = ()
        for r in tl.static_range(R):
            for c in tl.static_range(C):
                difference = x_here[r] - y_here[c]
                sums += (tl.fma(difference, difference, costs[r * C + c]),)
        costs = sums
    return costs


@_jit
def _steps(series: blocks, start: tensor, D: constexpr, STEPS: constexpr) -> blocks:
    """Steps from ``start`` on with all channels, (STEPS * D,)."""
    values: blocks = ()
    for t in tl.static_range(STEPS):
        for d in tl.static_range(D):
            values += (_value(series, start + t, d, D),)
    return values


@_jit
def _value(series: blocks, t: tensor, d: tensor, D: constexpr) -> tensor:
    """A channel of a step; of the last step, which is FILLER, for all that are beyond."""
    step = tl.minimum(t, series[2]).to(tl.int64)
    return tl.load(series[0] + (step * D + d) * series[1])


@_jit
def _entries(above: tensor, j: tensor, C: constexpr, LANES: constexpr) -> blocks:
    """The row above at columns j to j + C, (C,)."""
    values: blocks = ()
    for c in tl.static_range(C):
        values += (tl.load(above + (j + 1 + c) * LANES),)
    return values
