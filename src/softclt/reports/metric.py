"""How a metric is written: in per cent or as it is, and which end of it is the good one."""

import math
from dataclasses import dataclass

_SHARES = ("accuracy", "f1", "auprc", "auroc", "auc", "precision", "recall")
_ERRORS = ("mse", "mae", "rmse", "mape", "smape", "loss", "error")


@dataclass(frozen=True)
class Metric:
    """A metric by name, e.g. ``"accuracy"``, ``"svm.accuracy"`` or ``"mse"``.

    Example:
        >>> Metric("accuracy").text(0.9125), Metric("mse").text(0.5)
        ('91.2', '0.500')
        >>> Metric("svm.f1_macro").difference(-0.012)
        '−1.2'
    """

    name: str

    @property
    def _last(self) -> str:
        return self.name.rpartition(".")[2].lower()

    @property
    def percent(self) -> bool:
        """Whether it is a share of one, written in per cent."""
        return self._last.startswith(_SHARES)

    @property
    def lower_is_better(self) -> bool:
        """Whether it is an error."""
        return self._last.startswith(_ERRORS)

    @property
    def about(self) -> str:
        """E.g. ``accuracy in per cent, higher is better``."""
        unit = " in per cent" if self.percent else ""
        return f"{self.name}{unit}, {'lower' if self.lower_is_better else 'higher'} is better"

    @property
    def unit(self) -> str:
        """What a difference is counted in, with a space before it."""
        return " points" if self.percent else ""

    def shown(self, value: float) -> float:
        """The number as it is written."""
        return 100 * value if self.percent else value

    def text(self, value: float, extra_digits: int = 0) -> str:
        """A score."""
        return self._format(value, "", extra_digits)

    def difference(self, value: float, extra_digits: int = 0) -> str:
        """A difference of scores, with its sign."""
        return self._format(value, "+", extra_digits)

    def with_spread(self, value: float, spread: float, sign: bool = False) -> str:
        """E.g. ``85.3 ± 0.2``; without spread the score alone."""
        text = self.difference(value) if sign else self.text(value)
        return text if math.isnan(spread) else f"{text} ± {self.text(spread)}"

    def _format(self, value: float, sign: str, extra_digits: int) -> str:
        if math.isnan(value):
            return ""
        digits = (1 if self.percent else 3) + extra_digits
        text = f"{self.shown(value):{sign}.{digits}f}"
        if float(text) == 0:  # neither +0.0 nor -0.0 says anything
            text = text.lstrip("+-")
        return text.replace("-", "−")
