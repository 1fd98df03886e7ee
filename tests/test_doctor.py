"""What `leaprec doctor` says of a machine, and that it works where other commands do not."""

import configparser
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import recbole_leaprec
from recbole_leaprec import doctor
from recbole_leaprec.cli import main


def lines(text: str) -> dict[str, str]:
    return {line[:17].strip(): line[18:] for line in text.split("\n\n")[0].splitlines()}


def test_it_shows_versions_threads_devices_and_folders(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    found = lines(shown)
    assert found["recbole-leaprec"] == recbole_leaprec.__version__
    assert found["ray"] == __import__("ray").__version__
    assert found["torch threads"].startswith(f"{__import__('torch').get_num_threads()} (")
    assert found["this folder"].startswith(str(tmp_path))
    assert shown.rstrip().endswith("every command works here")
    assert list(tmp_path.iterdir()) == []


def test_every_package_that_is_asked_for_is_looked_at():
    pytest.importorskip("packaging")
    assert doctor._bounds().keys() - {"packaging"} == set(doctor.PACKAGES)


def test_every_package_that_setup_cfg_asks_for_is_looked_at():
    """Without the metadata of an installation, which may be of another day."""
    settings = configparser.ConfigParser()
    settings.read(Path(__file__).parents[1] / "setup.cfg")
    wanted = [line for line in settings["options"]["install_requires"].splitlines() if line and not line.startswith("#")]
    assert {re.split(r"[\[ ]", line)[0] for line in wanted} - {"packaging"} == set(doctor.PACKAGES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "also"), [("quick_start", ()), ("analysis.describe", ["matplotlib"]), ("tune", ["plotly"])]
)
def test_packages_that_are_said_to_be_needed_by_every_command_are_those_that_are_loaded(module, also):
    names = {own: name for name, (own, _) in doctor.PACKAGES.items()}
    program = f"import sys, click, recbole_leaprec.{module}\nprint(*({{*{list(names)}}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120)
    every = {name for name, (_, needed_by) in doctor.PACKAGES.items() if needed_by == "every command"}
    assert {names[own] for own in done.stdout.split()} == every | {*also}


def without(folder, module: str, error: str):
    """A command line whose Python fails to import the module."""
    (folder / f"{module}.py").write_text(f"raise {error}")
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    program = "import sys; from recbole_leaprec.cli import main; sys.exit(main(['doctor']))"
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "error", "told"),
    [
        ("ray", "ModuleNotFoundError('No module named ray')", "because of ray: tune, and train, recommend and rerank with --engine=ray: pip install ray"),
        ("torch", "ImportError('libtorch.so: no such file')", "because of torch: every command: pip install --force-reinstall torch"),
        ("scipy", "AttributeError('numpy has no _core')", "AttributeError: numpy has no _core"),
    ],
)  # fmt: skip
def test_a_package_that_is_missing_or_broken_is_named_with_what_needs_it(tmp_path, module, error, told):
    done = without(tmp_path, module, error)
    assert done.returncode == 1, done.stderr
    assert told in done.stdout
    assert "every command works here" not in done.stdout


def test_a_package_that_is_too_old_is_named_with_the_version_that_is_asked_for():
    finding = doctor._package("pandas", ">=99")
    assert finding.found.endswith("which is not >=99")
    assert finding.problem == "every command: pip install 'pandas>=99'"


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    finding = doctor._folder("cache", tmp_path / "file" / "cache", "set XDG_CACHE_HOME")
    assert finding.found == f"{tmp_path / 'file' / 'cache'}, which cannot be written to"
    assert finding.problem == "set XDG_CACHE_HOME"


def test_it_takes_no_keys(capsys):
    assert main(["doctor", "--dataset=ml-1m"]) == 2
    assert "unknown option or key 'dataset'" in capsys.readouterr().err


@pytest.mark.slow
def test_importing_the_package_and_its_tensor_functions_loads_neither_recbole_nor_ray():
    program = (
        "import sys, recbole_leaprec; assert 'torch' not in sys.modules\n"
        "from recbole_leaprec import ItemCategories, miscalibration, rerank, sequential_preference\n"
        "loaded = {'recbole', 'ray', 'pandas', 'matplotlib', 'plotly', 'numba'} & {*sys.modules}\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
