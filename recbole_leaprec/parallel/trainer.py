"""A trainer that makes the same steps as the others."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed
from torch.nn.utils import clip_grad_norm_

from recbole_leaprec.model.fast import FastDropout
from recbole_leaprec.parallel.shares import WEIGHT, BatchShares
from recbole_leaprec.trainer import LeapRecTrainer


class ParallelTrainer(LeapRecTrainer):
    """One of several trainers in a process group of torch.distributed; the first one validates, and writes what is written.

    All have the same parameters and the same random numbers: what is drawn for a whole batch is the same everywhere.
    """

    clip_grad_norm: Any

    def __init__(self, config, model, dataset):
        super().__init__(config, model, dataset)
        if self.enable_scaler:
            raise ValueError(
                "enable_scaler does not go with several workers: one that skips a step would leave the others behind"
            )
        self.rank, self.workers = torch.distributed.get_rank(), torch.distributed.get_world_size()
        self._clip, self.clip_grad_norm = self.clip_grad_norm, None  # RecBole would clip before gradients are summed up
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
        """The loss of all shares together."""
        total = torch.tensor(loss, dtype=torch.float64, device=self.device)
        torch.distributed.all_reduce(total)
        return tuple(total.tolist()) if isinstance(loss, tuple) else total.item()

    def _sum_gradients(self) -> None:
        """Sum up over the workers; a parameter that has a gradient nowhere gets none."""
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
        # What the first one found, and its random numbers: validation must not bring them apart.
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
