"""Train, evaluate and report in one call."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recbole.utils import init_seed
from tqdm import tqdm

from recbole_leaprec.checkpoint import check_fits, load_checkpoint, restore
from recbole_leaprec.config import MACHINE_KEYS, LeapRecConfig
from recbole_leaprec.data import SequenceDataset, create_dataset, data_preparation
from recbole_leaprec.evaluator import Reranking
from recbole_leaprec.evaluator.per_user import per_user
from recbole_leaprec.run_folder import RunLog, check_folder, make_folder, run_log, versions, write_json, write_yaml
from recbole_leaprec.suggest import did_you_mean, unknown_name
from recbole_leaprec.target import TargetNotMet, smallest_lambda
from recbole_leaprec.trainer import LeapRecTrainer, plain

_logger = logging.getLogger(__name__)

EVALUATION_KEYS = frozenset(
    ("reranker", "rerank_lambda", "target_skl", "rerank_candidates", "rerank_order", "rerank_temperature", "mask_history",
     "preference_history", "alpha", "beta", "metrics", "topk", "eval_batch_size", "title_field", "data_path", "output_dir", "gpu_id", "use_gpu",
     "show_progress", "state")
)  # fmt: skip
"""What `evaluate` may change of a trained run; everything else belongs to the model."""


def run_leaprec(
    model: str | None = None,
    dataset: str | None = None,
    config_file_list: list[str] | None = None,
    config_dict: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Train a model, rerank its test lists, and leave a run folder.

    The best epoch is chosen by `valid_metric` of the plain ranking; lambda never touches training.

    Args:
        model, dataset: names; None for those in the files or the dict, else SASRecCD and ml-100k.
        config_file_list: yaml files, later ones win.
        config_dict: keys that win over the files.

    Returns:
        What result.json holds: `backbone.valid`, `backbone.test`, `rerank` (a list of `{reranker, lambda, test,
        seconds}`), `target_met` where there is a `target_skl`, `config`, `seed`, `versions`, `timing`, `best_epoch`, `epochs`, and `folder`, where all of it is.

    Raises:
        ValueError: bad configuration or data; nothing is written then.
    """
    config = LeapRecConfig(model, dataset, config_file_list, config_dict)
    with run_log(config) as log:
        run = _Run.prepare(config)
        trainer = run.open(log, "train.log")
        started = time.perf_counter()
        _fit(trainer, run.train_data, run.valid_data)
        run.timing["training"] = time.perf_counter() - started

        best = trainer.load(trainer.saved_model_file)
        result = run.measure(trainer)
        result["backbone"] = {"valid": plain(trainer.best_valid_result), **result["backbone"]}
        result["best_epoch"], result["epochs"] = best["epoch"], len(trainer.train_loss_dict)
        write_json(run.folder / "result.json", result)
        return result


def evaluate(
    checkpoint: str | Path,
    config_dict: dict[str, Any] | None = None,
    rerankings: list[Reranking] | None = None,
    split: str = "test",
) -> dict[str, Any]:
    """Rerank and measure the test lists of a trained model again: other rerankers, lambdas, list lengths, metrics.

    Args:
        checkpoint: the model.pth of a run.
        config_dict: keys to change; only those in `EVALUATION_KEYS`.
        rerankings: several methods and lambdas, all measured on one pass of scoring; None for the configured one.
        split: `test`, or `valid` to choose something by.

    Returns:
        As `run_leaprec`, without what belongs to training.

    Raises:
        ValueError: no such checkpoint, or not one of this plugin; a dataset that has changed since; a key that
            evaluation cannot change. Nothing is written then.
    """
    if split not in ("valid", "test"):
        raise ValueError(unknown_name("split", str(split), ("valid", "test")))
    with trained_run(checkpoint, config_dict) as (run, trainer):
        result = {"checkpoint": str(checkpoint), **run.measure(trainer, rerankings, split)}
        write_json(run.folder / "result.json", result)
        return result


@contextmanager
def trained_run(
    checkpoint: str | Path, config_dict: dict[str, Any] | None = None, log_name: str = "evaluate.log"
) -> Iterator[tuple[_Run, LeapRecTrainer]]:
    """A trained model, ready to be evaluated, with a folder of its own; ValueError as `evaluate`."""
    content, config = trained_config(checkpoint, config_dict)
    with run_log(config) as log:
        run = _Run.prepare(config)
        check_fits(content, run.dataset, checkpoint)
        trainer = run.open(log, log_name)
        trainer.eval_collector.data_collect(run.train_data)  # what some metrics count; RecBole's fit does the same
        trainer.load(checkpoint)
        yield run, trainer


