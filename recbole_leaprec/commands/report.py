"""`leaprec report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recbole_leaprec.cli.command import command, folder_for, loading
from recbole_leaprec.cli.options import Count, File, Lambdas, Names, option
from recbole_leaprec.common.defaults import EXPLORED_USERS, REPORT_LAMBDAS, REPORT_RERANKERS
from recbole_leaprec.settings.keys import MEASUREMENT_KEYS


@command(
    "report",
    keys=MEASUREMENT_KEYS,
    about_keys=f"Keys that can be changed for runs that have not been measured: {', '.join(sorted(MEASUREMENT_KEYS))}",
)
@click.argument("folder", nargs=-1)
@option("out", File(), "the page; its tables and pictures are written beside it", shown="output/report-<time>/report.html")
@option("users", Count(), "how many users the user explorer offers", EXPLORED_USERS)
@option(
    "rerankers",
    Names(),
    "rerankers with commas between them, for runs that have not been measured",
    shown=",".join(REPORT_RERANKERS),
)
@option(
    "lambdas",
    Lambdas(),
    "start:stop:step, or numbers with commas, for runs that have not been measured",
    shown=",".join(f"{lam:g}" for lam in REPORT_LAMBDAS),
)
def report(
    keys: dict[str, Any],
    folder: tuple[str, ...],
    out: str | None,
    users: int,
    rerankers: list[str] | None,
    lambdas: list[float] | None,
) -> None:
    """Make one page, report.html, from the folders of runs, trade-offs or a study: curves, comparisons, users.

    leaprec report output/SASRecCD-ml-100k-20240101-120000
    leaprec report output/run1 output/run2 --out=page/report.html
    leaprec report output/study-ml-100k --users=100
    """
    with loading():
        from recbole_leaprec.report import report as run

    with folder_for("report", str(Path(out).parent) if out else None) as beside:
        page = run(folder, out or Path(beside) / "report.html", users, rerankers, lambdas, config_dict=keys)
    print(f"\nopen {page}")
