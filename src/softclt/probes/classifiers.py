"""Classifiers that read a representation: SVM, logistic regression, ridge, nearest neighbour."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from softclt.probes.scores import Labels, Scores
from softclt.registry import Registry
from softclt.silence import without_warnings
from softclt.validation import Floats

#: Functions ``(R, y) -> fitted scikit-learn classifier`` for a representation R ``(N, M)``.
probes: Registry[Any] = Registry("probe")

C_GRID = tuple(10.0**k for k in range(-4, 5))
RIDGE_ALPHAS = np.logspace(-3, 3, 10)
# The seed draws nothing here; without one, a number is taken from NumPy's global generator.
_SVM = {"tol": 1e-3, "max_iter": 10_000_000, "random_state": 0}


@probes.register("svm")
def fit_svm(R: Floats, y: Labels, max_samples: int = 10_000) -> Any:
    """RBF SVM; C by five-fold cross-validation unless there are too few series for that."""
    n, n_classes = len(y), len(np.unique(y))
    svm = SVC(kernel="rbf", gamma="scale", **_SVM)
    if n // n_classes < 5 or n < 50:
        # TS2Vec has C = infinity here, which scikit-learn refuses by now; 1e4 stands for it.
        return svm.set_params(C=1e4).fit(R, y)
    R, y = _at_most(max_samples, R, y)
    return svm.set_params(C=_best_C(np.asarray(R, dtype=np.float64), y)).fit(R, y)


@probes.register("linear")
def fit_linear(R: Floats, y: Labels, max_samples: int = 100_000) -> Any:
    """Logistic regression of each class against the rest, on standardised features."""
    classifier = OneVsRestClassifier(LogisticRegression(random_state=0, max_iter=1_000_000))
    return make_pipeline(StandardScaler(), classifier).fit(*_at_most(max_samples, R, y))


@probes.register("ridge")
def fit_ridge(R: Floats, y: Labels) -> Any:
    """Ridge regression of each class, on standardised features; its penalty by leave-one-out.

    Much quicker than the SVM, and made for many features: several layers or models side by side.
    """
    return make_pipeline(StandardScaler(), RidgeClassifierCV(alphas=RIDGE_ALPHAS)).fit(R, y)


@probes.register("knn")
def fit_knn(R: Floats, y: Labels) -> Any:
    """The nearest neighbour, on standardised features."""
    return make_pipeline(StandardScaler(), KNeighborsClassifier(n_neighbors=1)).fit(R, y)


def class_scores(probe: Any, R: Floats, classes: NDArray[Any] | None = None) -> Scores:
    """How strongly a fitted probe votes for each class, ``(N, L)``: probabilities if it has them.

    Args:
        probe: A fitted classifier.
        R: Representations, ``(N, M)``.
        classes: The classes of the columns; one that the probe never saw gets the lowest score.
    """
    if hasattr(probe, "predict_proba"):
        scores = np.asarray(probe.predict_proba(R))
    else:
        scores = np.asarray(probe.decision_function(R))
    if scores.ndim == 1:  # two classes: the margin of the second one
        scores = np.stack([-scores, scores], axis=1)  # (N, 2)
    if classes is None:
        return scores
    everywhere = np.full((len(R), len(classes)), scores.min())
    everywhere[:, np.searchsorted(classes, probe.classes_)] = scores
    return everywhere


def _best_C(R: Floats, y: Labels) -> float:
    """C of an RBF SVM by five folds, the smallest of the best: a grid search that shares kernels.

    libsvm computes its kernel anew for each C, which is most of the time with many series.
    """
    scores = []
    with without_warnings(UserWarning, "The least populated class"):  # part of the rule
        folds = list(StratifiedKFold(5).split(R, y))
    for fitted, held_out in folds:
        if len(np.unique(y[fitted])) == 1 < len(np.unique(y)):
            continue  # the only series of a class is held out
        near, far = R[fitted], R[held_out]
        gamma = 1 / (near.shape[1] * near.var()) if near.var() > 0 else 1.0  # gamma="scale"
        K, K_held_out = rbf_kernel(near, gamma=gamma), rbf_kernel(far, near, gamma=gamma)
        svms = (SVC(kernel="precomputed", C=C, **_SVM).fit(K, y[fitted]) for C in C_GRID)
        scores.append([svm.score(K_held_out, y[held_out]) for svm in svms])
    return C_GRID[int(np.argmax(np.mean(scores, axis=0)))]


def _at_most(max_samples: int, R: Floats, y: Labels) -> tuple[Floats, Labels]:
    """All rows, or a subsample with the same shares of the classes."""
    if len(y) <= max_samples:
        return R, y
    rows, _, labels, _ = train_test_split(R, y, train_size=max_samples, random_state=0, stratify=y)
    return rows, labels
