"""Every formula as plain loops in the paper's notation: slow, and plainly right."""

import cmath
import itertools
import math

import numpy as np

# ------------------------------------------------------------------------------------------ losses
# z1, z2 are (N, T, M) arrays, `real` (N, T) booleans, W the soft assignments, W_ii the positive's.


def anchor_loss(anchor, others, targets, normalize=False):
    """- sum_b w_b log softmax_b(r_a . r_b) over the other vectors b."""
    sims = [float(np.dot(anchor, other)) for other in others]
    top = max(sims)
    log_norm = top + math.log(sum(math.exp(s - top) for s in sims))
    total = sum(targets) if normalize else 1.0
    return sum(w / total * (log_norm - s) for w, s in zip(targets, sims, strict=True))


def instance_losses(z1, z2, W, real=None, normalize=False):
    """Loss of each anchor (2N, T), equation (3); NaN where there is no anchor."""
    n, steps = len(z1), len(z1[0])
    r = [*z1, *z2]
    losses = np.full((2 * n, steps), np.nan)
    for t in range(steps):
        there = [j for j in range(2 * n) if real is None or real[j % n][t]]
        for i in there:
            others = [j for j in there if j != i]
            targets = [float(W[i % n][j % n]) for j in others]
            losses[i, t] = anchor_loss(r[i][t], [r[j][t] for j in others], targets, normalize)
    return losses


def temporal_losses(z1, z2, W, real=None, normalize=False):
    """Loss of each anchor (N, 2T), equation (6); NaN where there is no anchor."""
    n, steps = len(z1), len(z1[0])
    losses = np.full((n, 2 * steps), np.nan)
    for i in range(n):
        r = [*z1[i], *z2[i]]
        there = [s for s in range(2 * steps) if real is None or real[i][s % steps]]
        for t in there:
            others = [s for s in there if s != t]
            targets = [float(W[t % steps][s % steps]) for s in others]
            losses[i, t] = anchor_loss(r[t], [r[s] for s in others], targets, normalize)
    return losses


def mean_of_anchors(losses):
    there = [x for x in np.ravel(losses) if not math.isnan(x)]
    return sum(there) / len(there) if there else 0.0


def instance_loss(z1, z2, W, real=None, normalize=False):
    return mean_of_anchors(instance_losses(z1, z2, W, real, normalize))


def temporal_loss(z1, z2, W, real=None, normalize=False):
    return mean_of_anchors(temporal_losses(z1, z2, W, real, normalize))


def lag_matrix(weight, length):
    """W_ts = weight(|t - s|)."""
    return [[float(weight(abs(t - s))) for s in range(length)] for t in range(length)]


def hierarchical_levels(z1, z2, W_I, W_T, lam, real=None, normalize=False):
    """Joint loss of each level; W_T(T_k, k) is a matrix. Every series keeps its own length.

    A series is a list of steps, None for a gap; what is masked at its end is not in the list.
    """
    views = []
    for z in (z1, z2):
        view = []
        for i in range(len(z)):
            series = [z[i][t] if real is None or real[i][t] else None for t in range(len(z[i]))]
            while series and series[-1] is None:
                series.pop()
            view.append(series)
        views.append(view)
    levels = []
    while True:
        longest = max(len(series) for series in views[0])
        if longest == 0:
            return levels
        width = len(z1[0][0])
        there = [
            [t < len(series) and series[t] is not None for t in range(longest)]
            for series in views[0]
        ]
        a, b = (
            [
                [series[t] if there[i][t] else np.zeros(width) for t in range(longest)]
                for i, series in enumerate(view)
            ]
            for view in views
        )
        loss = lam * instance_loss(a, b, W_I, there, normalize)
        if longest > 1:
            W = W_T(longest, len(levels))
            loss += (1 - lam) * temporal_loss(a, b, W, there, normalize)
        levels.append(loss)
        if longest == 1:
            return levels
        views = [[_pooled_series(series) for series in view] for view in views]


def _pooled_series(series):
    """Maximum over pairs of steps; a pair of gaps is a gap, an odd last step is dropped."""
    pooled = []
    for first, second in zip(series[0::2], series[1::2], strict=False):
        there = [step for step in (first, second) if step is not None]
        pooled.append(
            [max(float(step[m]) for step in there) for m in range(len(there[0]))] if there else None
        )
    return pooled


def hierarchical_loss(z1, z2, W_I, W_T, lam=0.5, real=None, normalize=False):
    """Mean over levels, the last one (T = 1, instance term only) counted."""
    levels = hierarchical_levels(z1, z2, W_I, W_T, lam, real, normalize)
    return sum(levels) / len(levels) if levels else 0.0


# -------------------------------------------------------------------------------------- distances
# x, y are (D, T) arrays with NaN where a value is missing; D is a matrix of distances.


def observed_steps_of(series):
    """The steps of a ``(D, T)`` array at which no channel is missing."""
    d, t = np.shape(series)
    steps = [[float(series[c][s]) for c in range(d)] for s in range(t)]
    return [step for step in steps if not any(math.isnan(value) for value in step)]


def dtw_costs(x, y, window=None):
    """Accumulated squared differences between all prefixes of two ``(D, T)`` arrays."""
    x, y = observed_steps_of(x), observed_steps_of(y)
    n, m = len(x), len(y)
    band = max(n, m) if window is None else max(math.floor(window * max(n, m)), abs(n - m))
    total = [[math.inf] * m for _ in range(n)]
    for i in range(n):
        for j in range(m):
            if abs(i - j) > band:
                continue
            cost = sum((a - b) ** 2 for a, b in zip(x[i], y[j], strict=True))
            before = [total[p][q] for p, q in predecessors(i, j)]
            total[i][j] = cost + (min(before) if before else 0.0)
    return total


