"""Options of the commands that may work on a Ray cluster."""

from __future__ import annotations

from typing import Any

from recbole_leaprec.cli.options import Count, OneOf, Text, option
from recbole_leaprec.common.defaults import ENGINES

RAY_ADDRESS = option(
    "ray_address", Text(), "address of an existing Ray cluster, host:port; or set RAY_ADDRESS", shown="a local cluster"
)

_ENGINE = (
    option("engine", OneOf(ENGINES), "local: this process; ray: several processes or machines, with Ray Data", "local"),
    option("workers", Count(), "how many processes --engine=ray starts", shown="one per CPU"),
    RAY_ADDRESS,
)


def ray_options(function: Any) -> Any:
    """A decorator that adds the options `engine`, `workers` and `ray_address` of a command that makes lists."""
    for add in reversed(_ENGINE):
        function = add(function)
    return function
