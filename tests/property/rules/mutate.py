"""Mutation testing of the engine: change one thing in the source, see whether the tests notice.

    python -m tests.property.rules.mutate --mutants 300 --seed 1

Each mutant is one changed operator, comparison, constant, condition or returned value in one module. It is killed if a
scenario differs, a unit test fails, a random hand breaks an invariant, or it runs out of time. Survivors are listed
with their line, so that each can be judged: equal in meaning, or a test that is missing.
"""

# ruff: noqa: T201 - a program that people run and read

from __future__ import annotations

import argparse
import ast
import importlib
import random
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
MODULES = (
    "services.rules.betting",
    "services.rules.drawing",
    "services.rules.evolving",
    "services.rules.forced",
    "services.rules.hand",
    "services.rules.options",
    "services.rules.pots",
    "services.rules.rulebook",
    "services.rules.showdown",
    "services.rules.starting",
    "services.rules.views",
    "services.deck.dealing",
)
UNIT_TESTS = ("test_worked_examples", "test_corners", "test_dealing", "test_rulebooks", "test_codec_and_views")
HANDS = 150
SECONDS_A_MUTANT = 120

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


Change = Callable[[], None]


def mutations(tree: ast.Module) -> Iterator[tuple[int, str, Change]]:
    """Every mutation of a module: its line, what it changes, and the function that changes it in `tree`."""
    for node in list(ast.walk(tree)):
        if not _is_talk(node):
            for what, change in _changes(node):
                yield getattr(node, "lineno", 0), what, change


def _is_talk(node: ast.AST) -> bool:
    """Docstrings and messages: words for people, which no test should pin down letter by letter."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    def _set(field: str, number: int | None, value: object) -> Change:
        def change() -> None:
            if number is None:
                setattr(node, field, value)
            else:
                getattr(node, field)[number] = value

        return change

    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            for other in _COMPARISONS[type(operator)]:
                yield f"{type(operator).__name__} -> {other.__name__}", _set("ops", number, other())
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        other = _OPERATORS[type(node.op)]
        yield f"{type(node.op).__name__} -> {other.__name__}", _set("op", None, other())
    elif isinstance(node, ast.AugAssign) and type(node.op) in _OPERATORS:
        other = _OPERATORS[type(node.op)]
        yield f"{type(node.op).__name__}= -> {other.__name__}=", _set("op", None, other())
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield f"{type(node.op).__name__} -> {other.__name__}", _set("op", None, other())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not dropped", _set("op", None, ast.UAdd())
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value} -> {not node.value}", _set("value", None, not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield f"{node.value} -> {node.value + 1}", _set("value", None, node.value + 1)
    elif isinstance(node, ast.If | ast.IfExp):
        yield "condition -> False", _set("test", None, ast.Constant(False))
        yield "condition -> True", _set("test", None, ast.Constant(True))


def source_of(module: str) -> Path:
    return ROOT / Path(*module.split(".")).with_suffix(".py")


def run_child(module: str, number: int) -> int:
    """Exit status 0 if the mutant survives, 1 if something notices."""
    path = source_of(module)
    tree = ast.parse(path.read_text())
    *_, change = list(mutations(tree))[number]
    change()
    ast.fix_missing_locations(tree)
    package, name = module.rsplit(".", 1)
    changed = types.ModuleType(module)
    changed.__file__ = str(path)
    changed.__package__ = package
    parent = importlib.import_module(package)
    sys.modules[module] = changed
    setattr(parent, name, changed)
    exec(compile(tree, str(path), "exec"), changed.__dict__)  # noqa: S102 - the mutant is our own source
    return _noticed()


def _noticed() -> int:
    import pytest  # noqa: PLC0415 - after the mutant is in its place

    from services.cli.scenario import run_file  # noqa: PLC0415
    from tests.property.rules.fuzz import play  # noqa: PLC0415

    for path in sorted((ROOT / "tests" / "scenario" / "files").rglob("*.json")):
        if run_file(path):
            return 1
    tests = [str(ROOT / "tests" / "unit" / "rules" / f"{name}.py") for name in UNIT_TESTS]
    if pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]):
        return 1
    for seed in range(HANDS):
        play(seed, [], thorough=seed % 3 == 0)
    return 0


def is_killed(module: str, number: int) -> bool:
    command = [sys.executable, "-m", "tests.property.rules.mutate", "--child", module, "--number", str(number)]
    try:
        result = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=SECONDS_A_MUTANT)
    except subprocess.TimeoutExpired:
        return True
    return result.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=300, help="how many to try, drawn at random; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child")
    parser.add_argument("--number", type=int)
    arguments = parser.parse_args()
    if arguments.child:
        return run_child(arguments.child, arguments.number)
    every = [
        (module, number, line, what)
        for module in MODULES
        for number, (line, what, _) in enumerate(mutations(ast.parse(source_of(module).read_text())))
    ]
    chosen = random.Random(arguments.seed).sample(every, min(arguments.mutants or len(every), len(every)))
    print(f"seed {arguments.seed}: {len(chosen)} of {len(every)} mutants", flush=True)
    survivors = 0
    for module, number, line, what in chosen:
        if not is_killed(module, number):
            survivors += 1
            print(f"survives: {module}:{line}: {what}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} killed ({100 * (len(chosen) - survivors) / len(chosen):.1f} %)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
