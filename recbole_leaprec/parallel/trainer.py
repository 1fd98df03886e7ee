"""The trainer of one of several workers. All make the same steps."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed
from torch.nn.utils import clip_grad_norm_

from recbole_leaprec.model.fast import FastDropout
from recbole_leaprec.parallel.shares import WEIGHT, BatchShares
from recbole_leaprec.trainer import LeapRecTrainer


class ParallelTrainer(LeapRecTrainer):
    """One of several trainers in a process group of torch.distributed. Only the first one validates and writes files.

    All have the same parameters and the same random numbers, so the draws for a whole batch are the same in all of them.
    """

    clip_grad_norm: Any

    def __init__(self, config, model, dataset):
        super().__init__(config, model, dataset)
        if self.enable_scaler:
            raise ValueError(
                "enable_scaler does not go with several workers: one that skips a step would leave the others behind"
            )
        self.rank, self.workers = torch.distributed.get_rank(), torch.distributed.get_world_size()
        self._clip, self.clip_grad_norm = self.clip_grad_norm, None  # RecBole would clip before the sum
        self.optimizer.register_step_pre_hook(lambda *_: self._sum_gradients())
        FastDropout.worker = self.rank
        for values in (*self.model.parameters(), *self.model.buffers()):
            torch.distributed.broadcast(values.data, 0)

    def _train_epoch(self, train_data, epoch_idx, loss_func=None, show_progress=False):
        calculate_loss = loss_func or self.model.calculate_loss

        def loss_of_share(interaction):
            losses = calculate_loss(interaction)
            weight = interaction[WEIGHT][0]
            return tuple(loss * weight for loss in losses) if isinstance(losses, tuple) else losses * weight

        shares = BatchShares(train_data, self.model.POS_ITEM_ID, self.rank, self.workers)
        return self._summed(super()._train_epoch(shares, epoch_idx, loss_of_share, show_progress=False))

    def _summed(self, loss: Any) -> Any:
        """The sum of a loss over all workers."""
        total = torch.tensor(loss, dtype=torch.float64, device=self.device)
        torch.distributed.all_reduce(total)
        return tuple(total.tolist()) if isinstance(loss, tuple) else total.item()

    def _sum_gradients(self) -> None:
        """Sum up gradients over the workers. A parameter without a gradient in all workers gets none."""
        parameters = [one for one in self.model.parameters() if one.requires_grad]
        parts = [torch.tensor([float(one.grad is not None) for one in parameters], device=self.device)]
        parts += [(torch.zeros_like(one) if one.grad is None else one.grad).flatten() for one in parameters]
        together = torch.cat(parts)
        torch.distributed.all_reduce(together)
        used, *gradients = together.split([len(part) for part in parts])
        for parameter, gradient, count in zip(parameters, gradients, used.tolist(), strict=True):
            parameter.grad = gradient.view_as(parameter) if count else None
        if self._clip:
            clip_grad_norm_(self.model.parameters(), **self._clip)

    def _valid_epoch(self, valid_data, show_progress=False):
        # All take the first worker's result and random state, so that validation does not make them differ.
        found: list[Any] = [None]
        if self.rank == 0:
            found = [(super()._valid_epoch(valid_data), torch.get_rng_state())]
        torch.distributed.broadcast_object_list(found, 0)
        result, state = found[0]
        torch.set_rng_state(state)
        return result

    def _save_checkpoint(self, epoch, verbose=True, **kwargs):
        if self.rank == 0:
            super()._save_checkpoint(epoch, verbose, **kwargs)
