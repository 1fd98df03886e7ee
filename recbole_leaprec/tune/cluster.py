"""A Ray to work on: an existing cluster, or a local one of its own."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

CONNECT_SECONDS = 5.0


@contextmanager
def connected(address: str | None = None) -> Iterator[None]:
    """Join the cluster at `address`, or at RAY_ADDRESS, or start a local one without a dashboard; leave it at the end.

    Raises:
        ValueError: nothing answers at the address.
    """
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # Ray's own tables; the search shows one of its own
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="pkg_resources is deprecated")  # ray 2.6
        import ray
        import ray.tune

    address = address or os.environ.get("RAY_ADDRESS")
    if address and address not in ("auto", "local"):
        _check_answers(address)
    try:
        ray.init(
            address=address or "local",
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level="ERROR",
        )
    except ConnectionError as error:
        raise ValueError(f"no Ray cluster at {address!r} (--ray_address, RAY_ADDRESS): {error}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Ray itself tries for a minute and more."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(f"ray_address must be host:port, ray://host:port or auto, got {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise ValueError(
            f"no Ray cluster answers at {address!r} (--ray_address, RAY_ADDRESS): {error}; start one with `ray start --head`"
        ) from error
