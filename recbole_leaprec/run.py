"""One run, trained or not: its data, its model, and its folder. Every command that works with a model starts here."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recbole.utils import init_seed
from tqdm import tqdm

from recbole_leaprec.checkpoint import check_fits, load_checkpoint, restore
from recbole_leaprec.common.files import write_yaml
from recbole_leaprec.common.reading import in_words
from recbole_leaprec.common.slow_step import in_log, slow_step
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.data import SequenceDataset, create_dataset, data_preparation
from recbole_leaprec.reranking.lambda_search import TargetNotMet, smallest_lambda
from recbole_leaprec.reranking.reranking import Reranking
from recbole_leaprec.run_folder import check_folder, check_no_run, make_folder, versions
from recbole_leaprec.run_log import RunLog, run_log
from recbole_leaprec.settings.dropout import AUTO, dropout_for
from recbole_leaprec.settings.keys import EVALUATION_KEYS, MACHINE_KEYS, check_changes, check_target
from recbole_leaprec.trainer import LeapRecTrainer
from recbole_leaprec.training_state import STATE, save_state

_logger = logging.getLogger(__name__)

AfterValidation = Callable[[LeapRecTrainer, Any, int], None]
"""It is called with the trainer, the validation data and the epoch, after the best checkpoint so far was written."""


@dataclass
class Run:
    """The config, data and model of a run. `prepare` writes nothing; `open` makes the folder."""

    config: LeapRecConfig
    dataset: SequenceDataset
    model: Any
    train_data: Any
    valid_data: Any
    test_data: Any
    timing: dict[str, float]
    resumed: bool = False

    @property
    def folder(self) -> Path:
        """The folder where the run writes, after `open` has made it."""
        return Path(self.config["output_dir"])

    @classmethod
    def prepare(cls, config: LeapRecConfig, *, resumed: bool = False) -> Run:
        """Read the data and make the model, with parameters drawn from the seed.

        Args:
            resumed: whether the run goes on with a training in its folder.
        """
        started = time.perf_counter()
        if not resumed:
            check_folder(config)
        dataset = read_dataset(config)
        dataset.item_names()  # what is wrong with titles is told before anything is written
        loaders = data_preparation(config, dataset)
        if max(config["topk"]) >= dataset.item_num:
            raise ValueError(
                f"topk (list lengths K) must not exceed the number of items, {dataset.item_num - 1}, got {config['topk']}"
            )
        if config["hidden_dropout_prob"] == AUTO:
            config.settle("hidden_dropout_prob", dropout_for(dataset.inter_num / (dataset.item_num - 1)))
        seconds = time.perf_counter() - started
        init_seed(config["seed"], config["reproducibility"])
        return cls(config, dataset, _model(config, loaders[0].dataset), *loaders, {"data": seconds}, resumed)

    @classmethod
    def restored(cls, checkpoint: str | Path, content: dict[str, Any], config: LeapRecConfig) -> Run:
        """A run with the parameters of a checkpoint, from its `trained_config`; ValueError as `evaluate`."""
        run = cls.prepare(config)
        check_fits(content, run.dataset, checkpoint)
        restore(run.model, content, checkpoint)
        return run

    def open(self, log: RunLog, log_name: str, kind: str = "") -> LeapRecTrainer:
        """Make the folder, with the config and the log in it. Returns the trainer, which writes there.

        Args:
            kind: the prefix of a new folder's name; empty for a training.
        """
        name = f"{kind}{self.config['model']}-{self.config['dataset']}"
        self.config["output_dir"] = self.config["checkpoint_dir"] = str(make_folder(self.config, name))
        log.take(self.folder)
        if not self.resumed:
            check_no_run(self.folder)  # another process may have been faster
        log.write_to(self.folder / log_name)
        write_yaml(self.folder / "config.yaml", self.config.plain())
        logging.getLogger().info(str(self.config))
        data = self.dataset
        _logger.info(
            "%s on %s: %d users, %d items (%d category profiles), %d categories, %d interactions; writing to %s",
            self.config["model"], self.config["dataset"], data.user_num - 1, data.item_num - 1, data.categories.n_profiles,
            data.categories.n_categories, len(data.sequences.items), self.folder,
        )  # fmt: skip
        _logger.info(data.told_categories())
        return LeapRecTrainer(self.config, self.model, self.dataset)

    @contextmanager
    def scratch_trainer(self) -> Iterator[LeapRecTrainer]:
        """A trainer that leaves no files behind, for a run without a folder."""
        with tempfile.TemporaryDirectory() as folder:  # RecBole's trainer makes the folder of its checkpoints
            self.config["output_dir"] = self.config["checkpoint_dir"] = folder
            yield LeapRecTrainer(self.config, self.model, self.dataset)

    def fit(self, trainer: LeapRecTrainer, after_validation: AfterValidation | None = None, resumable: bool = True) -> None:
        """RecBole's fit with one progress bar over the epochs. If `resumable`, the state is saved after every epoch."""
        show, saved = self.config["show_progress"], trainer.start_epoch - 1

        def save(epoch: int) -> None:
            nonlocal saved
            if resumable and epoch > saved:
                save_state(self.folder / STATE, trainer, self.train_data, epoch)
                saved = epoch

        with tqdm(total=trainer.epochs, desc="training", unit="epoch", disable=not show) as bar:

            def advance(epoch: int, score: float) -> None:
                save(epoch)  # needed here because no epoch follows the last one
                bar.update(epoch + 1 - bar.n)
                bar.set_postfix({"loss": f"{trainer.train_loss_dict[epoch]:.3f}", trainer.valid_metric: f"{score:.4f}",
                                 "best": f"{trainer.best_valid_score:.4f}"})  # fmt: skip
                if after_validation:
                    with trainer.averaged():
                        after_validation(trainer, self.valid_data, epoch)

            bar.update(trainer.start_epoch)
            ended = trainer.start_epoch >= trainer.epochs or trainer.cur_step > trainer.stopping_step
            if trainer.start_epoch and ended:  # it was killed after its last epoch
                trainer.eval_collector.data_collect(self.train_data)  # counts for some metrics; RecBole's fit does the same
            else:
                # RecBole calls back only after epochs with a validation.
                trainer.before_epoch = lambda epoch: save(epoch - 1)
                trainer.fit(self.train_data, self.valid_data, show_progress=show, callback_fn=advance)
                save(max(trainer.train_loss_dict))  # a last epoch without a validation

    def evaluate(
        self, trainer: LeapRecTrainer, rerankings: Sequence[Reranking] | None = None, split: str = "test"
    ) -> dict[str, Any]:
        """Metrics of the backbone and of the rerankings (by default the configured one), with users scored only once."""
        config, started = self.config, time.perf_counter()
        found = {}
        if config["target_skl"] is not None and rerankings is None:
            try:
                lam, met = self.find_lambda(trainer), True
            except TargetNotMet as missed:
                _logger.warning("target_skl, with %s on validation: %s, which is used", config["reranker"], missed)
                lam, met = missed.lam, False
            rerankings, found = [Reranking.from_config(config, lam)], {"target_met": met}
        asked = rerankings or [Reranking.from_config(config)]
        data = {"valid": self.valid_data, "test": self.test_data}[split]
        plain, *reranked = trainer.evaluate_rerankings(data, [Reranking(), *asked], config["show_progress"])
        self.timing[split] = time.perf_counter() - started
        return {
            "folder": str(self.folder),
            "model": config["model"],
            "dataset": config["dataset"],
            "seed": config["seed"],
            "backbone": {split: plain.metrics},
            "rerank": [
                {
                    "reranker": one.reranking.method,
                    "lambda": one.reranking.lam,
                    "candidates": one.reranking.candidates,
                    "order": one.reranking.order,
                    "temperature": one.reranking.temperature,
                    split: one.metrics,
                    "seconds": one.seconds,
                }
                for one in reranked
            ],
            **found,
            "timing": self.timing,
            "versions": versions(),
            "config": config.plain(),
        }

    def find_lambda(self, trainer: LeapRecTrainer) -> float:
        """The smallest lambda whose lists meet `target_skl` on validation; TargetNotMet if there is none."""
        config = self.config

        def skl(lambdas: Sequence[float]) -> list[float]:
            rerankings = [Reranking.from_config(config, lam) for lam in lambdas]
            evaluations = trainer.evaluate_rerankings(self.valid_data, rerankings)
            return [one.mean("skl", max(config["topk"])) for one in evaluations]

        lam, reached = smallest_lambda(skl, config["target_skl"])
        _logger.info("lambda %g is the smallest that meets target_skl %g: S_KL@%d is %.4f on validation", lam,
                     config["target_skl"], max(config["topk"]), reached)  # fmt: skip
        return lam