def predecessors(i, j):
    """Cells from which a path enters (i, j): the diagonal, then i - 1, then j - 1."""
    cells = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
    return [(p, q) for p, q in cells if p >= 0 and q >= 0]


def dtw(x, y, window=None):
    return math.sqrt(dtw_costs(x, y, window)[-1][-1])


def dtw_path(x, y, window=None):
    """The best path, found from its end; the first of equally good predecessors is taken."""
    total = dtw_costs(x, y, window)
    i, j = len(total) - 1, len(total[0]) - 1
    path = [(i, j)]
    while (i, j) != (0, 0):
        i, j = min(predecessors(i, j), key=lambda cell: total[cell[0]][cell[1]])
        path.append((i, j))
    return path[::-1]


def tam_from_path(path):
    n, m = path[-1][0] + 1, path[-1][1] + 1
    if min(n, m) == 1:
        return 0.0
    delay = advance = phase = 0
    for (i, j), (i_next, j_next) in itertools.pairwise(path):
        delay += i_next == i
        advance += j_next == j
        phase += i_next != i and j_next != j
    return advance / (n - 1) + delay / (m - 1) + 1 - phase / min(n - 1, m - 1)


def tam(x, y, window=None):
    return tam_from_path(dtw_path(x, y, window))


def common_values(x, y):
    """Pairs of values at the steps that two ``(D, T)`` arrays both have in full."""
    pairs = []
    for a, b in zip(np.transpose(x), np.transpose(y), strict=True):
        if not any(math.isnan(value) for value in [*a, *b]):
            pairs.extend(zip(a, b, strict=True))
    return pairs


def euclidean(x, y):
    return math.sqrt(sum((a - b) ** 2 for a, b in common_values(x, y)))


def cosine(x, y):
    pairs = common_values(x, y)
    norm_x = math.sqrt(sum(a * a for a, _ in pairs))
    norm_y = math.sqrt(sum(b * b for _, b in pairs))
    if norm_x == 0 or norm_y == 0:
        return 0.0 if norm_x == norm_y else 1.0
    return 1 - sum(a * b for a, b in pairs) / (norm_x * norm_y)


def minmax_distances(D):
    """Every distance between two series, from the smallest to the largest of them."""
    n = len(D)
    others = [D[i][j] for i in range(n) for j in range(n) if i != j]
    low, high = min(others), max(others)
    scaled = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j and high > low:
                scaled[i, j] = (D[i][j] - low) / (high - low)
    return scaled


def max_distances(D):
    n = len(D)
    high = max(D[i][j] for i in range(n) for j in range(n) if i != j)
    return np.array([[D[i][j] / high if i != j else 0.0 for j in range(n)] for i in range(n)])


def column_distances(D):
    """The smallest distance put on the diagonal, then each column scaled by itself."""
    n = len(D)
    low = min(D[i][j] for i in range(n) for j in range(n) if i != j)
    filled = [[D[i][j] if i != j else low for j in range(n)] for i in range(n)]
    scaled = np.zeros((n, n))
    for j in range(n):
        column = [filled[i][j] for i in range(n)]
        if max(column) > min(column):
            for i in range(n):
                scaled[i, j] = (filled[i][j] - min(column)) / (max(column) - min(column))
    return scaled


def local_distances(D, k=10):
    """Half of each distance in units of both distances to the k-th neighbour, 1 at most."""
    n = len(D)
    unit = []
    for i in range(n):
        others = sorted(D[i][j] for j in range(n) if j != i)
        unit.append(others[min(k, n - 1) - 1])
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j:
                out[i, j] = min(1.0, D[i][j] / (2 * math.sqrt(unit[i] * unit[j])))
    return out


def resampled(series, length):
    """One channel with missing values: filled, cut to its ends, standardised, on an even grid."""
    there = [t for t, value in enumerate(series) if not math.isnan(value)]
    if len(there) < 2:
        return [0.0] * length
    whole = []
    for t in range(there[0], there[-1] + 1):
        before = max(s for s in there if s <= t)
        after = min(s for s in there if s >= t)
        part = 0.0 if after == before else (t - before) / (after - before)
        whole.append(series[before] * (1 - part) + series[after] * part)
    mean = sum(whole) / len(whole)
    spread = math.sqrt(sum((x - mean) ** 2 for x in whole) / len(whole))
    if spread <= 1e-8 * max(abs(x) for x in whole):
        return [0.0] * length
    whole = [(x - mean) / spread for x in whole]
    out = []
    for i in range(length):
        place = i * (len(whole) - 1) / (length - 1)
        t = min(int(place), len(whole) - 2)
        out.append(whole[t] * (1 - (place - t)) + whole[t + 1] * (place - t))
    return out


def gelu(x):
    """x times the standard normal distribution function, one number at a time."""
    return np.vectorize(lambda v: v * 0.5 * (1 + math.erf(v / math.sqrt(2))))(x)


