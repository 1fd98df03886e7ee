"""The way through the code goes in one direction."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import recbole_leaprec
from recbole_leaprec.commands import command_names

PACKAGE = Path(recbole_leaprec.__file__).parent

# From the ground up: a module may import those of its own layer and of the layers before it.
LAYERS = [
    {"", "common"},
    {"core", "convert"},
    {"reranking"},
    {"settings"},
    {
        "atomic_files",
        "lighter_recbole",
        "lighter_optimizer",
        "compat",
        "data",
        "model",
        "evaluator",
        "config_checks",
        "config",
        "checkpoint",
        "trainer",
        "training_state",
    },
    {"run_folder", "run_log", "run", "quick_start"},
    {"analysis", "cluster", "list_sink"},
    {"page", "parallel", "recommend", "tune"},
    {"study", "serve"},
    {"report", "doctor"},
    {
        "cli.arguments",
        "cli.command",
        "cli.options",
        "cli.result_table",
        "cli.filter_options",
        "cli.list_options",
        "cli.published",
    },
    {"commands"},
    {"cli", "__main__"},
]


def modules() -> dict[str, Path]:
    """Every module by its name below the package; the package itself is the empty one."""
    paths = sorted(PACKAGE.rglob("*.py"))
    parts = {path: path.relative_to(PACKAGE).with_suffix("").parts for path in paths}
    return {".".join(name[:-1] if name[-1] == "__init__" else name): path for path, name in parts.items()}


def for_types_alone(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports(path: Path) -> set[str]:
    """What a file imports, also inside functions, by full name; `from a import b` is a.b."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if for_types_alone(node):
            continue
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{name.name}" for name in node.names}
        waiting.extend(ast.iter_child_nodes(node))
    return found


def own_imports() -> dict[str, set[str]]:
    """Which of our modules each of them imports."""
    names = modules()
    graph = {}
    for name, path in names.items():
        graph[name] = set()
        for imported in imports(path):
            if imported.split(".")[0] == "recbole_leaprec":
                below = imported.split(".")[1:]
                graph[name].add(".".join(below) if ".".join(below) in names else ".".join(below[:-1]))
    return graph


def layer(name: str) -> int:
    """The layer of a module, or of the nearest package above it that has one."""
    parts = name.split(".")
    above = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    found = [number for one in above for number, members in enumerate(LAYERS) if one in members]
    assert found, f"{name} has no layer"
    return found[0]


def test_imports_are_seen():
    graph = own_imports()
    assert {"trainer", "config", "reranking.reranking"} <= graph["run"]
    assert "torch" not in imports(PACKAGE / "common" / "files.py") | imports(PACKAGE / "settings" / "keys.py")
    assert "torch" in imports(PACKAGE / "core" / "categories.py")


def test_no_module_imports_itself_on_a_detour():
    try:
        TopologicalSorter(own_imports()).prepare()
    except CycleError as error:
        pytest.fail(f"an import cycle: {' -> '.join(error.args[1])}")


def test_modules_import_what_lies_below_them():
    upward = [
        f"{name} imports {imported}"
        for name, others in own_imports().items()
        for imported in others
        if imported and layer(imported) > layer(name)
    ]
    assert upward == []


def test_tests_mirror_the_folders_of_the_package():
    of_package = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    of_tests = {path.parent.name for path in Path(__file__).parent.glob("*/test_*.py")}
    beside = {"docs", "fuzz"}  # the site; and what goes through all of the package
    assert of_tests - beside == of_package - {"commands"}  # each is tested where the work is that it calls


@pytest.mark.parametrize("package", ["core", "reranking"])
def test_the_tensor_core_knows_nothing_of_recbole(package):
    for name, path in modules().items():
        if name.split(".")[0] == package:
            roots = {imported.split(".")[0] for imported in imports(path)}
            assert not roots & {"recbole", "ray", "pandas"}, name


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        *([*name.split(), "--help"] for name in command_names()),
        ["--epoch=3"],
        ["--alpha=2"],
        ["evaluate", "--checkpoint=no.pth"],
        ["study", "--spec=no.yaml"],
    ],
)
def test_help_and_a_wrong_key_or_value_are_answered_without_torch_and_recbole(words):
    program = f"""
import sys
from recbole_leaprec.cli import main
main({words!r})
print(sorted({{'torch', 'recbole', 'ray', 'numpy', 'pandas'}} & set(sys.modules)), file=sys.stderr)"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
