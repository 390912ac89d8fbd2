"""Anomaly detection of KPI and Yahoo kind: score every step, raise alarms, count them in time."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.frozen import FrozenEstimator

from softclt.anomaly.detection import check_threshold
from softclt.anomaly.metrics import check_aeon, delay_adjusted, point_pr_auc, vus_pr
from softclt.anomaly.protocol import judge, prepare_all
from softclt.anomaly.scorers import scorers
from softclt.data import AnomalyData, Dataset
from softclt.identity import settings_key
from softclt.tasks.evaluation import Clock, Outcome, tasks
from softclt.tasks.kept import kept, load_once
from softclt.validation import Floats, check_choice, check_range

SETTINGS = {"normal": "sigma", "cold": "running"}  # and the threshold that belongs to each
COLD_START = "ucr/FordA"


@tasks.register("anomaly", metric="f1")
def run(
    model: Any,
    data: Dataset,
    *,
    setting: str = "normal",
    scorer: str = "masked",
    threshold: str | None = None,
    delay: int | None = None,
    context: int = 200,
    scorer_params: Mapping[str, Any] | None = None,
    threshold_params: Mapping[str, Any] | None = None,
    trained_on: str = COLD_START,
    vus: bool = True,
) -> Outcome:
    """Fit ``model`` on first halves, or on another data set; count alarms in the rest of each.

    Metrics: ``f1``, ``precision`` and ``recall`` with segments found or missed as a whole, which is
    known to flatter; ``pr_auc`` (of single steps) and ``vus_pr`` are means over series.

    Args:
        model: An unfitted estimator; scorers without a model leave it alone.
        data: Series with a label at every step, such as ``anomaly/KPI``.
        setting: ``"normal"``: the first half of each series trains and sets its threshold, the rest
            is judged. ``"cold"``: the model is trained on other data, the threshold runs along,
            and all but the first tenth is judged.
        scorer: See `softclt.anomaly.scorers`.
        threshold: ``"sigma"`` in the normal setting and ``"running"`` in a cold start if None;
            ``"own"`` is the decision that a baseline makes itself.
        delay: Steps within which an alarm is in time; the data set's own if None.
        context: Steps before a step that its score looks at.
        scorer_params: Settings of the scorer.
        threshold_params: Settings of the threshold.
        trained_on: Data set whose training series a cold start learns from.
        vus: Compute ``pr_auc`` and ``vus_pr``, which need aeon.
    """
    check_choice(setting, tuple(SETTINGS), "setting")
    check_range(context, "context", 1)
    if not isinstance(data, AnomalyData):
        title = data.meta["name"] or "the data set"
        raise ValueError(f"{title} has no label at every step; expected one like anomaly/KPI")
    threshold = SETTINGS[setting] if threshold is None else threshold
    check_threshold(threshold, scorer)
    if vus:
        check_aeon()
    reads_model = scorers.tags(scorer).get("model", False)
    drawn = reads_model or "random_state" in inspect.signature(scorers[scorer]).parameters
    asked = (setting, scorer, threshold, delay, scorer_params, threshold_params, vus)
    key = settings_key(data.fingerprint, asked)
    # Of scorers that neither read a model nor draw anything: the same for every seed.
    found: dict[str, Outcome] = kept().setdefault("alarms", {})
    if not drawn and key in found:
        return found[key]
    delay = data.meta["delay"] if delay is None else delay
    clock = Clock()
    series = prepare_all(data)
    clock.lap("prepare")
    others: Sequence[Floats] | None = None
    if setting == "cold":
        others = list(load_once(trained_on, "train").X_train) if reads_model else []
    if reads_model:
        model.fit([one.training for one in series] if others is None else others)
        clock.lap("fit")
    judged = judge(
        series,
        scorer=scorer,
        threshold=threshold,
        delay=delay,
        scorer_params=scorer_params,
        threshold_params=threshold_params,
        learned_from=others,
        model=FrozenEstimator(model),
        context=context,
        random_state=model.get_params(deep=False).get("random_state"),
    )
    clock.lap("score")
    metrics = delay_adjusted(judged, delay)
    if vus:
        metrics |= {"pr_auc": point_pr_auc(judged), "vus_pr": vus_pr(judged)}
    clock.lap("metrics")
    outcome = Outcome(metrics, clock.seconds, probe=scorer)
    if not drawn:
        found[key] = outcome
    return outcome
