"""Makes reference pages from the code that checks user input: commands with their options, keys with their values."""

from __future__ import annotations

import configparser
import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from recbole_leaprec.cli.command import Command
from recbole_leaprec.cli.options import Count, File, Flag, Folder, Lambdas, Names, Number, OneOf, Option, Text, Whole
from recbole_leaprec.commands import command_names, take_command
from recbole_leaprec.reranking.registry import RERANKERS, Reranker
from recbole_leaprec.settings.keys import (
    EVALUATION_KEYS,
    MEASUREMENT_KEYS,
    PLUGIN_KEYS,
    PROPERTIES,
    RECBOLE_KEYS,
    RECOMMENDATION_KEYS,
    RERANK_KEYS,
    RESUME_KEYS,
    SERVICE_KEYS,
    Key,
    default_settings,
    known_keys,
)  # fmt: skip
from recbole_leaprec.settings.recbole_keys import recbole_folder
from recbole_leaprec.study.spec import KEYS as STUDY_KEYS

ROOT = Path(__file__).resolve().parents[1]

MADE = "<!-- Made from the code by docs/reference_pages.py. -->\n"

TAKES = {
    Text: "a text",
    File: "a file",
    Folder: "a folder",
    Names: "names, with commas between them",
    Lambdas: "start:stop:step, or numbers with commas",
    Count: "a whole number, 1 or more",
    Whole: "a whole number, 0 or more",
    Flag: "True or False",
}
"""The values that each kind of option takes, in words; for `Number` and `OneOf` see `takes`."""

CHANGED_BY = {
    "evaluate": EVALUATION_KEYS,
    "tradeoff": MEASUREMENT_KEYS,
    "users": MEASUREMENT_KEYS,
    "report": MEASUREMENT_KEYS,
    "recommend": RECOMMENDATION_KEYS,
    "serve": SERVICE_KEYS,
    "rerank": RERANK_KEYS,
    "train --resume": RESUME_KEYS,
}
"""The keys that a command takes with a trained model, or without a model."""


def reference_pages() -> dict[str, str]:
    """The text of every page by its file name."""
    commands = {name: take_command(name.split()) for name in command_names()}
    pages = {f"command-{slug(name)}.md": command_page(name, command) for name, command in commands.items()}
    pages["commands.md"] = commands_page(commands)
    pages["keys.md"] = keys_page()
    pages["recbole-keys.md"] = recbole_keys_page()
    pages["rerankers.md"] = rerankers_page(RERANKERS.values())
    pages["study-keys.md"] = study_keys_page()
    pages["dependencies.md"] = dependencies_page()
    return pages


def slug(name: str) -> str:
    return name.replace(" ", "-")


def commands_page(commands: Mapping[str, Command]) -> str:
    rows = [
        f"| [`leaprec {name}`](command-{slug(name)}.md) | {_cell(_sentences(command)[0])} |"
        for name, command in commands.items()
    ]
    listing = "\n".join(f"command-{slug(name)}" for name in commands)
    return f"""{MADE}
# Commands

`leaprec` alone is `leaprec train`. From a checkout that is not installed, write `python run_leaprec.py` instead of `leaprec`; they
are the same. `leaprec --version` shows the version, and `leaprec <command> --help` shows what these pages show.

| command | what it does |
|---|---|
{chr(10).join(rows)}

Options and [keys](keys.md) are written `--name=value`. An option belongs to one command; a key is a setting of RecBole or of this plugin. An
unknown name stops the command, and the error names the nearest known one. A wrong value stops it, too. Then nothing is written, and the exit
code is 2.
After Ctrl-C the exit code is 130.

```{{toctree}}
:hidden:

{listing}
```
"""


def command_page(name: str, command: Command) -> str:
    """The page of a command: its help, with links."""
    said, examples = _sentences(command)
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    options = [one for one in command.params if isinstance(one, Option)]
    words = [f"{one.name}".upper() + (" ..." if one.nargs == -1 else "") for one in arguments]
    needed = [f"--{one.name}={one.type.name.upper()}" for one in options if one.needed]
    usage = " ".join(["leaprec", name, *words, *needed, *(["[--option=value ...]"] if len(options) > len(needed) else [])])
    usage += " [--key=value ...]" if command.keys is None or command.keys else ""
    parts = [MADE, f"# leaprec {name}", said, f"```text\n{usage}\n```"]
    if examples:
        parts.append("```bash\n" + "\n".join(examples) + "\n```")
    if options:
        rows = [_option_row(one) for one in options]
        parts += ["## Options", "| option | takes | default | what it is |\n|---|---|---|---|\n" + "\n".join(rows)]
    parts += ["## Keys", _about_keys(name, command)]
    return "\n\n".join(parts) + "\n"


