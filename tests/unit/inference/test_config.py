from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from judge.errors import InferenceError, UsageError
from judge.inference.choices import Feedback
from judge.inference.config import (
    DEFAULT_BASE_URL,
    find_model,
    inference_folder,
    load_models,
    load_setting,
)
from judge.inference.prompt import (
    FIELDS,
    Template,
    load_feedback,
    load_template,
    load_user_template,
)


def test_the_models_of_the_paper_are_there() -> None:
    models = load_models()
    for name in (
        "deepseek-coder", "gpt-4o", "gpt-3.5-turbo", "gpt-3.5", "llama-3-70b", "mixtral-8x7b",
        "deepseek-coder-33b", "codeqwen1.5-7b", "tablellm-13b", "vllm", "llama.cpp", "ollama",
    ):  # fmt: skip
        assert name in models
    for name, model in models.items():
        assert model.base_url.startswith("http"), name
        if model.price is not None:
            assert "20" in model.price.source, name
            assert 0 < model.price.input <= model.price.output, name
    price = models["gpt-4o"].price
    assert price is not None
    assert price.of(1_000_000, 100_000) == pytest.approx(3.5)


def test_an_alias_a_raw_name_and_another_server() -> None:
    models = load_models()
    alias = find_model("deepseek-coder", models, base_url=None, key_env=None)
    assert (alias.base_url, alias.key_env) == ("https://api.deepseek.com", "DEEPSEEK_API_KEY")
    moved = find_model("deepseek-coder", models, base_url="http://here/v1", key_env=None)
    assert (moved.base_url, moved.key_env, moved.model) == ("http://here/v1", None, alias.model)
    raw = find_model("some-model", models, base_url=None, key_env=None)
    assert (raw.base_url, raw.key_env, raw.model) == (
        DEFAULT_BASE_URL, "OPENAI_API_KEY", "some-model",
    )  # fmt: skip
    local = find_model("some-model", models, base_url="http://here/v1", key_env=None)
    assert local.key_env is None
    assert find_model("x", models, base_url="http://here/v1", key_env="K").key_env == "K"


def test_settings_are_those_of_the_paper() -> None:
    for feedback in get_args(Feedback):
        setting = load_setting("multi", feedback)
        assert (setting.rounds, setting.temperature, setting.top_p) == (5, 1.0, 1.0)
        assert setting.rows == (0 if feedback == "react-exec" else 5)
        assert setting.executes
    assert load_setting("multi", None).name == "multi/row-react-exec"
    assert load_setting("single", None).rounds == 1
    with pytest.raises(UsageError, match="--feedback belongs to --mode multi"):
        load_setting("single", "row-exec")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a", "expected names"),
        ("a: 1", "a: expected fields"),
        ("a: {model: x}", "base_url is missing"),
        ("a: {base_url: http://x/v1, modell: y}", "unknown fields: modell"),
        ("a: {base_url: http://x/v1, price: {input: 1}}", "price needs"),
        (
            "a: {base_url: http://x/v1, also: [b]}\nb: {base_url: http://x/v1}",
            "stands for two models",
        ),
        ("a: [", "not YAML"),
    ],
)
def test_broken_models_files(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(text)
    with pytest.raises(InferenceError, match=words):
        load_models(path)


def test_broken_settings_files(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("single: {prompt: single, rounds: 1}")
    with pytest.raises(InferenceError, match="unknown or missing fields: content"):
        load_setting("single", None, path)
    path.write_text("{}")
    with pytest.raises(InferenceError, match="lacks the setting text"):
        load_setting("text", None, path)
    good = (inference_folder() / "settings.yaml").read_text()
    path.write_text(good.replace("content: addresses", "content: pictures"))
    with pytest.raises(InferenceError, match="'pictures'; known: pandas"):
        load_setting("text", None, path)


def test_every_prompt_has_its_fields() -> None:
    for name in ("single", "row_exec", "react_exec", "row_react_exec", "text"):
        template = load_template(name)
        without = {
            "react_exec": {"spreadsheet_content"},
            "text": {"output_path", "spreadsheet_path"},
        }
        for field in set(FIELDS) - without.get(name, set()):
            assert template.wants(field), (name, field)
        assert template.wants("rounds") is (name in {"row_exec", "react_exec", "row_react_exec"})
        assert len(template.digest) == 64


def test_filling_leaves_other_braces_alone() -> None:
    template = Template("t", "{instruction} {'a': 1} {unknown} {output_path}")
    filled = template.fill({"instruction": "use {output_path}", "output_path": "/o"})
    assert filled == "use {output_path} {'a': 1} {unknown} /o"


def test_user_templates(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("Do {instruction} in {max_turn_num} rounds")
    assert load_user_template(path).wants("max_turn_num")
    path.write_text("nothing")
    with pytest.raises(UsageError, match=r"no \{instruction\}"):
        load_user_template(path)
    path.write_bytes(b"\xff{instruction}")
    with pytest.raises(UsageError, match="not UTF-8"):
        load_user_template(path)
    with pytest.raises(UsageError, match="cannot be read"):
        load_user_template(tmp_path / "missing.txt")


def test_feedback_fills_its_fields() -> None:
    feedback = load_feedback()
    said = feedback.say("failed", traceback="KeyError: {left}", output="x", left="2")
    assert "KeyError: {left}" in said
    assert "Rounds left: 2." in said
