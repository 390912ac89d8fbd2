"""Classification of windows of long series, as TNC is scored: which state is the process in?"""

from typing import Any

import numpy as np

from softclt.data import Dataset, StateData
from softclt.data.states import windows_of
from softclt.probes.classifiers import class_scores, probes
from softclt.probes.scores import classification_metrics
from softclt.tasks.evaluation import Clock, Outcome, tasks
from softclt.validation import check_range


@tasks.register("windows")
def run(model: Any, data: Dataset, *, window: int = 50, probe: str = "linear") -> Outcome:
    """Fit ``model`` on whole training series; a probe tells the state of single windows.

    Metrics: ``accuracy``, ``f1_macro`` and ``auprc`` on windows of the test series that do not
    overlap; the state of a window is that of most of its steps.

    Args:
        model: An unfitted estimator.
        data: Series with a state at every step, such as ``synthetic/states``.
        window: Steps of a window.
        probe: ``"linear"``, ``"svm"``, ``"ridge"`` or ``"knn"`` reads the embedding of a window.
    """
    title = data.meta["name"] or "the data set"
    if not isinstance(data, StateData) or data.states_train is None or data.states_test is None:
        raise ValueError(
            f"{title} has no state at every step of two parts; expected one like synthetic/states"
        )
    assert data.X_test is not None
    fit_probe = probes[probe]
    check_range(window, "window", 2, min(data.X_train.shape[2], data.X_test.shape[2]))
    W_train, y_train = windows_of(data.X_train, data.states_train, window)
    W_test, y_test = windows_of(data.X_test, data.states_test, window)
    if len(np.unique(y_train)) < 2:
        raise ValueError(f"{title}: all training windows have one state; nothing to classify")
    clock = Clock()
    model.fit(data.X_train)
    clock.lap("fit")
    R_train, R_test = model.transform(W_train), model.transform(W_test)
    clock.lap("encode")
    fitted = fit_probe(R_train, y_train)
    classes = np.unique(np.concatenate([y_train, y_test]))
    scores = class_scores(fitted, R_test, classes)
    metrics = classification_metrics(y_test, fitted.predict(R_test), scores, classes)
    clock.lap("probe")
    return Outcome(metrics, clock.seconds, probe=probe)
