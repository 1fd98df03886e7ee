"""`run_leaprec` and `resume` with workers. The workers train; this process prepares and measures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tqdm import tqdm

from recbole_leaprec.cluster import check_room, connected, room_in_all
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.parallel.fit import Workers, fit_in_parallel
from recbole_leaprec.quick_start import resumed_config, train_and_measure
from recbole_leaprec.run import Run
from recbole_leaprec.run_log import run_log
from recbole_leaprec.settings.keys import MACHINE_KEYS
from recbole_leaprec.trainer import LeapRecTrainer
from recbole_leaprec.training_state import STATE, restore_state


def run_in_parallel(
    config_file_list: list[str] | None = None,
    config_dict: dict[str, Any] | None = None,
    *,
    workers: int | None = None,
    cpus_per_worker: float = 1.0,
    gpus_per_worker: float = 0.0,
    ray_address: str | None = None,
    resume: str | Path | None = None,
) -> dict[str, Any]:
    """`run_leaprec`, or `resume` if a folder is given, with workers that train together over Ray Train.

    `train_batch_size` is for all workers together. So the metrics equal those of one process, up to rounding, if the model's
    random numbers do not depend on the shape of a batch; BERT4RecCD draws other masks. All machines must see the data and
    `output_dir`.

    Args:
        workers: number of workers; None for as many as the CPUs allow.

    Raises:
        ValueError: as `run_leaprec`; or there is no cluster, or no room for the workers.
    """
    if resume is None:
        config = LeapRecConfig(config_file_list=config_file_list, config_dict=config_dict)
    else:
        config = resumed_config(resume, config_dict)

    def fit(run: Run, trainer: LeapRecTrainer) -> None:
        with connected(ray_address) as own:
            count = workers or max(1, int(room_in_all("CPU") / cpus_per_worker))
            needed = {"CPU": cpus_per_worker, "GPU": gpus_per_worker}
            check_room(needed, "a worker (workers, cpus_per_worker, gpus_per_worker)", own, count)
            _fit(run, trainer, Workers(count, cpus_per_worker, gpus_per_worker))

    with run_log(config) as log:
        run = Run.prepare(config, resumed=resume is not None)
        return train_and_measure(run, run.open(log, "train.log"), fit)


def _fit(run: Run, trainer: LeapRecTrainer, workers: Workers) -> None:
    """Train with the workers, with one progress bar over the epochs. Then restore their final state in the trainer."""
    plain = {key: value for key, value in run.config.plain().items() if key not in MACHINE_KEYS}
    plain["data_path"] = str(Path(plain["data_path"]).absolute())  # workers run in other folders
    with tqdm(
        total=trainer.epochs,
        desc=f"training, {workers.count} workers",
        unit="epoch",
        disable=not run.config["show_progress"],
    ) as bar:

        def told(epoch: dict[str, Any]) -> None:
            bar.update(epoch.pop("epoch") + 1 - bar.n)
            bar.set_postfix(epoch)

        fit_in_parallel(plain, run.folder.absolute(), workers, _progress, told)
    restore_state(run.folder / STATE, trainer, run.train_data)
    trainer.eval_collector.data_collect(run.train_data)  # counts for some metrics; RecBole's fit does the same


def _progress(trainer: LeapRecTrainer, valid_data: Any, epoch: int) -> dict[str, Any]:
    """The values of an epoch that the progress bar shows."""
    loss, best = trainer.train_loss_dict[epoch], trainer.best_valid_score
    return {"epoch": epoch, "loss": f"{loss:.3f}", "best": f"{best:.4f}"}
