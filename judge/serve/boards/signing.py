"""Signed documents: DSSE envelopes with Ed25519, and the keys of a server.

An envelope is one line of canonical JSON, so each document has exactly one valid file: a change of
any byte is detected. Source: https://github.com/secure-systems-lab/dsse, protocol.md 1.0.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from judge.errors import StoreError, UsageError
from judge.files.documents import read_json
from judge.files.writing import naming_what_is_written, take_lock, write_whole

PAYLOAD_TYPE = "application/vnd.sheetjudge.result+json"
KEYS_FILE = "signing.json"


class PublicKey(TypedDict):
    """A key as listed by ``/.well-known/judge-keys.json``; times are UTC in ISO form, or null."""

    kid: str
    kty: str
    crv: str
    x: str
    valid_from: str
    valid_until: str | None
    revoked_from: str | None


class _Key(PublicKey):
    d: str


class NotSignedError(Exception):
    """No valid key signed the envelope; the message says why."""


def canonical(document: object) -> bytes:
    """The canonical form of a document: UTF-8, sorted keys, no white space."""
    text = json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def sha256_of(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def signed_bytes(body: bytes) -> bytes:
    """The bytes that are signed: DSSE's pre-authentication encoding of type and body."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(body), body)


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature of a body: the key's id, and 64 bytes in base64."""

    key_id: str
    text: str


class SigningKeys:
    """The keys of a server: the current key, and the keys that it replaced.

    Args:
        folder: the folder that contains them; a key is made when it is first needed.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / KEYS_FILE

    def sign(self, body: bytes, now: str) -> Signature:
        """Signs a body with the current key.

        Args:
            body: the canonical document.
            now: time in ISO form; if a key has to be made, it is valid from this time on.
        """
        key = self._current(now)
        private = Ed25519PrivateKey.from_private_bytes(_unbase64(key["d"]))
        return Signature(key["kid"], _base64(private.sign(signed_bytes(body))))

    def public(self, now: str) -> list[PublicKey]:
        """All keys, the current one last, without their secrets."""
        self._current(now)
        return [_public(key) for key in self._read()]

    def rotate(self, now: str) -> str:
        """Makes a new key, and ends the validity of the previous one; returns the new key's id."""
        with self._locked():
            keys = self._read()
            if keys and keys[-1]["valid_until"] is None:
                keys[-1]["valid_until"] = now
            keys.append(_new_key(now))
            self._write(keys)
        return keys[-1]["kid"]

    def revoke(self, key_id: str, since: str) -> None:
        """Revokes a key from a time on; the current key is then replaced by a new one.

        Raises:
            UsageError: there is no such key.
        """
        with self._locked():
            keys = self._read()
            mine = [key for key in keys if key["kid"] == key_id]
            if not mine:
                raise UsageError(
                    f"there is no signing key {key_id!r}", hint="judge serve admin keys list"
                )
            mine[0]["revoked_from"] = since
            mine[0]["valid_until"] = mine[0]["valid_until"] or since
            self._write(keys)

    def _current(self, now: str) -> _Key:
        keys = self._read()
        if not keys or keys[-1]["valid_until"] is not None:
            with self._locked():
                keys = self._read()
                if not keys or keys[-1]["valid_until"] is not None:
                    keys.append(_new_key(now))
                    self._write(keys)
        return keys[-1]

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        path = self._path.with_suffix(".lock")
        with naming_what_is_written(path, StoreError), take_lock(path, wait=True):
            yield

    def _read(self) -> list[_Key]:
        if not self._path.exists():
            return []
        document: Any = read_json(self._path, StoreError)
        keys: list[_Key] = document["keys"]
        return keys

    def _write(self, keys: Sequence[_Key]) -> None:
        with naming_what_is_written(self._path, StoreError):
            write_whole(self._path, canonical({"keys": keys}), durable=True)


def envelope_of(
    body: bytes, signature: Signature, openings: Mapping[str, Any] | None = None
) -> bytes:
    """The envelope as a file.

    Args:
        body: the canonical document.
        signature: its signature.
        openings: salts and values for the body's commitments, once they may be shown.
    """
    envelope: dict[str, Any] = {
        "payloadType": PAYLOAD_TYPE,
        "payload": _base64(body),
        "signatures": [{"keyid": signature.key_id, "sig": signature.text}],
    }
    if openings is not None:
        envelope["openings"] = openings
    return canonical(envelope) + b"\n"


def opened(
    data: bytes, keys: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any] | None, str]:
    """Checks an envelope, byte for byte.

    Args:
        data: the file.
        keys: as ``judge-keys.json`` lists them.

    Returns:
        The signed document, the openings next to it, and the id of the key.

    Raises:
        NotSignedError: it is not an envelope in canonical form, or no key signed it.
    """
    envelope = _envelope(data)
    body, signature = _unbase64(envelope["payload"]), envelope["signatures"][0]
    key = next((key for key in keys if key.get("kid") == signature["keyid"]), None)
    if key is None:
        raise NotSignedError(f"the key {signature['keyid'][:80]!r} is not among the keys")
    try:
        public = Ed25519PublicKey.from_public_bytes(_unbase64(str(key.get("x"))))
        public.verify(_unbase64(signature["sig"]), signed_bytes(body))
    except (InvalidSignature, ValueError) as error:
        raise NotSignedError("the signature does not belong to the content") from error
    document = json.loads(body)
    if canonical(document) != body:
        raise NotSignedError("the content is not in canonical form")
    _check_validity(key, document)
    return document, envelope.get("openings"), str(key["kid"])


def _envelope(data: bytes) -> dict[str, Any]:
    broken = NotSignedError("this is not a signed result in canonical form")
    try:
        envelope = json.loads(data)
        if canonical(envelope) + b"\n" != data:
            raise broken
        (signature,) = envelope["signatures"]
        texts = [envelope["payload"], signature["sig"]]
        if envelope["payloadType"] != PAYLOAD_TYPE or not isinstance(signature["keyid"], str):
            raise broken
        if [_base64(_unbase64(text)) for text in texts] != texts:
            raise broken
        if set(envelope) - {"payloadType", "payload", "signatures", "openings"}:
            raise broken
        json.loads(_unbase64(texts[0]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise broken from error
    checked: dict[str, Any] = envelope
    return checked


def _check_validity(key: Mapping[str, Any], document: Mapping[str, Any]) -> None:
    signed = str(document.get("signed", ""))
    if key.get("revoked_from") and signed >= key["revoked_from"]:
        raise NotSignedError(f"the key was revoked from {key['revoked_from']} on")
    if signed < str(key.get("valid_from")):
        raise NotSignedError("it was signed before its key became valid")
    if key.get("valid_until") and signed > key["valid_until"]:
        raise NotSignedError("it was signed after its key had ceased to be valid")


def _new_key(now: str) -> _Key:
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    return {
        "kid": sha256_of(public)[:16],
        "kty": "OKP",
        "crv": "Ed25519",
        "x": _base64(public),
        "d": _base64(private.private_bytes_raw()),
        "valid_from": now,
        "valid_until": None,
        "revoked_from": None,
    }


def _public(key: _Key) -> PublicKey:
    return {
        "kid": key["kid"],
        "kty": key["kty"],
        "crv": key["crv"],
        "x": key["x"],
        "valid_from": key["valid_from"],
        "valid_until": key["valid_until"],
        "revoked_from": key["revoked_from"],
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
