"""The configuration of chat models and settings, and which server a key belongs to.

Reads ``models.yaml`` and ``settings.yaml`` in ``inference/`` into dataclasses; checks each field.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from judge.errors import InferenceError, UsageError
from judge.files.paths import shipped_folder
from judge.files.yaml_documents import read_yaml
from judge.inference.choices import (
    CODE_WITH_ANSWER_CHOICES,
    CONTENT_FORMS,
    DEFAULT_FEEDBACK,
    PICTURE_FORMS,
    PICTURE_TYPES,
)

DEFAULT_BASE_URL = "https://api.openai.com/v1"
"""The endpoint of a model, if neither an alias nor an option names another one."""

_PLAIN = re.compile(r"[!-\[\]-~]+")  # printable ASCII without blanks and backslashes
_DEFAULT_PORTS = {"http": 80, "https": 443}

KEY_MASK = b"[key]"
"""The text that replaces a key; valid inside a JSON string, and not valid as an id."""

_MIN_SECRET_CHARS = 12
"""Shortest key that is masked; shorter ones are for local servers (``none``, ``EMPTY``)."""


def check_address(url: str) -> str:
    """Returns the address unchanged, if all URL parsers find the same server in it.

    Args:
        url: an endpoint, from an option, a models file or a run.

    Raises:
        UsageError: it is not an ``http`` or ``https`` address with a host, or holds characters
            (backslashes, blanks, anything but ASCII) that URL parsers read differently.
    """
    try:
        parts = urlsplit(url)
        whole = parts.scheme in _DEFAULT_PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not match, a port that is not a number
        whole = False
    if not whole or _PLAIN.fullmatch(url) is None:
        raise UsageError(
            f"{url[:200]!r} is not the address of a chat server",
            hint="Write it as http://HOST:PORT/v1 or https://HOST/v1, in ASCII.",
        )
    return url


def public_url(url: str) -> str:
    """Removes user name, password, query and fragment from an address."""
    parts = urlsplit(url)
    host = parts.netloc.rsplit("@", 1)[-1]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def origin_of(url: str) -> str:
    """Returns scheme, host and port of an address: the server that a key belongs to.

    Args:
        url: an address that :func:`check_address` accepts.
    """
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    return f"{parts.scheme}://{(parts.hostname or '').rstrip('.')}:{port}"


def secrets_of(url: str) -> tuple[str, ...]:
    """Returns the secrets in an address: the password, and user name and password together."""
    user_info, separator, _ = urlsplit(url).netloc.rpartition("@")
    if not separator:
        return ()
    user, _, password = (unquote(part) for part in user_info.partition(":"))
    return (password, f"{user}:{password}")


def split_credentials(url: str) -> tuple[str, str | None]:
    """Returns an address without user name and password, and a header that contains them."""
    parts = urlsplit(url)
    user_info, separator, host = parts.netloc.rpartition("@")
    if not separator:
        return url, None
    user, _, password = user_info.partition(":")
    plain = f"{unquote(user)}:{unquote(password)}".encode()
    return (
        urlunsplit(parts._replace(netloc=host)),
        f"Basic {base64.b64encode(plain).decode('ascii')}",
    )


class KeyMask:
    """Removes keys from a server's answers, before they are parsed, shown or kept.

    A key is recognized unchanged, with JSON escapes, percent-encoded, in hexadecimal digits, and
    inside base64, whatever is encoded before and after it. A key that a server has reversed, cut up
    or encrypted is not recognized.

    Args:
        secrets: keys and passwords; those that are too short to be secret are ignored.
    """

    def __init__(self, *secrets: str | None) -> None:
        forms = {form for secret in secrets if secret for form in _forms_of(secret)}
        self._plain = tuple(form.encode() for form in forms)
        spelled = sorted(map(_spelled, forms), key=len, reverse=True)
        self._pattern = re.compile("|".join(spelled).encode()) if forms else None

    def masked(self, body: bytes) -> bytes:
        """Returns the body with each key replaced by :data:`KEY_MASK`."""
        if self._pattern is None:
            return body
        if b"\\" not in body and not any(form in body for form in self._plain):
            return body
        return self._pattern.sub(KEY_MASK, body)


def _forms_of(secret: str) -> set[str]:
    """Yields the encoded forms in which a secret is recognized."""
    data = secret.encode()
    if len(secret) < _MIN_SECRET_CHARS:
        return set()
    forms = {secret, quote(secret), quote(secret, safe=""), data.hex(), data.hex().upper()}
    for before in range(3):
        # Base64 characters that also encode bits of neighbouring bytes are left out.
        coded = base64.b64encode(bytes(before) + data).decode()
        whole = coded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        forms |= {whole, whole.translate(str.maketrans("+/", "-_"))}
    return forms


def _spelled(form: str) -> str:
    """Returns a pattern that matches a string, with any of its characters escaped as in JSON."""
    spelled = []
    for character in form:
        digits = f"{ord(character):04x}"
        code = "".join(f"[{x}{x.upper()}]" if x.isalpha() else x for x in digits)
        escaped = r"\\/|" if character == "/" else ""
        spelled.append(rf"(?:{re.escape(character)}|{escaped}\\u{code})")
    return "".join(spelled)


@dataclass(frozen=True, slots=True)
class Price:
    """The price of tokens, in US dollars per million.

    Attributes:
        input: price of prompt tokens.
        output: price of reply tokens.
        source: where the prices come from, with their date.
    """

    input: float
    output: float
    source: str = ""

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Returns the price of these tokens in US dollars."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1_000_000

    def half(self) -> Price:
        """Returns the prices for batches."""
        return Price(self.input / 2, self.output / 2, f"half of {self.source}, in batches")


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A chat model, and the server that offers it.

    Attributes:
        name: the name that the user gave it, for records and names of folders.
        model: the server's name for it; None to take the only one that the server has.
        base_url: the endpoint.
        key_env: environment variable that holds the key; None if it needs no key.
        context_length: maximum number of tokens of prompt and reply together; None if unknown.
        price: price of tokens; None if unknown.
        params: further request parameters.
    """

    name: str
    model: str | None
    base_url: str = DEFAULT_BASE_URL
    key_env: str | None = None
    context_length: int | None = None
    price: Price | None = None
    params: Mapping[str, Any] = field(default_factory=_nothing)

    @property
    def public_url(self) -> str:
        """The endpoint without user name, password, query and fragment."""
        return public_url(self.base_url)


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting of a mode.

    Attributes:
        name: ``single``, ``text``, or ``multi/`` and the kind of feedback.
        prompt: name of the template.
        rounds: how many times the model may answer.
        rows: rows of each sheet that the prompt shows, below the first; 0 to show no sheets.
        content: the form in which sheets are shown.
        temperature: sampling temperature.
        top_p: probability mass for nucleus sampling.
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
    """The setting of a mode for tasks that ask for a typed answer.

    Attributes:
        printed_chars: how many characters of a program's output, and of its traceback, are shown.
        end_words: words that announce the answer, and so end the conversation; case is ignored.
        beside_code: how a program in a reply that announces the answer is treated: ``end`` (it is
            not run) or ``run`` (the answer is taken only from a reply without a program).
        pictures: one of :data:`judge.inference.choices.PICTURE_FORMS`, for the pictures of the
            question.
        max_pictures: maximum number of pictures in a message; further ones are only named.
        picture_side: longest side in pixels; larger pictures are shrunk. None for no limit.
        picture_bytes: largest picture in bytes; larger ones are shrunk. None for no limit.
        picture_types: some of :data:`judge.inference.choices.PICTURE_TYPES`; pictures of other
            types are converted to PNG.
        plots: how many pictures made by a program are shown after a round; 0 for none.
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
    """Returns the folder of prompts, models and settings, which people edit without touching code.

    It is ``inference/`` in a checkout, and ``judge/data/inference`` in an installed package.

    Raises:
        InferenceError: neither folder exists, so the installation is incomplete.
    """
    if (folder := shipped_folder("inference", "models.yaml")) is not None:
        return folder
    raise InferenceError(
        "the judge's own prompts and models (inference/) are missing from this installation",
        hint="Install the judge again, from the wheel: pip install --force-reinstall WHEEL.",
    )


def load_models(path: Path | None = None) -> dict[str, ModelSpec]:
    """Reads the models of a models.yaml; a model appears under each of its aliases.

    Raises:
        InferenceError: the file is broken; the message names the entry and the field.
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
    """Returns the model with an alias; if there is no such alias, a model with that raw name.

    Args:
        name: an alias, or the server's own name for a model.
        models: the configured models, by alias.
        base_url: the endpoint that the user names; overrides that of the alias.
        key_env: the key's environment variable that the user names; overrides that of the alias.

    Raises:
        UsageError: ``base_url`` is not an address.
    """
    if base_url is not None:
        check_address(base_url)
    spec = models.get(name)
    if spec is None:
        return ModelSpec(
            name=name,
            model=name,
            base_url=base_url or DEFAULT_BASE_URL,
            key_env=key_env or (None if base_url else "OPENAI_API_KEY"),
        )
    # The alias's key is not sent to another server.
    is_own = base_url is None or origin_of(base_url) == origin_of(spec.base_url)
    own_key = spec.key_env if is_own else None
    return ModelSpec(
        name=name,
        model=spec.model,
        base_url=base_url or spec.base_url,
        key_env=key_env or own_key,
        context_length=spec.context_length,
        price=spec.price,
        params=spec.params,
    )


