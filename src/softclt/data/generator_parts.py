"""What synthetic series are made of: one function for each kind of part."""

import math
from collections.abc import Callable

import torch
from torch import Tensor


def standard(x: Tensor) -> Tensor:
    """Mean 0 and standard deviation 1 along the last axis."""
    x = x - x.mean(dim=-1, keepdim=True)
    return x / x.std(dim=-1, keepdim=True, correction=0).clamp_min(1e-9)


class Draws:
    """Random numbers ``(N, k)`` for N series: settings, which siblings share, and their own."""

    def __init__(self, families: int, siblings: int, t: int, random: torch.Generator) -> None:
        self.t = t
        self.s = torch.linspace(0, 1, t, device=random.device)  # (T,)
        self._families, self._siblings, self._random = families, siblings, random

    def setting(self, low: float, high: float, k: int = 1) -> Tensor:
        """Even; siblings have the same."""
        u = torch.rand(self._families, k, generator=self._random, device=self._random.device)
        return (low + (high - low) * u).repeat_interleave(self._siblings, dim=0)

    def chance(self, p: float) -> Tensor:
        """Whether a family has it."""
        return self.setting(0, 1) < p

    def one_of(self, *forms: Tensor) -> Tensor:
        """A form ``(N, T)`` for each family."""
        which = self.setting(0, len(forms)).floor()
        x = forms[0]
        for i, form in enumerate(forms[1:], start=1):
            x = torch.where(which == i, form, x)
        return x

    def size(self, low: float, high: float, k: int = 1) -> Tensor:
        """Evenly between the logarithms; siblings differ by some per cent."""
        return self.setting(math.log(low), math.log(high), k).add(self.noise(k), alpha=0.03).exp()

    def weight(self, k: int = 1) -> Tensor:
        """Of either sign, not near zero; siblings differ by some per cent."""
        u = self.setting(-1, 1, k)
        return (u + 0.25 * u.sign()) * (1 + 0.08 * self.noise(k))

    def place(self, k: int = 1) -> Tensor:
        """In [0, 1): siblings lie close to one another in some families, anywhere in others."""
        spread = self.setting(math.log(0.01), math.log(0.5)).exp()
        return (self.setting(0, 1, k) + spread * self.noise(k)) % 1

    def noise(self, k: int) -> Tensor:
        """Normal, of each series by itself."""
        n = self._families * self._siblings
        return torch.randn(n, k, generator=self._random, device=self._random.device)


def smooth(d: Draws) -> Tensor:
    """A smooth curve for each series, by a few cosines of half cycles."""
    cycles = torch.arange(1, 7, device=d.s.device)[:, None]  # (6, 1)
    return (d.noise(6) / cycles[:, 0]) @ torch.cos(math.pi * cycles * d.s)


def _by_spectrum(d: Draws, amplitudes: Tensor) -> Tensor:
    """Noise with amplitudes ``(N, T + 1)``; half a circle, so that ends need not meet."""
    noise = torch.complex(d.noise(d.t + 1), d.noise(d.t + 1))
    x: Tensor = torch.fft.irfft(amplitudes * noise, 2 * d.t, norm="ortho")
    return x[:, : d.t]


def _processes(d: Draws) -> Tensor:
    """Gaussian processes: a kernel, or the sum or the product of two, by its circulant form."""
    lags = torch.arange(d.t + 1, device=d.s.device) / d.t  # (T + 1,)

    def kernel() -> Tensor:
        r = lags / d.size(0.01, 0.6)
        # A period that divides the circle: its circulant form is exact.
        period = 2 / (2 / d.size(max(0.015, 4 / d.t), 0.8)).round()
        turns = torch.sin(math.pi * lags / period) / d.size(0.3, 1.5)
        mix = d.size(0.3, 3)  # of the sizes in a rational quadratic
        squared, periodic = torch.exp(-(r**2) / 2), torch.exp(-2 * turns**2)
        matern, quadratic = (1 + r) * torch.exp(-r), (1 + r**2 / (2 * mix)) ** -mix
        return d.one_of(squared, periodic, torch.exp(-r), matern, periodic * squared, quadratic)

    one, two = kernel(), kernel()
    both = d.one_of(one, one + d.size(0.1, 1) * two, one * two)
    both = both + d.chance(0.15) * d.size(0.003, 0.1) * (lags == 0)  # white
    # A wide kernel has not fallen to zero within the circle, and its spectrum is cut off at zero.
    # That is the spectrum of a kernel close by: as good, since no exact one is asked for.
    spectrum = torch.fft.hfft(both.to(torch.complex64), 2 * d.t)[:, : d.t + 1]
    x = standard(_by_spectrum(d, spectrum.clamp_min(0).sqrt()))
    x = torch.where(d.chance(0.15), x * (d.s - d.place()), x)  # times a linear kernel
    return x + d.chance(0.35) * d.weight() * _means(d)


