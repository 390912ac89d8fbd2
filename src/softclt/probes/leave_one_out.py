"""Leave-one-out predictions of a ridge regression."""

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler

from softclt.probes.classifiers import RIDGE_ALPHAS
from softclt.validation import Floats, Floats64


def leave_one_out(R: Floats, targets: Floats) -> Floats64:
    """What a ridge says of each series when it was fitted on all the others, ``(N, L)``.

    Features are standardised, the mean is not shrunk, and the penalty is the one with the smallest
    squared error of these predictions: so does the ridge probe, which does not give them away.

    Args:
        R: Embeddings ``(N, M)``, of at least two series.
        targets: ``(N, L)``.
    """
    x = StandardScaler().fit_transform(np.asarray(R, dtype=np.float64))
    # Only with a scorer does it keep predictions instead of their errors.
    ridge = RidgeCV(RIDGE_ALPHAS, scoring="neg_mean_squared_error", store_cv_results=True)
    kept = ridge.fit(x, targets).cv_results_[..., ridge.alpha_ == RIDGE_ALPHAS]
    predictions: Floats64 = kept.reshape(targets.shape)
    return predictions
