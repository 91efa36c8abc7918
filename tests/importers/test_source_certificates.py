"""The certificate of a source: verified, unless the operator decides otherwise."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.core.management import CommandError

from tests.importers.commands import execute, import_conductor
from tests.importers.recorded_source import recorded_source

pytestmark = pytest.mark.django_db


@pytest.fixture
def certificate(tmp_path):
    """Return the path of a certificate for 127.0.0.1 that signs itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "old-server")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False)
    signed = builder.add_extension(x509.BasicConstraints(True, None), True).sign(key, hashes.SHA256())
    encoding = serialization.Encoding.PEM
    key_format = serialization.PrivateFormat.PKCS8
    path = tmp_path / "old-server.pem"
    path.write_bytes(
        signed.public_bytes(encoding) + key.private_bytes(encoding, key_format, serialization.NoEncryption())
    )
    return path


@pytest.fixture
def address(certificate, monkeypatch):
    """Return the address of a source with this certificate."""
    # A session of requests would prefer these authorities to its own.
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", requests.certs.where())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with recorded_source() as source:
        source.web.socket = context.wrap_socket(source.web.socket, server_side=True)
        yield source.address.replace("http://", "https://")


def test_an_unknown_certificate_is_an_error_that_names_the_option(address):
    with pytest.raises(CommandError, match=r"certificate of .* was refused: .*--ca-file"):
        import_conductor(address, "--dry-run")


def test_a_certificate_of_an_own_authority_is_verified(address, certificate, monkeypatch):
    monkeypatch.setenv("IMPORT_TOKEN", "token-1")

    done = execute("import_conductor", "--from", address, "--dry-run", f"--ca-file={certificate}")

    assert "Plan: 12 to create" in done.output
    assert done.errors == ""


def test_insecure_verifies_nothing_and_says_so(address):
    done = execute("import_conductor", "--from", address, "--dry-run", "--insecure")

    assert "Plan: 12 to create" in done.output
    assert "The certificate of the source is not verified" in done.errors


def test_a_file_that_cannot_be_read_is_an_error(address, tmp_path):
    with pytest.raises(CommandError, match=r"--ca-file: .* cannot be read"):
        import_conductor(address, "--dry-run", f"--ca-file={tmp_path / 'missing'}")
