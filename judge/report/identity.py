"""What a run is, as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from judge.report.model import ReportData


def identity_lines(data: ReportData) -> list[tuple[str, str]]:
    """Name and text of everything that made the run what it is; what is not known is left out."""
    return [(name, text) for name, text in _lines(data.run) if text]


def _lines(run: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    suite, recalc, sandbox = (_mapping(run.get(name)) for name in ("suite", "recalc", "sandbox"))
    yield "suite", _joined(suite.get("name"), suite.get("format"))
    yield "suite digest", _text(suite.get("digest"))
    yield "chat model", _text(run.get("model"))
    yield "setting", _text(run.get("setting"))
    yield "profile", _joined(run.get("profile"), *_items(run.get("style")))
    yield "options", _joined(*(f"{k} {v}" for k, v in _mapping(run.get("checker")).items()))
    corrected = [each for each in _items(suite.get("corrections")) if isinstance(each, Mapping)]
    yield "corrections", _joined(*(f"{each.get('task')} {each.get('field')}" for each in corrected))
    yield "recalculation", _joined(recalc.get("mode"), *_items(recalc.get("engines")))
    yield "sandbox", _joined(sandbox.get("backend"), sandbox.get("runtime"))
    yield "image", _text(sandbox.get("image"))
    packages = _mapping(sandbox.get("packages"))
    python = sandbox.get("python")
    yield (
        "inside",
        _joined(
            f"Python {python}" if python else None,
            *(f"{name} {version}" for name, version in packages.items()),
        ),
    )
    yield "limits", _joined(*(f"{k} {v}" for k, v in _mapping(run.get("limits")).items()))
    for name, value in _mapping(run.get("inference")).items():
        if isinstance(value, str | int | float):
            yield f"inference, {name.replace('_', ' ')}", str(value)
    yield "judge", _text(run.get("judge_version"))
    yield "begun", _text(run.get("created"))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _joined(*values: object) -> str:
    return ", ".join(dict.fromkeys(str(value) for value in values if value is not None))