def _sentences(command: Command) -> tuple[str, list[str]]:
    """`(help of a command without its examples, the examples)`."""
    lines = inspect.cleandoc(command.help or "").splitlines()
    examples = [line.strip() for line in lines if line.strip().startswith("leaprec ")]
    return " ".join(line.strip() for line in lines if line.strip() and line.strip() not in examples), examples


def _option_row(option: Option) -> str:
    if option.needed:
        default = "needed"
    elif option.shown is not None:
        default = option.shown
    else:
        default = f"`{_told(option.default)}`"
    return f"| `--{option.name}` | {_cell(takes(option.type))} | {_cell(default)} | {_cell(option.help or '')} |"


def takes(kind: click.ParamType) -> str:
    """The values that an option of this kind takes, in words."""
    if isinstance(kind, OneOf):
        return "one of " + ", ".join(f"`{name}`" for name in kind._names)
    if isinstance(kind, Number):
        return "a number, 0 or more" if kind._above is None else f"a number above {kind._above:g}"
    return next(TAKES[one] for one in type(kind).__mro__ if one in TAKES)


def _told(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(_told(one) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _about_keys(name: str, command: Command) -> str:
    allowed = CHANGED_BY.get(name)
    linked = ", ".join(_key_link(key) for key in sorted(allowed or command.keys or ()))
    if command.keys is None and name == "train":
        return f"Every [key](keys.md) works. With `--resume`, these alone: {', '.join(_key_link(key) for key in sorted(RESUME_KEYS))}."
    if command.keys is None and name == "tradeoff":
        return f"Without a checkpoint, every [key](keys.md) works. With one, these alone: {linked}."
    if command.keys is None and allowed is None:
        return "Every [key](keys.md) works."
    return f"These keys may be given: {linked}." if linked else "It takes no key."


def _key_link(key: str) -> str:
    """A link to the heading of a checked key, or to the table of other keys. GitHub and Sphinx make the same anchors."""
    checked = key in PLUGIN_KEYS or key in RECBOLE_KEYS
    return f"[`{key}`]({f'keys.md#{key.lower()}' if checked else 'recbole-keys.md'})"


def keys_page() -> str:
    own = "\n\n".join(_key_section(name, key) for name, key in PLUGIN_KEYS.items())
    checked = "\n\n".join(_key_section(name, key) for name, key in RECBOLE_KEYS.items())
    return f"""{MADE}
# Keys

A key is a setting of a run. Write it as `--key=value` on the command line, or as `key: value` in a yaml file that
`--config_files=mine.yaml` names. The same key may be in several places. The later place wins: RecBole's own yaml
files; the plugin's (`properties/`); `<dataset>.yaml` beside the data; the recipe; `--config_files`; the command line.

An unknown key stops the run, and the error names the nearest known key. A value that its key does not take stops the run, too.

## Keys of the plugin

{own}

## Keys of RecBole that are checked

RecBole finds wrong values of these keys late or not at all, so the plugin checks them at the start. All others are in the
[list of RecBole's keys](recbole-keys.md).

{checked}
"""


def _key_section(name: str, key: Key) -> str:
    users = [f"`{command}`" for command, keys in CHANGED_BY.items() if name in keys]
    where = (
        f"\n- Commands that take it without training: {', '.join(users)}"
        if users
        else "\n- It belongs to the trained model: no command can change it later"
    )
    where = "" if name == "output_dir" else where
    return (
        f"### `{name}`\n\n{key.meaning[0].upper()}{key.meaning[1:]}.\n\n"
        f"- Takes: {key.allowed}\n- Default: {default_of(name)}{where}"
    )


def default_of(name: str) -> str:
    """The default of a key as text: the plugin's, with those of its models and datasets; if there is none, RecBole's."""
    if name == "loss_type":
        return _default_loss()
    overall = default_settings()
    told = []
    if overall.get(name) is not None:
        told.append(f"`{_yaml(overall[name])}`")
    for kind in ("model", "dataset"):
        own = {path.stem: (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get(name) for path in _yamls(kind)}
        told += [
            f"`{_yaml(value)}` for {which}"
            for which, value in own.items()
            if value is not None and value != overall.get(name)
        ]
    if not told and recbole_defaults().get(name) is not None:
        told.append(f"`{_yaml(recbole_defaults()[name])}`")
    return "; ".join(told) if told else "none"


def _default_loss() -> str:
    """The default of `loss_type`, in words: models in the plugin's yaml files have its losses, all others RecBole's."""
    losses = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))["loss_type"] for path in _yamls("model")}
    twins = [name.removesuffix("CD") for name, loss in losses.items() if name.endswith("CD") and loss == "BPR"]
    others = "".join(f"; `{loss}` for {name}" for name, loss in losses.items() if loss != "BPR")
    return f"`BPR` for models whose name ends in `CD`, and for {', '.join(twins)}{others}; RecBole's own for all others"


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").strip()


