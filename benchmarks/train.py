"""One training epoch: RecBole's own SASRec against SASRecCD, on the same interactions, sizes and batch size.

    python benchmarks/train.py [--threads=1] [--repeats=5] [--out=benchmarks/train.md]
    python benchmarks/train.py --dataset=ml-1m --data_path=...      # the second table on other data

RecBole trains one padded row per prefix; SASRecCD trains all positions of a sequence in one pass. Both see every
training target once, with one uniform negative. Anomaly detection, which RecBole switches on for every model, is off
for both. Epochs are timed in turn, and the best of several counts, since the machine may be busy with other things.

The second table has an epoch of every model that trains on all positions, and the share of its time in matrix products
and convolutions, by torch's profiler. At most the rest of the time could be saved.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from recbole.data.dataloader import TrainDataLoader
from recbole.data.dataset import SequentialDataset
from recbole.sampler import RepeatableSampler
from recbole.utils import init_seed
from torch.profiler import ProfilerActivity, profile

from recbole_leaprec.compat import CompatTrainer
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.data import create_dataset, data_preparation
from recbole_leaprec.run import Run
from recbole_leaprec.trainer import LeapRecTrainer


def stock(folder: str):
    """RecBole's dataset, loader, sampler, model and training loop."""
    config = LeapRecConfig("SASRec", "ml-100k", config_dict={"output_dir": folder, "checkpoint_dir": folder})
    config["load_col"] = {"inter": ["user_id", "item_id", "rating", "timestamp"]}  # it cannot load categories on pandas 3
    init_seed(config["seed"], True)
    dataset = SequentialDataset(config)
    train = dataset.build()[0]
    sampler = RepeatableSampler("train", dataset).set_phase("train")
    loader = TrainDataLoader(config, train, sampler, shuffle=True)
    return CompatTrainer(config, config.model_class(config, dataset)), loader, len(train)


def ours(folder: str, gamma: float):
    settings = {"output_dir": folder, "checkpoint_dir": folder, "gamma": gamma}
    config = LeapRecConfig("SASRecCD", "ml-100k", config_dict=settings)
    init_seed(config["seed"], True)
    dataset = create_dataset(config)
    train = data_preparation(config, dataset)[0]
    return LeapRecTrainer(config, config.model_class(config, dataset), dataset), train, len(train._dataset)


MODELS: dict[str, dict[str, Any]] = {
    "SASRecCD, BPR": {"model": "SASRecCD"},
    "SASRecCD, softmax over 512": {"model": "SASRecCD", "loss_type": "softmax", "num_negatives": 512},
    "GRU4RecCD, BPR": {"model": "GRU4RecCD"},
    "CaserCD, BPR": {"model": "CaserCD"},
    "BERT4RecCD": {"model": "BERT4RecCD"},
    "LiGRCD, softmax over all (recipe best), float32": {"recipe": "best", "matmul_precision": "highest"},
    "LiGRCD, softmax over all (recipe best), bfloat16": {"recipe": "best", "matmul_precision": "medium"},
}
PRODUCTS = {
    "aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm", "aten::baddbmm", "aten::mkldnn_convolution", "aten::convolution_backward",
    "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    "aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward",
}  # fmt: skip
"""Operations that are matrix products, or almost only matrix products."""


def model_rows(asked: argparse.Namespace, folder: str) -> Iterator[str]:
    for name, settings in MODELS.items():
        place = {
            "output_dir": folder,
            "checkpoint_dir": folder,
            **({"data_path": asked.data_path} if asked.data_path else {}),
        }
        config = LeapRecConfig(None, asked.dataset, config_dict={**settings, **place})
        run = Run.prepare(config)
        trainer = LeapRecTrainer(config, run.model, run.dataset)
        seconds = min(epoch_seconds(trainer, run.train_data) for _ in range(asked.epochs))
        with profile(activities=[ProfilerActivity.CPU]) as seen:
            trainer._train_epoch(run.train_data, 0)
        own = {event.key: event.self_cpu_time_total for event in seen.key_averages()}
        products = sum(own.get(operation, 0) for operation in PRODUCTS) / sum(own.values())
        print(f"{name}: {seconds:.2f} s, {products:.0%} matrix products", flush=True)
        yield f"| {name} | {len(run.train_data._dataset):,} | {config['train_batch_size']} | {seconds:.2f} | {products:.0%} |"


def epoch_seconds(trainer, loader) -> float:
    started = time.perf_counter()
    trainer._train_epoch(loader, 0)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5, help="epochs of SASRecCD; RecBole's SASRec runs two")
    parser.add_argument("--dataset", default="ml-100k", help="of the second table")
    parser.add_argument("--data_path")
    parser.add_argument("--epochs", type=int, default=3, help="epochs per model of the second table")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    with tempfile.TemporaryDirectory() as folder:
        runs = {
            "RecBole's SASRec": stock(folder),
            "SASRecCD, gamma 0": ours(folder, 0.0),
            "SASRecCD, gamma 0.1": ours(folder, 0.1),
        }
        assert not torch.is_anomaly_enabled()
        seconds = {name: [] for name in runs}
        for turn in range(arguments.repeats):
            for name, (trainer, loader, _) in runs.items():
                if turn < 2 or name.startswith("SASRecCD"):
                    seconds[name].append(epoch_seconds(trainer, loader))
                    print(f"{name}: {seconds[name][-1]:.2f} s", flush=True)
        rows = list(model_rows(arguments, folder))
    best = {name: min(values) for name, values in seconds.items()}
    base, plain, calibrated = best.values()
    lines = [
        f"`python benchmarks/train.py --threads={arguments.threads} --repeats={arguments.repeats}`, ml-100k, batch 128, torch {torch.__version__}",
        "",
        "| one epoch | targets | seconds, best | times as fast |",
        "|---|---|---|---|",
        *(f"| {name} | {runs[name][2]} | {best[name]:.2f} | {base / best[name]:.1f} |" for name in runs),
        "",
        f"The CD term costs {100 * (calibrated / plain - 1):.1f} % (gamma 0.1 against gamma 0).",
        "",
        f"Models that train on all positions, with their default settings, on {arguments.dataset}; best of {arguments.epochs} epochs:",
        "",
        "| one epoch | targets | sequences per batch | seconds | matrix products |",
        "|---|---|---|---|---|",
        *rows,
    ]
    arguments.out.write_text("\n".join(lines) + "\n")
    print("\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
