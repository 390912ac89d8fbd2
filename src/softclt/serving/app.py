"""The paths of a server, and what each takes and gives."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException

from softclt import __version__
from softclt.data import SeriesTable
from softclt.data.columns import Columns
from softclt.serving import pages
from softclt.serving.answers import Answer, chosen_kind
from softclt.serving.batching import Batcher
from softclt.serving.bodies import read_body
from softclt.serving.describing import BODY, answers
from softclt.serving.guard import OPEN, Guard
from softclt.serving.limits import Limits, Refusal
from softclt.serving.metrics import Metrics
from softclt.serving.opening import PARTS, Served
from softclt.serving.service import Service, missing_part

_AT_ONCE = 1 << 14  # bytes that are read in a millisecond or two
_READERS = 2  # bodies that are taken apart at the same time: as lists, numbers take much memory

_Name = Annotated[str | None, Query(max_length=200)]
_StreamId = Query(min_length=1, max_length=200, description="Id of a series that is followed.")


def _columns(
    id: _Name = None, time: _Name = None, label: _Name = None, values: _Name = None
) -> Columns:
    """Which column of a table is what; values has commas between."""
    given: Columns = {}
    if id is not None:
        given["id"] = id
    if time is not None:
        given["time"] = time
    if label is not None:
        given["label"] = label
    if values is not None:
        given["values"] = [name.strip() for name in values.split(",")]
    return given


_Columns = Annotated[Columns, Depends(_columns)]


def create_app(
    served: Served,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: Collection[str] | None = None,
) -> Guard:
    """An ASGI application; `running.serve` runs it.

    Args:
        served: What answers.
        limits: Of each request and of all.
        token: See `Guard`.
        hosts: See `Guard`.
    """
    limits = Limits() if limits is None else limits
    metrics = Metrics(lambda: len(service.streams))
    batcher = Batcher(metrics.batch)
    readers = ThreadPoolExecutor(_READERS, "softclt-read")
    service = Service(served, batcher, limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(batcher.close)
        readers.shutdown()

    app = FastAPI(
        title="softclt",
        version=__version__,
        description="Representations of time series. A missing value is null, or empty in a CSV.",
        lifespan=lifespan,
        docs_url=None,  # which would load scripts from elsewhere
        redoc_url=None,
    )
    _answer_errors(app)
    _add_pages(app, service, metrics)
    _add_work(app, service, limits, readers)
    paths = [*PARTS, *OPEN, "/metrics"]
    return Guard(app, limits, metrics, paths, token, hosts)


def _answer_errors(app: FastAPI) -> None:
    """Every error is one line of JSON, under ``detail``."""

    def told(status: int, words: str, headers: Any = None) -> JSONResponse:
        return JSONResponse({"detail": words}, status, headers)

    @app.exception_handler(Refusal)
    async def refused(_: Request, error: Refusal) -> Response:
        return told(error.status, error.detail, error.headers)

    @app.exception_handler(ValueError)
    async def cannot_be_taken(_: Request, error: ValueError) -> Response:
        return told(422, " ".join(str(error).split()))

    @app.exception_handler(RequestValidationError)
    async def wrong_query(_: Request, error: RequestValidationError) -> Response:
        words = [f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in error.errors()]
        return told(422, "; ".join(words))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        words = missing_part(request.url.path) if error.status_code == 404 else ""
        return told(error.status_code, words or str(error.detail), error.headers)


def _add_pages(app: FastAPI, service: Service, metrics: Metrics) -> None:
    served = service.served

    @app.get("/health", summary="Whether the server is there, and what it serves")
    async def health() -> dict[str, Any]:
        return {
            "status": "ok",
            "softclt": __version__,
            "serves": served.paths(),
            "names": dict(served.names),
        }

    @app.get("/metrics", summary="Counts for Prometheus", response_class=Response)
    async def counts() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    @app.get("/", include_in_schema=False)
    async def home() -> Response:
        return HTMLResponse(pages.home(served))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(pages.docs(app.openapi()))


def _add_work(app: FastAPI, service: Service, limits: Limits, readers: Executor) -> None:
    """The paths of the parts that are served."""
    there = service.served.paths()

    async def aside(size: int, work: Callable[..., Any], *given: Any) -> Any:
        """The result of work on so many bytes: in a thread where all would have to wait for it."""
        if size <= _AT_ONCE:
            return work(*given)
        return await asyncio.get_running_loop().run_in_executor(readers, work, *given)

    async def table_of(request: Request, columns: Columns) -> SeriesTable:
        body, kind = await request.body(), request.headers.get("content-type", "")
        table: SeriesTable = await aside(len(body), read_body, kind, body, columns, limits)
        return table

    async def sent(request: Request, answer: Answer) -> Response:
        kind = chosen_kind(request.headers.get("accept", ""))
        body = await aside(answer.size(), answer.encoded, kind)
        return Response(body, media_type=kind)

    if "/embed" in there:

        @app.post("/embed", summary="A vector for each series", **_told("embedding"))
        async def embed(request: Request, columns: _Columns) -> Response:
            chosen_kind(request.headers.get("accept", ""))
            return await sent(request, await service.embed(await table_of(request, columns)))

        @app.post(
            "/explore",
            summary="A page with a map of the series and their neighbours",
            response_class=HTMLResponse,
            openapi_extra={"requestBody": BODY},
        )
        async def explore(request: Request, columns: _Columns) -> Response:
            return HTMLResponse(await service.explore(await table_of(request, columns)))

    if "/classify" in there:

        @app.post("/classify", summary="The class of each series", **_told("class"))
        async def classify(request: Request, columns: _Columns) -> Response:
            chosen_kind(request.headers.get("accept", ""))
            return await sent(request, await service.classify(await table_of(request, columns)))

    if "/search" in there:

        @app.post("/search", summary="The series of the index most like each", **_told("hit"))
        async def search(
            request: Request,
            columns: _Columns,
            k: Annotated[int, Query(ge=1, description="Hits for each series.")] = 10,
            where: Annotated[
                str | None, Query(description="A condition in SQL on columns of the index.")
            ] = None,
        ) -> Response:
            chosen_kind(request.headers.get("accept", ""))
            table = await table_of(request, columns)
            return await sent(request, await service.search(table, k, where))

    if "/detect" in there:

        @app.post("/detect", summary="Alarms in series, or in a stream", **_told("alarm"))
        async def detect(
            request: Request,
            columns: _Columns,
            stream: Annotated[str | None, _StreamId] = None,
            per: Annotated[
                Literal["alarm", "step"], Query(description="What a row of the answer is.")
            ] = "alarm",
        ) -> Response:
            chosen_kind(request.headers.get("accept", ""))
            table = await table_of(request, columns)
            if stream is None:
                return await sent(request, await service.detect(table, steps=per == "step"))
            return await sent(request, await service.follow(stream, table))

        @app.delete("/detect", summary="Forget a stream", status_code=204)
        async def end(stream: Annotated[str, _StreamId]) -> None:
            if not await service.end(stream):
                raise Refusal(404, f"no stream is called {stream!r}")


def _told(kind: str) -> dict[str, Any]:
    """What the description of the server says of body and answer."""
    return {"openapi_extra": {"requestBody": BODY}, "responses": answers(kind)}
