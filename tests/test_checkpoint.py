"""Checkpoints: plain, whole, and only for the data they belong to."""

import shutil
import subprocess
import sys

import pytest
import torch

from recbole_leaprec import evaluate, run_leaprec
from recbole_leaprec.checkpoint import load_checkpoint, save_lambda
from recbole_leaprec.cli import main
from tests.toy import SMALL, write_dataset


@pytest.fixture
def run(toy, tmp_path):
    """The folder of a finished run on the toy data."""
    result = run_leaprec(
        "SASRecCD", "toy", config_dict={**SMALL, "data_path": str(toy), "output_dir": str(tmp_path / "run")}
    )
    return tmp_path / "run", result


def test_a_checkpoint_holds_tensors_and_plain_values_only(run):
    folder, _ = run
    content = torch.load(folder / "model.pth", weights_only=True)
    assert content["config"]["model"] == "SASRecCD"
    assert not list(folder.glob("*.part"))


def test_evaluate_gives_the_figures_of_the_run_again(run, tmp_path):
    folder, result = run
    again = evaluate(folder / "model.pth", {"output_dir": str(tmp_path / "again")})
    assert again["backbone"]["test"] == result["backbone"]["test"]
    assert again["rerank"][0]["test"] == result["rerank"][0]["test"]
    assert sorted(file.name for file in (tmp_path / "again").iterdir()) == ["config.yaml", "evaluate.log", "result.json"]


def test_evaluate_takes_another_reranker_list_length_and_metric(run, tmp_path):
    folder, _ = run
    changes = {"reranker": "none", "topk": [3], "metrics": ["MRR", "SKL"], "output_dir": str(tmp_path / "again")}
    again = evaluate(folder / "model.pth", changes)
    assert set(again["backbone"]["test"]) == {"mrr@3", "skl@3"}
    assert again["rerank"][0]["test"] == again["backbone"]["test"]


def test_a_checkpoint_keeps_the_lambda_that_was_found_for_it(run, tmp_path):
    content = load_checkpoint(run[0] / "model.pth")
    content["config"]["target_skl"] = 0.2
    save_lambda(tmp_path / "model.pth", content, 0.45)
    kept = load_checkpoint(tmp_path / "model.pth")
    assert kept["config"] == {**content["config"], "rerank_lambda": 0.45, "target_skl": None}
    assert all(torch.equal(kept["state_dict"][name], value) for name, value in content["state_dict"].items())


@pytest.mark.parametrize("write", [
    lambda path: path.write_text("not a checkpoint"),
    lambda path: path.write_bytes(b""),
    lambda path: torch.save({"state_dict": {}}, path),
    lambda path: torch.save([1, 2], path),
    lambda path: torch.save({"config": pytest.approx(1)}, path),
])  # fmt: skip
def test_other_files_are_not_taken_for_checkpoints(tmp_path, write):
    with pytest.raises(ValueError, match=r"is a folder; name the model\.pth in it"):
        load_checkpoint(tmp_path)
    write(tmp_path / "model.pth")
    with pytest.raises(ValueError, match=r"model.pth is not a checkpoint of this plugin"):
        load_checkpoint(tmp_path / "model.pth")


def test_a_checkpoint_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere.pth does not exist"):
        load_checkpoint(tmp_path / "nowhere.pth")


def test_a_run_that_no_longer_fits_its_dataset_is_refused_and_nothing_written(run, toy, tmp_path):
    folder, _ = run
    shutil.rmtree(toy / "toy")
    write_dataset(toy, [("u", item, t) for t, item in enumerate("abcdefghijklmn")], dict.fromkeys("abcdefghijklmn", "Drama"))
    with pytest.raises(
        ValueError, match=r"trained on another state of dataset 'toy': users 30 then, 1 now; items 40 then, 14 now"
    ):
        evaluate(folder / "model.pth", {"output_dir": str(tmp_path / "again")})
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    ("suffix", "change", "what"),
    [
        ("inter", lambda text: reversed_times(text), "sequences"),
        ("item", lambda text: swapped_genres(text), "items' categories"),
        ("both", lambda text: text.replace("\ti39\t", "\tj39\t").replace("\ni39\t", "\nj39\t"), "item ids"),
    ],
)  # fmt: skip
def test_data_of_the_same_size_with_other_content_is_refused(run, toy, suffix, change, what):
    folder, _ = run
    for name in ("inter", "item") if suffix == "both" else (suffix,):
        file = toy / "toy" / f"toy.{name}"
        file.write_text(change(file.read_text()))
    with pytest.raises(ValueError, match=f"another state of dataset 'toy': .*{what}"):
        evaluate(folder / "model.pth")


def reversed_times(text):
    header, *rows = text.splitlines()
    cells = [row.split("\t") for row in rows]
    return "\n".join([header, *(f"{user}\t{item}\t{2_000_000_000 - int(time)}" for user, item, time in cells)]) + "\n"


def swapped_genres(text):
    header, *rows = text.splitlines()
    items, genres = zip(*(row.split("\t") for row in rows), strict=True)
    return "\n".join([header, *("\t".join(pair) for pair in zip(items, genres[1:] + genres[:1], strict=True))]) + "\n"


