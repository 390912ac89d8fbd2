"""``serve``: models that answer over HTTP."""

import os
import string
from pathlib import Path
from typing import Annotated

import typer

from softclt.cli.output import check_serving, note, say, wait_for_others
from softclt.cli.settings import parse_settings

TOKEN_VARIABLE = "SOFTCLT_TOKEN"
SHORTEST_TOKEN = 16  # characters


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="A name of 'softclt list models', or a folder: of a model, an index, a "
            "SeriesClassifier, an AnomalyDetector; one of each at most.",
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen at; 0.0.0.0 lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes one that is free.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help=f"File with the token that requests must bear; or it is in {TOKEN_VARIABLE}."
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="body (bytes), series, channels, steps, values, seconds, requests, hits, streams, "
            "stream_steps, idle (seconds); give it as often as needed.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name by which a proxy calls this server."),
    ] = None,
) -> None:
    """You have models, and programs that want their answers: serve them over HTTP.

    Takes JSON, CSV, Arrow and Parquet. /docs says what there is to ask for, and / shows a CSV that
    is dropped on it. Ctrl-C or SIGTERM ends it once the requests under way are answered.
    """
    check_serving()
    token = _token(token_file)

    from softclt.serving import running
    from softclt.serving.limits import Limits
    from softclt.serving.opening import open_served

    limits = Limits.of(parse_settings(limit, like="--limit seconds=60"))
    if token is None and not running.is_local(host):
        note("anybody who reaches this address may ask; --token-file keeps others out")
    with running.bound(host, port) as listener:
        served = open_served(models)

        def ready(address: str) -> None:
            say(f"{', '.join(served.paths())} at {address}")
            wait_for_others()

        running.serve(
            served,
            listener,
            host=host,
            limits=limits,
            token=token,
            hosts=allow_host or (),
            ready=ready,
        )


def _token(path: Path | None) -> str | None:
    """The token of a file or of the environment; None without either."""
    if path is None:
        token = os.environ.get(TOKEN_VARIABLE)
    else:
        token = path.read_text(encoding="utf-8", errors="replace")
    if token is None:
        return None
    token, where = token.strip(), TOKEN_VARIABLE if path is None else str(path)
    if len(token) < SHORTEST_TOKEN or not set(token) <= set(string.ascii_letters + _ALSO):
        raise ValueError(
            f"{where} holds no token: expected {SHORTEST_TOKEN} or more letters, digits and "
            f"{_ALSO[10:]}, such as 'openssl rand -hex 32' makes"
        )
    return token


_ALSO = string.digits + "-._~+/="  # what RFC 6750 lets a token have