def _means(d: Draws) -> Tensor:
    """Lines, growth and decay, arches, spikes."""
    growth = torch.exp(d.setting(2, 6) * (d.s - 1))
    rare = d.noise(d.t).abs() > 2 + d.setting(0.3, 1.0)
    spikes = rare * 6 * (1 + 0.2 * d.noise(d.t))
    arch = -4 * (d.s - d.place()) ** 2
    return d.one_of(4 * d.s, 4 * growth, 4 * growth.flip(1), arch, spikes)


def _power_law(d: Draws) -> Tensor:
    """Noise from white (exponent 0) past a random walk (2) to smooth (3.5)."""
    frequencies = torch.arange(d.t + 1, device=d.s.device).clamp_min(1)
    return _by_spectrum(d, frequencies ** (-d.setting(0, 3.5) / 2))


def _resonances(d: Draws) -> Tensor:
    """Autoregressive noise of order two, or of two such filters in a row."""
    z = torch.exp(-1j * math.pi * torch.arange(d.t + 1, device=d.s.device) / d.t)
    gain = torch.ones_like(d.s[:1])
    for p in (1.0, 0.4):
        radius, angle = 1 - d.size(0.003, 0.2), d.size(6 / d.t, 2.5)
        poles = 1 - 2 * radius * torch.cos(angle) * z + radius**2 * z**2  # (N, T + 1)
        gain = gain * torch.where(d.chance(p), 1 / poles.abs().clamp_min(1e-4), 1.0)
    return _by_spectrum(d, gain)


def _envelope(d: Draws, p: float) -> Tensor:
    inside = torch.exp(-(((d.s - d.place()) / d.size(0.05, 1)) ** 2) / 2)
    return torch.where(d.chance(p), inside, 1.0)


def _waves(d: Draws) -> Tensor:
    """Up to three waves of six forms, some of which change in speed and strength."""
    x = torch.zeros_like(d.s)
    for p in (1.0, 0.4, 0.2):
        chirp = d.setting(-0.5, 0.5) * d.chance(0.3)
        turn = (d.size(0.7, d.t / 8) * (d.s + chirp * d.s * (d.s - 1)) + d.place()) % 1
        sine, width = torch.sin(2 * math.pi * turn), d.setting(0.08, 0.5)
        pulse = torch.exp(-(((turn - 0.5) / width) ** 2) * 8)
        bent = torch.sin(2 * math.pi * turn + d.setting(0.5, 1.5) * sine)
        square, saw, tooth = (turn < width) * 2.0, 2 * turn - 1, (2 * turn - 1).abs() * 2
        form = d.one_of(sine, square, saw, tooth, pulse, bent)
        x = x + d.chance(p) * d.weight() * form * _envelope(d, 0.35)
    return x


def _chirps(d: Draws) -> Tensor:
    """A tone that rises or falls to another, with an envelope."""
    first, last = d.size(0.5, d.t / 6), d.size(0.5, d.t / 6)
    rate = torch.log(last / first)
    rate = torch.where(rate.abs() < 0.05, 0.05, rate)
    phase = first * torch.expm1(rate * d.s) / rate + d.place()
    return torch.sin(2 * math.pi * phase) * _envelope(d, 0.6)


