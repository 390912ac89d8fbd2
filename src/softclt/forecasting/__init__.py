"""Forecasts from embeddings of steps: a ridge read-out, intervals, the published protocol."""

from softclt.forecasting.features import CALENDAR, calendar_features
from softclt.forecasting.forecaster import Forecaster
from softclt.forecasting.ridge import ALPHAS, RidgePath, RidgeSums

__all__ = ["ALPHAS", "CALENDAR", "Forecaster", "RidgePath", "RidgeSums", "calendar_features"]
