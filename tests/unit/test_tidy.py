"""The source itself keeps the house's manners: what no linter checks, read from the text and the syntax tree."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Words that say nothing about what a module is for.
NAMES_REFUSED = {"utils", "util", "helper", "helpers", "manager", "managers", "common", "misc", "data"}

# About 400 lines is a smell; past this a file needs a reason.
FILE_LINES_MAX = 450
LONGER_FOR_A_REASON: dict[str, str] = {}

MACHINE_PATHS = re.compile(r"/(?:home|root|Users|work)/[\w.-]+")
PUT_OFF = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")

# A blind `except` may raise, or count by one of these calls or by one whose name says that it does.
COUNTING_CALL = re.compile(r"^(?:inc|set_exception)$|unexpected|fail|broken|abort|count")


@cache
def sources() -> dict[str, ast.Module]:
    """Every hand-written module of the services and the SDK, by its path."""
    names = tracked("services/*.py", "clients/*.py")
    return {name: ast.parse((ROOT / name).read_text()) for name in names if not name.startswith("services/gen/")}


@cache
def tracked(*patterns: str) -> tuple[str, ...]:
    """Files that git knows or would take, so that a tree that is not committed yet is tested too."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(line for line in output.splitlines() if (ROOT / line).is_file())


def calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and last name of everything called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.lineno, node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_every_module_says_what_it_is_for():
    assert [name for name, tree in sources().items() if not ast.get_docstring(tree)] == []


def test_no_module_has_an_empty_name():
    assert [name for name in sources() if NAMES_REFUSED & set(Path(name).with_suffix("").parts)] == []


def test_a_file_has_one_subject():
    lengths = {name: len((ROOT / name).read_text().splitlines()) for name in sources()}
    long = {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX}
    assert {name: lines for name, lines in long.items() if name not in LONGER_FOR_A_REASON} == {}
    assert set(LONGER_FOR_A_REASON) <= set(long), "a reason that is no longer needed"


def test_what_is_caught_blindly_is_raised_or_counted():
    swallowed = []
    for name, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and _is_blind(node.type):
                is_raised = any(isinstance(each, ast.Raise) for each in ast.walk(node))
                is_counted = any(COUNTING_CALL.search(called) for _, called in calls(node))
                if not is_raised and not is_counted:
                    swallowed.append(f"{name}:{node.lineno}")
    assert swallowed == []


def test_services_log_and_do_not_print():
    services = {name: tree for name, tree in sources().items() if not name.startswith("services/cli/")}
    assert [f"{name}:{line}" for name, tree in services.items() for line, call in calls(tree) if call == "print"] == []


def test_nothing_reads_the_environment_at_import():
    reading = []
    for name, tree in sources().items():
        for statement in tree.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and re.search(
                "environ|getenv", ast.unparse(statement)
            ):
                reading.append(f"{name}:{statement.lineno}")
    assert reading == []


def test_no_text_names_a_machine_or_puts_work_off():
    found = []
    for name in tracked():
        path = ROOT / name
        if path == Path(__file__) or path.suffix in {".lock", ".png", ".jpg", ".pdf"}:
            continue
        text = path.read_text(errors="replace")
        found += [f"{name}: {match}" for match in MACHINE_PATHS.findall(text)]
        if path.suffix in {".py", ".proto", ".yaml", ".yml", ".toml"}:
            found += [f"{name}: {match}" for match in PUT_OFF.findall(text)]
    assert found == []


def _is_blind(caught: ast.expr | None) -> bool:
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(each is None or getattr(each, "id", "") in {"Exception", "BaseException"} for each in names)
