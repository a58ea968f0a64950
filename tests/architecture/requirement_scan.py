"""Reads from the source of the tests which requirements they prove, without running them."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct


class Proof(Struct, frozen=True):
    """One test, and the requirements that it, its class and its module name."""

    test: str
    requirements: frozenset[str]


def read_proofs_under(folder: Path) -> list[Proof]:
    """Read every test under a folder; a contract's cases need not live in a test_*.py."""
    root = folder.parent
    return [
        proof
        for path in sorted(folder.rglob("*.py"))
        for proof in read_proofs(path.read_text("utf-8"), path.relative_to(root).as_posix())
    ]


def read_proofs(source: str, name: str) -> list[Proof]:
    """Read every test of one source file."""
    module = ast.parse(source, filename=name)
    return list(_proofs_in_body(module.body, name, _ids_in_pytestmark(module.body)))


def find_faults(proofs: Iterable[Proof], known: Iterable[str]) -> dict[str, list[str]]:
    """List the faults by kind; empty when every requirement is proved and every id is known."""
    proofs, known = list(proofs), set(known)
    proved = {id for proof in proofs for id in proof.requirements}
    faults = {
        "requirements without a test": sorted(known - proved),
        "tests that name no requirement": [p.test for p in proofs if not p.requirements],
        "tests that name an unknown requirement": [
            f"{p.test}: {id}" for p in proofs for id in sorted(p.requirements - known)
        ],
    }
    return {fault: cases for fault, cases in faults.items() if cases}


def format_faults(faults: dict[str, list[str]]) -> str:
    """Format the faults as lines."""
    return "\n".join(
        line
        for fault, cases in faults.items()
        for line in (f"{fault}:", *(f"  {c}" for c in cases))
    )


def _proofs_in_body(body: list[ast.stmt], owner: str, inherited: frozenset[str]) -> Iterator[Proof]:
    for statement in body:
        match statement:
            case ast.ClassDef():
                id = _ids_in_decorators(statement) | _ids_in_pytestmark(statement.body)
                yield from _proofs_in_body(
                    statement.body, f"{owner}::{statement.name}", inherited | id
                )
            case ast.FunctionDef() | ast.AsyncFunctionDef() if statement.name.startswith("test"):
                id = _ids_in_decorators(statement)
                yield Proof(f"{owner}::{statement.name}", inherited | id)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_machine(name, value):
                yield Proof(f"{owner}::{name}", inherited | _ids_in(value))
            case _:
                pass


def _is_machine(name: str, value: ast.expr) -> bool:
    """Match `TestName = SomeMachine.TestCase`, the test of a hypothesis machine."""
    return name.startswith("Test") and any(
        isinstance(node, ast.Attribute) and node.attr == "TestCase" for node in ast.walk(value)
    )


def _ids_in_decorators(
    definition: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> frozenset[str]:
    return _ids_in(*definition.decorator_list)


def _ids_in_pytestmark(body: list[ast.stmt]) -> frozenset[str]:
    return _ids_in(
        *(
            statement.value
            for statement in body
            if isinstance(statement, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in statement.targets)
        )
    )


def _ids_in(*expressions: ast.expr) -> frozenset[str]:
    return frozenset(
        _requirement_id(argument)
        for expression in expressions
        for node in ast.walk(expression)
        if isinstance(node, ast.Call) and _is_proves(node.func)
        for argument in node.args
    )


def _is_proves(function: ast.expr) -> bool:
    match function:
        case ast.Name(id="proves") | ast.Attribute(attr="proves"):
            return True
        case _:
            return False


def _requirement_id(argument: ast.expr) -> str:
    """Return the id; an expression that is no literal is returned as source, an unknown id."""
    match argument:
        case ast.Constant(value=str(id)):
            return id
        case _:
            return ast.unparse(argument)
