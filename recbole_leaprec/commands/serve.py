"""`leaprec serve`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from recbole_leaprec.cli.command import command, loading
from recbole_leaprec.cli.list_options import list_rules
from recbole_leaprec.cli.options import CHECKPOINT, Count, Number, Text, Whole, option
from recbole_leaprec.common.defaults import LIST_LENGTH
from recbole_leaprec.doctor import EXTRAS
from recbole_leaprec.serve.settings import HOST, PORT, TOKEN, Limits
from recbole_leaprec.settings.keys import SERVICE_KEYS


@command(
    "serve",
    keys=SERVICE_KEYS,
    about_keys=f"Keys that can be changed: {', '.join(sorted(SERVICE_KEYS))}\n"
    f"If {TOKEN} is set in the environment, requests must send it as their bearer token.",
)
@CHECKPOINT
@option("host", Text(), "address to listen on; 0.0.0.0 for all networks of this machine", HOST)
@option("port", Whole(), "port to listen on; 0 for any free port", PORT)
@list_rules
@option("k", Count(), "items per list, if a request does not say", LIST_LENGTH)
@option("batch", Count(), "how many requests are scored together, at most", Limits.batch)
@option("max_waiting", Count(), "how many requests may wait for their turn; any more are refused", Limits.waiting)
@option("max_seconds", Number(above=0), "how many seconds a request may take", Limits.seconds)
@option("max_k", Count(), "how many items per list a request may ask for", Limits.k)
@option("max_items", Count(), "how many items of a history, or candidates, a request may have", Limits.items)
@option("max_body", Count(), "how many bytes a request may have", Limits.body)
@option("threads", Count(), "how many threads score", 1)
def serve(
    keys: dict[str, Any],
    host: str,
    port: int,
    threads: int,
    batch: int,
    max_waiting: int,
    max_seconds: float,
    max_k: int,
    max_items: int,
    max_body: int,
    **options: Any,
) -> None:
    """Answer requests for calibrated lists over HTTP, until Ctrl-C.

    leaprec serve --checkpoint=output/SASRecCD-ml-100k-20240101-120000/model.pth --port=8000
    """
    missing = [name.replace("_", "-") for name in EXTRAS["serve"] if find_spec(name) is None]
    if missing:
        raise ValueError(f"serve needs {', '.join(missing)}: pip install 'recbole-leaprec[serve]'")
    limits = Limits(batch, max_waiting, max_seconds, max_k, max_items, max_body)
    limits.check_default(options["k"])
    with loading():
        import torch

        from recbole_leaprec.serve.server import open_socket, run_server
        from recbole_leaprec.serve.service import open_service

    torch.set_num_threads(threads)
    with open_socket(host, port) as listening:
        service = open_service(options.pop("checkpoint"), keys, limits=limits, **options)
        address = f"http://{host}:{listening.getsockname()[1]}"
        print(f"{service.info.model} on {address}, its pages on {address}/docs; Ctrl-C ends it", flush=True)
        try:
            run_server(service, listening)
        except KeyboardInterrupt:  # uvicorn raises it again when it has shut down
            print("ended")
