"""The trainer: RecBole's, with category preferences in every batch and reranking in evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from recbole.utils import set_color
from tqdm import tqdm

from recbole_leaprec.checkpoint import check_fits, fingerprint, load_checkpoint, restore, save_checkpoint
from recbole_leaprec.compat import CompatTrainer
from recbole_leaprec.data import HISTORY_END, SequenceDataset
from recbole_leaprec.evaluator import Reranking, RerankingCollector
from recbole_leaprec.evaluator.metrics import SEQUENTIAL_PREFERENCE, STATIC_PREFERENCE
from recbole_leaprec.model.cd_mixin import PREFERENCE
from recbole_leaprec.schedule import SCHEDULES


class LeapRecTrainer(CompatTrainer):
    """Trains and evaluates a model of `SequenceDataset` batches.

    - Training batches get the preference before each target, with the `preference_alpha` of the model, for its loss.
    - Validation ranks by score alone, so that the best epoch does not depend on lambda; `evaluate_rerankings` scores
      once and reranks in as many ways as it is given.
    - Checkpoints hold tensors and plain values.
    """

    def __init__(self, config, model, dataset: SequenceDataset):
        super().__init__(config, model)
        self.dataset = dataset
        self.saved_model_file = str(Path(config["output_dir"]) / "model.pth")
        self.eval_collector = RerankingCollector(config)
        self.eval_collector.set_categories(dataset.categories.to(self.device))
        self._fingerprint = fingerprint(dataset)
        self._tables: dict[float, torch.Tensor] = {}

    def preference(self, history_end: torch.Tensor, alpha: float) -> torch.Tensor:
        """`[..., C]`: the preference after each of these flat positions."""
        if alpha not in self._tables:
            self._tables[alpha] = self.dataset.preference_table(alpha).to(self.device)
        return self._tables[alpha][history_end]

    def _train_epoch(self, train_data, epoch_idx, loss_func=None, show_progress=False):
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
        return super()._train_epoch(bar, epoch_idx, loss_with_preference)

    def _valid_epoch(self, valid_data, show_progress=False):
        score, result = super()._valid_epoch(
            valid_data, show_progress=False
        )  # its bar would stay on the screen, one an epoch
        for metric, value in result.items():
            self.tensorboard.add_scalar(f"Valid/{metric}", value, max(self.train_loss_dict, default=0))
        return score, result

    def _full_sort_batch_eval(self, batched_data):
        interaction, scores, positive_u, positive_i = super()._full_sort_batch_eval(batched_data)
        end = interaction[HISTORY_END]
        if self.config["preference_history"] == "training":
            end = self.dataset.sequences.last_in_training(end.cpu()).to(end.device)
        for field, alpha in ((SEQUENTIAL_PREFERENCE, self.config["alpha"]), (STATIC_PREFERENCE, 1.0)):
            if self.eval_collector.needs(field):
                interaction[field] = self.preference(end, alpha)
        return interaction, scores, positive_u, positive_i

    def evaluate_rerankings(
        self, eval_data, rerankings: list[Reranking], show_progress: bool = False, ranks: bool = False
    ) -> list[dict[str, Any]]:
        """Metrics of each reranking, from one pass of scoring: `[{"metrics": ..., "seconds": ..., "struct": ...}]`.

        `struct` is what RecBole's evaluator gets; `per_user` reads it, too. With `ranks`, it holds the places of the lists' items
        in the model's own ranking.
        """
        before = self.eval_collector.rerankings
        self.eval_collector.rerank_with(rerankings)
        self.eval_collector.ranks_wanted = ranks
        try:
            self.evaluate(eval_data, load_best_model=False, show_progress=show_progress)
        finally:
            self.eval_collector.rerank_with(before)
            self.eval_collector.ranks_wanted = False
        return [
            {"metrics": plain(self.evaluator.evaluate(run.struct)), "seconds": run.seconds, "struct": run.struct}
            for run in self.eval_collector.collected
        ]

    def evaluate(self, eval_data, load_best_model=True, model_file=None, show_progress=False):
        if load_best_model:
            self.load(model_file or self.saved_model_file)
        return super().evaluate(eval_data, load_best_model=False, show_progress=show_progress)

    def load(self, path: str | Path) -> dict[str, Any]:
        """Put a checkpoint's parameters into the model; ValueError if it does not fit the dataset or the model."""
        checkpoint = load_checkpoint(path, self.device)
        check_fits(checkpoint, self.dataset, path)
        restore(self.model, checkpoint, path)
        return checkpoint

    def _save_checkpoint(self, epoch, verbose=True, **kwargs):
        path = Path(kwargs.pop("saved_model_file", self.saved_model_file))
        content = {
            "config": self.config.plain(),
            "dataset": self._fingerprint,
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
        save_checkpoint(path, content)
        if verbose:
            self.logger.info(set_color("Saving current", "blue") + f": {path}")


def plain(result: dict[str, Any]) -> dict[str, float]:
    """Metrics as Python floats, for json and checkpoints."""
    return {name: float(value) for name, value in result.items()}
