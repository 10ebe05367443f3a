"""The table of attacks in the documents matches the corpus."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.attack_corpus import load_attacks

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "security.md"


DESKTOP = Path(__file__).resolve().parents[2] / "submissions" / "desktop"


def _table(heading: str) -> list[str]:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    start = lines.index(heading) + 2
    return lines[start : lines.index("", start)]


def test_every_attack_is_in_the_table_and_no_other() -> None:
    assert _table("| attack | what must hold | Docker | bubblewrap |") == [
        f"| {attack.name} | {attack.attacked} | {attack.verdict} | {attack.verdict} |"
        for attack in load_attacks()
    ]


def test_every_attack_on_a_desktop_is_in_its_table_and_no_other() -> None:
    heads = {path.stem: path.read_text().splitlines()[0] for path in sorted(DESKTOP.glob("*.py"))}
    assert len(heads) >= 10
    assert _table("| attack on a desktop | what must hold |") == [
        f"| {name} | {head.removeprefix('# property: ')} |" for name, head in heads.items()
    ]
