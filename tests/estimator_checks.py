"""scikit-learn's own checks of an estimator, and which of them it may fail."""

from typing import Any

from sklearn.utils.estimator_checks import check_estimator


def failed_checks(estimator: Any, expected: dict[str, str]) -> dict[str, Any]:
    """Checks that fail though they should pass, or that never fail though they are expected to.

    Args:
        expected: Names of checks that may fail, each with the reason.
    """
    results = check_estimator(
        estimator, expected_failed_checks=expected, on_fail=None, on_skip=None
    )
    found = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    seen = {r["check_name"] for r in results if r["status"] == "xfail"}
    return found | dict.fromkeys(expected.keys() - seen, "is expected to fail and passes")