def dilated_conv(x, weight, bias, dilation):
    """Convolution of x (C, T) with three taps `dilation` steps apart, zeros outside."""
    n_out, n_in, taps = weight.shape
    t = x.shape[1]
    out = np.zeros((n_out, t))
    for o in range(n_out):
        for s in range(t):
            out[o, s] = bias[o]
            for k in range(taps):
                source = s + (k - taps // 2) * dilation
                if 0 <= source < t:
                    for c in range(n_in):
                        out[o, s] += weight[o, c, k] * x[c, source]
    return out


def as_convolution(weight):
    """(in, out) or (taps, in, out) -> (out, in, taps)."""
    taps = weight if weight.ndim == 3 else weight[None]
    return taps.transpose(2, 1, 0)


def dilated_encoder(parameters, x, depth):
    """The encoder block by block for one series (D, T) without missing values -> (T, M).

    Parameters are those of a stack of one: weights (1, taps, in, out) or (1, in, out).
    """
    p = {
        name: np.moveaxis(value[0], -1, 0) if value.ndim == 2 else as_convolution(value[0])
        for name, value in parameters.items()
    }
    h = dilated_conv(x, p["input.weight"], p["input.bias"], 1)
    for i in range(depth + 1):
        b = f"blocks.{i}."
        inner = dilated_conv(gelu(h), p[b + "conv1.weight"], p[b + "conv1.bias"], 2**i)
        outer = dilated_conv(gelu(inner), p[b + "conv2.weight"], p[b + "conv2.bias"], 2**i)
        if i == depth:
            h = dilated_conv(h, p[b + "project.weight"], p[b + "project.bias"], 1)
        h = outer + h
    return h.T


def dtw_squared(x, y, window=None):
    return dtw_costs(x, y, window)[-1][-1]


def dtw_per_step(x, y, window=None):
    """Root of the mean squared difference along the best path instead of the sum."""
    return math.sqrt(dtw_squared(x, y, window) / len(dtw_path(x, y, window)))


# --------------------------------------------------------------------------------------- selection
# R is an (N, M) embedding, D an (N, N) matrix of distances, y labels 0, 1, ...


def embedding_distances(R):
    return [[math.dist(a, b) for b in R] for a in R]


def neighbour_sets(D, k=5):
    """Of each i the others that are no farther than its k-th nearest."""
    sets = []
    for i, row in enumerate(D):
        others = sorted(d for j, d in enumerate(row) if j != i)
        last = others[min(k, len(others)) - 1]
        sets.append({j for j, d in enumerate(row) if j != i and d <= last})
    return sets


def neighbour_overlap(one, other):
    """Mean over i of what both sets of neighbours share."""
    shares = [len(a & b) / len(a | b) for a, b in zip(one, other, strict=True)]
    return sum(shares) / len(shares)


def pearson(x, y):
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    both = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return both / math.sqrt(sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y))


def pairs_of(D):
    return [float(D[i][j]) for i, j in itertools.combinations(range(len(D)), 2)]


def alignment(R, D):
    """Minus the mean squared distance to neighbours in data space, over that of all pairs."""
    own = embedding_distances(R)
    mates = []
    for i, near in enumerate(neighbour_sets(D)):
        mates.append(sum(own[i][j] ** 2 for j in near) / len(near))
    every = [d**2 for d in pairs_of(own)]
    return -(sum(mates) / len(mates)) / (sum(every) / len(every))


def uniformity(R):
    """-log of the mean of exp(-2 |u - v|^2) over pairs of directions from the mean."""
    centre = np.mean(R, axis=0)
    directions = [(r - centre) / math.sqrt(sum((r - centre) ** 2)) for r in R]
    heat = [math.exp(-2 * d**2) for d in pairs_of(embedding_distances(directions))]
    return -math.log(sum(heat) / len(heat))


def singular_values(R):
    return [float(s) for s in np.linalg.svd(R - np.mean(R, axis=0), compute_uv=False)]


def effective_rank(R):
    values = singular_values(R)
    shares = [s / sum(values) for s in values if s > 1e-6 * max(values)]
    return math.exp(-sum(p * math.log(p) for p in shares))


def participation_ratio(R):
    values = singular_values(R)
    return sum(s**2 for s in values) ** 2 / sum(s**4 for s in values)


def two_nearest_dimension(R):
    """Count over the sum of log(second nearest / nearest); twins are left out."""
    logs = []
    for i, row in enumerate(embedding_distances(R)):
        first, second = sorted(d for j, d in enumerate(row) if j != i)[:2]
        if first > 0:
            logs.append(math.log(second / first))
    return len(logs) / sum(logs)


def ward_clusters(D, k):
    """Join the two clusters of least d^2 until k are left; d^2 by Lance and Williams for Ward."""
    clusters = {i: [i] for i in range(len(D))}
    square = {
        frozenset(pair): float(D[pair[0]][pair[1]]) ** 2
        for pair in itertools.combinations(clusters, 2)
    }
    while len(clusters) > k:
        a, b = min(itertools.combinations(clusters, 2), key=lambda pair: square[frozenset(pair)])
        n_a, n_b, between = len(clusters[a]), len(clusters[b]), square[frozenset((a, b))]
        for c in clusters.keys() - {a, b}:
            n = len(clusters[c])
            of_a, of_b = square[frozenset((a, c))], square[frozenset((b, c))]
            joined = (n_a + n) * of_a + (n_b + n) * of_b - n * between
            square[frozenset((a, c))] = joined / (n_a + n_b + n)
        clusters[a] += clusters.pop(b)
    labels = [0] * len(D)
    for name, cluster in enumerate(clusters.values()):
        for i in cluster:
            labels[i] = name
    return labels


def silhouette(D, labels):
    """Mean of (b - a) / max(a, b); a series alone in its cluster has 0."""
    shapes = []
    for i, own in enumerate(labels):
        means = {}
        for label in set(labels):
            others = [D[i][j] for j, other in enumerate(labels) if other == label and j != i]
            means[label] = sum(others) / len(others) if others else None
        a = means.pop(own)
        b = min(means.values())
        shapes.append(0.0 if a is None else (b - a) / max(a, b))
    return sum(shapes) / len(shapes)


def best_silhouette(R):
    D = embedding_distances(R)
    return max(silhouette(D, ward_clusters(D, k)) for k in range(2, min(10, len(R) - 1) + 1))


def evenness_of_neighbours(R):
    counts = [0] * len(R)
    for near in neighbour_sets(embedding_distances(R)):
        for j in near:
            counts[j] += 1
    return sum(counts) ** 2 / (len(counts) * sum(c**2 for c in counts))


def linear_cka(R, S):
    """HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L)) of the centred Gram matrices, entry by entry."""
    K, L = ((Z - Z.mean(axis=0)) @ (Z - Z.mean(axis=0)).T for Z in (R, S))

    def hsic(A, B):
        return sum(A[i, j] * B[i, j] for i in range(len(A)) for j in range(len(A)))

    return hsic(K, L) / math.sqrt(hsic(K, K) * hsic(L, L))


