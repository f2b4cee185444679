"""A certificate authority of one test."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class TestAuthority:
    """Issues server certificates that only its own `client_context` believes."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self._certificate = (
            self._builder(self._name, self._key.public_key(), days=30)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self._pem().decode())

    def certificate_file(self) -> Path:
        """For whoever reads `SSL_CERT_FILE`."""
        path = self._folder / "authority.pem"
        path.write_bytes(self._pem())
        return path

    def _pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def server_context(self, name: str, days: int = 30) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            self._builder(subject, key.public_key(), days)
            .add_extension(x509.SubjectAlternativeName([_general_name(name)]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        path = self._folder / f"{name}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)  # noqa: TID251 - TLS libraries read the real time
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=60))
            .not_valid_after(now + timedelta(days=days))
        )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
