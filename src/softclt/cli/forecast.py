"""``forecast``: what comes after the end of the series of a file, with intervals."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softclt.cli import options
from softclt.cli.errors import about
from softclt.cli.output import (
    PICTURE_SUFFIXES,
    TABLE_SUFFIXES,
    Output,
    check_outputs,
    note,
    print_json,
    say,
    tell_sorted,
    write_table,
)
from softclt.cli.settings import check_model, trained_or_new

if TYPE_CHECKING:
    import pandas as pd

    from softclt.data import SeriesTable
    from softclt.data.columns import Columns
    from softclt.forecasting import Forecaster

TAIL = 4  # horizons of history in the picture


@options.reads_tables
def forecast(
    data: options.Data,
    out: Annotated[Path, typer.Option(help="Table to write: .csv or .parquet.")],
    horizon: Annotated[int, typer.Option(min=1, help="Steps ahead.")] = 24,
    coverage: Annotated[
        float, typer.Option(min=0.01, max=0.999, help="Share of the values in an interval.")
    ] = 0.9,
    plot: Annotated[Path | None, typer.Option(help="Picture to draw: .png, .pdf or .svg.")] = None,
    model: options.Trained = None,
    method: options.Method = "ts2vec",
    preset: options.Preset = None,
    settings: options.Settings = None,
    context: Annotated[int, typer.Option(min=1, help="How many steps back a step sees.")] = 200,
    lags: Annotated[
        int, typer.Option(min=0, help="Last values to read beside the embedding.")
    ] = 200,
    seed: options.Seed = 0,
    force: options.Force = False,
    safe_csv: options.SafeCsv = False,
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """You have series and want to know what comes next: write forecasts with intervals.

    Learns from the first four fifths of each series; the last fifth chooses, checks and gives the
    intervals their width. A table without ids is one series. Dates give calendar features, and the
    forecasts have dates in the form of the file.
    """
    check_model(model, preset, settings)
    check_outputs(
        Output(out, TABLE_SUFFIXES),
        Output(plot, PICTURE_SUFFIXES, "--plot"),
        force=force,
        reads=[data],
    )

    from softclt.data import read_series
    from softclt.data.inspection import mixed_up

    table = read_series(data, **columns)
    if reason := mixed_up(table, columns):
        raise ValueError(f"{data}, {reason}")
    tell_sorted(table)

    from softclt.bench.estimates import training_words
    from softclt.forecasting import Forecaster
    from softclt.forecasting.forecaster import default_params

    learner = trained_or_new(model, method, preset, settings, seed, **default_params(context))
    forecaster = Forecaster(
        learner,
        horizon=horizon,
        context=context,
        lags=lags,
        coverage=coverage,
        random_state=None if model is not None else seed,
    )
    n, d, t = table.X.shape
    learning = "" if model is not None else training_words(learner, table.X.shape)
    note(
        f"learning to forecast {horizon} steps from {n} series of {d} channel(s), {t} steps of "
        f"{data}{learning}"
    )
    with about(data):
        forecaster.fit(table.X, times=table.times)
    forecasts = forecast_table(table, forecaster)
    write_table(forecasts, out, safe_csv)
    if plot is not None:
        _draw(table, forecaster, plot, data)
    _tell(forecaster, out, plot, len(forecasts), as_json)


def forecast_table(table: "SeriesTable", forecaster: "Forecaster") -> "pd.DataFrame":
    """A row for each series, step and channel: ``id`` (if known), time, channel, forecast, ends."""
    import numpy as np
    import pandas as pd

    ahead = forecaster.predict()  # (N, D, H)
    lower, upper = forecaster.predict_interval()
    times = forecaster.future_times()  # (N, H)
    n, d, h = ahead.shape
    columns: dict[str, Any] = {}
    if table.has_ids:
        columns["id"] = [name for name in table.ids for _ in range(h * d)]
    columns["time"] = [time for own in times for time in table.as_written(own) for _ in range(d)]
    columns["channel"] = channel_names(table) * (n * h)
    for name, array in (("forecast", ahead), ("lower", lower), ("upper", upper)):
        columns[name] = np.swapaxes(array, 1, 2).reshape(-1)
    return pd.DataFrame(columns)


def channel_names(table: "SeriesTable") -> list[str]:
    """Of the file, or their numbers."""
    return table.channels or [str(i) for i in range(table.X.shape[1])]


def _draw(table: "SeriesTable", forecaster: "Forecaster", plot: Path, data: str) -> None:
    import numpy as np

    from softclt.reports.figures import save_figure
    from softclt.reports.forecasts import ForecastPanel, forecast_figure

    note("drawing")
    ahead, future = forecaster.predict(), forecaster.future_times()
    lower, upper = forecaster.predict_interval()
    names, horizon = channel_names(table), ahead.shape[-1]
    panels = []
    for i, length in enumerate(forecaster.lengths_):
        tail = slice(max(0, length - max(TAIL * horizon, 48)), length)
        steps = np.arange(length) if table.times is None else table.times[i]
        for c, name in enumerate(names):
            title = " · ".join([str(table.ids[i])] * table.has_ids + [name])
            panels.append(
                ForecastPanel(
                    title,
                    steps[tail],
                    table.X[i, c, tail],
                    future[i],
                    ahead[i, c],
                    lower[i, c],
                    upper[i, c],
                )
            )
    heading = f"{Path(data).name}: {horizon} steps ahead"
    save_figure(forecast_figure(panels, forecaster.coverage, heading), plot)


def _tell(
    forecaster: "Forecaster", out: Path, plot: Path | None, n_rows: int, as_json: bool
) -> None:
    errors = forecaster.validation_
    if as_json:
        picture = None if plot is None else str(plot)
        print_json({"out": str(out), "plot": picture, "rows": n_rows, "validation": errors})
        return
    others = {"naive": "the last value", "seasonal": "the last day"}
    beside = " and ".join(
        f"saying {words} again by {errors[name]:.3f}"
        for name, words in others.items()
        if name in errors
    )
    say(f"{n_rows} forecasts in {out}" + ("" if plot is None else f", drawn in {plot}"))
    say(
        f"On the last part of the data, forecasts missed by {errors['mae']:.3f} standard "
        f"deviations on average, {beside}."
    )
    best = min((errors[name], words) for name, words in others.items() if name in errors)
    if best[0] <= errors["mae"]:
        say(f"Learning did not help here: {best[1]} is a better forecast.")