def ridge_without_each(R, Y, alphas):
    """Predictions (N, L) of ridges fitted N times, each without one series; the best alpha."""
    x = (R - R.mean(axis=0)) / R.std(axis=0)
    best, least = None, math.inf
    for alpha in alphas:
        said = np.zeros_like(Y)
        for i in range(len(x)):
            rest = [j for j in range(len(x)) if j != i]
            centre, level = x[rest].mean(axis=0), Y[rest].mean(axis=0)
            z = x[rest] - centre
            slopes = np.linalg.solve(z.T @ z + alpha * np.eye(x.shape[1]), z.T @ (Y[rest] - level))
            said[i] = level + (x[i] - centre) @ slopes
        error = float(((Y - said) ** 2).sum())
        if error < least:
            best, least = said, error
    return best


def explained(Y, said):
    return 1 - float(((Y - said) ** 2).sum()) / float(((Y - Y.mean(axis=0)) ** 2).sum())


def one_hot(labels, n_labels):
    return np.array([[float(label == k) for k in range(n_labels)] for label in labels])


def pseudo_label_r2(R, D, alphas):
    """Clusters in data space (2, 4, 8) read off the embedding."""
    Y = np.concatenate([one_hot(ward_clusters(D, k), k) for k in (2, 4, 8)], axis=1)
    return explained(Y, ridge_without_each(R, Y, alphas))


def nearest_neighbour_accuracy(R, y):
    right = 0
    for i, row in enumerate(embedding_distances(R)):
        nearest = min((j for j in range(len(R)) if j != i), key=lambda j: row[j])
        right += y[nearest] == y[i]
    return right / len(y)


# ------------------------------------------------------------------------------------------ causal
# encode takes a window (D, W), NaN where missing, and keep (W,), and gives (W, M).


def causal_steps(encode, X, context, hide_last=False):
    """Each step of (N, D, T) as the last one of its own window of context + 1 steps: (N, T, M)."""
    steps = []
    for x in X:
        steps.append([])
        for t in range(x.shape[1]):
            window = np.full((x.shape[0], context + 1), np.nan)
            for back in range(min(t, context) + 1):
                window[:, context - back] = x[:, t - back]
            keep = np.ones(context + 1, dtype=bool)
            keep[context] = not hide_last
            steps[-1].append(encode(window, keep)[context])
    return np.array(steps)


# -------------------------------------------------------------------------------------------- CoST
# z are (T, channels) arrays of one series; spectra are lists of complex numbers by frequency.


