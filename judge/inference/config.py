"""What people edit: aliases of models, settings of the modes, prompts. YAML becomes dataclasses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judge.errors import InferenceError, UsageError
from judge.files.paths import shipped_folder
from judge.files.yaml_documents import read_yaml
from judge.inference.address import DEFAULT_BASE_URL, check_address, origin_of, public_url
from judge.inference.choices import (
    BESIDE_CODE,
    CONTENT_FORMS,
    DEFAULT_FEEDBACK,
    PICTURE_FORMS,
    PICTURE_TYPES,
)


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens.

    Attributes:
        input: of prompts.
        output: of replies.
        source: where the figures come from, with their date.
    """

    input: float
    output: float
    source: str = ""

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars for so many tokens."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1_000_000

    def half(self) -> Price:
        """What the same costs in a batch."""
        return Price(self.input / 2, self.output / 2, f"half of {self.source}, in batches")


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A chat model and where it is served.

    Attributes:
        name: what the user called it; goes into records and folder names.
        model: the server's name for it; None to take the only one that the server has.
        base_url: the endpoint.
        key_env: environment variable that holds the key; None if it needs no key.
        context_length: tokens of prompt and reply together, if known.
        price: what tokens cost, if known.
        params: further request parameters.
    """

    name: str
    model: str | None
    base_url: str = DEFAULT_BASE_URL
    key_env: str | None = None
    context_length: int | None = None
    price: Price | None = None
    params: Mapping[str, Any] = field(default_factory=_nothing)


@dataclass(frozen=True, slots=True)
class Setting:
    """What a mode means.

    Attributes:
        name: ``single``, ``text`` or ``multi/`` with the feedback.
        prompt: name of the template.
        rounds: how often the model may answer.
        rows: rows of each sheet in the prompt, below the first; 0 for no content.
        content: form of the content.
        temperature: sampling temperature.
        top_p: nucleus sampling.
        executes: whether programs are run between rounds.
    """

    name: str
    prompt: str
    rounds: int
    rows: int
    content: str
    temperature: float
    top_p: float
    executes: bool


@dataclass(frozen=True, slots=True)
class TypedSetting(Setting):
    """What a mode means for tasks that ask for a typed answer.

    Attributes:
        printed_chars: characters of a program's printout, and of its traceback, that are shown.
        end_words: words that announce the answer, in any case; they end the conversation.
        beside_code: what is done with a program in a reply that announces the answer: ``end`` (it
            is not run) or ``run`` (the answer is taken only from a reply without a program).
        pictures: one of :data:`judge.inference.choices.PICTURE_FORMS`, for the pictures of the
            question.
        max_pictures: how many pictures one message shows; those beyond are named.
        picture_side: longest side in pixels; larger ones are shrunk. None for no bound.
        picture_bytes: most bytes of a picture; larger ones are shrunk. None for no bound.
        picture_types: some of :data:`judge.inference.choices.PICTURE_TYPES`; pictures of other
            types become PNG.
        plots: pictures that a program made which are shown after a round; 0 for none.
    """

    printed_chars: int
    end_words: tuple[str, ...]
    beside_code: str
    pictures: str
    max_pictures: int
    picture_side: int | None
    picture_bytes: int | None
    picture_types: tuple[str, ...]
    plots: int

    @property
    def fits_pictures(self) -> bool:
        """Whether pictures may have to be changed before they are shown."""
        bounded = self.picture_side is not None or self.picture_bytes is not None
        changes = bounded or not set(PICTURE_TYPES) <= set(self.picture_types)
        return self.pictures == "stitched" or (self.pictures == "each" and changes)


def inference_folder() -> Path:
    """The folder that people edit without touching code: ``inference/`` of the checkout.

    In an installed package it is ``judge/data/inference``.

    Raises:
        InferenceError: neither exists, so the installation is incomplete.
    """
    if (folder := shipped_folder("inference", "models.yaml")) is not None:
        return folder
    raise InferenceError(
        "the judge's own prompts and models (inference/) are missing from this installation",
        hint="Install the judge again, from the wheel: pip install --force-reinstall WHEEL.",
    )


def load_models(path: Path | None = None) -> dict[str, ModelSpec]:
    """The aliases of a models.yaml, each under all of its names.

    Raises:
        InferenceError: the file is broken; names the entry and the field.
    """
    path = path or inference_folder() / "models.yaml"
    models: dict[str, ModelSpec] = {}
    for name, entry in _read_yaml(path).items():
        if not isinstance(entry, dict):
            raise InferenceError(f"{path}, {name}: expected fields such as base_url and model")
        spec = _model_spec(path, str(name), entry)
        for alias in [str(name), *map(str, entry.get("also") or ())]:
            if alias in models:
                raise InferenceError(f"{path}: the name {alias} stands for two models")
            models[alias] = spec
    return models


def find_model(
    name: str, models: Mapping[str, ModelSpec], *, base_url: str | None, key_env: str | None
) -> ModelSpec:
    """The model of an alias, or one of that raw name.

    Args:
        name: an alias, or the server's own name for a model.
        models: the aliases.
        base_url: endpoint that the user gave; takes precedence over the alias's own.
        key_env: environment variable that the user gave for the key; likewise.

    Raises:
        UsageError: ``base_url`` is not an address.
    """
    if base_url is not None:
        check_address(base_url)
    known = models.get(name)
    if known is None:
        return ModelSpec(
            name=name,
            model=name,
            base_url=base_url or DEFAULT_BASE_URL,
            key_env=key_env or (None if base_url else "OPENAI_API_KEY"),
        )
    # Somebody else's server wants somebody else's key, if any.
    is_own = base_url is None or origin_of(base_url) == origin_of(known.base_url)
    own_key = known.key_env if is_own else None
    return ModelSpec(
        name=name,
        model=known.model,
        base_url=base_url or known.base_url,
        key_env=key_env or own_key,
        context_length=known.context_length,
        price=known.price,
        params=known.params,
    )


def check_key(spec: ModelSpec, models: Iterable[ModelSpec]) -> None:
    """Checks that a key goes to the server that it belongs to.

    Args:
        spec: the model to be asked.
        models: those that are configured; a variable that one of them names for its key belongs to
            its server.

    Raises:
        UsageError: the variable belongs to other servers.
    """
    owners = {public_url(model.base_url) for model in models if model.key_env == spec.key_env}
    if spec.key_env is None or not owners:
        return
    if origin_of(spec.base_url) not in {origin_of(owner) for owner in owners}:
        raise UsageError(
            f"the key in {spec.key_env} belongs to {', '.join(sorted(owners))}: it is not sent "
            f"to {public_url(spec.base_url)}",
            hint="Keep the key of the other server in a variable of its own; or, to send this one "
            "there, say both on the command line: --base-url URL --api-key-env NAME.",
        )


def load_setting(mode: str, feedback: str | None, path: Path | None = None) -> Setting:
    """The setting of a mode.

    Args:
        mode: one of :data:`judge.inference.choices.MODES`.
        feedback: one of :data:`judge.inference.choices.FEEDBACKS` in the mode ``multi``; None for
            its default.
        path: a settings.yaml other than the judge's own.

    Raises:
        UsageError: feedback where the mode has none.
        InferenceError: the file is broken or lacks the setting.
    """
    if mode != "multi" and feedback is not None:
        raise UsageError(f"--feedback belongs to --mode multi, not to {mode}")
    name = f"multi/{feedback or DEFAULT_FEEDBACK}" if mode == "multi" else mode
    path = path or inference_folder() / "settings.yaml"
    setting = Setting(name=name, **setting_entry(path, name, Setting))
    check_one_of(path, name, "content", setting.content, CONTENT_FORMS)
    return setting


def load_typed_setting(mode: str, path: Path | None = None) -> TypedSetting:
    """The setting of a mode for tasks that ask for a typed answer; ``text`` is ``single`` there.

    Args:
        mode: one of :data:`judge.inference.choices.MODES`.
        path: a settings.yaml other than the judge's own.

    Raises:
        InferenceError: the file is broken or lacks the setting.
    """
    name = "typed/multi" if mode == "multi" else "typed/single"
    path = path or inference_folder() / "settings.yaml"
    entry = setting_entry(path, name, TypedSetting)
    for field_name in ("end_words", "picture_types"):
        words = entry[field_name]
        if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
            raise InferenceError(f"{path}, {name}: {field_name} must be a list of words")
        entry[field_name] = tuple(words)
    setting = TypedSetting(name=name, **entry)
    for picture_type in setting.picture_types:
        check_one_of(path, name, "picture_types", picture_type, PICTURE_TYPES)
    check_one_of(path, name, "content", setting.content, CONTENT_FORMS)
    check_one_of(path, name, "pictures", setting.pictures, PICTURE_FORMS)
    check_one_of(path, name, "beside_code", setting.beside_code, BESIDE_CODE)
    return setting


def setting_entry(path: Path, name: str, kind: type[Setting]) -> dict[str, Any]:
    """The fields of a setting, just those of its class.

    Args:
        path: a settings.yaml.
        name: the setting.
        kind: its class.

    Raises:
        InferenceError: the file is broken or lacks the setting.
    """
    entry = _read_yaml(path).get(name)
    if not isinstance(entry, dict):
        raise InferenceError(f"{path} lacks the setting {name}")
    wanted = {each.name for each in fields(kind)} - {"name"}
    if entry.keys() != wanted:
        different = ", ".join(sorted(entry.keys() ^ wanted))
        raise InferenceError(f"{path}, {name}: unknown or missing fields: {different}")
    return dict(entry)


def check_one_of(path: Path, name: str, field: str, value: object, known: Sequence[str]) -> None:
    """Checks that a field of a setting has one of its values.

    Raises:
        InferenceError: it has another.
    """
    if value not in known:
        raise InferenceError(f"{path}, {name}: {field} is {value!r}; known: {', '.join(known)}")


def _model_spec(path: Path, name: str, entry: dict[str, Any]) -> ModelSpec:
    unknown = sorted(map(str, entry.keys() - _FIELD_TYPES.keys()))
    if unknown:
        raise InferenceError(f"{path}, {name}: unknown fields: {', '.join(unknown)}")
    for field_name, value in entry.items():
        if value is not None and type(value) not in _FIELD_TYPES[field_name]:
            raise InferenceError(
                f"{path}, {name}: {field_name} cannot be {str(value)[:80]!r}: see the notes in the "
                "judge's own models.yaml"
            )
    if entry.get("base_url") is None:
        raise InferenceError(f"{path}, {name}: base_url is missing")
    try:
        base_url = check_address(entry["base_url"])
    except UsageError as error:
        raise InferenceError(
            f"{path}, {name}: base_url: {error.message}", hint=error.hint
        ) from None
    return ModelSpec(
        name=name,
        model=entry.get("model"),
        base_url=base_url,
        key_env=entry.get("key_env"),
        context_length=entry.get("context_length"),
        price=_price(path, name, entry.get("price")),
        params=MappingProxyType(dict(entry.get("params") or {})),
    )


_FIELD_TYPES: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "base_url": (str,),
        "model": (str,),
        "key_env": (str,),
        "context_length": (int,),
        "price": (dict,),
        "params": (dict,),
        "also": (list,),
        "note": (str,),
    }
)


def _price(path: Path, name: str, value: Any) -> Price | None:
    if value is None:
        return None
    try:
        source = f"{value['source']} ({value['date']})"
        price = Price(float(value["input"]), float(value["output"]), source)
    except (KeyError, TypeError, ValueError, OverflowError):
        price = None
    # A price below zero, or none at all, would take the meaning from a budget.
    if price is None or not (0 <= price.input < math.inf and 0 <= price.output < math.inf):
        raise InferenceError(
            f"{path}, {name}: price needs input, output, date and source (found {str(value)[:200]})"
        )
    return price


def _read_yaml(path: Path) -> dict[Any, Any]:
    document = read_yaml(path, InferenceError)
    if not isinstance(document, dict):
        raise InferenceError(f"{path}: expected names with fields below them")
    return document
