"""Predicted classes of series, as a table with their ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from softclt.probes.scores import Scores
from softclt.validation import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Predictions:
    """Probability of each class, ``(N, L)``."""

    probabilities: Scores

    @property
    def codes(self) -> Ints:
        """The likeliest class of each series, ``(N,)``."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def confidence(self) -> Floats:
        """Its probability, ``(N,)``."""
        return np.asarray(self.probabilities.max(axis=1))

    @property
    def counts(self) -> Ints:
        """Series of each class, ``(L,)``."""
        return np.bincount(self.codes, minlength=self.probabilities.shape[1])

    def table(
        self, ids: Sequence[Any], classes: Sequence[str], given: Sequence[str | None] | None = None
    ) -> "pd.DataFrame":
        """Columns ``id``, ``label``, ``confidence``, ``given`` (if any), and ``p_<class>`` each."""
        import pandas as pd

        columns: dict[str, Any] = {"id": list(ids)}
        columns["label"] = [classes[code] for code in self.codes]
        columns["confidence"] = np.round(self.confidence, 6)
        if given is not None:
            columns["given"] = list(given)
        for code, name in enumerate(classes):
            columns[f"p_{name}"] = np.round(self.probabilities[:, code], 6)
        return pd.DataFrame(columns)
