"""An application that listens, and stops when it is told to, with what it has begun finished."""

import ipaddress
import signal
import socket
from collections.abc import Callable, Sequence

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


def bound(host: str, port: int) -> socket.socket:
    """A socket at an address that is free; it takes no connections yet.

    Args:
        host: Address of this machine, or a name of it.
        port: 0 takes any that is free.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
        except OSError:
            made.close()
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(
            f"nothing can listen at {host}, port {port}: {reason}; choose another"
        ) from None
    return made


def serve(
    served: Served,
    listener: socket.socket,
    *,
    host: str = "127.0.0.1",
    limits: Limits | None = None,
    token: str | None = None,
    hosts: Sequence[str] = (),
    ready: Callable[[str], object] = lambda address: None,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; requests that are under way are finished.

    Args:
        served: What answers.
        listener: Where to listen: see `bound`. It is closed in the end.
        host: The address as the user wrote it, which is a name of the server.
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
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(limits.seconds) + 1,
        lifespan="on",
    )
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # what uvicorn puts back at its end
    try:
        _Server(config, lambda: ready(_address(listener))).run(sockets=[listener])
    finally:
        listener.close()
        signal.signal(signal.SIGTERM, before)


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class _Server(uvicorn.Server):
    """Says when it takes requests."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()