def read_dataset(config: LeapRecConfig) -> SequenceDataset:
    """The dataset of a config; logs what is going on if that takes a while."""
    with slow_step(f"reading dataset {config['dataset']}", in_log(_logger)):
        return create_dataset(config)


def _model(config: LeapRecConfig, dataset: SequenceDataset) -> Any:
    """The model, which sees only training interactions; ValueError if it cannot be made with its settings."""
    try:
        model = config.model_class(config, dataset)
    except Exception as error:  # RecBole's models do not check their settings, and fail with any error
        if isinstance(error, ValueError):
            raise
        raise ValueError(f"a {config['model']} cannot be made with these settings: {in_words(error)}") from error
    return model.to(config["device"])


@contextmanager
def trained_run(
    checkpoint: str | Path,
    changes: dict[str, Any] | None = None,
    log_name: str = "evaluate.log",
    check: Callable[[Run], None] = lambda run: None,
) -> Iterator[tuple[Run, LeapRecTrainer]]:
    """A trained model, ready to be evaluated, with its own new folder; ValueError as `evaluate`.

    Args:
        check: is called with the run before the folder is made.
    """
    content, config = trained_config(checkpoint, changes)
    with run_log(config) as log:
        run = Run.restored(checkpoint, content, config)
        check(run)
        trainer = run.open(log, log_name, "evaluation-")
        trainer.eval_collector.data_collect(run.train_data)  # counts for some metrics; RecBole's fit does the same
        yield run, trainer


def trained_config(checkpoint: str | Path, changes: dict[str, Any] | None) -> tuple[dict[str, Any], LeapRecConfig]:
    """A checkpoint's content, and its config with changes; ValueError as `evaluate`."""
    content = load_checkpoint(checkpoint)
    changes = dict(changes or {})
    check_changes(changes, EVALUATION_KEYS)
    settings = {key: value for key, value in content["config"].items() if key not in MACHINE_KEYS} | changes
    check_target(changes)
    if "target_skl" not in changes and {"reranker", "rerank_lambda"} & changes.keys():
        settings["target_skl"] = None  # the new settings win over those of the training
    if "topk" in changes or "metrics" in changes:  # valid_metric chose the epoch and is not needed now
        settings["valid_metric"] = None
    return content, LeapRecConfig(config_dict=settings)


def train_only(config: LeapRecConfig, after_validation: AfterValidation) -> None:
    """Train and write to `output_dir`, without any evaluation on test."""
    with run_log(config) as log:
        run = Run.prepare(config)
        run.fit(run.open(log, "train.log"), after_validation, resumable=False)