def dft(values, length):
    """Coefficients of the frequencies 0 to length // 2 of real values, followed by zeros."""
    spectrum = []
    for f in range(length // 2 + 1):
        c = sum(x * cmath.exp(-2j * math.pi * f * t / length) for t, x in enumerate(values))
        # Nothing turns at these two, and rounding must not decide between the phases pi and -pi.
        spectrum.append(complex(c.real, 0.0) if f == 0 or 2 * f == length else c)
    return spectrum


def inverse_dft(spectrum, length):
    """The real values that have this spectrum."""
    values = []
    for t in range(length):
        total = spectrum[0].real
        for f in range(1, length // 2 + 1):
            twice = 1 if 2 * f == length else 2  # the other half mirrors this one
            total += twice * (spectrum[f] * cmath.exp(2j * math.pi * f * t / length)).real
        values.append(total / length)
    return values


def fourier_layer(z, weight, bias, length):
    """A complex map (F, n_in, n_out) and bias (F, n_out) in each window of ``length`` steps."""
    steps, n_in = z.shape
    n_out = bias.shape[1]
    out = np.zeros((steps, n_out))
    for start in range(0, steps, length):
        spectra = [dft(z[start : start + length, i], length) for i in range(n_in)]
        for o in range(n_out):
            mapped = [
                sum(spectra[i][f] * weight[f][i][o] for i in range(n_in)) + bias[f][o]
                for f in range(length // 2 + 1)
            ]
            values = inverse_dft(mapped, length)
            for t in range(start, min(start + length, steps)):
                out[t, o] = values[t - start]
    return out


def trend(z, kernels, biases):
    """Mean of causal convolutions; kernels are (taps, n_in, n_out), the last tap is now."""
    out = np.zeros((len(z), biases[0].shape[0]))
    for kernel, bias in zip(kernels, biases, strict=True):
        for t in range(len(z)):
            out[t] += bias / len(kernels)
            for back in range(min(t + 1, len(kernel))):
                out[t] += z[t - back] @ kernel[len(kernel) - 1 - back] / len(kernels)
    return out


def queue_loss(queries, keys, queue, weights, temperature, normalize=False):
    """Each positive against the queue alone; keys and weights are lists for each query."""
    losses = []
    for query, own, targets in zip(queries, keys, weights, strict=True):
        if sum(targets) == 0:
            continue
        total = sum(targets) if normalize else 1.0
        losses.append(
            sum(
                w / total * anchor_loss(query / temperature, [key, *queue], [1] + [0] * len(queue))
                for key, w in zip(own, targets, strict=True)
            )
        )
    return sum(losses) / len(losses) if losses else 0.0


def amplitudes_and_phases(z, eps=1e-6):
    """Of series (N, T, M) at each frequency, (N, F, M) each, of unit vectors at each step."""
    spectra = []
    for series in z:
        unit = [step / math.sqrt(sum(x * x for x in step)) for step in series]
        spectra.append([dft([step[m] for step in unit], len(unit)) for m in range(len(unit[0]))])
    amplitudes, phases = [], []
    for channels in spectra:
        by_frequency = list(zip(*channels, strict=True))
        amplitudes.append(
            [[math.hypot(c.real + eps, c.imag + eps) for c in row] for row in by_frequency]
        )
        phases.append([[math.atan2(c.imag, c.real + eps) for c in row] for row in by_frequency])
    return np.array(amplitudes), np.array(phases)


def season_loss(z1, z2, W):
    """Instance losses of amplitudes and of phases, their mean."""
    views = zip(amplitudes_and_phases(z1), amplitudes_and_phases(z2), strict=True)
    return sum(instance_loss(one, two, W) for one, two in views) / 2


# ------------------------------------------------------------------------------ anomaly baselines
# x is a list of numbers, one channel.


def pareto_log_likelihood(y, shape, scale):
    total = 0.0
    for value in y:
        if shape == 0:
            total += -math.log(scale) - value / scale
        else:
            total += -math.log(scale) - (1 + 1 / shape) * math.log(1 + shape * value / scale)
    return total


def spot_stream(start, stream, risk, level, fit):
    """Alarms and thresholds of one-sided SPOT; `fit` turns excesses into (shape, scale)."""
    t, n = float(np.quantile(start, level)), len(start)
    excesses = [v - t for v in start if v > t]

    def limit():
        shape, scale = fit(np.array(excesses))
        ratio = risk * n / len(excesses)
        return t + (-scale * math.log(ratio) if shape == 0 else scale / shape * (ratio**-shape - 1))

    z, alarms, limits = limit(), [], []
    for v in stream:
        limits.append(z)
        alarms.append(v > z)
        if v > z:
            continue
        n += 1
        if v > t:
            excesses.append(v - t)
            z = limit()
    return alarms, limits


def dspot_stream(start, stream, risk, level, depth, fit):
    """DSPOT: SPOT on the distance to the mean of the last `depth` normal values."""
    away = [start[i] - sum(start[i - depth : i]) / depth for i in range(depth, len(start))]
    recent, alarms, seen = list(start[-depth:]), [], []
    for v in stream:
        distance = v - sum(recent) / depth
        flags, _ = spot_stream(away, [*seen, distance], risk, level, fit)
        alarms.append(flags[-1])
        seen.append(distance)
        if not flags[-1]:
            recent = [*recent[1:], v]
    return alarms


def mean_of_last(x, i, n):
    part = x[max(0, i - n + 1) : i + 1]
    return sum(part) / len(part)


def spectral_residual_scores(x, amplitude_window=3, score_window=40):
    """Equations of the spectral residual, with a Fourier transform by its definition."""
    last = x[-7:-1]
    slope = sum((last[5] - last[j]) / (5 - j) for j in range(5)) / 5
    values = list(x) + [last[1] + 5 * slope] * 5
    n = len(values)
    turn = [[np.exp(-2j * math.pi * k * t / n) for t in range(n)] for k in range(n)]
    spectrum = [sum(v * turn[k][t] for t, v in enumerate(values)) for k in range(n)]
    logs = [math.log(abs(f)) for f in spectrum]
    residual = [logs[k] - mean_of_last(logs, k, amplitude_window) for k in range(n)]
    back = [math.exp(residual[k]) * spectrum[k] / abs(spectrum[k]) for k in range(n)]
    salient = [abs(sum(back[k] / turn[k][t] for k in range(n)) / n) for t in range(len(x))]
    scores = []
    for t in range(len(x)):
        usual = mean_of_last(salient, t, score_window)
        scores.append(min(abs(salient[t] - usual) / usual, 10) / 10)
    return scores


def fourier_scores(x, n_terms=5, neighbourhood=21, threshold=0.6, max_gap=10, max_region=50):
    """Residual to a few Fourier terms, z-scores against neighbours, runs of one sign."""
    n, half = len(x), neighbourhood // 2
    mean = sum(x) / n
    curve = [mean] * n
    for k in range(1, n_terms):
        a = sum(v * math.cos(2 * math.pi * k * t / n) for t, v in enumerate(x)) * 2 / n
        b = sum(v * math.sin(2 * math.pi * k * t / n) for t, v in enumerate(x)) * 2 / n
        for t in range(n):
            angle = 2 * math.pi * k * t / n
            curve[t] += a * math.cos(angle) + b * math.sin(angle)
    miss = [abs(v - c) for v, c in zip(x, curve, strict=True)]
    suspects = [t for t in range(n) if miss[t] > sum(miss) / n]
    apart = []
    for t in suspects:
        around = x[max(0, t - half) : t + half + 1]
        apart.append(x[t] - sum(around) / len(around))
    centre = sum(apart) / len(apart)
    spread = math.sqrt(sum((a - centre) ** 2 for a in apart) / len(apart))
    found = [(t, (a - centre) / spread) for t, a in zip(suspects, apart, strict=True)]
    found = [(t, z) for t, z in found if abs(z) > threshold]
    regions = []
    for t, z in found:
        region = regions[-1] if regions else None
        if (
            region
            and t - region[-1][0] <= max_gap
            and t - region[0][0] < max_region
            and (z > 0) == (region[0][1] > 0)
        ):
            region.append((t, z))
        else:
            regions.append([(t, z)])
    scores = [0.0] * n
    for region in regions:
        for t in range(region[0][0], region[-1][0] + 1):
            scores[t] = sum(abs(z) for _, z in region) / len(region)
    return scores


def esd_outliers(x, most, critical):
    """Generalised ESD with median and MAD; `critical` is the value of round i = 1, 2, ..."""
    left, removed, significant = dict(enumerate(x)), [], 0
    for i in range(1, most + 1):
        middle = float(np.median(list(left.values())))
        spread = 1.4826 * float(np.median([abs(v - middle) for v in left.values()]))
        if spread == 0:
            break
        worst = max(left, key=lambda j: abs(left[j] - middle))
        if abs(left[worst] - middle) / spread > critical(len(x), i):
            significant = i
        removed.append(worst)
        del left[worst]
    return removed[:significant]


def luminol_scores(x, window, n_bins=4, pattern=2):
    """Squared differences of pattern counts before and from each step on; NaN at the ends."""
    low, height = min(x), (max(x) - min(x)) / n_bins
    symbols = [max(b for b in range(n_bins) if v >= low + b * height) for v in x]

    def counts(part):
        patterns = {}
        for i in range(len(part) - pattern + 1):
            key = tuple(part[i : i + pattern])
            patterns[key] = patterns.get(key, 0) + 1
        return patterns

    scores = [math.nan] * len(x)
    for t in range(window, len(x) - window + 1):
        before, behind = counts(symbols[t - window : t]), counts(symbols[t : t + window])
        keys = {*before, *behind}
        scores[t] = sum((behind.get(k, 0) - before.get(k, 0)) ** 2 for k in keys)
    return scores


def normal_log_density(x, mean, std):
    return -0.5 * ((x - mean) / std) ** 2 - math.log(std) - 0.5 * math.log(2 * math.pi)


def modified_elbo(x, known, z, p_x, q_z):
    """DONUT's objective for one window: missing points are left out, the prior is weakened."""
    beta = sum(known) / len(known)
    total = 0.0
    for t in range(len(x)):
        if known[t]:
            total += normal_log_density(x[t], p_x[0][t], p_x[1][t])
    for k in range(len(z)):
        total += beta * normal_log_density(z[k], 0.0, 1.0)
        total -= normal_log_density(z[k], q_z[0][k], q_z[1][k])
    return total


def adjusted_errors(errors, window):
    """(e - m) / m with m the mean of the `window` known errors before; NaN while fewer are."""
    before, scores = [], []
    for error in errors:
        if math.isnan(error):
            scores.append(math.nan)
            continue
        mean = sum(before[-window:]) / window if len(before) >= window else math.nan
        scores.append((error - mean) / mean)
        before.append(error)
    return scores


def running_levels(scores, sigmas, warmup):
    """Mean + sigmas standard deviations of all known scores up to each, after `warmup` of them."""
    known, levels = [], []
    for score in scores:
        if not math.isnan(score):
            known.append(score)
        if len(known) < max(1, warmup):
            levels.append(math.nan)
            continue
        mean = sum(known) / len(known)
        variance = sum((k - mean) ** 2 for k in known) / len(known)
        levels.append(mean + sigmas * math.sqrt(variance))
    return levels


def cleared_alarms(flags, delay):
    """Left to right, an alarm goes where one that stayed stands in the `delay` steps before."""
    kept = []
    for t, flag in enumerate(flags):
        kept.append(bool(flag) and not any(kept[max(0, t - delay) : t]))
    return kept


def on_smallest_gap(flags, times):
    """Flags on a grid of the smallest gap; nothing where a time is missing."""
    gap = min(b - a for a in times for b in times if b > a)
    grid = [False] * (int((times[-1] - times[0]) // gap) + 1)
    for flag, time in zip(flags, times, strict=True):
        if flag:
            grid[int((time - times[0]) // gap)] = True
    return grid


def delay_adjusted_counts(labels, flags, delay):
    """True positives, false positives, false negatives; segments are found or missed as a whole."""
    found = [bool(flag) for flag in flags]
    t = 0
    while t < len(labels):
        if not labels[t]:
            t += 1
            continue
        end = t
        while end < len(labels) and labels[end]:
            end += 1
        hit = any(flags[s] for s in range(t, end) if s - t <= delay)
        for s in range(t, end):
            found[s] = hit
        t = end
    pairs = list(zip(labels, found, strict=True))
    return (
        sum(1 for label, flag in pairs if label and flag),
        sum(1 for label, flag in pairs if not label and flag),
        sum(1 for label, flag in pairs if label and not flag),
    )


def nt_xent(z1, z2, temperature):
    """Two views of each series against all others by cosine: the mean over 2N anchors."""
    z = [[v / math.hypot(*row) for v in row] for row in [*z1, *z2]]
    n = len(z1)
    total = 0.0
    for a in range(2 * n):
        similar = {b: np.dot(z[a], z[b]) / temperature for b in range(2 * n) if b != a}
        others = sum(math.exp(s) for s in similar.values())
        total -= math.log(math.exp(similar[(a + n) % (2 * n)]) / others)
    return total / (2 * n)


def supervised_contrast(z1, z2, labels, temperature):
    """Views of one class against all others: the mean over anchors and positives."""
    z, n = [*z1, *z2], len(z1)
    total = 0.0
    for a in range(2 * n):
        similar = {b: np.dot(z[a], z[b]) / temperature for b in range(2 * n) if b != a}
        others = sum(math.exp(s) for s in similar.values())
        positives = [
            b
            for b in similar
            if b % n == a % n or (labels[b % n] == labels[a % n] and labels[a % n] >= 0)
        ]
        total -= sum(math.log(math.exp(similar[b]) / others) for b in positives) / len(positives)
    return temperature * total / (2 * n)


def future_contrast(future, predicted, real):
    """Each real future step against the predictions for it: the mean over those steps."""
    total, count = 0.0, 0
    for k in range(len(future[0])):
        for i in range(len(future)):
            if not real[i][k]:
                continue
            products = {
                j: np.dot(future[i][k], predicted[j][k]) for j in range(len(future)) if real[j][k]
            }
            total -= products[i] - math.log(sum(math.exp(p) for p in products.values()))
            count += 1
    return total / max(1, count)


def softmax(logits):
    return [math.exp(v) / sum(math.exp(u) for u in logits) for v in logits]


def pseudo_label_loss(weak, strong, threshold):
    """FixMatch: sure classes of weak views are labels of strong ones; a mean over all series."""
    total = 0.0
    for seen, other in zip(weak, strong, strict=True):
        likely = softmax(seen)
        if max(likely) >= threshold:
            total -= math.log(softmax(other)[likely.index(max(likely))])
    return total / len(weak)


def consistency_loss(student, teacher):
    """Squared distances of probabilities; a mean over series."""
    total = 0.0
    for own, other in zip(student, teacher, strict=True):
        total += sum((p - q) ** 2 for p, q in zip(softmax(own), softmax(other), strict=True))
    return total / len(student)


def binary_cross_entropy(logit, target):
    likely = 1 / (1 + math.exp(-logit))
    return -target * math.log(likely) - (1 - target) * math.log(1 - likely)


def relation_loss(same, other, alike):
    """Own futures are to be told from others', whose target is how alike the series are."""
    own = [binary_cross_entropy(logit, 1) for logit in same]
    others = [binary_cross_entropy(*pair) for pair in zip(other, alike, strict=True)]
    return sum(own + others) / (2 * len(same))


def recognition_loss(logits, kinds):
    """A binary question for each kind; a mean over series and kinds."""
    total = 0.0
    for row, kind in zip(logits, kinds, strict=True):
        total += sum(binary_cross_entropy(row[k], k == kind) for k in range(len(row)))
    return total / (len(logits) * len(logits[0]))


def soft_nt_xent(z1, z2, weights, temperature):
    """NT-Xent with soft targets that sum to one for each anchor."""
    z = [[v / math.hypot(*row) for v in row] for row in [*z1, *z2]]
    n = len(z1)
    total = 0.0
    for a in range(2 * n):
        similar = {b: np.dot(z[a], z[b]) / temperature for b in range(2 * n) if b != a}
        others = sum(math.exp(s) for s in similar.values())
        own = {b: weights[a % n][b % n] for b in similar}
        for b, s in similar.items():
            total -= own[b] / sum(own.values()) * math.log(math.exp(s) / others)
    return total / (2 * n)


def averaged(iterates, momentum):
    """What follows iterates as their mean at first, and by a momentum later."""
    mean = iterates[0]
    for k in range(1, len(iterates)):
        keep = min(1 - 1 / (k + 1), momentum)
        mean = keep * mean + (1 - keep) * iterates[k]
    return mean


# ---------------------------------------------------------------------------------------- read-out


def pooled(steps, real, pooling):
    """One vector of the real steps (T, M); several kinds side by side."""
    kept = [step for step, seen in zip(steps, real, strict=True) if seen]
    vector = []
    for kind in pooling.split("+"):
        for values in zip(*kept, strict=True):
            found = {
                "max": max(values),
                "mean": sum(values) / len(values),
                "positive": sum(value > 0 for value in values) / len(values),
            }
            vector.append(found[kind])
    return vector


# -------------------------------------------------------------------------------- classification


def ridge(X, Y, weights, alpha):
    """Coefficients and offset of a weighted ridge with a free mean, by its normal equations."""
    total = sum(weights)
    x_mean = sum(w * x for w, x in zip(weights, X, strict=True)) / total
    y_mean = sum(w * y for w, y in zip(weights, Y, strict=True)) / total
    xx, xy = alpha * np.eye(len(x_mean)), np.zeros((len(x_mean), len(y_mean)))
    for w, x, y in zip(weights, X, Y, strict=True):
        xx += w * np.outer(x - x_mean, x - x_mean)
        xy += w * np.outer(x - x_mean, y - y_mean)
    coefficients = np.linalg.solve(xx, xy)
    return coefficients, y_mean - x_mean @ coefficients


def left_out_by_ridge(X, Y, weights, alpha):
    """What a ridge says of each row that was fitted on all the others, with the mean of all."""
    said, mean = [], np.average(Y, axis=0, weights=weights)
    for i in range(len(X)):
        rest = [j for j in range(len(X)) if j != i]
        coefficients, offset = ridge(X[rest], Y[rest], weights[rest], alpha)
        rarer = mean - np.average(Y[rest], axis=0, weights=weights[rest])
        said.append(X[i] @ coefficients + offset + rarer)
    return np.array(said)


def signed_rank_p(differences):
    """Share of all choices of signs whose sum of ranks is as far from its middle, at least."""
    sizes = [abs(d) for d in differences]
    ranks = [
        sum(s < size for s in sizes) + (sum(s == size for s in sizes) + 1) / 2 for size in sizes
    ]
    middle = sum(ranks) / 2
    seen = abs(sum(r for r, d in zip(ranks, differences, strict=True) if d > 0) - middle)
    far = 0
    for signs in itertools.product([False, True], repeat=len(ranks)):
        far += abs(sum(r for r, s in zip(ranks, signs, strict=True) if s) - middle) >= seen
    return far / 2 ** len(ranks)


def nearest_by_cosine(queries, rows, k):
    """Places and distances (1 - cosine) of the k rows nearest to each query, nearest first."""
    found = []
    for q in queries:
        distances = []
        for i, r in enumerate(rows):
            dot = sum(a * b for a, b in zip(q, r, strict=True))
            norms = sum(a * a for a in q) ** 0.5 * sum(b * b for b in r) ** 0.5
            distances.append((1 - dot / norms, i))
        found.append(sorted(distances)[:k])
    return found


def windows(x, window, stride):
    """First steps and ends of the windows of a series of len(x) steps; the last ends with it."""
    places, start = [], 0
    while start + window < len(x):
        places.append((start, start + window))
        start += stride
    places.append((max(0, len(x) - window), len(x)))
    return sorted(set(places))


def without_overlaps(hits):
    """Of hits (id, start, end), nearest first, those that no nearer one that stays overlaps."""
    stay = []
    for name, start, end in hits:
        if not any(name == n and start < e and s < end for n, s, e in stay):
            stay.append((name, start, end))
    return stay


def adf_p_value(x):
    """Augmented Dickey-Fuller with a constant; lags by AIC on the steps that have the most of them.

    The level's t-value comes from least squares; MacKinnon's surface turns it into a p-value.
    """
    most = min(math.ceil(12 * (len(x) / 100) ** 0.25), len(x) // 2 - 2)

    def regression(lags, first):
        rows = []
        for t in range(first + 1, len(x)):
            before = [x[t - k] - x[t - k - 1] for k in range(1, lags + 1)]
            rows.append(([1.0, x[t - 1], *before], x[t] - x[t - 1]))
        X, y = (np.array(part) for part in zip(*rows, strict=True))
        beta = np.linalg.lstsq(X, y, rcond=None)[0]
        return X, beta, sum((a - b) ** 2 for a, b in zip(y, X @ beta, strict=True))

    def aic(lags):
        X, _, left = regression(lags, most)
        return len(X) * math.log(left / len(X)) + 2 * (2 + lags)

    lags = min(range(most + 1), key=aic)
    X, beta, left = regression(lags, lags)
    spread = left / (len(X) - X.shape[1]) * np.linalg.inv(X.T @ X)[1, 1]
    t = beta[1] / math.sqrt(spread)
    if t <= -1.61:
        z = 2.1659 + 1.4412 * t + 0.038269 * t**2
    else:
        z = 1.7339 + 0.93202 * t - 0.12745 * t**2 - 0.010368 * t**3
    return 0.0 if t < -18.83 else 1.0 if t > 2.74 else (1 + math.erf(z / math.sqrt(2))) / 2


def neighbourhood_loss(near, far, targets, unlabelled):
    """Neighbours are positive; of the others, a share counts as positive: PU learning."""
    total = 0.0
    for i in range(len(near)):
        own = [binary_cross_entropy(logit, 1) for logit in near[i]]
        others = []
        for logit, target in zip(far[i], targets[i], strict=True):
            share = target + (1 - target) * unlabelled
            positive, negative = (binary_cross_entropy(logit, kind) for kind in (1, 0))
            others.append(share * positive + (1 - share) * negative)
        total += (sum(own) / len(own) + sum(others) / len(others)) / 2
    return total / len(near)


def bidirectional_ends(x, read):
    """What a recurrent network holds after reading a window to its end, and to its beginning."""
    return [read(x), read(x[::-1])]


def cosine_similarity(a, b):
    return float(np.dot(a, b)) / math.sqrt(float(np.dot(a, a)) * float(np.dot(b, b)))


def ascl_targets(z1, z2, temperature, neighbours):
    """1 for the series itself; for others how near they are, times how sure that is."""
    n, targets = len(z1), np.eye(len(z1))
    for i in range(n):
        others = [j for j in range(n) if j != i]
        q = softmax([cosine_similarity(z1[i], z2[j]) / temperature for j in others])
        entropy = -sum(p * math.log(p) for p in q)
        sure = 1 - entropy / math.log(n - 1)
        for j, p in zip(others, q, strict=True):
            targets[i, j] = min(1.0, neighbours * sure * p)
    return targets


def nnclr_targets(rows, z1, z2, earlier, k):
    """1 for those of the batch that are among the k nearest of batch and queue together."""
    targets = np.eye(len(rows))
    for i, row in enumerate(rows):
        batch = {j: cosine_similarity(z1[i], z2[j]) for j, other in enumerate(rows) if other != row}
        queue = [cosine_similarity(z1[i], vector) for other, vector in earlier if other != row]
        nearest = sorted([*batch.values(), *queue], reverse=True)[:k]
        for j, similarity in batch.items():
            if similarity >= nearest[-1]:
                targets[i, j] = 1.0
    return targets


def triplet_loss(anchor, near, far, weights):
    """- log sigma(a . p) - mean over others j of the cross-entropy of a . n_j with its target."""
    n, total = len(anchor), 0.0
    for i in range(n):
        total += binary_cross_entropy(float(np.dot(anchor[i], near[i])), 1)
        others = [j for j in range(n) if j != i]
        for j in others:
            logit = float(np.dot(anchor[i], far[j]))
            total += binary_cross_entropy(logit, weights[i][j]) / len(others)
    return total / n


def patch_distances(x, bank, k):
    """Mean distance of each patch of x to the k nearest of a bank, per step of the patch."""
    width = len(bank[0])
    found = []
    for start in range(len(x) - width + 1):
        far = []
        for other in bank:
            squares = [(x[start + i] - other[i]) ** 2 for i in range(width)]
            far.append(math.sqrt(sum(squares) / width))
        nearest = sorted(far)[:k]
        found.append(sum(nearest) / len(nearest))
    return found


def mean_of_patches(scores, width):
    """Of each step the mean score of the patches that cover it."""
    steps = len(scores) + width - 1
    found = []
    for t in range(steps):
        own = [scores[s] for s in range(len(scores)) if s <= t < s + width]
        own = [score for score in own if not math.isnan(score)]
        found.append(sum(own) / len(own) if own else math.nan)
    return found


def conformal_level(scores, rate):
    """The smallest score that a new one exceeds with a probability of at most `rate`."""
    for level in sorted(scores):
        if (1 + sum(score > level for score in scores)) / (len(scores) + 1) <= rate + 1e-12:
            return level
    return max(scores)


def persistent(flags, least, of):
    """Flags at which enough of the last steps are flagged."""
    return [
        flag and sum(flags[max(0, t - of + 1) : t + 1]) >= least for t, flag in enumerate(flags)
    ]


def patch_weights(times, tau):
    """Sigmoid weights of patches (B, P) at times: of one section by lag, of others none."""
    b, p = len(times), len(times[0])
    W = [[0.0] * (b * p) for _ in range(b * p)]
    for i in range(b):
        for j in range(p):
            for k in range(p):
                lag = abs(times[i][j] - times[i][k])
                W[i * p + j][i * p + k] = 2 / (1 + math.exp(tau * lag))
    return W
