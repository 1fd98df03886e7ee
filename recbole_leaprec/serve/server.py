"""The service on one machine: uvicorn, in this process."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import uvicorn

from recbole_leaprec.serve.app import make_app
from recbole_leaprec.serve.settings import TOKEN

if TYPE_CHECKING:
    from recbole_leaprec.serve.service import Service


def open_socket(host: str, port: int) -> socket.socket:
    """Listen on the port. ValueError if that is not possible."""
    if port > 65535:
        raise ValueError(f"port must be from 0 to 65535, got {port}")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ValueError(f"cannot listen on {host}:{port} (--host, --port): {error}") from error


def run_server(service: Service, listening: socket.socket) -> None:
    """Answer requests until Ctrl-C or SIGTERM. Requests in progress are finished first."""
    service.keep_all()
    config = uvicorn.Config(
        make_app(service, os.environ.get(TOKEN)), log_level="warning", access_log=False, timeout_graceful_shutdown=30
    )
    uvicorn.Server(config).run(sockets=[listening])
