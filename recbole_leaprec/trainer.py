"""The trainer: RecBole's, with category preferences in every batch and reranking in evaluation.

The loop over epochs, early stopping and the log lines with their times are RecBole's `Trainer.fit`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from recbole.utils import set_color
from tqdm import tqdm

from recbole_leaprec.checkpoint import check_fits, load_checkpoint, restore, save_checkpoint
from recbole_leaprec.common.memory import giving_back
from recbole_leaprec.compat import CompatTrainer
from recbole_leaprec.data import HISTORY_END, SequenceDataset
from recbole_leaprec.data.frozen import freeze
from recbole_leaprec.evaluator import Evaluation, RerankingCollector
from recbole_leaprec.evaluator.resources import SEQUENTIAL_PREFERENCE, STATIC_PREFERENCE
from recbole_leaprec.model.cd_mixin import PREFERENCE
from recbole_leaprec.model.fast import matmul_precision
from recbole_leaprec.model.weight_average import WeightAverage
from recbole_leaprec.reranking.lists import SHORT_LISTS
from recbole_leaprec.reranking.reranking import Reranking
from recbole_leaprec.settings.lr_schedule import SCHEDULES

if TYPE_CHECKING:
    from recbole_leaprec.config import LeapRecConfig

_logger = logging.getLogger(__name__)


class LeapRecTrainer(CompatTrainer):
    """Trains and evaluates a model of `SequenceDataset` batches.

    - Training batches get the preference before each target, with the `preference_alpha` of the model, for its loss.
    - Validation ranks by score alone, so that the best epoch does not depend on lambda; `evaluate_rerankings` scores
      once and reranks in as many ways as it is given.
    - Checkpoints hold tensors and plain values.
    """

    item_tensor: Any
    before_epoch: Callable[[int], None] | None = None
    """Called with the number of each epoch that is about to begin."""

    def __init__(self, config: LeapRecConfig, model: Any, dataset: SequenceDataset):
        super().__init__(config, model)
        self.dataset = dataset
        self.saved_model_file = str(Path(config["output_dir"]) / "model.pth")
        self.categories = dataset.categories.to(self.device)
        self._sequences = dataset.sequences.to(self.device)
        self._short_before = 0
        decay = config["weight_average"]
        self.average = WeightAverage(model, self.optimizer, decay) if decay else None

    @cached_property
    def _serving(self) -> dict[str, Any]:
        """All that making lists needs beside the parameters; it does not change while a model is trained."""
        return freeze(self.dataset, self.model)

    def preference(self, history_end: torch.Tensor, alpha: float) -> torch.Tensor:
        """`[..., C]`: the preference after each of these flat positions; those of a row of several follow one another."""
        return self._sequences.preference(history_end.to(self.device), self.categories, alpha)

    def _train_epoch(self, train_data, epoch_idx, loss_func=None, show_progress=False):
        if self.before_epoch:
            self.before_epoch(epoch_idx)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate * SCHEDULES[self.config["lr_schedule"]](epoch_idx / self.epochs)
        calculate_loss = loss_func or self.model.calculate_loss
        alpha = getattr(self.model, "preference_alpha", None)  # of the preference that the model's loss asks for, if any

        def loss_with_preference(interaction):
            if alpha is not None:
                interaction[PREFERENCE] = self.preference(interaction[HISTORY_END], alpha)  # before each target
            return calculate_loss(interaction)

        # None: not where there is no terminal to wipe the bar from again.
        bar = tqdm(train_data, desc=f"epoch {epoch_idx}", leave=False, disable=None if show_progress else True)
        with matmul_precision(self.config["matmul_precision"]):
            return super()._train_epoch(self._giving_back(bar), epoch_idx, loss_with_preference)

    def _check_nan(self, loss):
        if torch.isnan(loss):
            raise ValueError(
                f"the training loss is not a number: try a smaller learning_rate (it is {self.learning_rate:g}), or clip_grad_norm"
            )

    def _giving_back(self, batches: Iterable[Any]) -> Iterable[Any]:
        return giving_back(batches) if self.device.type == "cpu" else batches

    def _valid_epoch(self, valid_data, show_progress=False):
        with self.averaged():
            # Without a bar: it would stay on the screen, one per epoch.
            score, result = super()._valid_epoch(valid_data, show_progress=False)
        for metric, value in result.items():
            self.tensorboard.add_scalar(f"Valid/{metric}", value, max(self.train_loss_dict, default=0))
        return score, result

    def averaged(self) -> AbstractContextManager[None]:
        """Inside of this, the model has the weights that are validated and saved: with `weight_average`, their mean."""
        return self.average.in_use() if self.average else nullcontext()

    def add_preferences(self, interaction: Any, collector: RerankingCollector) -> None:
        """Put the preferences that a collector needs into a batch: those after the last item before each target."""
        end = interaction[HISTORY_END]
        if self.config["preference_history"] == "training":
            end = self.dataset.sequences.last_in_training(end.cpu()).to(end.device)
        for field, alpha in ((SEQUENTIAL_PREFERENCE, self.config["alpha"]), (STATIC_PREFERENCE, 1.0)):
            if collector.needs(field):
                interaction[field] = self.preference(end, alpha)

    @torch.no_grad()
    def evaluate_rerankings(
        self, eval_data: Any, rerankings: Sequence[Reranking], show_progress: bool = False, per_user: bool = False
    ) -> list[Evaluation]:
        """Score every user once and rerank in every way; an `Evaluation` for each.

        Args:
            per_user: whether evaluations hold every user's list, metrics and preference, and the places of the list's items in the
                model's own ranking.
        """
        self.model.eval()
        self.tot_item_num = eval_data.dataset.item_num
        if self.item_tensor is None:
            self.item_tensor = eval_data.dataset.get_item_feature().to(self.device)
        counted = self.eval_collector.data_struct
        collector = RerankingCollector(self.config, self.evaluator, self.categories, rerankings, counted, per_user)
        bar = tqdm(eval_data, desc="evaluating", unit="batch", disable=not show_progress)
        for batch in self._giving_back(bar):
            interaction, scores, positive_u, positive_i = self._full_sort_batch_eval(batch)
            self.add_preferences(interaction, collector)
            collector.eval_batch_collect(scores, interaction, positive_u, positive_i)
        evaluations = collector.evaluations()
        for one in evaluations:
            if one.short and one.short != self._short_before:  # warn once per count, not once per epoch
                self._short_before = one.short
                _logger.warning(SHORT_LISTS, one.short, one.users, max(self.config["topk"]))
        return evaluations

    def evaluate(self, eval_data, load_best_model=True, model_file=None, show_progress=False):
        """Metrics of the plain ranking, as RecBole's trainer has them; its validation calls this."""
        if load_best_model:
            self.load(model_file or self.saved_model_file)
        return self.evaluate_rerankings(eval_data, [Reranking()], show_progress)[0].metrics

    def load(self, path: str | Path) -> dict[str, Any]:
        """Put a checkpoint's parameters into the model; ValueError if it does not fit the dataset or the model."""
        checkpoint = load_checkpoint(path, self.device)
        check_fits(checkpoint, self.dataset, path)
        restore(self.model, checkpoint, path)
        return checkpoint

    def _save_checkpoint(self, epoch, verbose=True, **kwargs):
        path = Path(kwargs.pop("saved_model_file", self.saved_model_file))
        with self.averaged():
            save_checkpoint(path, self._content(epoch))
        if verbose:
            self.logger.info(set_color("Saving current", "blue") + f": {path}")

    def _content(self, epoch: int) -> dict[str, Any]:
        """What a checkpoint holds."""
        return {
            "config": self.config.plain(),
            "dataset": self.dataset.fingerprint,
            "serving": self._serving,
            "epoch": epoch,
            "cur_step": self.cur_step,
            "best_valid_score": float(self.best_valid_score),
            "state_dict": self.model.state_dict(),
            # Modules are in the state already, and are more than plain values.
            "other_parameter": {
                k: v for k, v in (self.model.other_parameter() or {}).items() if not isinstance(v, torch.nn.Module)
            },
            "optimizer": self.optimizer.state_dict(),
        }
