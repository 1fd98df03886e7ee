"""Workers on a Ray cluster that train a model together."""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from recbole_leaprec.cluster import given_gpus, interrupts_as_before
from recbole_leaprec.common.reading import in_words
from recbole_leaprec.training_state import STATE

if TYPE_CHECKING:
    from ray.util.queue import Queue

    from recbole_leaprec.trainer import LeapRecTrainer

RETRIES = 10
"""How many times a training may lose workers before it fails."""

OWN_ERRORS = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError, torch.OutOfMemoryError, OSError
)  # fmt: skip
"""What comes of the data, the settings, a full disk or a fault of ours, and would come again."""

LOST_PEER = (ConnectionError, TimeoutError)
"""What a worker may get if another one is lost: kinds of OSError."""

SCRATCH = ".ray-train-"
"""The prefix of a temporary folder that exists inside the folder of a run while workers train."""

ERROR = "error.txt"
"""A file in that folder, with the message of a worker that cannot go on."""

AfterEpoch = Callable[["LeapRecTrainer", Any, int], dict[str, Any]]
"""The first worker calls it with its trainer, the validation data and the epoch. The result goes to the starting process."""


@dataclass(frozen=True)
class Workers:
    """The number of workers and the resources of each.

    Attributes:
        count: number of processes; each gets a share of every batch.
        cpus, gpus: per worker.
    """

    count: int
    cpus: float = 1.0
    gpus: float = 0.0


def fit_in_parallel(
    config: dict[str, Any],
    folder: Path,
    workers: Workers,
    after_validation: AfterEpoch,
    told: Callable[[dict[str, Any]], None],
) -> None:
    """Train with workers, and write to the folder of a run. If the folder has a state, training goes on from it.

    Ray must be connected. The first worker writes model.pth and state.pth, like a training in one process. If a worker is
    lost, all start again from the state of the last epoch.

    Args:
        config: the config of the run, as plain values.
        folder: the folder of the run, which all machines must see.
        after_validation: is sent to the first worker by pickle.
        told: is called in this process with the results of `after_validation`.

    Raises:
        ValueError: the training cannot go on; the message is the worker's own error.
    """
    from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.util.queue import Queue

    queue = Queue(actor_options={"num_cpus": 0})
    for left in folder.glob(f"{SCRATCH}*"):  # of a training that was killed
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=folder) as scratch, _listening(queue, told):
        given: dict[str, Any] = {
            "config": config, "folder": str(folder), "gpus": workers.gpus, "after_validation": after_validation, "queue": queue,
            "scratch": scratch,
        }  # fmt: skip
        trainer = TorchTrainer(
            _work,
            train_loop_config=given,
            torch_config=TorchConfig(backend="nccl" if workers.gpus else "gloo"),
            scaling_config=ScalingConfig(
                num_workers=workers.count,
                use_gpu=bool(workers.gpus),
                resources_per_worker={"CPU": workers.cpus, **({"GPU": workers.gpus} if workers.gpus else {})},
            ),
            run_config=RunConfig(name="train", storage_path=scratch, failure_config=FailureConfig(max_failures=RETRIES)),
        )
        try:
            with _quiet_train(), interrupts_as_before():
                trainer.fit()
        except SystemExit as stopped:  # Ray Train turns Ctrl-C into this
            raise KeyboardInterrupt from stopped
        except TrainingFailedError as error:
            raise ValueError(
                f"the training in {folder} failed more than {RETRIES} times; the last time: {_last_line(error)}"
            ) from error
        if (Path(scratch) / ERROR).is_file():
            raise ValueError((Path(scratch) / ERROR).read_text(encoding="utf-8"))


def _work(given: dict[str, Any]) -> None:
    """Run one worker. Ray restarts all workers after any error. After an error of this plugin, they end at once."""
    error_file = Path(given["scratch"]) / ERROR
    if error_file.is_file():
        return
    try:
        _train(given)
    except LOST_PEER:
        raise
    except OWN_ERRORS as error:
        error_file.write_text(str(error) if isinstance(error, ValueError) else in_words(error), encoding="utf-8")
        raise


def _train(given: dict[str, Any]) -> None:
    """Train in one worker, from the data to the last epoch."""
    from ray.train import get_context

    from recbole_leaprec.config import LeapRecConfig
    from recbole_leaprec.parallel.trainer import ParallelTrainer
    from recbole_leaprec.run import Run
    from recbole_leaprec.run_log import run_log
    from recbole_leaprec.training_state import restore_state

    folder, first = Path(given["folder"]), get_context().get_world_rank() == 0
    with tempfile.TemporaryDirectory() as scratch:
        own = {
            "output_dir": str(folder) if first else scratch,
            "show_progress": False,
            "gpu_id": given_gpus() if given["gpus"] else "",
        }
        config = LeapRecConfig(config_dict={**given["config"], **own})
        config["checkpoint_dir"] = config["output_dir"]
        with run_log(config) as log:
            if first:
                log.write_to(folder / "train.log")
            run = Run.prepare(config, resumed=True)
            trainer = ParallelTrainer(config, run.model, run.dataset)
            if (folder / STATE).is_file():
                restore_state(folder / STATE, trainer, run.train_data)

            def after_validation(trainer: LeapRecTrainer, valid_data: Any, epoch: int) -> None:
                given["queue"].put(given["after_validation"](trainer, valid_data, epoch))

            run.fit(trainer, after_validation if first else None, resumable=first)


@contextmanager
def _listening(queue: Queue, told: Callable[[dict[str, Any]], None]) -> Iterator[None]:
    """Call `told` with each value from the queue while the work inside goes on."""
    from ray.util.queue import Empty

    done, errors = threading.Event(), []

    def listen() -> None:
        try:
            while True:
                last = done.is_set()
                try:
                    while True:
                        told(queue.get(timeout=0.5))
                except Empty:
                    if last:
                        return
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        queue.shutdown()
    if errors:
        raise errors[0]


@contextmanager
def _quiet_train() -> Iterator[None]:
    """Keep the messages of Ray Train off the terminal. Its log files have them."""
    logger = logging.getLogger("ray.train")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _last_line(error: Exception) -> str:
    """The workers' own message, at the end of Ray's error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
