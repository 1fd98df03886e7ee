"""The space that a search draws from: a yaml file, or a file in RecBole's `hyper.test` form."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recbole_leaprec.common.did_you_mean import unknown_name
from recbole_leaprec.common.reading import parse_yaml, read_text

if TYPE_CHECKING:
    from ray.tune.search.sample import Domain

KINDS = {
    "choice": "one of a list",
    "uniform": "a number between two",
    "loguniform": "a number between two, uniform in its logarithm",
    "randint": "a whole number from the first up to, not including, the second",
    "quniform": "a number between two, rounded to a multiple of the third",
}
FIXED = {"model", "dataset", "output_dir", "data_path", "epochs", "config_files"}
"""Keys that must be the same for the whole search."""


@dataclass(frozen=True)
class Distribution:
    """The distribution of one key's values.

    Attributes:
        arguments: the list of a choice; else the two bounds, and for quniform also the step.
    """

    kind: str
    arguments: tuple

    def extremes(self) -> list[Any]:
        """Values to check a configuration with: all values of a choice, else the smallest and the largest."""
        if self.kind == "choice":
            return list(self.arguments)
        low, high = self.arguments[:2]
        return [low, high - 1] if self.kind == "randint" else [low, high]

    def to_ray(self) -> Domain:
        from ray import tune

        if self.kind == "choice":
            return tune.choice(list(self.arguments))
        return getattr(tune, self.kind)(*self.arguments)


def read_space(path: str | Path) -> dict[str, Distribution]:
    """The distributions in a file: yaml, or lines of RecBole's form `<key> <kind> <values>`.

    Raises:
        ValueError: there is no such file, it cannot be read, or a distribution is wrong; then the error names its key.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"space file {path} does not exist (--space)")
    text = read_text(path)
    space = _read_yaml(path, text) if path.suffix in (".yaml", ".yml") else _read_lines(path, text)
    if not space:
        raise ValueError(f"space file {path} is empty: write lines such as `learning_rate: {{loguniform: [0.0005, 0.01]}}`")
    for key in space:
        if key in FIXED:
            raise ValueError(f"{path}: {key} belongs to the whole search, give it on the command line")
    return space


def _read_yaml(path: Path, text: str) -> dict[str, Distribution]:
    try:
        content = parse_yaml(text) or {}
    except ValueError as error:
        raise ValueError(f"space file {path} is not yaml: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"space file {path} must hold lines such as `gamma: {{choice: [0.0, 0.1]}}`")
    space = {}
    for key, value in content.items():
        if not isinstance(value, dict) or len(value) != 1:
            raise ValueError(f"{path}: {key} must be one distribution, such as {{choice: [0.0, 0.1]}}, got {value!r}")
        if not isinstance(key, str):
            raise ValueError(f"{path} has the key {key!r}, which is no name")
        [(kind, arguments)] = value.items()
        space[key] = _distribution(path, key, str(kind), arguments)
    return space


def _read_lines(path: Path, text: str) -> dict[str, Distribution]:
    """Read RecBole's form. In it, loguniform has the natural logarithms of the bounds."""
    space = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts = line.split(None, 2)
        if len(parts) != 3:
            raise ValueError(f"{path}, line {number}: expected `<key> <kind> <values>`, got {line!r}")
        key, kind, values = parts
        try:
            arguments = ast.literal_eval(values if kind == "choice" else f"[{values}]")
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:  # as documented
            raise ValueError(f"{path}, line {number}: cannot read the values {values!r}") from error
        if kind == "loguniform" and _numbers(arguments, 2):
            arguments = [math.exp(bound) for bound in arguments]
        space[key] = _distribution(path, key, kind, arguments)
    return space


def _distribution(path: Path, key: str, kind: str, arguments: Any) -> Distribution:
    if kind not in KINDS:
        raise ValueError(f"{path}: {key}: {unknown_name('distribution', kind, KINDS)}")
    where = f"{path}: {key}: {kind} is {KINDS[kind]}"
    if not isinstance(arguments, (list, tuple)):
        raise ValueError(f"{where}, and takes a list, got {arguments!r}")
    if kind == "choice":
        if not arguments:
            raise ValueError(f"{where}, got an empty one")
        return Distribution(kind, tuple(arguments))
    if not _numbers(arguments, 3 if kind == "quniform" else 2) or arguments[0] >= arguments[1]:
        raise ValueError(
            f"{where}: [low, high{', step' if kind == 'quniform' else ''}] with low below high, got {arguments!r}"
        )
    if kind == "loguniform" and arguments[0] <= 0:
        raise ValueError(f"{where}: low must be above 0, got {arguments!r}")
    if kind == "quniform" and not _multiples(*arguments):
        raise ValueError(f"{where}, which must be above 0, and low and high multiples of it, got {arguments!r}")
    if kind == "randint" and not all(isinstance(value, int) for value in arguments):
        raise ValueError(f"{where}: both must be whole, got {arguments!r}")
    return Distribution(kind, tuple(arguments))


def _multiples(low: float, high: float, step: float) -> bool:
    """Whether both bounds are multiples of the step, as Ray Tune needs it."""
    return step > 0 and all(math.isclose(bound / step, round(bound / step), abs_tol=1e-9) for bound in (low, high))


def _numbers(values: Any, count: int) -> bool:
    good = all(isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) for value in values)
    return len(values) == count and good
