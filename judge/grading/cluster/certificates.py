"""Makes the certificates of a cluster, signed by an authority that is used only once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from judge.errors import UsageError
from judge.files.writing import naming_what_is_written, write_whole
from judge.grading.cluster.config import CA_FILE, CERTIFICATE_FILE, KEY_FILE

_SECRET, _PUBLIC = 0o600, 0o644


def make_certificates(folder: Path, days: int) -> None:
    """Writes the certificates that all roles of a cluster share.

    The authority's key is not kept, so nobody can sign another certificate with it.

    Args:
        folder: the folder for the certificates; it is made if it is missing.
        days: how long they are valid.

    Raises:
        UsageError: the folder already has certificates, or is not a folder.
        JudgeError: they cannot be written.
    """
    for name in (CA_FILE, CERTIFICATE_FILE, KEY_FILE):
        if (folder / name).exists():
            raise UsageError(
                f"{folder / name}: already exists",
                hint="Name another folder: what runs with the old certificates still needs them.",
            )
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is not a folder", hint="Name a folder for the certificates.")
    with naming_what_is_written(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _certificate("judge cluster authority", authority_key, None, authority_key, days)
    certificate = _certificate("judge cluster", key, authority, authority_key, days)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with naming_what_is_written(folder):
        write_whole(folder / KEY_FILE, secret, mode=_SECRET)
        write_whole(folder / CERTIFICATE_FILE, certificate.public_bytes(Encoding.PEM), mode=_PUBLIC)
        write_whole(folder / CA_FILE, authority.public_bytes(Encoding.PEM), mode=_PUBLIC)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    signing: ec.EllipticCurvePrivateKey,
    days: int,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=issuer is None,
        crl_sign=issuer is None,
        encipher_only=False,
        decipher_only=False,
    )
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(identifier, critical=False)
        .sign(signing, hashes.SHA256())
    )
