"""The warping recursion over many pairs at once, a pair in each lane.

Rows of the cost matrix are taken four at a time: the values to the left stay in registers, and only
the last of the four rows goes through memory. A lane shorter than its neighbours is padded at the
end of both series with one far value: real against far costs more than any path, far against far
nothing, so the best path of the larger matrix is that of the pair and then free to the corner.
"""

import numpy as np

from softclt.compilation import compiled
from softclt.distances.lanes import WIDTH, add_square, if_less, load, smaller, spread, store
from softclt.distances.registration import Floats, Floats64, Ints, Ragged

ROWS = 4
_UNROLLED = 8  # channels

# Squares of the far value are finite and above every sum of squares of the values that `prepare`
# lets in.
_FAR = {np.dtype(np.float32): 1e18, np.dtype(np.float64): 1e150}


def half_widths(n: Ints, m: Ints, window: float) -> Ints:
    """Cells by which a path may leave the diagonal; enough to reach the end if n and m differ."""
    widest = np.floor(window * np.maximum(n, m)).astype(np.int64)
    widths: Ints = np.maximum(widest, np.abs(n - m))
    return widths


def common_precision(x: Ragged, y: Ragged) -> tuple[Ragged, Ragged]:
    """Both in float32 if they are, else both in float64."""
    if x.values.dtype == y.values.dtype == np.float32:
        return x, y
    return x.astype(np.float64), y.astype(np.float64)


def align(
    x: Ragged,
    y: Ragged,
    rows: Ints,
    cols: Ints,
    window: float | None,
    *,
    count_diagonals: bool = False,
    bound: float = np.inf,
) -> tuple[Floats64, Ints]:
    """Summed squares along the best path of each pair, and its diagonal steps, ``(P,)`` each.

    Of several best paths the one counts that, seen from its end, prefers the diagonal, then the
    step back in x, then the one in y.

    Args:
        x, y: Series without missing steps, both float32 or both float64.
        rows, cols: The pairs, ``(P,)`` each. They are quickest where neighbours share a series.
        window: Half-width of the Sakoe-Chiba band as a share of the longer series.
        count_diagonals: Else the diagonal steps are not counted, which is quicker.
        bound: A pair may be given up, as infinite, when its sum must become larger.
    """
    n, m = x.lengths[rows], y.lengths[cols]
    totals, diagonals = np.empty(len(rows)), np.zeros(len(rows), np.int64)
    if len(rows) == 0:
        return totals, diagonals
    d = len(x.values)
    bands = None if window is None else half_widths(n, m, window)
    order = np.arange(len(rows))
    if np.ptp(n) > 0 or np.ptp(m) > 0:  # like with like, so that lanes need little padding
        order = np.lexsort((m, n) if bands is None else (m, n, np.maximum(n, m), bands))
    _align_groups(
        np.ascontiguousarray(x.values),
        x.starts,
        np.ascontiguousarray(y.values),
        y.starts,
        rows,
        cols,
        order,
        bands,
        tuple(range(1, d)) if d <= _UNROLLED else None,
        bound,
        _FAR[x.values.dtype],
        totals,
        diagonals if count_diagonals else None,
    )
    return totals, diagonals


