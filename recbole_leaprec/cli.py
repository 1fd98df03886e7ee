"""The command line: `leaprec <command> --key=value`, in RecBole's style."""

from __future__ import annotations

import math
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from recbole_leaprec.interrupt import interruptible
from recbole_leaprec.suggest import did_you_mean, unknown_name

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def main(argv: list[str] | None = None) -> int:
    """Run a command; the bare form is `train`. Returns the exit code: 2 after a bad argument, with one line on why."""
    _wait_asleep()
    argv = list(sys.argv[1:] if argv is None else argv)
    name = argv.pop(0) if argv and not argv[0].startswith("-") else "train"
    try:
        if name not in COMMANDS:
            raise ValueError(unknown_name("command", name, COMMANDS))
        if "--help" in argv or "-h" in argv:
            print(help_text(name))
            return 0
        folders = _take_folders(argv) if name == "report" else []
        arguments = parse(argv)
        if folders:
            arguments["folders"] = folders
        debug = str(arguments.get("state", "")).lower() == "debug"
    except ValueError as error:
        return _fail(error)
    try:
        with interruptible():
            return COMMANDS[name](arguments) or 0
    except (ValueError, OSError) as error:
        if debug:
            raise
        return _fail(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _wait_asleep() -> None:
    """Have torch's threads sleep while they wait for each other, unless the user says otherwise.

    They spin by default. Beside one other busy process, training ml-100k on two cores took 172 s so, and 10 s with threads that
    sleep; on a quiet machine spinning is up to a third faster. torch reads this when it is imported.
    """
    if "torch" not in sys.modules:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _fail(error: Exception) -> int:
    print(f"leaprec: error: {error}", file=sys.stderr)
    return 2


def _take_folders(argv: list[str]) -> list[str]:
    """Take the words that belong to no key out of the arguments.

    Example:
        >>> words = ["a", "--out", "page.html", "b", "--users=3"]
        >>> _take_folders(words), words
        (['a', 'b'], ['--out', 'page.html', '--users=3'])
    """
    before = [None, *argv]
    taken = [
        number
        for number, word in enumerate(argv)
        if not word.startswith("-") and not ((before[number] or "").startswith("-") and "=" not in before[number])
    ]
    folders = [argv[number] for number in taken]
    argv[:] = [word for number, word in enumerate(argv) if number not in taken]
    return folders


def parse(argv: list[str]) -> dict[str, Any]:
    """`--key=value` and `--key value`, values read as yaml; RecBole's None, and -m and -d, are known too.

    Example:
        >>> parse(["--topk=[5,10]", "--learning_rate=1e-3", "-m", "SASRecCD", "--rerank_candidates=None"])
        {'topk': [5, 10], 'learning_rate': 0.001, 'model': 'SASRecCD', 'rerank_candidates': None}
    """
    arguments: dict[str, Any] = {}
    rest = iter(argv)
    for word in rest:
        key, equals, value = word.partition("=")
        key = {"-m": "--model", "-d": "--dataset"}.get(key, key)
        if not key.startswith("--") or not key[2:]:
            raise ValueError(f"cannot read {word!r}: write --key=value")
        if not equals:
            value = next(rest, None)
            if value is None or value.startswith("--"):
                raise ValueError(f"{key} has no value: write {key}=value")
        name = key[2:]
        if name in arguments:
            raise ValueError(f"{key} is given twice")
        arguments[name] = _value(key, value)
    return arguments


_TEXTS = ("--user", "--output_dir", "--out", "--checkpoint", "--spec")
"""What is never a number, whatever it looks like."""


def _value(key: str, text: str) -> Any:
    if text == "None":
        return None
    if key in _TEXTS:
        return text
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{key}: cannot read {text!r}: {str(error).splitlines()[0]}") from error
    if isinstance(value, int | float) and ":" in text:  # yaml takes 0:1:30 for a number to the base of sixty
        return text
    if isinstance(value, date):  # no key is one, and a folder may be called so
        return text
    if isinstance(value, str):  # yaml wants 1.0e-3, everybody writes 1e-3
        try:
            return float(value)
        except ValueError:
            return value
    return value


def train(arguments: dict[str, Any]) -> None:
    """Train a model, rerank its test lists, and leave a run folder."""
    from recbole_leaprec.quick_start import run_leaprec

    _show(run_leaprec(config_file_list=_config_files(arguments), config_dict=arguments))


def _config_files(arguments: dict[str, Any]) -> list[str]:
    return str(arguments.pop("config_files", None) or "").split()


def evaluate(arguments: dict[str, Any]) -> None:
    """Rerank and measure the test lists of a trained model again."""
    from recbole_leaprec.config import known_keys
    from recbole_leaprec.quick_start import evaluate as run_evaluate

    options = _take_options(arguments, CHECKPOINT, known_keys())
    _need(options, CHECKPOINT, "checkpoint")
    _show(run_evaluate(options["checkpoint"], arguments))


def tune(arguments: dict[str, Any]) -> int | None:
    """Search for hyperparameters with Ray Tune, on validation, and evaluate the winner on test, once."""
    from recbole_leaprec.config import known_keys
    from recbole_leaprec.tune import tune as run_tune
    from recbole_leaprec.tune.objective import OUT_OF_BOUND
    from recbole_leaprec.tune.search import check_resumed_with

    options = _take_options(arguments, TUNE_OPTIONS, known_keys())
    if options.get("resume"):
        check_resumed_with(sorted(options.keys() - {"resume", "output_dir", "trials", "ray_address"}))
    options["output_dir"] = _folder("tune", options)
    options["show_progress"] = arguments.pop("show_progress", True)
    result = run_tune(config_file_list=_config_files(arguments), config_dict=arguments, **options)
    folder = result["folder"]
    if best := result["best"]:
        at = "" if best["lambda"] is None else f" at lambda {best['lambda']:g}"
        if best["within_bound"]:
            print(f"\nbest trial {best['trial']}: {best['objective']} on validation, {best['score']:.4f}{at}")
        else:
            missed = OUT_OF_BOUND - best["score"]
            print(f"\nno trial meets {best['objective']!r}; {best['trial']} misses it by the least, {missed:.4f}{at}")
        print("\n".join(f"  {key}: {value}" for key, value in best["sample"].items()))
    if result["interrupted"]:
        print(
            f"\ninterrupted, {result['done']} of {result['trials']} trials are done and test was not looked at; go on with\n"
            f"  {_program()} tune --resume=True --output_dir={folder}"
        )
        return INTERRUPTED
    _show({**result["test"], "folder": folder})
    print(f"train the winner again with\n  {_program()} --config_files={folder}/best.yaml")
    return None


def _program() -> str:
    """How this was started."""
    return "leaprec" if Path(sys.argv[0]).name == "leaprec" else f"python {sys.argv[0]}"


def _folder(command: str, options: dict[str, Any]) -> str:
    """Take where a command's files go out of its options."""
    return options.pop("output_dir", None) or f"output/{command}-{time.strftime('%Y%m%d-%H%M%S')}"


def _need(options: dict[str, Any], known: dict[str, tuple], *names: str) -> None:
    """ValueError for an option that is not given and must be."""
    for name in names:
        if not isinstance(options.get(name), str):
            raise ValueError(f"--{name}=FILE is needed, {known[name][0]}")


def _take_options(arguments: dict[str, Any], options: Iterable[str], keys: Iterable[str]) -> dict[str, Any]:
    """Take a command's own options out of the arguments; ValueError for what is neither one nor a key."""
    known = {*options, *keys}
    for name in arguments:
        if name not in known and not name.startswith("alias_of_"):
            raise ValueError(f"unknown option or key {name!r}{did_you_mean(name, known)}")
    return {name: arguments.pop(name) for name in options if name in arguments}


def recommend(arguments: dict[str, Any]) -> None:
    """Write calibrated lists for all users, or for a file of histories."""
    from recbole_leaprec.config import known_keys
    from recbole_leaprec.recommend import recommend as run_recommend

    options = _take_options(arguments, RECOMMEND_OPTIONS, known_keys())
    _need(options, RECOMMEND_OPTIONS, "checkpoint", "out")
    options["show_progress"] = arguments.get("show_progress", True)
    result = run_recommend(config_dict=arguments, **options)
    skl = "" if result["skl"] is None else f", mean S_KL {result['skl']:.4f}"
    print(f"\n{result['users']} lists in {result['seconds']:.1f} s{skl}: {result['out']}")
    if result["unknown_items"] or result["empty_histories"]:
        print(
            f"{result['unknown_items']} items of the histories are unknown to the model and were skipped; "
            f"{result['empty_histories']} users have no known item and got the most popular ones"
        )


def tradeoff(arguments: dict[str, Any]) -> None:
    """Measure many rerankers and lambdas on test, from one pass of scoring, and draw nDCG and HR against S_KL."""
    from recbole_leaprec.config import known_keys
    from recbole_leaprec.tradeoff import tradeoff as run_tradeoff

    options = _take_options(arguments, TRADEOFF_OPTIONS, known_keys())
    folder = _folder("tradeoff", options)
    given = {"samples": options["samples"]} if "samples" in options else {}
    if "rerankers" in options:
        given["rerankers"] = _words(options["rerankers"])
    if "lambdas" in options:
        given["lambdas"] = _lambdas(options["lambdas"])
    table = run_tradeoff(
        folder, str(options["checkpoint"]).split(",") if options.get("checkpoint") else (), config_file_list=_config_files(arguments),
        show_progress=arguments.pop("show_progress", True), config_dict=arguments, **given,
    )  # fmt: skip
    shown = table[[c for c in table if not c.endswith(("_low", "_high")) and (c != "checkpoint" or table[c].nunique() > 1)]]
    print(f"\n{shown.to_string(index=False, float_format='{:.4f}'.format)}\n\neverything is in {folder}")


def _words(value: Any) -> list[str]:
    """Names with commas or spaces between them, or a list."""
    if isinstance(value, list):
        return [str(word) for word in value]
    return str(value).replace(",", " ").split()


def _lambdas(value: Any) -> list[float]:
    """`0:1:0.1`, the end among them where a step falls on it; or numbers as `_words` has them.

    Example:
        >>> _lambdas("0:1:0.25")
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    text = str(value)
    try:
        if ":" not in text:
            return [float(word) for word in _words(value)]
        start, stop, step = (float(part) for part in text.split(":"))
        steps = math.floor((stop - start) / step + 1e-9)
        if steps < 0:
            raise ValueError
        return [round(start + number * step, 10) for number in range(steps + 1)]
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ValueError(
            f"--lambdas must be start:stop:step, such as 0:1:0.1, or numbers with commas, got {text!r}"
        ) from None


def shift(arguments: dict[str, Any]) -> None:
    """Show how far the category mix of users' histories shifts: KL divergence of windows that start some items apart, for any dataset."""
    from recbole_leaprec.config import known_keys
    from recbole_leaprec.shift import shift as run_shift

    options = _take_options(arguments, SHIFT_OPTIONS, known_keys())
    folder = _folder("shift", options)
    table = run_shift(folder, config_file_list=_config_files(arguments), config_dict=arguments, **options)
    print(f"\n{table.to_string(index=False, float_format='{:.4f}'.format)}\n\neverything is in {folder}")


def users(arguments: dict[str, Any]) -> None:
    """Show how S_KL spreads over the test users at several lambdas, and for one user the lists at each."""
    from recbole_leaprec.measured import MEASURED_KEYS
    from recbole_leaprec.users import users as run_users

    options = _take_options(arguments, USERS_OPTIONS, MEASURED_KEYS)
    _need(options, USERS_OPTIONS, "checkpoint")
    folder = _folder("users", options)
    if "lambdas" in options:
        options["lambdas"] = _lambdas(options["lambdas"])
    result = run_users(folder, config_dict=arguments, **options)
    table = result["density"].groupby("lambda", as_index=False)[["mean_skl", "ndcg"]].first()
    print(f"\n{result['case'] or table.to_string(index=False, float_format='{:.4f}'.format)}\n\neverything is in {folder}")


def study(arguments: dict[str, Any]) -> int | None:
    """Run a whole experiment from a file: train, rerank in every way, compare, and leave a report. The same command goes on after an interruption."""
    from recbole_leaprec.config import known_keys
    from recbole_leaprec.study import study as run_study

    options = _take_options(arguments, STUDY_OPTIONS, known_keys())
    _need(options, STUDY_OPTIONS, "spec")
    folder = options.get("output_dir") or f"output/study-{Path(options['spec']).stem}"
    show_progress = arguments.pop("show_progress", True)
    try:
        page = run_study(options["spec"], folder, arguments, show_progress)
    except KeyboardInterrupt:
        print(f"\ninterrupted; what is done is in {folder}, and the same command goes on from there", file=sys.stderr)
        return INTERRUPTED
    print(f"\neverything is in {folder}; open {page}")
    return None


def report(arguments: dict[str, Any]) -> None:
    """Make one page, report.html, out of the folders of runs, trade-offs or a study: curves, comparisons, users."""
    from recbole_leaprec.measured import MEASURED_KEYS
    from recbole_leaprec.report.command import report as run_report

    options = _take_options(arguments, {"folders": None, **REPORT_OPTIONS}, MEASURED_KEYS)
    for name, read in (("rerankers", _words), ("lambdas", _lambdas)):
        if name in options:
            options[name] = read(options[name])
    out = options.pop("out", None) or f"{_folder('report', {})}/report.html"
    print(f"\nopen {run_report(options.pop('folders', []), out, config_dict=arguments, **options)}")


def doctor(arguments: dict[str, Any]) -> int | None:
    """Show versions, threads, devices and folders, and what is missing for which command; 1 is returned if something is."""
    from recbole_leaprec import doctor as examination

    _take_options(arguments, (), ())
    findings = examination.doctor()
    print(examination.told(findings))
    return 1 if any(finding.problem for finding in findings) else None


CHECKPOINT = {"checkpoint": ("the model.pth of a run", None)}

USERS_OPTIONS = {
    **CHECKPOINT,
    "user": ("a user of the dataset, for a case study", "no case study"),
    "reranker": ("its name", "leaprec"),
    "lambdas": ("start:stop:step, or numbers with commas", "0,0.1,0.3,0.5,0.7,0.9"),
    "output_dir": ("where everything goes", "output/users-<time>"),
}

STUDY_OPTIONS = {
    "spec": ("the file of a study, such as properties/study/ml-100k.yaml", None),
    "output_dir": ("where everything goes", "output/study-<name of the file>"),
}

REPORT_OPTIONS = {
    "out": ("the page; its tables and pictures go beside it", "output/report-<time>/report.html"),
    "users": ("how many users can be looked at", 50),
    "rerankers": ("names with commas, for runs that have not been measured", "leaprec,calirec,calirec_plus,setwise"),
    "lambdas": ("start:stop:step, or numbers with commas, for the same", "0,0.1,..,0.9,0.95,0.98,0.99,0.995,1"),
}

SHIFT_OPTIONS = {
    "window": ("items that a category mix is made of", 20),
    "longest": ("longest interval: items from the start of a window to that of the later one", 200),
    "step": ("from one interval to the next", 10),
    "output_dir": ("where everything goes", "output/shift-<time>"),
}

TRADEOFF_OPTIONS = {
    "checkpoint": ("the model.pth of one run or, with commas, of several", "train a model first"),
    "rerankers": ("names with commas", "leaprec,calirec,calirec_plus"),
    "lambdas": ("start:stop:step, or numbers with commas", "0:1:0.1"),
    "samples": ("resamples of the users for the 95 % intervals", 1000),
    "output_dir": ("where everything goes", "output/tradeoff-<time>"),
}

RECOMMEND_OPTIONS = {
    **CHECKPOINT,
    "out": ("a .parquet, .csv or .trec file to write, which is not there yet", None),
    "histories": ("a .parquet or .csv file with columns user and items", "all users of the dataset"),
    "k": ("items a list", 10),
    "engine": ("local, or ray for Ray Data over a cluster", "local"),
    "workers": ("processes of the Ray engine", "one a CPU"),
    "ray_address": ("an existing cluster, host:port; or RAY_ADDRESS", "a local one"),
}

TUNE_OPTIONS = {
    "space": ("file of distributions, yaml or RecBole's hyper.test form", None),
    "objective": ("a metric, 'ndcg@10 subject to skl@10 <= 0.3', or hypervolume@10; on validation", "valid_metric"),
    "trials": ("how many trials", 20),
    "search": ("tpe (Optuna) or random", "tpe"),
    "early_stopping": ("whether ASHA stops trials that fall behind", True),
    "concurrent": ("trials at a time", "as many as there is room for"),
    "cpus_per_trial": ("CPUs a trial, and torch threads", 1),
    "gpus_per_trial": ("GPUs a trial, parts allowed; with 0, trials run on CPUs", 0),
    "ray_address": ("an existing cluster, host:port; or RAY_ADDRESS", "a local one"),
    "resume": ("go on with the search in output_dir, as it was started; trials may be more", False),
    "output_dir": ("where everything goes", "output/tune-<time>"),
}


def _show(result: dict[str, Any]) -> None:
    from recbole_leaprec.table import result_table

    print(f"\n{result['model']} on {result['dataset']}, test\n{result_table(result)}\n\neverything is in {result['folder']}")


COMMANDS: dict[str, Callable[[dict[str, Any]], int | None]] = {
    "train": train,
    "evaluate": evaluate,
    "tradeoff": tradeoff,
    "shift": shift,
    "users": users,
    "study": study,
    "report": report,
    "tune": tune,
    "recommend": recommend,
    "doctor": doctor,
}

_USAGE = {
    "train": """
        usage: leaprec [train] [--model=SASRecCD] [--dataset=ml-100k] [--config_files="A.yaml B.yaml"] [--key=value ...]

        {summary}
        Without arguments: SASRecCD on ml-100k, which comes with RecBole and needs no download.

          leaprec --model=SASRecCD --dataset=ml-1m
          leaprec --dataset=my-data --data_path=dataset --category_field=genre
          leaprec --reranker=leaprec --rerank_lambda=0.5 --epochs=20

        models: {models}
        commands: {commands}; `leaprec <command> --help` says more""",
    "evaluate": """
        usage: leaprec evaluate --checkpoint=output/.../model.pth [--key=value ...]

        {summary}

          leaprec evaluate --checkpoint=output/SASRecCD-ml-100k-20240101-120000/model.pth --rerank_lambda=0.5
          leaprec evaluate --checkpoint=... --reranker=none --topk=[5,10,20]

        can be changed: {evaluation_keys}""",
    "tradeoff": """
        usage: leaprec tradeoff [--checkpoint=output/.../model.pth] [--rerankers=leaprec,setwise] [--lambdas=0:1:0.1] [--key=value ...]

        {summary}

          leaprec tradeoff --model=SASRecCD --dataset=ml-1m --rerankers=leaprec,calirec,calirec_plus --lambdas=0:1:0.1
          leaprec tradeoff --checkpoint=output/a/model.pth,output/b/model.pth --rerankers=leaprec,setwise

        with a checkpoint these keys can be changed: {evaluation_keys}; without, every key of RecBole and the plugin works

        options:
        {options}""",
    "shift": """
        usage: leaprec shift [--dataset=ml-100k] [--window=20] [--key=value ...]

        {summary}

          leaprec shift --dataset=ml-1m
          leaprec shift --dataset=my-data --data_path=dataset --category_field=genre --longest=100

        options:
        {options}""",
    "users": """
        usage: leaprec users --checkpoint=output/.../model.pth [--user=42] [--reranker=leaprec] [--lambdas=0,0.3,0.9] [--key=value ...]

        {summary}

          leaprec users --checkpoint=output/SASRecCD-ml-100k-20240101-120000/model.pth
          leaprec users --checkpoint=... --user=42 --lambdas=0,0.3,0.9

        keys that can be changed: {evaluation_keys}

        options:
        {options}""",
    "study": """
        usage: leaprec study --spec=FILE [--output_dir=FOLDER] [--key=value ...]

        {summary}

          leaprec study --spec=properties/study/ml-100k.yaml
          leaprec study --spec=properties/study/paper.yaml --data_path=/my/data

        every key of RecBole and the plugin that is given wins over the settings of the file

        options:
        {options}""",
    "report": """
        usage: leaprec report FOLDER [FOLDER ...] [--out=page/report.html] [--key=value ...]

        {summary}

          leaprec report output/SASRecCD-ml-100k-20240101-120000
          leaprec report output/run1 output/run2 --out=page/report.html
          leaprec report output/study-ml-100k --users=100

        keys that can be changed for runs that have not been measured: {evaluation_keys}

        options:
        {options}""",
    "tune": """
        usage: leaprec tune --space=FILE [--model=SASRecCD] [--dataset=ml-100k] [--option=value ...] [--key=value ...]

        {summary}

          leaprec tune --space=properties/tune/SASRecCD.yaml --dataset=ml-1m --trials=20 --epochs=50
          leaprec tune --space=my.yaml --objective="ndcg@10 subject to skl@10 <= 0.3"
          leaprec tune --resume=True --output_dir=output/tune-20240101-120000

        every key of RecBole and the plugin that is given holds for all trials

        options:
        {options}""",
    "recommend": """
        usage: leaprec recommend --checkpoint=output/.../model.pth --out=lists.parquet [--option=value ...] [--key=value ...]

        {summary}

          leaprec recommend --checkpoint=output/SASRecCD-ml-100k-20240101-120000/model.pth --out=lists.csv
          leaprec recommend --checkpoint=... --out=lists.parquet --histories=new_users.parquet --rerank_lambda=0.5
          leaprec recommend --checkpoint=... --out=run.trec --engine=ray --workers=4

        keys that can be changed: {evaluation_keys}

        options:
        {options}""",
    "doctor": """
        usage: leaprec doctor

        {summary}""",
}


_DEFAULTS_ELSEWHERE = {"category_field": "by dataset", "title_field": "by dataset"}


def help_text(command: str) -> str:
    """What `--help` prints."""
    import recbole.model.sequential_recommender as recbole_models

    from recbole_leaprec.config import PLUGIN_KEYS, PROPERTIES
    from recbole_leaprec.measured import MEASURED_KEYS
    from recbole_leaprec.model import sequential_recommender as own_models
    from recbole_leaprec.quick_start import EVALUATION_KEYS
    from recbole_leaprec.recommend.recommender import RECOMMENDATION_KEYS

    options = {
        "tradeoff": TRADEOFF_OPTIONS, "shift": SHIFT_OPTIONS, "users": USERS_OPTIONS, "study": STUDY_OPTIONS,
        "report": REPORT_OPTIONS, "tune": TUNE_OPTIONS, "recommend": RECOMMEND_OPTIONS,
    }.get(command, {})  # fmt: skip
    changed = {
        "evaluate": EVALUATION_KEYS, "recommend": RECOMMENDATION_KEYS, **dict.fromkeys(("tradeoff", "users", "report"), MEASURED_KEYS),
    }.get(command, ())  # fmt: skip
    defaults = yaml.safe_load((PROPERTIES / "overall.yaml").read_text(encoding="utf-8"))
    lines = textwrap.dedent(_USAGE[command]).strip().format(
        summary=COMMANDS[command].__doc__, models=f"{', '.join(name for name in own_models.__all__ if not hasattr(recbole_models, name))}; <Any>CD for RecBole's other sequential models, such as NARMCD; and these as they are, such as NARM",
        options="\n".join(
            f"  --{name:<16} {text} ({'needed' if default is None else f'default {default}'})"
            for name, (text, default) in options.items()
        ),
        commands=", ".join(COMMANDS),
        evaluation_keys=", ".join(sorted(changed)),
    ).splitlines()  # fmt: skip
    if command not in ("train", "evaluate"):
        return "\n".join(lines)
    training = command == "train"
    lines += ["", "keys of the plugin (every key of RecBole works too):" if training else "keys of the plugin among them:"]
    for name, key in PLUGIN_KEYS.items():
        if training or name in EVALUATION_KEYS:
            default = (
                f"default {_DEFAULTS_ELSEWHERE.get(name) or defaults.get(name, 'by model')}"
                if training or name == "output_dir"
                else "default: as trained"
            )
            lines.append(f"  --{name:<18} {key.meaning}: {key.allowed} ({default})")
    return "\n".join(lines)
