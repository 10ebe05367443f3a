"""Lines that read like Python, distinguished from prose without parsing either. Pure."""

from __future__ import annotations

import re

_MAX_LINE_CHARS = 2_000
_CODE_LINE = re.compile(
    r"""\s*+(?:
        (?:from\s++[\w.]++\s++import\s++[\w(*]
          |import\s++[\w.]++(?:\s++as\s++\w++)?+(?:\s*+,\s*+[\w.]++)*+\s*+(?:\#|\Z))
      | (?:async\s++)?+(?:def|class)\s++\w++.*[:(,]\s*+(?:\#|\Z)
      | (?:if|elif|while|for|with|try|except|else|finally|match|case)\b.*:\s*+(?:\#|\Z)
      | (?:return|raise|yield|assert|del|global|nonlocal)\b(?:\s|\Z)
      | (?:pass|break|continue)\s*+\Z
      | [A-Za-z_][\w.]*+(?:\[[^\]]*+\])*+(?:\s*+,\s*+[A-Za-z_][\w.]*+)*+\s*+
        (?::\s*+[\w\[\], .|]++)?+\s*+
        (?:[-+*/%|&]|//|\*\*)?=(?!=)
      | [A-Za-z_][\w.]*+(?:\[[^\]]*+\])*+\(
      | [)\]}]++[,:.\w()]*+\s*+\Z
      | \# | @\w | \"{3} | '{3}
      | ["'\w.]++\s*+:\s*+[^ ].*,\s*+\Z
    )""",
    re.VERBOSE,
)
_STRONG_LINE = re.compile(
    r"""\s*+(?:
        import\s++\w | from\s++[\w.]++\s++import\s | def\s++\w++\s*+\( | \w[\w.]*+\s*+=\s*+\S
      | (?:for|with|while|if)\s.*:\s*+\Z
      | \w++(?:\.\w++)*+\(.*\)\s*+\Z
    )""",
    re.VERBOSE,
)
_IMPORT_LINE = re.compile(r"\s*+(?:import\s++[\w.]|from\s++[\w.]++\s++import\s)")
_HEADER_LINE = re.compile(
    r"""(?:async[ ]++)?+(?:
        for\s++\w++(?:\s*+,\s*+\w++)*+\s++in\s | with\s.*\sas\s++\w
      | def\s++\w++\s*+\( | class\s++\w++\s*+\Z
      | (?:if|elif|while)\s[^=<>(]*+[=<>(] | (?:try|else|finally)\s*+\Z
    )""",
    re.VERBOSE,
)
_PROSE_LINE = re.compile(r"[A-Z][\w',-]*+(?: [\w'\",;()./-]++){3,}+[.:!]?\Z")


def is_code_line(line: str) -> bool:
    """Whether a line could be part of a program."""
    return _CODE_LINE.match(line[:_MAX_LINE_CHARS]) is not None


def is_strong_line(line: str) -> bool:
    """Whether a line can hardly be anything but Python."""
    return _STRONG_LINE.match(line[:_MAX_LINE_CHARS]) is not None


def is_import_line(line: str) -> bool:
    """Whether a line imports something."""
    return _IMPORT_LINE.match(line[:_MAX_LINE_CHARS]) is not None and is_code_line(line)


def is_prose_line(line: str) -> bool:
    """Whether a line is a sentence."""
    return _PROSE_LINE.match(line[:_MAX_LINE_CHARS]) is not None


def is_header_line(line: str, next_line: str) -> bool:
    """Whether a line begins a block of Python, even if its colon was forgotten."""
    return next_line[:1].isspace() and _HEADER_LINE.match(line[:_MAX_LINE_CHARS]) is not None


def reads_like_code(text: str) -> bool:
    """Whether at least half of the lines could be part of a program, and one certainly is."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return False
    like = sum(1 for line in lines if is_code_line(line))
    return any(is_strong_line(line) for line in lines) and like * 2 >= len(lines)
