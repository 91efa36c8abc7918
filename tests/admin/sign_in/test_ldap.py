"""Sign-in with an LDAP directory: a real server (OpenLDAP) with TLS."""

import datetime
import ipaddress
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.contrib.auth.models import User
from django.test import Client

from conductor_app.access.roles import role_group
from conductor_app.models import AuditEntry
from conductor_app.settings import sign_in as sign_in_settings
from tests.admin.sign_in.test_passwords import is_signed_in, sign_in
from tests.free_port import free_port

SLAPD = shutil.which("slapd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
MODULES = Path("/usr/lib/ldap")
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(SLAPD is None or not MODULES.exists(), reason="requires the Debian package slapd"),
]

CONFIGURATION = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath {modules}
moduleload back_mdb
moduleload memberof
pidfile {folder}/slapd.pid
TLSCACertificateFile {folder}/ca.pem
TLSCertificateFile {folder}/ca.pem
TLSCertificateKeyFile {folder}/key.pem
database mdb
suffix "dc=example,dc=org"
rootdn "cn=root,dc=example,dc=org"
rootpw root-password
directory {folder}/data
overlay memberof
"""
ENTRIES = """
dn: dc=example,dc=org
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ou=people,dc=example,dc=org
objectClass: organizationalUnit
ou: people

dn: uid=olga,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: olga
cn: Olga Smith
givenName: Olga
sn: Smith
mail: olga@example.org
userPassword: in the directory

dn: uid=vera,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: vera
cn: Vera
sn: Jones
userPassword: in the directory

dn: cn=platform,dc=example,dc=org
objectClass: groupOfNames
cn: platform
member: uid=olga,ou=people,dc=example,dc=org
"""
PASSWORD = "in the directory"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int, Path]]:
    """Return the ports of a directory without and with TLS, and the file of its certificate."""
    folder = tmp_path_factory.mktemp("directory")
    (folder / "data").mkdir()
    create_certificate(folder)
    (folder / "slapd.conf").write_text(CONFIGURATION.format(folder=folder, modules=MODULES))
    plain, secure = free_port(), free_port()
    urls = f"ldap://127.0.0.1:{plain} ldaps://127.0.0.1:{secure}"
    command = [str(SLAPD), "-d", "0", "-f", str(folder / "slapd.conf"), "-h", urls]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        add_entries(plain, process)
        yield plain, secure, folder / "ca.pem"
    finally:
        process.terminate()
        process.wait(10)


def create_certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "directory")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    formats = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *formats))


def add_entries(port: int, process: subprocess.Popen) -> None:
    import ldap3

    for _ in range(200):
        assert process.poll() is None, "slapd has ended"
        try:
            connection = ldap3.Connection(
                ldap3.Server("127.0.0.1", port, get_info=ldap3.NONE), "cn=root,dc=example,dc=org", "root-password", True
            )
            break
        except ldap3.core.exceptions.LDAPException:
            time.sleep(0.05)
    for entry in ENTRIES.strip().split("\n\n"):
        (_, dn), *lines = [line.split(": ", 1) for line in entry.splitlines()]
        attributes: dict[str, list[str]] = {}
        for key, value in lines:
            attributes.setdefault(key, []).append(value)
        assert connection.add(dn, attributes=attributes), connection.result


@pytest.fixture
def use_directory(directory, settings: Any, monkeypatch: pytest.MonkeyPatch):
    """Return a function that configures this server as with the environment variables of the documentation."""

    def use(url: str, **variables: str) -> None:
        for name, value in {"LDAP_SEARCH_BASE": "ou=people,dc=example,dc=org", **variables}.items():
            monkeypatch.setenv(name, value)
        for name, value in sign_in_settings.ldap(url).items():
            setattr(settings, name, value)
        settings.AUTHENTICATION_BACKENDS = [
            *settings.AUTHENTICATION_BACKENDS,
            "conductor_app.admin.sign_in.ldap.DirectoryBackend",
        ]
        settings.CONDUCTOR_EXTERNAL_GROUP_ROLES = {"platform": ["WORKFLOW_MANAGER"]}

    return use


@pytest.fixture
def secure_directory(directory, use_directory) -> None:
    _, port, ca_file = directory
    use_directory(f"ldaps://127.0.0.1:{port}", LDAP_CA_FILE=str(ca_file))


def test_a_user_of_the_directory_signs_in_and_gets_the_roles_of_its_groups(secure_directory):
    client = Client()

    assert sign_in(client, PASSWORD).status_code == 302

    user = User.objects.get(username="olga")
    assert is_signed_in(client)
    assert (user.first_name, user.last_name, user.email) == ("Olga", "Smith", "olga@example.org")
    assert {*user.groups.all()} == {role_group("WORKFLOW_MANAGER")}
    assert AuditEntry.objects.get(action="sign in").reason == "LDAP"


def test_a_connection_that_begins_without_tls_is_upgraded(directory, use_directory):
    plain, _, ca_file = directory
    use_directory(f"ldap://127.0.0.1:{plain}", LDAP_CA_FILE=str(ca_file))

    assert sign_in(Client(), PASSWORD).status_code == 302


@pytest.mark.parametrize("scheme", ["ldap", "ldaps"])
def test_a_directory_with_an_unknown_certificate_is_not_trusted(directory, use_directory, scheme):
    plain, secure, _ = directory
    use_directory(f"{scheme}://127.0.0.1:{plain if scheme == 'ldap' else secure}")

    assert sign_in(Client(), PASSWORD).status_code == 200


@pytest.mark.parametrize("password", ["wrong", "", "*"])
def test_a_wrong_password_is_refused(secure_directory, password):
    assert sign_in(Client(), password).status_code == 200
    assert not User.objects.exists()


@pytest.mark.parametrize("name", ["*", "olga)(uid=*", "olga,ou=people", "ou=people"])
def test_a_name_is_not_part_of_the_search(secure_directory, name):
    assert sign_in(Client(), PASSWORD, name=name).status_code == 200
    assert not User.objects.exists()


def test_a_user_of_no_permitted_group_is_refused(secure_directory):
    assert sign_in(Client(), PASSWORD, name="vera").status_code == 200


def test_a_local_account_is_not_taken_over(secure_directory):
    User.objects.create_superuser("olga", password="local password")

    assert sign_in(Client(), PASSWORD).status_code == 200
    assert sign_in(Client(), "local password").status_code == 302


def test_failures_lock_the_account_before_the_directory_is_asked(secure_directory):
    for _ in range(5):
        sign_in(Client(), "wrong")

    assert sign_in(Client(), PASSWORD).status_code == 429


def test_local_users_sign_in_while_the_directory_does_not_respond(use_directory):
    User.objects.create_user("otto", password="local password", is_staff=True)
    use_directory("ldaps://127.0.0.1:9")

    assert sign_in(Client(), "local password", name="otto").status_code == 302
    assert sign_in(Client(), PASSWORD).status_code == 200
