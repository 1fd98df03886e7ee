"""`report`: makes one page from the folders of runs, of trade-offs, or of a study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from recbole_leaprec.analysis.curves import Comparison, Curve
from recbole_leaprec.analysis.measure import measure
from recbole_leaprec.analysis.measurement import BASE, FILE, Measurement
from recbole_leaprec.common.defaults import EXPLORED_USERS, REPORT_LAMBDAS, REPORT_RERANKERS
from recbole_leaprec.common.files import check_unused, distinct_names, taken
from recbole_leaprec.page.tables import TABLES
from recbole_leaprec.page.write import UNFINISHED, write_page
from recbole_leaprec.reranking.registry import get_reranker
from recbole_leaprec.run import trained_config
from recbole_leaprec.run_folder import training_seconds
from recbole_leaprec.settings.keys import check_alike, check_count, check_lambdas
from recbole_leaprec.study.run import SPEC, report_study


def report(
    folders: Sequence[str | Path],
    out: str | Path,
    users: int = EXPLORED_USERS,
    rerankers: Sequence[str] | None = None,
    lambdas: Sequence[float] | None = None,
    config_dict: dict[str, Any] | None = None,
) -> Path:
    """Write the page, with its tables and pictures beside it. Returns the path of the page.

    Args:
        folders: folders of runs or trade-offs, or one folder of a study. A run without measurements is measured now.
        out: the page; its folder is made if needed.
        users: how many users the user explorer of the page has.
        rerankers, lambdas: used to measure a run; None for `REPORT_RERANKERS` and `REPORT_LAMBDAS`.
        config_dict: keys to change when a run is measured, those in `MEASUREMENT_KEYS`.

    Raises:
        ValueError: bad arguments, a folder with nothing to report, or runs of different datasets.
    """
    out, paths = Path(out), [Path(folder).resolve() for folder in folders]
    check_count("users", users)
    check_lambdas(REPORT_LAMBDAS if lambdas is None else lambdas)
    for name in rerankers or ():
        get_reranker(name)
    _check_folders(paths)
    _check_out(out)
    of_study = (paths[0] / SPEC).is_file()
    to_measure = [] if of_study else [folder for folder in paths if not _measured(folder)]
    changed = [name for name, value in (("rerankers", rerankers), ("lambdas", lambdas)) if value is not None]
    changed = [*(config_dict or {}), *changed]
    if not to_measure and changed:
        raise ValueError(f"{paths[0]} has been measured: {', '.join(changed)} can change nothing about it")
    labels = {folder: label for label, folder in distinct_names(paths).items()}
    runs = {folder: _load(folder, labels[folder]) for folder in paths if not of_study and folder not in to_measure}
    _check_runs(to_measure, [run.measurement for loaded in runs.values() for run in loaded], config_dict)
    by_reranker = dict.fromkeys(rerankers or REPORT_RERANKERS, REPORT_LAMBDAS if lambdas is None else lambdas)
    if not of_study:
        to_come = {folder: [_Reranked.by(by_reranker, labels[folder], folder / "model.pth")] for folder in to_measure}
        there = {folder: [run.reranked for run in loaded] for folder, loaded in runs.items()}
        known = to_come | there
        _check_reranked([one for folder in paths for one in known[folder]])
    with taken(out.parent):
        _check_out(out)
        if of_study:
            report_study(paths[0], out, users)
            return out
        for folder in to_measure:
            runs[folder] = [_measure(folder, labels[folder], out.parent, by_reranker, config_dict or {})]
        _write(out, [run for folder in paths for run in runs[folder]], users)
        return out


def _write(out: Path, runs: Sequence[_Measured], users: int) -> None:
    curves = _curves(runs)
    title = f"Calibrated lists on {runs[0].measurement.info['dataset']}"
    write_page(out, title, curves, [Comparison(curves[0], curves)], users=users)


class _Reranked(NamedTuple):
    """What to call a model, and what it is or will be reranked with; its own ranking is left out."""

    label: str
    model: Path
    rerankers: list[str]

    @classmethod
    def by(cls, rerankers: Iterable[str], label: str, model: Path) -> _Reranked:
        return cls(label, model, [name for name in dict.fromkeys(rerankers) if name != BASE])


class _Measured(NamedTuple):
    """A measured run, with its label and the seconds of its training."""

    label: str
    measurement: Measurement
    training: float

    @property
    def reranked(self) -> _Reranked:
        return _Reranked.by(self.measurement.rerankers.tolist(), self.label, Path(self.measurement.info["checkpoint"]))


def _check_folders(folders: Sequence[Path]) -> None:
    if not folders:
        raise ValueError("name at least one folder, of a run, a trade-off or a study: report output/run1 output/run2")
    if len({*folders}) < len(folders):
        raise ValueError("a folder is named twice")
    for folder in folders:
        if (folder / SPEC).is_file() and len(folders) > 1:
            raise ValueError(f"{folder} is a study and makes a page of its own; leave the other folders out")


def _check_out(out: Path) -> None:
    if out.suffix not in (".html", ".htm"):
        raise ValueError(f"out: the page's name must end in .html, got {out}; its tables and pictures go beside it")
    if out.exists():
        raise ValueError(f"out: {out} is there already; name another")
    if not (out.parent / UNFINISHED).exists():
        check_unused(out.parent, [f"{name}.csv" for name in TABLES], "out")


def _check_runs(folders: Sequence[Path], measured: Sequence[Measurement], config_dict: dict[str, Any] | None) -> None:
    """Raise ValueError for a folder that cannot be measured, or for runs that cannot be compared in one table."""
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"{folder} does not exist; name the folder of a run, a trade-off or a study")
        if not (folder / "model.pth").is_file():
            raise ValueError(
                f"{folder} holds neither a model.pth nor a {FILE}: it is no folder of a run, a trade-off or a study"
            )
    configs = {one.info["checkpoint"]: one.info["config"] for one in measured}
    configs |= {str(folder): trained_config(folder / "model.pth", config_dict)[1].plain() for folder in folders}
    if folders:
        check_alike(configs, "what is given here (--key=value) holds for all that have not been measured")


def _measured(folder: Path) -> list[Path]:
    """The files with measurements in a folder and its sub-folders."""
    return sorted({*folder.glob(FILE), *folder.glob(f"*/{FILE}")})


def _load(folder: Path, label: str) -> list[_Measured]:
    paths = _measured(folder)
    if len(paths) == 1:
        return [_Measured(label, Measurement.load(paths[0]), training_seconds(folder / "model"))]
    return [_Measured(f"{label}/{path.parent.name}", Measurement.load(path), float("nan")) for path in paths]


def _measure(
    folder: Path, label: str, beside: Path, rerankers: Mapping[str, Sequence[float]], changes: dict[str, Any]
) -> _Measured:
    own = beside / f"measured-{label.replace('/', '-')}"
    measurement = measure(folder / "model.pth", rerankers, {**changes, "output_dir": str(own)})
    measurement.save(own / FILE)
    return _Measured(label, measurement, training_seconds(folder))


def _check_reranked(runs: Sequence[_Reranked]) -> None:
    """Raise ValueError if two have the same model and reranker, for example a run and its own trade-off; or if none has one."""
    seen: dict[tuple[Path, str], str] = {}
    for run in runs:
        model = run.model.resolve()
        for reranker in run.rerankers:
            other = seen.setdefault((model, reranker), run.label)
            if other != run.label:
                raise ValueError(
                    f"{other} and {run.label} are both {reranker} of {model}, which would count twice; leave one out"
                )
    if not seen:
        raise ValueError(
            f"{runs[0].label} has no reranker but {BASE}, the model's own ranking, and so no curve: measure it with another"
        )


def _curves(runs: Sequence[_Measured]) -> list[Curve]:
    """One curve per run and reranker. If there are several runs, the name starts with the run's label."""
    return [
        Curve(name if len(runs) == 1 else f"{run.label}: {name}", name, [run.measurement], training=run.training)
        for run in runs
        for name in run.reranked.rerankers
    ]