def _bumps(d: Draws) -> Tensor:
    """One to six bumps of a form and of either sign."""
    x, count = torch.zeros_like(d.s), d.setting(0, 6)
    form = d.setting(0, 4).floor()
    for k in range(6):
        r = (d.s - d.place()) / d.size(0.008, 0.2)
        decay, box = torch.exp(-r.abs()), torch.sigmoid(8 * (1 - r.abs()))
        one_sided = torch.where(r < 0, torch.exp(-((4 * r) ** 2)), decay)
        bump = torch.where(form == 0, torch.exp(-(r**2) / 2), torch.where(form == 1, decay, box))
        x = x + (count >= k) * d.weight() * torch.where(form == 3, one_sided, bump)
    return x


def _bursts(d: Draws) -> Tensor:
    """Quiet noise that swells a few times, of any colour."""
    loud, count = d.setting(0.01, 0.15), d.setting(0, 4)
    for k in range(4):
        r = (d.s - d.place()) / d.size(0.015, 0.12)
        loud = loud + (count >= k) * d.weight().abs() * torch.exp(-(r**2) / 2)
    return loud * standard(_resonances(d))


def _steps(d: Draws) -> Tensor:
    """Levels that change at any time, two states, or regimes of different roughness."""
    rate = d.size(2 / d.t, max(0.04, 4 / d.t))
    change = (torch.erf(d.noise(d.t).abs() / math.sqrt(2)) < rate).float()
    walk, state = (change * d.noise(d.t)).cumsum(dim=1), change.cumsum(dim=1) % 2
    rough = d.noise(d.t) * (0.1 + state) * d.size(0.1, 1)
    return d.one_of(walk, state, walk + rough, 3 * walk + state, rough + smooth(d))


def _profiles(d: Draws) -> Tensor:
    """Up to seven turns at places of their own: steps, soft steps, or straight pieces."""
    x, count, soft = torch.zeros_like(d.s), d.setting(2, 7), d.size(0.004, 0.05)
    form = d.setting(0, 3).floor()
    for k in range(7):
        after = d.s - d.place()
        turn = torch.where(form == 0, (after > 0) * 1.0, torch.sigmoid(after / soft))
        turn = torch.where(form == 1, 4 * after.clamp_min(0), turn)
        x = x + (count >= k) * d.weight() * turn
    return x


def _motifs(d: Draws) -> Tensor:
    """A motif of up to five bumps that comes again and again, almost evenly, like heart beats."""
    x, count = torch.zeros_like(d.s), d.setting(0, 5)
    uneven = d.size(0.01, 0.3) * smooth(d)
    turn = d.s / d.size(max(0.04, 8 / d.t), 1) + uneven + d.place()  # in periods
    for k in range(5):
        gap = (turn - d.setting(0, 1) + 0.01 * d.noise(1) + 0.5) % 1 - 0.5
        x = x + (count >= k) * d.weight() * torch.exp(-((gap / d.size(0.015, 0.15)) ** 2) / 2)
    return x * (1 + d.setting(0, 0.3) * smooth(d))


def _outlines(d: Draws) -> Tensor:
    """Distances from the middle of a closed curve with few Fourier coefficients, or its height."""
    orders = torch.arange(2, 14, device=d.s.device)  # beside the circle itself
    orders = torch.cat([orders, -orders])  # (K,)
    falling = orders.abs() ** -d.setting(0.8, 2.2) * (orders.abs() <= d.setting(3, 14))
    angle = 2 * math.pi * d.setting(0, 1, len(orders)) + 0.1 * d.noise(len(orders))
    size = falling * d.weight(len(orders)) * d.size(0.3, 1.5)  # (N, K)
    angle = angle + 2 * math.pi * orders * d.chance(0.5) * d.place()  # where the curve begins
    curve = torch.polar(size.abs(), angle) @ torch.exp(2j * math.pi * orders[:, None] * d.s)
    curve = curve + torch.exp(2j * math.pi * d.s)  # (N, T)
    return d.one_of(curve.abs(), curve.abs(), curve.real)


KINDS: tuple[tuple[Callable[[Draws], Tensor], float], ...] = (  # and how often
    (_processes, 4),
    (_power_law, 1),
    (_resonances, 1),
    (_waves, 2),
    (_chirps, 0.7),
    (_bumps, 1.8),
    (_bursts, 0.7),
    (_steps, 1),
    (_profiles, 1.4),
    (_motifs, 2),
    (_outlines, 1.6),
)