@compiled
def _align_groups(
    x: Floats,
    x_starts: Ints,
    y: Floats,
    y_starts: Ints,
    rows: Ints,
    cols: Ints,
    order: Ints,
    bands: Ints | None,
    more: tuple[int, ...] | None,
    bound: float,
    far: float,
    totals: Floats64,
    diagonals: Ints | None,
) -> None:
    """Fill lanes with pairs in their order, walk the matrices, write the results."""
    d, lanes = x.shape[0], WIDTH // x.itemsize
    size = _padded(max(np.diff(x_starts).max(), np.diff(y_starts).max()))
    in_x, in_y = np.zeros(size * d * lanes, x.dtype), np.zeros(size * d * lanes, x.dtype)
    row, counts = np.empty((size + 1) * lanes, x.dtype), np.empty((size + 1) * lanes, x.dtype)
    held_x, held_y = np.full(lanes, -1), np.full(lanes, -1)
    done = 0
    while done < len(order):
        n, m, even, taken, i, j = 0, 0, True, 0, 0, 0
        while taken < lanes and done + taken < len(order):
            k = order[done + taken]
            if bands is not None and bands[k] != bands[order[done]]:
                break  # one band a group
            i, j = rows[k], cols[k]
            _fill(in_x, held_x, taken, i, x, x_starts, far, ROWS)
            _fill(in_y, held_y, taken, j, y, y_starts, far, 1)
            n_own, m_own = x_starts[i + 1] - x_starts[i], y_starts[j + 1] - y_starts[j]
            even = even and (taken == 0 or (n_own == n and m_own == m))
            n, m = max(n, n_own), max(m, m_own)
            taken += 1
        for spare in range(taken, lanes):  # the last pair again, so that they hinder nothing
            _fill(in_x, held_x, spare, i, x, x_starts, far, ROWS)
            _fill(in_y, held_y, spare, j, y, y_starts, far, 1)
        if not even or n % ROWS:
            n, m = _padded(n), m + 1
            if bands is not None:  # a square, so that the free path stays within the band
                n = m = max(n, _padded(m - 1))
        band = None if bands is None else bands[order[done]]
        row[:] = np.inf
        row[:lanes] = 0.0
        given_up = False
        if diagonals is not None:
            counts[:lanes] = -1.0  # the first cell comes from the border, which is no step
            _dtw_counted(in_x, in_y, row, counts, n, m, band, d)
        else:
            given_up = _dtw(in_x, in_y, row, n, m, band, d, more, bound)
        for lane in range(taken):
            k = order[done + lane]
            totals[k] = np.inf if given_up else row[m * lanes + lane]
            if diagonals is not None:
                i, j = rows[k], cols[k]
                n_own, m_own = x_starts[i + 1] - x_starts[i], y_starts[j + 1] - y_starts[j]
                free = min(n - n_own, m - m_own)  # diagonal steps from the end to the corner
                diagonals[k] = np.int64(counts[m * lanes + lane]) - free
        done += taken


@compiled
def _padded(length: int) -> int:
    """A whole number of strips, and at least one step of padding unless that is no step at all."""
    return (length + ROWS) // ROWS * ROWS


