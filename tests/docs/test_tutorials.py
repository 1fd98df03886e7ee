"""The tutorials run, and show what they print."""

from __future__ import annotations

import pytest

from tests.docs.pages import DOCS, blocks, written_pages

import tutorial  # isort: skip

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((DOCS / "tutorials").glob("*.md"))}
NEEDS = {"service": "calibrate"}
"""A tutorial that goes on where another one ended."""


@pytest.fixture(scope="module")
def outputs_of(tmp_path_factory):
    """Run a tutorial, once; all of them in one folder, as a reader would."""
    folder, done = tmp_path_factory.mktemp("tutorials"), {}

    def run(name: str) -> list[str]:
        if name in NEEDS:
            run(NEEDS[name])
        if name not in done:
            done[name] = tutorial.run(PAGES[name], folder)
        return done[name]

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.ray] if name in ("search", "two-machines") else []) for name in PAGES]
)
def test_a_tutorial_runs_and_shows_what_it_prints(name, outputs_of):
    assert tutorial.differences(PAGES[name], outputs_of(name)) == []


PAGE = """Save this as `greet.py`:

```python
print("hello", 0.5)
```

```bash
python greet.py
```

```text
hello 0.5
```
"""


def test_a_page_that_shows_something_else_is_told(tmp_path):
    outputs = tutorial.run(PAGE, tmp_path)
    assert outputs == ["hello 0.5"]
    assert tutorial.differences(PAGE, outputs) == []
    wrong = PAGE.replace("hello 0.5\n", "hello 0.7\n")
    assert "the page shows\nhello 0.7\nand it printed\nhello 0.5" in tutorial.differences(wrong, outputs)[0]
    assert tutorial.with_outputs(wrong, outputs) == PAGE


def test_a_step_that_fails_is_told_with_what_it_said(tmp_path):
    with pytest.raises(RuntimeError, match=r"(?s)python other.py.*No such file"):
        tutorial.run(PAGE.replace("python greet.py", "python greet.py\npython other.py"), tmp_path)


def test_what_a_tutorial_leaves_in_the_background_ends_with_it(tmp_path):
    page = "```bash\n(sleep 2; touch late) &\n```\n"
    tutorial.run(page, tmp_path)
    tutorial.run("```bash\nsleep 3\n```\n", tmp_path)
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize(
    ("shown", "printed", "alike"),
    [
        ("HR@10 0.141  S_KL@10 0.27", "HR@10 0.150 S_KL@10 0.25", True),
        ("HR@10 0.141", "HR@10 0.19", False),
        ("12 users", "13 users", False),
        ("HR@10 0.141", "nDCG@10 0.141", False),
        ("HR  seconds\n0.5      0.1", "HR  seconds\n0.5     20.1", True),
    ],
)
def test_words_must_be_the_same_and_figures_near(shown, printed, alike):
    assert tutorial.same(shown, printed) == alike


@pytest.mark.slow
def test_the_python_of_every_other_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = [
        block
        for name, text in written_pages().items()
        if name.startswith("docs/") and "tutorials" not in name
        for block in blocks(text, "python")
    ]
    assert len(found) >= 3
    for block in found:
        exec(block, {})
