"""From the options of ``judge infer`` to a plan; what a run remembers fills in what is not said."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from judge.cli.infer_resume import REMEMBERED
from judge.cli.options import split_ids
from judge.core.limits import Limits
from judge.errors import UsageError
from judge.inference.address import public_url
from judge.inference.config import (
    ModelSpec,
    Price,
    check_key,
    find_model,
    load_models,
    load_setting,
)
from judge.inference.content import ContentLimits
from judge.inference.plan import Assignment, InferencePlan, SuiteReference
from judge.inference.prompt import load_feedback, load_template, load_user_template
from judge.suites import Suite, load_suite


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and where its results go.

    Attributes:
        plan: what is asked; ``model_name`` may still have to be asked of the server.
        out: the results directory.
        suite: the suite, golds included: for grading alone, never for the plan.
    """

    plan: InferencePlan
    out: Path
    suite: Suite


def make_plan(options: Mapping[str, Any], limits: Limits, *, key_said: bool = False) -> Planned:
    """Builds the plan.

    Args:
        options: the values of the command's options.
        limits: bounds of programs between rounds.
        key_said: the user said endpoint and key name together.

    Raises:
        UsageError: options are missing, contradict each other or cannot be read.
        SuiteError: the suite is missing or broken.
    """
    if not options.get("model"):
        raise UsageError("which chat model? Give --model", hint="`judge infer --help`")
    source = str(options.get("dataset") or "sample")
    suite = load_suite(source)
    ids = split_ids(tuple(options.get("ids") or ()))
    # Every golden workbook stays behind here: the plan gets questions only.
    chosen = suite.select(ids or None, options.get("limit")).tasks
    assignments = tuple(
        Assignment(task.question, task.id if task.raw_id is None else task.raw_id)
        for task in chosen
        if task.excluded is None or ids
    )
    if not assignments:
        raise UsageError("no task is left to ask about", hint="Check --ids and --limit.")
    setting = load_setting(str(options["mode"]), options.get("feedback"))
    changes = ("rounds", "rows", "content", "temperature", "top_p")
    setting = replace(
        setting, **{name: options[name] for name in changes if options.get(name) is not None}
    )
    _check_combinations(options, setting.executes)
    model = find_spec(options, key_said=key_said)
    resolved = str(Path(source).resolve()) if Path(source).exists() else source
    prompt = options.get("prompt")
    plan = InferencePlan(
        suite=SuiteReference(suite.name, resolved, suite.digest, suite.format),
        assignments=assignments,
        model=model,
        model_name=model.model or "",
        setting=setting,
        template=load_user_template(Path(prompt)) if prompt else load_template(setting.prompt),
        feedback=load_feedback(),
        content=ContentLimits(rows=setting.rows, notes=bool(options.get("notes", True))),
        params=_params(options),
        samples=int(options.get("samples") or 1),
        session=bool(options.get("session")),
        explicit_stop=options.get("stop") == "explicit",
        limits=limits,
        options=_plain({name: options.get(name) for name in REMEMBERED} | {"dataset": resolved}),
    )
    out = options.get("out") or default_out(model.name, str(options["mode"]))
    return Planned(plan, Path(out), suite)


def default_out(model: str, mode: str) -> Path:
    """The results directory where none is named: ``results/<model>-<mode>-<time>``.

    One that is there already is somebody else's, whatever the clock says.
    """
    name = re.sub(r"[^\w.-]+", "_", model)[:100]
    now = datetime.now().astimezone()
    first = Path("results") / f"{name}-{mode}-{now:%Y%m%d-%H%M%S}"
    others = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    return next(each for each in itertools.chain([first], others) if not each.exists())


def find_spec(options: Mapping[str, Any], *, key_said: bool) -> ModelSpec:
    """The chat model that the options name, where it is, and the variable that holds its key.

    Args:
        options: the values of the command's options.
        key_said: the user said endpoint and key name together, which is a word on both.

    Raises:
        UsageError: the key belongs to another endpoint.
        InferenceError: a models file is broken.
    """
    configured = load_models()
    more = load_models(Path(options["models"])) if options.get("models") else {}
    model = find_model(
        str(options["model"]),
        configured | more,
        base_url=options.get("base_url"),
        key_env=options.get("api_key_env"),
    )
    if not key_said:
        # What the judge's own file says of a key counts before what another says of it.
        named = {each.key_env for each in configured.values()}
        owners = configured if model.key_env in named else more
        check_key(model, owners.values())
    if options.get("price"):
        model = replace(model, price=_price(str(options["price"])))
    return model


def _price(text: str) -> Price:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*", text)
    if match is None or len(text) > 100:
        raise UsageError(
            f"--price {text[:100]}: write US dollars per million tokens as IN/OUT, such as 2.5/10"
        )
    return Price(float(match[1]), float(match[2]), "--price")


def _params(options: Mapping[str, Any]) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for pair in options.get("param") or ():
        name, separator, text = str(pair).partition("=")
        if not separator or not name.strip():
            raise UsageError(f"--param {pair}: write NAME=VALUE")
        try:
            params[name.strip()] = json.loads(text)
        except ValueError:
            params[name.strip()] = text
    if "extra_headers" in params:
        raise UsageError(
            "--param extra_headers: headers may hold keys, and parameters are written to run.json",
            hint="Name the variable that holds the key with --api-key-env.",
        )
    for name in ("max_tokens", "seed"):
        if options.get(name) is not None:
            params[name] = options[name]
    return params


def _check_combinations(options: Mapping[str, Any], executes: bool) -> None:
    if not executes:
        for name in ("session", "stop"):
            if options.get(name) not in {None, False, "output"}:
                raise UsageError(f"--{name} belongs to --mode multi")
        if (options.get("rounds") or 1) > 1:
            raise UsageError(f"--rounds belongs to --mode multi, not to {options['mode']}")


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Values that JSON can hold; a user's prompt is remembered by its whole path."""
    plain: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Path):
            plain[name] = str(value.resolve())
        elif isinstance(value, tuple):
            plain[name] = list(value)
        else:
            plain[name] = value
    if plain.get("base_url"):
        plain["base_url"] = public_url(plain["base_url"])
    return plain