def lambda_for_target(checkpoint: str | Path, config_dict: dict[str, Any], config: LeapRecConfig, k: int) -> float:
    """The smallest lambda whose lists of k items meet `target_skl` on validation.

    Args:
        config: the run's, with the changes of `config_dict`.

    Raises:
        ValueError: as `evaluate`; or no lambda meets it.
    """
    with tempfile.TemporaryDirectory() as folder:  # of the trainer's log
        whole = {
            "preference_history": "all",
            "mask_history": bool(config["mask_history"]),
        }  # of the history, as lists have it
        changes = {**config_dict, **whole, "topk": [k], "metrics": ["NDCG", "SKL"], "output_dir": f"{folder}/run"}
        with trained_run(checkpoint, changes, "target.log") as (run, trainer):
            lam, met = run.find_lambda(trainer)
    if not met:
        raise ValueError(
            f"target_skl: no lambda meets the S_KL of {config['target_skl']:g} with {config['reranker']} on validation"
        )
    return lam


def load_model(checkpoint: str | Path, config_dict: dict[str, Any] | None = None):
    """`(config, dataset, model, training split)` of a trained run, the model ready to predict; nothing is written.

    Raises:
        ValueError: as `evaluate`.
    """
    content, config = trained_config(checkpoint, config_dict)
    with run_log(config):
        run = _Run.prepare(config)
        check_fits(content, run.dataset, checkpoint)
        restore(run.model, content, checkpoint)
    return config, run.dataset, run.model.eval(), run.train_data.dataset


def check_changes(changes: Iterable[str], allowed: Collection[str]) -> None:
    """ValueError for a key that cannot be changed of a trained run, or not in this way."""
    for key in changes:
        if key not in allowed:
            raise ValueError(
                f"a trained run cannot change {key!r} here{did_you_mean(key, allowed)} It can change {', '.join(sorted(allowed))}"
            )


def trained_config(checkpoint: str | Path, config_dict: dict[str, Any] | None) -> tuple[dict[str, Any], LeapRecConfig]:
    """A checkpoint's content, and its config with changes; ValueError as `evaluate`."""
    content = load_checkpoint(checkpoint)
    changes = dict(config_dict or {})
    check_changes(changes, EVALUATION_KEYS)
    settings = {key: value for key, value in content["config"].items() if key not in MACHINE_KEYS} | changes
    if changes.get("target_skl") is not None and "rerank_lambda" in changes:
        raise ValueError("target_skl finds rerank_lambda: give one of them")
    if "target_skl" not in changes and {"reranker", "rerank_lambda"} & changes.keys():
        settings["target_skl"] = None  # what is asked for now wins over what the run was trained with
    if "topk" in changes or "metrics" in changes:  # valid_metric chose the epoch and has no part in this
        settings["valid_metric"] = None
    config = LeapRecConfig(config_dict=settings)
    return content, config


