"""What every request passes: host, token, how many there are, size and time."""

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

from softclt.serving.limits import Limits, Refusal
from softclt.serving.metrics import Metrics

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

OPEN = ("/", "/health", "/docs", "/openapi.json")  # which hold no data

_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    # Nothing from elsewhere, also in the page inside the page.
    "content-security-policy": "default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
}


class Guard:
    """Lets a request through to ``app`` with its body read, or answers it itself.

    Args:
        app: What answers.
        limits: Of the server.
        metrics: Told of every answer.
        paths: What there is to ask for; metrics put all else together.
        token: That requests must bear, unless they are for `OPEN`.
        hosts: Names by which the server may be called; None allows any. A page from elsewhere that
            points a name of its own at this machine is turned away so.
    """

    def __init__(
        self,
        app: App,
        limits: Limits,
        metrics: Metrics,
        paths: Collection[str],
        token: str | None = None,
        hosts: Collection[str] | None = None,
    ) -> None:
        self._app, self._limits, self._metrics = app, limits, metrics
        self._paths, self._hosts = set(paths), hosts
        self._token = None if token is None else token.encode()
        self._running = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One connection, as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, answer = time.perf_counter(), _Answering(send)
        self._running += 1
        self._metrics.running.set(self._running)
        try:
            await self._let_through(scope, receive, answer)
        except Refusal as refusal:
            if not answer.begun:  # else its end is missing, and the connection is closed
                await answer.refuse(refusal)
        finally:
            self._running -= 1
            self._metrics.running.set(self._running)
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.answered(path, answer.status, time.perf_counter() - began)

    async def _let_through(self, scope: Message, receive: Receive, answer: "_Answering") -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        self._check_host(headers.get(b"host", b""))
        if scope["path"] not in OPEN:
            self._check_token(headers.get(b"authorization", b""))
        if self._running > self._limits.requests and scope["path"] != "/health":
            raise Refusal(
                503,
                f"{self._limits.requests} requests are under way already; try again",
                {"retry-after": "1", "connection": "close"},
            )
        whole = False
        try:
            async with asyncio.timeout(self._limits.seconds):
                body = await self._body(headers, receive)
                whole = True
                await self._app(scope, _replayed(body, receive), answer)
        except TimeoutError:
            words = f"{self._limits.seconds:g} seconds"
            if not whole:
                close = {"connection": "close"}
                raise Refusal(408, f"the body did not arrive within {words}", close) from None
            raise Refusal(
                504, f"no answer within {words}; send fewer or shorter series at a time"
            ) from None

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        """All of the body, if it is not too large."""
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise Refusal(415, "the body is packed; send it unpacked", {"connection": "close"})
        told = headers.get(b"content-length", b"0")
        self._limits.check_body(int(told) if told.isdigit() else 0)
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise Refusal(400, "the connection was closed before the end of the body")
            body += message.get("body", b"")
            self._limits.check_body(len(body))
            if not message.get("more_body", False):
                return bytes(body)

    def _check_host(self, given: bytes) -> None:
        if self._hosts is None:
            return
        name = given.decode("latin-1").lower()
        name = name[: name.rfind("]") + 1] if name.startswith("[") else name.partition(":")[0]
        if name not in self._hosts:
            raise Refusal(
                421,
                f"this server is not called {name[:60]!r}; use {', '.join(self._hosts)}, or start "
                "it with --allow-host",
            )

    def _check_token(self, given: bytes) -> None:
        if self._token is None:
            return
        scheme, _, token = given.partition(b" ")
        same = hmac.compare_digest(token.strip(), self._token)
        if scheme.lower() != b"bearer" or not same:
            raise Refusal(
                401,
                "this needs the token of the server, as 'Authorization: Bearer TOKEN'",
                {"www-authenticate": "Bearer"},
            )


class _Answering:
    """Sends an answer with the headers of all answers, and knows its status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status, self.begun = 500, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.begun = message["status"], True
            more = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        body = json.dumps({"detail": refusal.detail}).encode()
        about = {"content-type": "application/json", "content-length": str(len(body))}
        headers = [(k.encode(), v.encode()) for k, v in (about | refusal.headers).items()]
        await self({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self({"type": "http.response.body", "body": body})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read already, then what else comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return left.pop() if left else await receive()

    return next_message
