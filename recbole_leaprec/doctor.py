"""Finds out what this machine has for the plugin: versions, threads, devices, folders; and what is missing per command."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import tempfile
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import recbole_leaprec

_RAY = "tune, and train, recommend and rerank with --engine=ray"

PACKAGES = {
    "recbole": ("recbole", "every command"),
    "torch": ("torch", "every command"),
    "numpy": ("numpy", "every command"),
    "pandas": ("pandas", "every command"),
    "click": ("click", "every command"),
    "pyyaml": ("yaml", "every command"),
    "tqdm": ("tqdm", "every command"),
    "tensorboard": ("tensorboard", "every command"),
    "scipy": ("scipy", "every command"),
    "pyarrow": ("pyarrow", "every command"),
    "numba": ("numba", "every command that makes lists"),
    "joblib": ("joblib", "the rerankers mip and mcf"),
    "matplotlib": ("matplotlib", "tradeoff, shift, users, study, report and data describe"),
    "plotly": ("plotly", "study, report and tune"),
    "ray": ("ray", _RAY),
    "optuna": ("optuna", "tune"),
}
"""By pip's name of a package: its name in Python, and the commands that need it."""

EXTRAS = {"serve": ("fastapi", "fastapi_offline", "uvicorn")}
"""Commands that only few users need, with the Python names of the packages in the extra of the same name."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox", "microsoft-edge", "safari")


@dataclass(frozen=True)
class Finding:
    """One line of the result.

    Attributes:
        problem: what does not work because of it, and what to do; empty if there is no problem.
    """

    name: str
    found: str
    problem: str = ""


def doctor() -> list[Finding]:
    """Check the packages, the machine and the folders. Nothing is written or started."""
    bounds = _bounds()
    packages = [_package(name, bounds.get(name, "")) for name in PACKAGES]
    return [
        Finding("recbole-leaprec", recbole_leaprec.__version__),
        Finding("python", f"{platform.python_version()}, {platform.system()} {platform.machine()}"),
        *packages,
        *(_extra(command, modules) for command, modules in EXTRAS.items()),
        *_machine(torch_works=not next(package.problem for package in packages if package.name == "torch")),
        _folder("this folder", Path.cwd(), "every command that writes output/: go to another folder, or use --output_dir"),
        _folder("temporary files", Path(tempfile.gettempdir()), f"{_RAY}: set TMPDIR"),
        _folder(
            "cache", _cache(), "nothing for good, but the rerankers are compiled anew at each start: set NUMBA_CACHE_DIR"
        ),
        _browser(),
    ]


def told(findings: list[Finding]) -> str:
    """The findings as lines, and the problems after them.

    Example:
        >>> print(told([Finding("torch", "2.13.0"), Finding("ray", "not installed", "tune: pip install ray")]))
        torch             2.13.0
        ray               not installed
        <BLANKLINE>
        does not work, because of ray: tune: pip install ray
    """
    lines = [f"{finding.name:<17} {finding.found}" for finding in findings]
    problems = [f"does not work, because of {finding.name}: {finding.problem}" for finding in findings if finding.problem]
    return "\n".join([*lines, "", *(problems or ["every command works here"])])


def _bounds() -> dict[str, str]:
    """The versions that the installed plugin needs, by package; empty if it runs from a checkout without installation."""
    from packaging.requirements import Requirement

    try:
        wanted = [Requirement(line) for line in metadata.requires("recbole-leaprec") or ()]
    except metadata.PackageNotFoundError:
        return {}
    return {requirement.name.lower(): str(requirement.specifier) for requirement in wanted if requirement.marker is None}


def _package(name: str, bounds: str) -> Finding:
    """Check a package by importing it, because an installed package may not work."""
    from packaging.specifiers import SpecifierSet

    module, needed_by = PACKAGES[name]
    try:
        importlib.import_module(module)
        version = metadata.version(name)
    except (ModuleNotFoundError, metadata.PackageNotFoundError) as error:
        return Finding(name, f"not installed ({error})", f"{needed_by}: pip install {name}")
    except Exception as error:  # a package that does not fit the others can raise anything
        told = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return Finding(name, f"cannot be imported ({told})", f"{needed_by}: pip install --force-reinstall {name}")
    if not SpecifierSet(bounds).contains(version, prereleases=True):
        return Finding(name, f"{version}, which is not {bounds}", f"{needed_by}: pip install '{name}{bounds}'")
    return Finding(name, version)


def _extra(command: str, modules: tuple[str, ...]) -> Finding:
    """Whether a command that only few users need can run. It is no problem if not."""
    missing = [name for name in modules if find_spec(name) is None]
    told = f"not installed; who needs it: pip install 'recbole-leaprec[{command}]'" if missing else "installed"
    return Finding(f"leaprec {command}", told)


def _machine(torch_works: bool) -> list[Finding]:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    findings = [Finding("CPUs", f"{allowed} of {os.cpu_count()} for this process")]
    if torch_works:
        import torch

        given = os.environ.get("OMP_NUM_THREADS")
        why = f"OMP_NUM_THREADS={given}" if given else "OMP_NUM_THREADS is not set"
        gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
        findings += [
            Finding("torch threads", f"{torch.get_num_threads()} ({why})"),
            Finding("GPUs", ", ".join(gpus) or "none that torch can use; models run on the CPU"),
        ]
    address = os.environ.get("RAY_ADDRESS")
    return [
        *findings,
        Finding("Ray cluster", f"RAY_ADDRESS={address}" if address else "a local one, started when it is needed"),
    ]


def _folder(name: str, path: Path, problem: str) -> Finding:
    existing = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    if existing.is_dir() and os.access(existing, os.W_OK):
        return Finding(name, f"{path}, {shutil.disk_usage(existing).free / 2**30:.0f} GiB free")
    return Finding(name, f"{path}, which cannot be written to", problem)


def _cache() -> Path:
    """The folder where numba keeps compiled rerankers: beside the package if that is writable."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given)
    beside = Path(recbole_leaprec.__file__).parent / "reranking"
    return beside if os.access(beside, os.W_OK) else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _browser() -> Finding:
    paths = [path for path in map(shutil.which, BROWSERS) if path]
    return Finding("browser", paths[0] if paths else "none on the PATH; open report.html on another machine")
