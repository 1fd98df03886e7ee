"""Connects to Ray: to an existing cluster, or to a local Ray that is started here."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from recbole_leaprec.common.slow_step import slow_step

_logger = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0

QUIET = {
    "RAY_AIR_NEW_OUTPUT": "0",  # else Ray Tune prints its own table and paths, even if verbose is 0
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # else Ray Data's pool of actors prints a false error (Ray's issue 53727)
}
"""Environment variables that keep Ray 2.60 from printing. A value that the user has set stays."""


@contextmanager
def connected(address: str | None = None) -> Iterator[bool]:
    """Join the cluster at `address` or RAY_ADDRESS, and leave it at the end.

    By default a local Ray without a dashboard is started. Yields whether that is so.

    Raises:
        ValueError: nothing answers at the address.
    """
    import ray

    for variable, value in QUIET.items():
        os.environ.setdefault(variable, value)
    address = address or os.environ.get("RAY_ADDRESS")
    if address and address not in ("auto", "local"):
        _check_answers(address)
    try:
        with slow_step(f"joining the Ray cluster at {address}" if address else "starting a local Ray"):
            ray.init(
                address=address or "local",
                include_dashboard=None if address else False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
    except ConnectionError as error:
        # Since Ray 2.59 a local Ray leaves a token in ~/.ray, and every `ray start` after that asks for it.
        token = "" if "RAY_AUTH_MODE" in os.environ else "; if the cluster asks for a token, set RAY_AUTH_MODE=token"
        raise ValueError(f"no Ray cluster at {address!r} (--ray_address, RAY_ADDRESS): {error}{token}") from error
    try:
        yield not address or address == "local"
    finally:
        ray.shutdown()


@contextmanager
def quiet_data() -> Iterator[None]:
    """Keep the progress bars and messages of Ray Data off the terminal. Its log file has the messages."""
    import ray.data

    context = ray.data.DataContext.get_current()
    terminal = [handler for handler in logging.getLogger("ray.data").handlers if isinstance(handler, logging.StreamHandler)]
    bars, levels = context.enable_progress_bars, [handler.level for handler in terminal]
    context.enable_progress_bars = False
    for handler in terminal:
        handler.setLevel(logging.ERROR)
    try:
        yield
    finally:
        context.enable_progress_bars = bars
        for handler, level in zip(terminal, levels, strict=True):
            handler.setLevel(level)


def check_room(wanted: dict[str, float], what: str, own: bool, copies: int = 1) -> None:
    """Raise ValueError if a local Ray has no room for this. A cluster may grow, so there it is only a warning.

    Ray itself would wait silently.

    Args:
        wanted: numbers of CPUs and GPUs, by Ray's names.
        what: the thing that needs them, for the message.
        own: the value that `connected` yields.
        copies: how many of it run at a time; each must fit on one machine.
    """
    import ray

    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    room = sum(_fits(wanted, node) for node in nodes)
    if room >= copies:
        return
    if copies > 1:
        told = f"{copies} times {what} is asked for, with {_counts(wanted)} each, and there is room for {room}"
    else:
        most = {name: max((node.get(name, 0) for node in nodes), default=0) for name in wanted}
        told = f"{what} asks for {_counts(wanted)}, and a machine here has {_counts(most)} at most"
    if own:
        raise ValueError(told)
    _logger.warning("%s; it waits for more", told)


def room_in_all(resource: str) -> float:
    """The number of CPUs or GPUs of all machines together."""
    import ray

    return ray.cluster_resources().get(resource, 0.0)


def _fits(wanted: dict[str, float], node: dict[str, float]) -> int:
    """How many copies fit on a machine."""
    return int(min(node.get(name, 0) / count for name, count in wanted.items() if count))


def _counts(resources: dict[str, float]) -> str:
    return " and ".join(f"{count:g} {name}" for name, count in resources.items())


def ray_node() -> str:
    """The node of this worker: the machine's name, and the begin of Ray's node id."""
    import ray

    return f"{socket.gethostname()}/{ray.get_runtime_context().get_node_id()[:8]}"


def given_gpus() -> str:
    """The GPUs that Ray gave to this worker, in the form of `gpu_id`."""
    import ray

    return ",".join(map(str, ray.get_gpu_ids()))


def _check_answers(address: str) -> None:
    """Raise ValueError if nothing answers at the address. Ray itself would try for more than a minute."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(f"ray_address must be host:port, ray://host:port or auto, got {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise ValueError(
            f"no Ray cluster answers at {address!r} (--ray_address, RAY_ADDRESS): {error}; start one with `ray start --head`"
        ) from error


@contextmanager
def interrupts_as_before() -> Iterator[None]:
    """Restore the handler of Ctrl-C at the end: after a search without an interrupt, Ray Tune keeps its own."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
