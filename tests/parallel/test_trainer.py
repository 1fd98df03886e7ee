"""Several trainers in a process group make the steps of one."""

import json
import subprocess
import sys

import pytest

# What one worker does; without a group, what one process does. Prints the loss of every step and the parameters' sums.
PROGRAM = """
import json, sys
import torch
from recbole.utils import init_seed
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.data import create_dataset, data_preparation

model, rank, workers, store, settings = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], json.loads(sys.argv[5])
torch.set_num_threads(1)
config = LeapRecConfig(model, "toy", config_dict=settings)
dataset = create_dataset(config)
train, valid, _ = data_preparation(config, dataset)
init_seed(config["seed"], True)
network = config.model_class(config, train.dataset)
if workers > 1:
    from recbole_leaprec.parallel.trainer import ParallelTrainer as Trainer
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=workers)
else:
    from recbole_leaprec.trainer import LeapRecTrainer as Trainer
trainer = Trainer(config, network, dataset)
losses = []
check = trainer._check_nan
trainer._check_nan = lambda loss: (losses.append(loss.item()), check(loss))
score, valid_result = trainer.fit(train, valid, verbose=False, show_progress=False)
sums = [value.double().sum().item() for value in network.state_dict().values()]
print(json.dumps([losses, sums, dict(valid_result), trainer.train_loss_dict]))
"""
NO_DROPOUT = dict.fromkeys(("hidden_dropout_prob", "attn_dropout_prob", "dropout_prob", "dropout"), 0.0)
KINDS = {
    "BPR": ("SASRecCD", {}),
    "softmax": ("SASRecCD", {"loss_type": "softmax", "num_negatives": 7}),
    "clipped": ("SASRecCD", {"clip_grad_norm": {"max_norm": 0.05}}),
    "GRU4RecCD": ("GRU4RecCD", {}),
    "CaserCD, which has a regularisation": ("CaserCD", {}),
    "one row per prefix": ("STAMPCD", {}),
}


def train(model, workers, settings, folder):
    """What each worker printed."""
    folder.mkdir()
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, model]
    started = [
        subprocess.Popen(
            [*command, str(rank), str(workers), str(folder / "store"), json.dumps(settings | {"output_dir": str(folder / str(rank))})],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(workers)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=300) for process in started]
    assert all(process.returncode == 0 for process in started), outputs
    return [json.loads(out.splitlines()[-1]) for out, _ in outputs]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_steps_of_several_are_those_of_one(toy, tmp_path, kind):
    model, changes = KINDS[kind]
    settings = {
        "category_field": "genre", "MAX_ITEM_LIST_LENGTH": 8, "hidden_size": 8, "embedding_size": 8, "inner_size": 8, "topk": [10],
        "train_batch_size": 7, "epochs": 3, "show_progress": False, "data_path": str(toy), **NO_DROPOUT, **changes,
    }  # fmt: skip
    one = train(model, 1, settings, tmp_path / "one")[0]
    workers = 3 if kind == "BPR" else 2  # 30 users in batches of 7: for the last one, one of three has no row
    several = train(model, workers, settings, tmp_path / "several")
    assert len(one[0]) >= 10
    assert [sum(losses) for losses in zip(*(own[0] for own in several), strict=True)] == pytest.approx(one[0], abs=1e-5)
    for own in several:
        assert own[1] == pytest.approx(several[0][1], abs=0)  # the same parameters to the last bit
        assert own[1] == pytest.approx(one[1], abs=1e-3)
        assert own[2] == pytest.approx(one[2], abs=1e-3)
        assert own[3] == pytest.approx(one[3], abs=1e-3)
