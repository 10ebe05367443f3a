"""The table of attacks in the documents is that of the corpus."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.attack_corpus import load_attacks

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "security.md"


def test_every_attack_is_in_the_table_and_no_other() -> None:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    start = lines.index("| attack | what must hold | Docker | bubblewrap |") + 2
    table = lines[start : lines.index("", start)]
    assert table == [
        f"| {attack.name} | {attack.attacked} | {attack.verdict} | {attack.verdict} |"
        for attack in load_attacks()
    ]