def _yamls(kind: str) -> list[Path]:
    return sorted((PROPERTIES / kind).glob("*.yaml"))


def recbole_defaults() -> dict[str, Any]:
    """The settings in RecBole's yaml files for all models, for datasets and for sequential models."""
    settings: dict[str, Any] = {}
    folder = recbole_folder() / "properties"
    for path in (
        folder / "overall.yaml",
        folder / "dataset" / "sample.yaml",
        folder / "quick_start_config" / "sequential.yaml",
    ):
        settings.update(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    return settings


def recbole_keys_page() -> str:
    defaults = {**recbole_defaults(), **default_settings()}
    of_models: dict[str, list[str]] = {}
    for path in sorted((recbole_folder() / "properties" / "model").glob("*.yaml")):
        for key in yaml.safe_load(path.read_text(encoding="utf-8")) or {}:
            of_models.setdefault(key, []).append(path.stem)
    rest = sorted(known_keys() - PLUGIN_KEYS.keys() - RECBOLE_KEYS.keys(), key=str.lower)
    rows = [f"| `{key}` | {_default_cell(defaults.get(key))} | {_few(of_models.get(key, []))} |" for key in rest]
    return f"""{MADE}
# RecBole's other keys

These are passed on to RecBole as they are. [RecBole's documentation](https://recbole.io/docs/user_guide/config_settings.html) says what they
mean. A key without a default here has none, or has one that depends on the model or the dataset.

| key | default | models that read it |
|---|---|---|
{chr(10).join(rows)}
"""


def _default_cell(value: Any) -> str:
    return "" if value is None else f"`{_cell(_yaml(value))}`"


def _few(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def rerankers_page(rerankers: Iterable[Reranker]) -> str:
    rows = [
        f"| `{one.name}` | {one.preference or 'none'} | {'all items' if one.candidates is None else f'the {one.candidates:,} most relevant'} | {_cell(one.complexity)} |"
        for one in rerankers
    ]
    return f"""{MADE}
# Rerankers

What [`reranker`](keys.md#reranker) may be. [The nine rerankers](../../guides/rerankers.md) says what each does.

| name | preference that it calibrates to | chooses from | complexity |
|---|---|---|---|
{chr(10).join(rows)}

n: users; m: items; a: candidates per user; k: items per list; c: categories; P: profiles; s: swaps.
"""


def study_keys_page() -> str:
    rows = [f"| `{name}` | {_cell(meaning)} |" for name, meaning in STUDY_KEYS.items()]
    return f"""{MADE}
# The file of a study

What the file for [`leaprec study`](command-study.md) may hold. `properties/study/ml-100k.yaml` is an example.

| key | what it is |
|---|---|
{chr(10).join(rows)}
"""


CONDA_NAMES = {
    "torch": ["pytorch"],
    "matplotlib": ["matplotlib-base"],
    "ray[data,tune]": ["ray-data", "ray-tune"],
    "ray[serve]": ["ray-serve"],
    "uvicorn[standard]": ["uvicorn-standard"],
}
"""Packages that have another name in conda-forge."""


def dependencies_page() -> str:
    """The requirements of `setup.cfg`, as a table and as part of a conda recipe."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    python = settings["options"]["python_requires"]
    needed = _requirements(settings["options"]["install_requires"])
    served = _requirements(settings["options.extras_require"]["serve"])
    rows = [f"| `{name}` | {_cell(bounds)} | {_conda(name)} | |" for name, bounds in needed]
    rows += [f"| `{name}` | {_cell(bounds)} | {_conda(name)} | with the extra `serve` |" for name, bounds in served]
    lines = [
        f"    - {conda} {bounds.replace(' ', '')}" for name, bounds in needed for conda in CONDA_NAMES.get(name, [name])
    ]
    return f"""| package | versions | name in conda-forge | |
|---|---|---|---|
| Python | {_cell(python)} | `python` | |
{chr(10).join(rows)}

```yaml
requirements:
  host:
    - python {python}
    - pip
    - setuptools >=77
  run:
    - python {python}
{chr(10).join(lines)}
```
"""


def _requirements(text: str) -> list[tuple[str, str]]:
    """`(name, bounds)` of each line in a list of requirements."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    return [(name.strip(), sign + bounds) for name, sign, bounds in (line.partition(">=") for line in lines)]


def _conda(name: str) -> str:
    return ", ".join(f"`{one}`" for one in CONDA_NAMES.get(name, [name]))


def _cell(text: str) -> str:
    """A text with the characters escaped that a Markdown table cannot hold."""
    return text.replace("|", "\\|").replace("<", "&lt;")