@compiled
def _fill(
    packed: Floats,
    held: Ints,
    lane: int,
    i: int,
    values: Floats,
    starts: Ints,
    far: float,
    rows: int,
) -> None:
    """Series i into a lane of ``packed``, far behind its end; or it is there already.

    Steps lie in groups of ``rows``, in each group channel after channel: ``(steps / rows, D, rows,
    lanes)``.
    """
    if held[lane] == i:
        return
    held[lane] = i
    d, lanes, start = values.shape[0], len(held), starts[i]
    length = starts[i + 1] - start
    for c in range(d):
        place = c * rows * lanes + lane
        for t in range(len(packed) // (d * lanes)):
            packed[place] = values[c, start + t] if t < length else far
            place += lanes
            if (t + 1) & (rows - 1) == 0:  # rows is a power of 2
                place += (d - 1) * rows * lanes


@compiled
def _dtw(
    x: Floats,
    y: Floats,
    row: Floats,
    n: int,
    m: int,
    band: int | None,
    d: int,
    more: tuple[int, ...] | None,
    bound: float,
) -> bool:
    """Walk the matrices strip by strip; ``row`` then holds their last row. True: given up.

    Args:
        x, y: Packed series, see `_fill`; x in groups of ROWS.
        row: The border above the first row, ``(m + 1, lanes)``: 0 and then infinite.
        n, m: Steps of all lanes, n a multiple of ROWS.
        band: Half-width in cells, None for all.
        d: Channels.
        more: All channels but the first, if they are few: the length of a tuple is known to the
            compiler, which then writes the loop over them out.
        bound: Give up when all lanes must become larger.
    """
    lanes = WIDTH // x.itemsize
    if more is not None:
        d = 1 + len(more)
    step = d * lanes
    zero, infinite = spread(row[0]), spread(row[lanes])
    for i in range(0, n, ROWS):
        first, stop = 0, m
        if band is not None:
            first, stop = max(0, i - band), min(m, i + ROWS + band)
        strip = i * step
        x0, x1 = load(x, strip), load(x, strip + lanes)
        x2, x3 = load(x, strip + 2 * lanes), load(x, strip + 3 * lanes)
        left0 = left1 = left2 = left3 = infinite
        diagonal = load(row, first * lanes)  # entry j + 1 of the row belongs to step j of y
        for j in range(first, stop):
            here = load(y, j * step)
            cost0 = cost1 = cost2 = cost3 = zero  # of all channels but the first
            for c in range(1, d):
                there, at = load(y, j * step + c * lanes), strip + c * ROWS * lanes
                cost0 = add_square(cost0, load(x, at) - there)
                cost1 = add_square(cost1, load(x, at + lanes) - there)
                cost2 = add_square(cost2, load(x, at + 2 * lanes) - there)
                cost3 = add_square(cost3, load(x, at + 3 * lanes) - there)
            above = load(row, (j + 1) * lanes)
            now0 = add_square(smaller(smaller(above, diagonal), left0), x0 - here)
            if d > 1:
                now0 = now0 + cost0
            if band is not None and abs(i - j) > band:
                now0 = infinite
            now1 = add_square(smaller(smaller(now0, left0), left1), x1 - here)
            if d > 1:
                now1 = now1 + cost1
            if band is not None and abs(i + 1 - j) > band:
                now1 = infinite
            now2 = add_square(smaller(smaller(now1, left1), left2), x2 - here)
            if d > 1:
                now2 = now2 + cost2
            if band is not None and abs(i + 2 - j) > band:
                now2 = infinite
            now3 = add_square(smaller(smaller(now2, left2), left3), x3 - here)
            if d > 1:
                now3 = now3 + cost3
            if band is not None and abs(i + 3 - j) > band:
                now3 = infinite
            diagonal, left0, left1, left2, left3 = above, now0, now1, now2, now3
            store(row, (j + 1) * lanes, now3)
        store(row, 0, infinite)
        if bound < np.inf and i % (4 * ROWS) == 0 and _all_above(row, first, stop, lanes, bound):
            return True
    return False


@compiled
def _all_above(row: Floats, first: int, stop: int, lanes: int, bound: float) -> bool:
    """Whether no cell of the row, which every path crosses, is within the bound in any lane."""
    return bool(row[(first + 1) * lanes : (stop + 1) * lanes].min() > bound)


@compiled
def _dtw_counted(
    x: Floats, y: Floats, row: Floats, counts: Floats, n: int, m: int, band: int | None, d: int
) -> None:
    """As `_dtw`, with the diagonal steps of every cell's path beside its cost.

    Every cell has one predecessor, so its count is that of the predecessor and maybe one more.
    """
    lanes = WIDTH // x.itemsize
    infinite = spread(row[lanes])
    one = spread(x.dtype.type(1))
    for i in range(n):
        first, stop = 0, m
        if band is not None:
            first, stop = max(0, i - band), min(m, i + 1 + band)
        at = (i // ROWS * d * ROWS + i % ROWS) * lanes
        left = infinite
        diagonal, count_diagonal = load(row, first * lanes), load(counts, first * lanes)
        count_left = count_diagonal
        for j in range(first, stop):
            difference = load(x, at) - load(y, j * d * lanes)
            cost = difference * difference
            for c in range(1, d):
                difference = load(x, at + c * ROWS * lanes) - load(y, (j * d + c) * lanes)
                cost = cost + difference * difference
            above, count_above = load(row, (j + 1) * lanes), load(counts, (j + 1) * lanes)
            count = if_less(above, diagonal, count_above, count_diagonal + one)
            best = smaller(above, diagonal)
            count = if_less(left, best, count_left, count)
            left = smaller(left, best) + cost
            diagonal, count_diagonal, count_left = above, count_above, count
            store(row, (j + 1) * lanes, left)
            store(counts, (j + 1) * lanes, count)
        store(row, 0, infinite)
