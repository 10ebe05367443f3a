"""The check of the code base's size."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import REPOSITORY

MODULES = {
    "judge/__init__.py": "",
    "judge/lower/__init__.py": "",
    "judge/lower/one.py": "ONE = 1\n",
    "judge/lower/two.py": "from judge.lower.one import ONE\n",
    "judge/upper/__init__.py": "",
    "judge/upper/three.py": (
        "from judge.lower import two\n\n\ndef three():\n    from judge.lower.two import ONE\n\n"
        "    import json\n    return two, ONE, json\n"
    ),
}
FIGURES = {
    "modules": 6,
    "lines": 10,
    "largest-module": 8,
    "longest-function": 5,
    "long-functions": 0,
    "packages": 2,
    "largest-folder": 3,
    "single-importers-elsewhere": 1,
    "lazy-imports": 1,
}


@pytest.fixture(scope="module")
def count_house() -> ModuleType:
    loader = SourceFileLoader("count_house", str(REPOSITORY / "scripts" / "count-house"))
    spec = importlib.util.spec_from_loader("count_house", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def house(tmp_path: Path) -> Path:
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def write_ceilings(house: Path, ceilings: dict[str, int]) -> None:
    lines = [f"{name} = {ceiling}" for name, ceiling in ceilings.items()]
    (house / "pyproject.toml").write_text("\n".join(["[tool.count-house]", *lines]))


def test_figures_at_their_ceilings_pass(count_house: ModuleType, house: Path) -> None:
    write_ceilings(house, FIGURES)
    assert count_house.check(house) == 0


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_above_its_ceiling_fails(
    count_house: ModuleType, house: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    write_ceilings(house, {**FIGURES, name: FIGURES[name] - 1})
    assert count_house.check(house) == 1
    assert f"({name})" in capsys.readouterr().out


def test_a_ceiling_of_no_figure_is_refused(count_house: ModuleType, house: Path) -> None:
    write_ceilings(house, {"modles": 1})
    with pytest.raises(SystemExit, match="no such figure: modles"):
        count_house.check(house)


def test_the_repository_has_ceilings(count_house: ModuleType) -> None:
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    named = [name for name in count_house.FIGURES if f"\n{name} = " in text]
    assert set(count_house.FIGURES) - set(named) == {"median-module"}
