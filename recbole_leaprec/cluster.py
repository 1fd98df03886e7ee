"""A Ray to work on: an existing cluster, or a local one of its own."""

from __future__ import annotations

import importlib.util
import logging
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_logger = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0


def import_ray() -> None:
    """Import Ray without what it says about itself; before anything of it is used."""
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # Ray's own tables; the search shows one of its own
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="pkg_resources is deprecated")  # ray 2.6
        import ray.tune  # noqa: F401


def is_old_ray() -> bool:
    """Whether this is the Ray that recbole 1.2.1 pins, 2.6."""
    import ray

    return tuple(int(part) for part in ray.__version__.split(".")[:2]) < (2, 7)


@contextmanager
def connected(address: str | None = None, data: bool = False) -> Iterator[bool]:
    """Join the cluster at `address`, or at RAY_ADDRESS, or start a local one without a dashboard; leave it at the end.

    Yields whether it is a Ray of our own.

    Args:
        data: whether Ray Data is going to be used.

    Raises:
        ValueError: nothing answers at the address.
    """
    import_ray()
    import ray

    old = is_old_ray()
    if data and old:
        mend_ray_data()
    address = address or os.environ.get("RAY_ADDRESS")
    if address and address not in ("auto", "local"):
        _check_answers(address)
    try:
        ray.init(
            address=address or "local",
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={"worker_process_setup_hook": mend_ray_data} if data and old else None,
        )
    except ConnectionError as error:
        raise ValueError(f"no Ray cluster at {address!r} (--ray_address, RAY_ADDRESS): {error}") from error
    try:
        yield not address or address == "local"
    finally:
        ray.shutdown()


def check_room(wanted: dict[str, float], what: str, own: bool) -> None:
    """ValueError if nothing on a Ray of our own can hold this; a cluster may grow, and gets a warning that says so.

    Ray itself would wait without a word.

    Args:
        wanted: CPUs and GPUs, by Ray's names.
        what: is to run with them.
        own: as `connected` yields it.
    """
    import ray

    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if any(all(node.get(name, 0) >= count for name, count in wanted.items()) for node in nodes):
        return
    most = {name: max((node.get(name, 0) for node in nodes), default=0) for name in wanted}
    told = f"{what} asks for {_counts(wanted)}, and a machine here has {_counts(most)} at most"
    if own:
        raise ValueError(told)
    _logger.warning("%s; it waits for one that has more", told)


def _counts(resources: dict[str, float]) -> str:
    return " and ".join(f"{count:g} {name}" for name, count in resources.items())


def ray_node() -> str:
    """The node that this worker runs on: the machine's name, and Ray's."""
    import ray

    return f"{socket.gethostname()}/{ray.get_runtime_context().get_node_id()[:8]}"


def given_gpus() -> str:
    """The GPUs that Ray has given to this worker, as `gpu_id` takes them."""
    import ray

    return ",".join(map(str, ray.get_gpu_ids()))


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


def mend_ray_data() -> None:
    """Let Ray Data 2.6 find what it imports where setuptools 71 and pandas 2.2 have moved it; newer Ray needs none of this."""
    import packaging.version
    import pandas.io.formats.format as pandas_format

    vendored = "pkg_resources._vendor"
    if vendored not in sys.modules and importlib.util.find_spec(vendored) is None:
        sys.modules[vendored] = ModuleType(vendored)
        sys.modules[f"{vendored}.packaging"], sys.modules[f"{vendored}.packaging.version"] = packaging, packaging.version
    if not hasattr(pandas_format, "ExtensionArrayFormatter"):
        pandas_format.ExtensionArrayFormatter = pandas_format._ExtensionArrayFormatter
