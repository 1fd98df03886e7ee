"""Runs a study, part by part. Parts that are done are not run again."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from recbole_leaprec.analysis.curves import Comparison, Curve
from recbole_leaprec.analysis.describe import Description, description
from recbole_leaprec.analysis.measure import measure
from recbole_leaprec.analysis.measurement import FILE, Measurement
from recbole_leaprec.common.defaults import EXPLORED_USERS
from recbole_leaprec.common.files import taken, write_yaml
from recbole_leaprec.common.reading import read_settings
from recbole_leaprec.page.datasets import write_datasets
from recbole_leaprec.page.write import write_page
from recbole_leaprec.quick_start import resume, run_leaprec
from recbole_leaprec.run import read_dataset
from recbole_leaprec.run_folder import training_seconds
from recbole_leaprec.run_log import run_log
from recbole_leaprec.settings.dropout import AUTO
from recbole_leaprec.settings.keys import MACHINE_KEYS, NO_PART_OF_LISTS
from recbole_leaprec.study.spec import Part, Spec, part_name
from recbole_leaprec.training_state import STATE

SPEC = "study.yaml"


def study(
    spec: str | Path, output_dir: str | Path, config_dict: dict[str, Any] | None = None, show_progress: bool | None = None
) -> Path:
    """Train every model of a study, rerank its test lists in every way, compare the methods, and draw.

    After an interruption, the same call goes on: trained models and measured lists are kept. Between two calls, methods,
    lambdas, seeds and backbones may be added to the file. The settings of trained models must stay the same.

    Writes to `output_dir`: one folder per model, `tradeoff.csv`, `comparison.csv`, `times.csv`, `density.csv`,
    `shift.csv`, pictures of them, and `report.html`. A study of several datasets writes one such folder per dataset, the
    sizes of the datasets (the paper's Table 1) in `datasets.csv`, and a page with links to their pages.

    Args:
        spec: a yaml file, such as properties/study/ml-100k.yaml.
        config_dict: keys that win over the file's settings.
        show_progress: whether to show progress; None for what the settings say.

    Returns:
        The path of the report.

    Raises:
        ValueError: bad arguments, or a folder that holds another study; then nothing is written.
    """
    given = {**(config_dict or {}), **({} if show_progress is None else {"show_progress": show_progress})}
    whole, folder = Spec.read(spec, given), Path(output_dir)
    plans = {folder / name: plan for name, plan in whole.of_each_dataset().items()}
    for own, plan in {**plans, folder: whole}.items():
        _check_folder(plan, own)
    for own, plan in plans.items():
        _check_models(plan, own)
    if list(plans) == [folder]:
        _run_all(whole, folder)
        return folder / "report.html"
    with taken(folder):
        write_yaml(folder / SPEC, whole.content, sort_keys=False)
        for own, plan in plans.items():
            _run_all(plan, own)
        return write_datasets(folder, whole.title, {own.name: _describe(plan) for own, plan in plans.items()})


def _run_all(plan: Spec, folder: Path) -> None:
    """Run every part of the study of one dataset, and make its page."""
    parts = list(plan.parts())
    with taken(folder):
        write_yaml(folder / SPEC, plan.content, sort_keys=False)  # methods stay in their order
        for number, part in enumerate(parts, 1):
            _run(part, folder / part.name, f"part {number} of {len(parts)}, {part.name}")
        report_study(folder, folder / "report.html")


def _describe(plan: Spec) -> Description:
    """The description of a study's dataset, for Table 1."""
    config = next(iter(plan.parts())).config
    with run_log(config):
        dataset = read_dataset(config)
    return description(dataset, config["beta"])


def report_study(folder: Path, out: Path, users: int = EXPLORED_USERS) -> None:
    """Write the page of a study, with tables and pictures, from the parts that are done."""
    plan = Spec.of(read_settings(folder / SPEC, "the study"))
    if plan.content.get("datasets"):
        raise ValueError(
            f"{folder} is a study of several datasets; name the folder of one: {', '.join(plan.content['datasets'])}"
        )
    curves = study_curves(plan, folder)
    if not curves:
        raise ValueError(f"{folder}: no part of this study is done yet")
    write_page(out, plan.title, curves, _comparisons(plan, curves), plan.match, users)


def _check_folder(plan: Spec, folder: Path) -> None:
    """ValueError if the folder holds anything but this kind of study."""
    datasets = plan.content.get("datasets")
    if (folder / SPEC).exists():
        before = read_settings(folder / SPEC, "the study").get("datasets")
        if bool(before) != bool(datasets):
            kinds = {True: "a study of several datasets", False: "a study of one dataset"}
            raise ValueError(
                f"output_dir {folder} holds {kinds[bool(before)]}, and this is {kinds[bool(datasets)]}; name another"
            )
        return
    own = {*(datasets or ())}
    if folder.exists() and any(path.suffix != ".part" and path.name not in own for path in folder.iterdir()):
        raise ValueError(f"output_dir {folder} holds something else than a study; name another")


def _check_models(plan: Spec, folder: Path) -> None:
    """ValueError if the folder holds models that were trained with other settings."""
    for part in plan.parts():
        model = folder / part.name / "model"
        if not (model / "result.json").exists() and not (model / STATE).exists():  # training starts anew
            continue
        before = read_settings(model / "config.yaml", "config file")
        now = part.config.plain()
        for key in sorted((before.keys() | now.keys()) - NO_PART_OF_LISTS - {"title_field"}):
            if before.get(key) != now.get(key) and now.get(key) != AUTO:  # AUTO: the data decided
                raise ValueError(
                    f"{folder} holds {part.name}, trained with {key}: {before.get(key)!r} and not {now.get(key)!r}; "
                    f"name another output_dir, or remove {folder / part.name}"
                )


def _run(part: Part, folder: Path, title: str) -> None:
    show_progress = part.config["show_progress"]
    common = {"show_progress": show_progress}
    if (folder / "model" / STATE).exists() and not (folder / "model" / "result.json").exists():
        _say(f"{title}: going on with its training", show_progress)
        here = {key: part.settings[key] for key in ("data_path", *MACHINE_KEYS) if key in part.settings}
        resume(folder / "model", {**here, **common})
    if not (folder / "model" / "result.json").exists():
        _say(f"{title}: training", show_progress)
        shutil.rmtree(folder, ignore_errors=True)  # left by a training that ended before its first validation
        run_leaprec(config_dict={**part.settings, **common, "output_dir": str(folder / "model")})
    if not (folder / FILE).exists() or not _covers(Measurement.load(folder / FILE), part):
        _say(f"{title}: reranking", show_progress)
        shutil.rmtree(folder / "measuring", ignore_errors=True)
        now = {key: part.settings[key] for key in ("data_path", "title_field", *MACHINE_KEYS) if key in part.settings}
        given = {**common, **now, "output_dir": str(folder / "measuring")}
        measured = measure(folder / "model" / "model.pth", part.rerankers, given)
        measured.save(folder / FILE)


def _say(text: str, show: bool) -> None:
    if show:
        tqdm.write(text, file=sys.stderr)


def _covers(measured: Measurement, part: Part) -> bool:
    if measured.info["config"]["title_field"] != part.config["title_field"]:
        return False
    return all((name, lam) in measured.place for name, lambdas in part.rerankers.items() for lam in lambdas)


def study_curves(plan: Spec, folder: Path) -> list[Curve]:
    """The curves of all methods, over the seeds that are done. A method without a finished seed is left out."""
    curves, loaded = [], {}
    for method in plan.methods:
        for backbone in plan.owners(method.variant):
            runs, training = [], []
            for seed in plan.seeds:
                own = folder / part_name(backbone, method.variant, seed)
                if not (own / FILE).exists():
                    continue
                if own not in loaded:
                    loaded[own] = Measurement.load(own / FILE)
                if any((method.reranker, lam) not in loaded[own].place for lam in method.lambdas):
                    continue  # the lambda was added to the file after the measurement
                runs.append(loaded[own])
                training.append(training_seconds(own / "model"))
            if runs:
                name = curve_name(plan, method.name, backbone)
                curves.append(Curve(name, method.reranker, runs, method.group, float(np.mean(training)), method.lambdas))
    return curves


def curve_name(plan: Spec, method: str, backbone: str | None) -> str:
    """The name of a method's curve: the method, with the backbone before it if the study has several."""
    return f"{backbone} {method}" if backbone and len(plan.backbones) > 1 else method


def _comparisons(plan: Spec, curves: Sequence[Curve]) -> list[Comparison]:
    """One comparison per backbone of the reference: with the curves of this backbone and those without a backbone.

    A reference without a backbone is compared with all curves.
    """
    methods = {method.name: method for method in plan.methods}
    comparisons = []
    for backbone in plan.owners(methods[plan.reference].variant):
        names = {curve_name(plan, name, owner) for name in methods for owner in (backbone, None)}
        own = [curve for curve in curves if backbone is None or curve.name in names]
        wanted = curve_name(plan, plan.reference, backbone)
        comparisons += [Comparison(curve, own) for curve in own if curve.name == wanted]
    return comparisons
