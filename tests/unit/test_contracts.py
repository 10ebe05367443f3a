"""What is registered keeps to its contract: every checker and every suite format."""

from __future__ import annotations

import inspect

import pytest

from judge.compare.contract import Checker, CountsCells, NamesAspects
from judge.compare.registry import checker_names, checker_of
from judge.core.task import CheckerSpec
from judge.suites.formats import SuiteFormat, suite_formats


def members(contract: type) -> dict[str, object]:
    """The public members of a contract."""
    return {name: each for name, each in vars(contract).items() if not name.startswith("_")}


def parameters(member: object) -> list[str]:
    assert callable(member)
    return [name for name in inspect.signature(member).parameters if name != "self"]


@pytest.mark.parametrize("name", checker_names())
def test_a_checker_has_all_that_its_contract_names(name: str) -> None:
    checker = checker_of(CheckerSpec(name))
    check_members(Checker, checker)
    if isinstance(checker, NamesAspects):
        check_members(NamesAspects, checker)
    if isinstance(checker, CountsCells):
        check_members(CountsCells, checker)


@pytest.mark.parametrize("suite_format", list(suite_formats()), ids=lambda each: each.names[0])
def test_a_format_has_all_that_its_contract_names(suite_format: SuiteFormat) -> None:
    check_members(SuiteFormat, suite_format)


def check_members(contract: type, made: object) -> None:
    for name, member in members(contract).items():
        assert hasattr(made, name), name
        if inspect.isfunction(member):
            assert parameters(getattr(made, name)) == parameters(member), name
