"""A run's folder (`output_dir`, or a new one under output/), and the versions that a result was made with."""

from __future__ import annotations

import math
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from recbole_leaprec import __version__
from recbole_leaprec.common.files import new_folder
from recbole_leaprec.common.reading import read_json
from recbole_leaprec.training_state import STATE

if TYPE_CHECKING:
    from recbole_leaprec.config import LeapRecConfig


def check_folder(config: LeapRecConfig) -> None:
    """Raise ValueError if `output_dir` cannot be the folder of a new run."""
    folder = config["output_dir"] and Path(config["output_dir"])
    if not folder:
        return
    check_no_run(folder)
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise ValueError(f"output_dir {folder} cannot be made: {existing} is not a folder that can be written to")


def check_no_run(folder: Path) -> None:
    """Raise ValueError if a folder already holds a run. For a killed training, the message says how to go on."""
    if (folder / "result.json").exists():
        raise ValueError(f"output_dir {folder} already holds a run; name another, or remove it first")
    if (folder / STATE).exists() or (folder / "model.pth").exists():
        raise ValueError(f"output_dir {folder} already holds a training that has not ended: {left_of_training(folder)}")


def left_of_training(folder: Path) -> str:
    """A sentence on what an interrupted training leaves, and how to go on."""
    if (folder / STATE).is_file():
        return f"all epochs that were finished are kept in {folder}; go on with leaprec --resume={folder}"
    return f"no epoch was finished, and {folder} holds nothing to go on with; remove it and start again"


def make_folder(config: LeapRecConfig, name: str) -> Path:
    """The folder of a run: `output_dir`, or a new one under output/."""
    return Path(config["output_dir"]) if config["output_dir"] is not None else new_folder(name)


def training_seconds(folder: Path) -> float:
    """The training time of the run in a folder, in seconds; nan if not known."""
    path = folder / "result.json"
    if not path.is_file():
        return math.nan
    timing = read_json(path, "the result of a run").get("timing")
    seconds = timing.get("training", math.nan) if isinstance(timing, dict) else math.nan
    return float(seconds) if isinstance(seconds, int | float) else math.nan


def versions() -> dict[str, str]:
    """The versions of the packages that a result was made with."""
    packages = ("recbole", "torch", "numpy", "pandas")
    return {
        "recbole-leaprec": __version__,  # works also from a checkout that is not installed
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }
