"""`leaprec doctor`."""

from __future__ import annotations

from typing import Any

from recbole_leaprec import doctor as examination
from recbole_leaprec.cli.command import command, loading


@command("doctor", keys=())
def doctor(keys: dict[str, Any]) -> int | None:
    """Show versions, threads, devices and folders, and what is missing for which command. The exit code is 1 if something is missing."""
    with loading("every package that a command needs"):
        findings = examination.doctor()
    print(examination.told(findings))
    return 1 if any(finding.problem for finding in findings) else None
