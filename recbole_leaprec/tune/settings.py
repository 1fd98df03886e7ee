"""All settings of a search as plain values, the content of settings.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from recbole_leaprec.common.defaults import SEARCHES
from recbole_leaprec.common.did_you_mean import unknown_name
from recbole_leaprec.common.files import write_json
from recbole_leaprec.common.reading import read_json, reading
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.config_checks import metric_names
from recbole_leaprec.run import read_dataset
from recbole_leaprec.run_log import run_log
from recbole_leaprec.settings.keys import MACHINE_KEYS, check_count, check_keys, check_number
from recbole_leaprec.tune.objective import parse_objective
from recbole_leaprec.tune.space import read_space


@dataclass(frozen=True)
class SearchSettings:
    """The settings that a search was started with.

    Attributes:
        config: the settings of every trial.
        metrics: the metrics that an evaluation gives, such as ndcg@10.
        concurrent: trials at a time; None for as many as the CPUs or GPUs allow.
        cpus, gpus: CPUs and GPUs per trial.
        space: kind and arguments of each key's distribution.
    """

    config: dict[str, Any]
    objective: str
    metrics: list[str]
    trials: int
    search: str
    early_stopping: bool
    concurrent: int | None
    cpus: float
    gpus: float
    folder: str
    space: dict[str, list[Any]]

    @property
    def path(self) -> Path:
        return Path(self.folder)

    @classmethod
    def begin(
        cls,
        folder: Path,
        space: str | Path | None,
        config: LeapRecConfig,
        *,
        given: Mapping[str, Any],
        objective: str | None,
        trials: int,
        search: str,
        early_stopping: bool,
        concurrent: int | None,
        cpus: float,
        gpus: float,
    ) -> SearchSettings:
        """The settings of a new search; ValueError for mistakes that would else make trials fail.

        Args:
            given: keys that hold for all trials, and so may not be in the space.
        """
        if space is None:
            raise ValueError("--space=FILE is needed, the distributions to draw from, such as properties/tune/SASRecCD.yaml")
        _check_options(trials, search, early_stopping, concurrent, cpus, gpus)
        if (folder / "settings.json").exists():
            raise ValueError(f"output_dir {folder} already holds a search; --resume=True goes on with it, or name another")
        shared = config.plain()
        for key in MACHINE_KEYS & shared.keys():
            raise ValueError(f"{key}: Ray gives GPUs to trials; say how many with gpus_per_trial (0: trials run on CPUs)")
        shared["data_path"] = str(Path(shared["data_path"]).absolute())  # workers may run elsewhere
        metrics = [name.lower() for name in metric_names(config["metrics"], config["topk"])]
        text = objective or config["valid_metric"]
        distributions = _checked_space(space, shared)
        for key in given:
            if key in distributions:
                raise ValueError(f"{key} is given as {given[key]!r}, and {space} draws it, too; leave one of them out")
        parse_objective(text, metrics)
        with run_log(config):
            # A mistake in the dataset would make every trial fail, and all trials would download it at the same time.
            read_dataset(config).item_names()
        return cls(shared, text, metrics, trials, search, early_stopping, concurrent, cpus, gpus, str(folder), distributions)

    @classmethod
    def resume(cls, folder: Path, trials: int | None, done: int) -> SearchSettings:
        """The settings of the search in a folder, with another number of `trials` (at least `done`) if it is given."""
        path, what = _file(folder), "the settings of a search"
        with reading(path, what):
            settings = cls(**read_json(path, what))
            _check_options(
                settings.trials, settings.search, settings.early_stopping, settings.concurrent, settings.cpus, settings.gpus
            )
            parse_objective(settings.objective, settings.metrics)
            LeapRecConfig(config_dict=settings.config)
        if trials is None:
            return settings
        check_count("trials", trials)
        if trials < done:
            raise ValueError(f"trials must be at least the {done} that are done, got {trials}")
        return replace(settings, trials=trials)

    def write(self) -> None:
        write_json(self.path / "settings.json", asdict(self))


def _file(folder: Path) -> Path:
    path = folder / "settings.json"
    if not path.is_file():
        raise ValueError(f"there is no search to resume in {folder}: {path.name} is not there (--output_dir)")
    return path


def _check_options(trials: int, search: str, early_stopping: bool, concurrent: int | None, cpus: float, gpus: float) -> None:
    if search not in SEARCHES:
        raise ValueError(unknown_name("search", str(search), SEARCHES))
    check_count("trials", trials)
    if concurrent is not None:
        check_count("concurrent", concurrent)
    check_number("cpus_per_trial", cpus, above=0)
    check_number("gpus_per_trial", gpus)
    if not isinstance(early_stopping, bool):
        raise ValueError(f"early_stopping must be True or False, got {early_stopping!r}")


def _checked_space(space: str | Path, shared: dict[str, Any]) -> dict[str, list[Any]]:
    """The distributions of a file; ValueError if an extreme value of one gives an invalid configuration."""
    distributions = read_space(space)
    try:
        check_keys(distributions)
        for key, distribution in distributions.items():
            for value in distribution.extremes():
                LeapRecConfig(config_dict={**shared, key: value})
    except ValueError as error:
        raise ValueError(f"{space}: {error}") from error
    return {key: [d.kind, list(d.arguments)] for key, d in distributions.items()}


def check_resumed_with(names: Sequence[str]) -> None:
    """ValueError if there are any names: these settings cannot be given to a search that is resumed."""
    if names:
        raise ValueError(
            f"a search is resumed with the settings it was started with, and trials alone may be others; leave out {', '.join(names)}"
        )
