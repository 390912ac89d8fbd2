"""The normalisation that belongs to the protocols of classification, not to the loaders."""

import numpy as np
from sklearn.preprocessing import StandardScaler

from softclt.data import Dataset
from softclt.validation import Floats

# The UCR sets that are not distributed z-normalised.
UCR_RAW = frozenset(
    [
        "AllGestureWiimoteX",
        "AllGestureWiimoteY",
        "AllGestureWiimoteZ",
        "BME",
        "Chinatown",
        "Crop",
        "EOGHorizontalSignal",
        "EOGVerticalSignal",
        "Fungi",
        "GestureMidAirD1",
        "GestureMidAirD2",
        "GestureMidAirD3",
        "GesturePebbleZ1",
        "GesturePebbleZ2",
        "GunPointAgeSpan",
        "GunPointMaleVersusFemale",
        "GunPointOldVersusYoung",
        "HouseTwenty",
        "InsectEPGRegularTrain",
        "InsectEPGSmallTrain",
        "MelbournePedestrian",
        "PickupGestureWiimoteZ",
        "PigAirwayPressure",
        "PigArtPressure",
        "PigCVP",
        "PLAID",
        "PowerCons",
        "Rock",
        "SemgHandGenderCh2",
        "SemgHandMovementCh2",
        "SemgHandSubjectCh2",
        "ShakeGestureWiimoteZ",
        "SmoothSubspace",
        "UMD",
    ]
)


def protocol_scaling(data: Dataset) -> tuple[Floats, Floats]:
    """Training and test series as the published classification protocol feeds them to a model.

    UEA and few-label sets: each channel by its mean and standard deviation over all training steps.
    UCR: the 34 sets of `UCR_RAW` by those of the whole training set. Everything else as it is. NaN
    is ignored.
    """
    X_train, X_test = data.X_train, data.X_test
    if X_test is None:
        raise ValueError(f"{data.meta['name'] or 'the data set'} has no test part to score on")
    if data.meta["archive"] in ("uea", "few_labels"):
        X_train, X_test = standardise_by_training(X_train, X_test)
    name = str(data.meta["name"]).rpartition("/")[2]  # "ucr/GunPoint" -> "GunPoint"
    if data.meta["archive"] == "ucr" and name in UCR_RAW:
        X_train, X_test = standardise_by_training(X_train, X_test, n_columns=1)
    return X_train, X_test


def standardise_by_training(
    X_train: Floats, *others: Floats, n_columns: int | None = None
) -> tuple[Floats, ...]:
    """All by means and standard deviations of the training series.

    Args:
        X_train: Series ``(N, D, T)``.
        others: More series with as many channels.
        n_columns: None has statistics for each channel, 1 has one for all.
    """
    n_columns = X_train.shape[1] if n_columns is None else n_columns
    scaler = StandardScaler().fit(_rows(X_train, n_columns))

    def scaled(X: Floats) -> Floats:
        n, d, t = X.shape
        rows = scaler.transform(_rows(X, n_columns))  # (N * T, D) or (N * T * D, 1)
        return np.ascontiguousarray(rows.reshape(n, t, d).swapaxes(1, 2))  # (N, D, T)

    return tuple(scaled(X) for X in (X_train, *others))


def _rows(X: Floats, n_columns: int) -> Floats:
    return np.asarray(X, dtype=np.float64).swapaxes(1, 2).reshape(-1, n_columns)
