"""What the README shows can be run."""

import re
from pathlib import Path

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