def check_key(spec: ModelSpec, models: Iterable[ModelSpec]) -> None:
    """Checks that a key is sent only to the server that it belongs to.

    Args:
        spec: the model to ask.
        models: the configured models; a variable that holds the key of one of them belongs to its
            server.

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
            hint="Keep the other server's key in a different variable; or, to send this key "
            "there, say both on the command line: --base-url URL --api-key-env NAME.",
        )


def load_setting(mode: str, feedback: str | None, path: Path | None = None) -> Setting:
    """Reads the setting of a mode.

    Args:
        mode: one of :data:`judge.inference.choices.MODES`.
        feedback: one of :data:`judge.inference.choices.Feedback` in the mode ``multi``; None for
            its default.
        path: a settings.yaml to use instead of the judge's own.

    Raises:
        UsageError: feedback is given for a mode that has none.
        InferenceError: the file is broken or lacks the setting.
    """
    if mode != "multi" and feedback is not None:
        raise UsageError(f"--feedback belongs to --mode multi, not to {mode}")
    name = f"multi/{feedback or DEFAULT_FEEDBACK}" if mode == "multi" else mode
    path = path or inference_folder() / "settings.yaml"
    setting = Setting(name=name, **setting_entry(path, name, Setting))
    check_one_of(path, name, "content", setting.content, CONTENT_FORMS)
    return setting


def load_typed_setting(mode: str) -> TypedSetting:
    """Reads the setting of a mode for tasks that ask for a typed answer.

    For these tasks, the mode ``text`` is the same as ``single``.

    Args:
        mode: one of :data:`judge.inference.choices.MODES`.

    Raises:
        InferenceError: the file is broken or lacks the setting.
    """
    name = "typed/multi" if mode == "multi" else "typed/single"
    path = inference_folder() / "settings.yaml"
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
    check_one_of(path, name, "beside_code", setting.beside_code, CODE_WITH_ANSWER_CHOICES)
    return setting


def setting_entry(path: Path, name: str, kind: type[Setting]) -> dict[str, Any]:
    """Reads the fields of a setting, which must be exactly those of its class.

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
    names = {item.name for item in fields(kind)} - {"name"}
    if entry.keys() != names:
        different = ", ".join(sorted(entry.keys() ^ names))
        raise InferenceError(f"{path}, {name}: unknown or missing fields: {different}")
    return dict(entry)


def check_one_of(path: Path, name: str, field: str, value: object, choices: Sequence[str]) -> None:
    """Checks that a field of a setting has one of the allowed values.

    Raises:
        InferenceError: it has another value.
    """
    if value not in choices:
        raise InferenceError(f"{path}, {name}: {field} is {value!r}; known: {', '.join(choices)}")


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


def _price(path: Path, name: str, value: Any) -> Price | None:
    if value is None:
        return None
    try:
        source = f"{value['source']} ({value['date']})"
        price = Price(float(value["input"]), float(value["output"]), source)
    except (KeyError, TypeError, ValueError, OverflowError):
        price = None
    # With a negative or missing price, a budget would have no effect.
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