@dataclass
class _Run:
    """What a command works with. Preparing one writes nothing; `open` makes its folder."""

    config: LeapRecConfig
    dataset: SequenceDataset
    model: Any
    train_data: Any
    valid_data: Any
    test_data: Any
    timing: dict[str, float]
    folder: Path | None = None

    @classmethod
    def prepare(cls, config: LeapRecConfig) -> _Run:
        started = time.perf_counter()
        check_folder(config)
        dataset = create_dataset(config)
        loaders = data_preparation(config, dataset)
        if max(config["topk"]) >= dataset.item_num:
            raise ValueError(
                f"topk (list lengths K) must not exceed the number of items, {dataset.item_num - 1}, got {config['topk']}"
            )
        seconds = time.perf_counter() - started
        init_seed(config["seed"], config["reproducibility"])
        model = config.model_class(config, loaders[0].dataset).to(config["device"])  # sees training interactions alone
        return cls(config, dataset, model, *loaders, timing={"data": seconds})

    def open(self, log: RunLog, log_name: str) -> LeapRecTrainer:
        self.folder = make_folder(self.config)
        self.config["output_dir"] = self.config["checkpoint_dir"] = str(self.folder)
        log.write_to(self.folder / log_name)
        write_yaml(self.folder / "config.yaml", self.config.plain())
        logging.getLogger().info(str(self.config))
        data = self.dataset
        _logger.info(
            "%s on %s: %d users, %d items (%d category profiles), %d categories, %d interactions; writing to %s",
            self.config["model"], self.config["dataset"], data.user_num - 1, data.item_num - 1, data.categories.n_profiles,
            data.categories.n_categories, len(data.sequences.items), self.folder,
        )  # fmt: skip
        return LeapRecTrainer(self.config, self.model, self.dataset)

    def measure(
        self, trainer: LeapRecTrainer, rerankings: list[Reranking] | None = None, split: str = "test"
    ) -> dict[str, Any]:
        """Figures of the backbone and of the rerankings, by default the configured one, from one pass of scoring."""
        config, started = self.config, time.perf_counter()
        target = {}
        if config["target_skl"] is not None and rerankings is None:
            lam, met = self.find_lambda(trainer)
            rerankings, target = [Reranking.from_config(config, lam)], {"target_met": met}
        asked = rerankings or [Reranking.from_config(config)]
        plain_ranking, *reranked = trainer.evaluate_rerankings(
            {"valid": self.valid_data, "test": self.test_data}[split],
            [Reranking(), *asked],
            show_progress=config["show_progress"],
        )
        self.timing[split] = time.perf_counter() - started
        return {
            "folder": str(self.folder),
            "model": config["model"],
            "dataset": config["dataset"],
            "seed": config["seed"],
            "backbone": {split: plain_ranking["metrics"]},
            "rerank": [
                {
                    "reranker": reranking.method,
                    "lambda": reranking.lam,
                    "candidates": reranking.candidates,
                    "order": reranking.order,
                    "temperature": reranking.temperature,
                    split: result["metrics"],
                    "seconds": result["seconds"],
                }
                for reranking, result in zip(asked, reranked, strict=True)
            ],
            **target,
            "timing": self.timing,
            "versions": versions(),
            "config": config.plain(),
        }

    def find_lambda(self, trainer: LeapRecTrainer) -> tuple[float, bool]:
        """The smallest lambda whose lists meet `target_skl` on validation, True; or the one with the least S_KL, False."""
        config, k = self.config, max(self.config["topk"])

        def skl(lambdas: Sequence[float]) -> list[float]:
            rerankings = [Reranking.from_config(config, lam) for lam in lambdas]
            results = trainer.evaluate_rerankings(self.valid_data, rerankings)
            return [per_user(run["struct"], k, config["beta"])[f"skl@{k}"].mean().item() for run in results]

        try:
            lam, reached = smallest_lambda(skl, config["target_skl"])
        except TargetNotMet as missed:
            _logger.warning("target_skl, with %s on validation: %s, which is used", config["reranker"], missed)
            return missed.lam, False
        _logger.info("lambda %g is the smallest that meets target_skl %g: S_KL@%d is %.4f on validation", lam,
                     config["target_skl"], k, reached)  # fmt: skip
        return lam, True


AfterValidation = Callable[[LeapRecTrainer, Any, int], None]
"""Called with the trainer, the validation data and the epoch; the best checkpoint so far has been written."""


def train_only(config: LeapRecConfig, after_validation: AfterValidation) -> None:
    """Train into `output_dir` and leave it at that: nothing of test is read."""
    with run_log(config) as log:
        run = _Run.prepare(config)
        _fit(run.open(log, "train.log"), run.train_data, run.valid_data, after_validation)


def _fit(trainer: LeapRecTrainer, train_data, valid_data, after_validation: AfterValidation | None = None) -> None:
    """RecBole's fit under one bar over the epochs."""
    show = trainer.config["show_progress"]
    with tqdm(total=trainer.epochs, desc="training", unit="epoch", disable=not show) as bar:

        def advance(epoch, score):
            bar.update(epoch + 1 - bar.n)
            bar.set_postfix({"loss": f"{trainer.train_loss_dict[epoch]:.3f}", trainer.valid_metric: f"{score:.4f}",
                             "best": f"{trainer.best_valid_score:.4f}"})  # fmt: skip
            if after_validation:
                after_validation(trainer, valid_data, epoch)

        trainer.fit(train_data, valid_data, show_progress=show, callback_fn=advance)
