"""What the README shows can be run."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import recbole_leaprec
from recbole_leaprec.reranking import Reranking
from recbole_leaprec.trainer import LeapRecTrainer

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_python_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, {})


def test_every_key_of_the_plugin_is_in_the_table():
    from recbole_leaprec.keys import PLUGIN_KEYS

    assert [key for key in PLUGIN_KEYS if not re.search(rf"^\|.*`{key}`", README, flags=re.MULTILINE)] == []


def files_called(work: Callable[[], object]) -> list[str]:
    """The files of the package whose functions some work calls, each when it is first called."""
    package, found, constructors = Path(recbole_leaprec.__file__).parent, {}, []

    def see(frame, event, argument):
        if frame.f_code.co_name == "__init__" and event in ("call", "return"):  # what is made is no work on a batch yet
            constructors.append(frame) if event == "call" else constructors.pop()
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(package) and not constructors:
            found[path.relative_to(package).as_posix()] = True

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return list(found)


@pytest.mark.parametrize("batch", ["A training batch", "An evaluation batch"])
def test_a_batch_takes_the_way_through_the_code(batch, prepare, tmp_path):
    config, dataset, (train, _, test) = prepare(output_dir=str(tmp_path / "run"), checkpoint_dir=str(tmp_path / "run"))
    trainer = LeapRecTrainer(config, config.model_class(config, dataset), dataset)
    called = files_called(
        (lambda: trainer._train_epoch(train, 0))
        if batch == "A training batch"
        else (lambda: trainer.evaluate_rerankings(test, [Reranking("leaprec", 0.3)]))
    )
    way = re.search(rf"^{batch}.*?:\n\n((?:    .*\n)+)", README, flags=re.MULTILINE)[1]
    first_of_lines = re.findall(r"^    (?:-> )?(\S+\.py)", way, flags=re.MULTILINE)
    assert len(first_of_lines) == 5
    assert [name for name in called if name in first_of_lines] == first_of_lines
    assert set(re.findall(r"`(\S+\.py)`", way)) <= {*called}