def test_a_run_is_measured_with_its_settings_and_at_its_best_epoch(toy, tmp_path):
    settings = {**SMALL, "data_path": str(toy), "alpha": 0.6, "beta": 0.1, "rerank_lambda": 0.8, "rerank_candidates": 20,
                "learning_rate": 0.5, "epochs": 6, "stopping_step": 10, "output_dir": str(tmp_path / "run")}  # fmt: skip
    result = run_leaprec("SASRecCD", "toy", config_dict=settings)
    assert result["best_epoch"] < 5  # such steps do not improve for long
    again = evaluate(tmp_path / "run" / "model.pth", {"output_dir": str(tmp_path / "again")})
    assert again["backbone"]["test"] == result["backbone"]["test"]
    assert again["rerank"][0]["test"] == result["rerank"][0]["test"]
    assert (result["rerank"][0]["lambda"], result["rerank"][0]["candidates"]) == (0.8, 20)
    for number, change in enumerate(({"alpha": 0.9}, {"beta": 0.01}, {"rerank_lambda": 0.3}, {"rerank_candidates": None})):
        other = evaluate(tmp_path / "run" / "model.pth", {**change, "output_dir": str(tmp_path / str(number))})
        assert other["rerank"][0]["test"] != result["rerank"][0]["test"], change


def test_evaluate_cannot_change_the_model(run):
    folder, _ = run
    with pytest.raises(ValueError, match="'hidden_size' of a trained run cannot be changed"):
        evaluate(folder / "model.pth", {"hidden_size": 16})
    with pytest.raises(
        ValueError, match=r"'rerank_lamda' of a trained run cannot be changed here; did you mean 'rerank_lambda'\?"
    ):
        evaluate(folder / "model.pth", {"rerank_lamda": 0.5})


def test_a_flipped_byte_and_missing_parts_of_a_checkpoint_are_seen(run, tmp_path):
    """Issue 21, 4 and 6: a flipped byte in a parameter loaded, and a file without a part ended in a traceback."""
    folder, _ = run
    content = torch.load(folder / "model.pth", weights_only=True)
    weights = content["state_dict"]["item_embedding.weight"].numpy().tobytes()
    whole = bytearray((folder / "model.pth").read_bytes())
    whole[whole.index(weights[:64]) + 10] ^= 1
    (tmp_path / "flipped.pth").write_bytes(whole)
    with pytest.raises(ValueError, match=r"flipped\.pth is not a checkpoint of this plugin .* \(the checksum differs\)"):
        load_checkpoint(tmp_path / "flipped.pth")
    for part in ("config", "dataset", "state_dict", "serving"):
        for spoiled in ({key: value for key, value in content.items() if key != part}, {**content, part: [1]}):
            torch.save(spoiled, tmp_path / "spoiled.pth")
            with pytest.raises(ValueError, match=rf"spoiled\.pth is not a whole checkpoint: its '{part}' is missing"):
                load_checkpoint(tmp_path / "spoiled.pth")


@pytest.mark.parametrize("content", ["/etc/passwd", b"some notes\n"])
@pytest.mark.parametrize("command", ["evaluate", "recommend", "users", "tradeoff"])
def test_a_file_of_texts_as_checkpoint_is_refused_in_one_line_and_nothing_is_left(
    tmp_path, monkeypatch, capsys, command, content
):
    """Issue 21, 6: /etc/passwd and a text file ended in a traceback."""
    monkeypatch.chdir(tmp_path)
    path = content
    if isinstance(content, bytes):
        path = "notes.txt"
        (tmp_path / path).write_bytes(content)
    before = sorted(tmp_path.iterdir())
    assert (
        main([command, f"--checkpoint={path}", *(["--out=lists.csv"] if command == "recommend" else ["--output_dir=out"])])
        == 2
    )
    told = capsys.readouterr().err
    assert told.startswith(f"leaprec: error: {path} is not a checkpoint of this plugin")
    assert told.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


FULL = """
import resource, signal, sys
from recbole_leaprec.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
sys.exit(main(sys.argv[1:]))
"""


def test_a_disk_that_is_full_is_told_in_one_line_and_leaves_no_half_of_a_checkpoint(toy, tmp_path):
    """Issue 21, 6: torch's `unexpected pos` was a traceback. A limit on the size of files stands for the disk."""
    words = [
        f"--{key}={value}"
        for key, value in {**SMALL, "dataset": "toy", "data_path": toy, "output_dir": tmp_path / "run"}.items()
    ]
    done = subprocess.run([sys.executable, "-c", FULL, *words], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "model.pth could not be written" in done.stderr.splitlines()[-1]
    assert not [path for path in (tmp_path / "run").iterdir() if path.suffix in (".pth", ".part")]


def test_an_evaluation_has_a_default_folder_that_says_what_it_is(run, tmp_path, monkeypatch):
    """Issue 21, from the newcomer's list: it looked like a run's."""
    folder, _ = run
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", f"--checkpoint={folder / 'model.pth'}"]) == 0
    (made,) = (tmp_path / "output").iterdir()
    assert made.name.startswith("evaluation-SASRecCD-toy-")
