"""An application that listens, and stops when it is told to, with what it has begun finished."""

import ipaddress
import signal
from collections.abc import Callable, Sequence
from typing import Any

import uvicorn

from softclt.serving.app import create_app
from softclt.serving.limits import Limits
from softclt.serving.opening import Served

LOCAL = ("localhost", "127.0.0.1", "[::1]")


def is_local(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(
    served: Served,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: Sequence[str] = (),
    ready: Callable[[str], object] = lambda address: None,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; requests that are under way are finished.

    Args:
        served: What answers.
        host: Address to listen at; the default is reached from this machine only.
        port: 0 takes any that is free.
        limits: Of each request and of all.
        token: That requests must bear.
        hosts: More names by which the server may be called.
        ready: Told the address once requests are taken.
    """
    limits = Limits() if limits is None else limits
    names = [*LOCAL, *(name.lower() for name in hosts)] if is_local(host) or hosts else None
    if names is not None and host.lower() not in names:
        names.append(f"[{host}]" if ":" in host else host.lower())
    config = uvicorn.Config(
        create_app(served, limits, token, names),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(limits.seconds) + 1,
        lifespan="on",
    )
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # what uvicorn puts back at its end
    try:
        _Server(config, ready).run()
    finally:
        signal.signal(signal.SIGTERM, before)


class _Server(uvicorn.Server):
    """Says when it listens, and where."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[str], object]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")
