"""`conductor-app backup` and `restore`: what an archive contains, and what a restore refuses."""

import json
import os
import re
import shutil
import sqlite3
import zipfile
from pathlib import Path

import psycopg
import pytest
from django.conf import settings

from conductor_app.tools.backup import archive as archive_keys
from conductor_app.tools.backup.archive import (
    MANIFEST,
    PAYLOADS,
    SIGNATURE,
    ArchiveDamaged,
    BackupRefused,
    KeysMissing,
    KeyUses,
    StreamKeyUses,
    create_archive,
    open_archive,
    parse_manifest,
)
from tests.upgrade.installation import KEYS, SEED, Installation, copy_installation, create_database

# The commands use databases of their own, on the server of the suite.
pytestmark = pytest.mark.django_db

LOCAL_HEADER_BYTES = 50
"""The size of the header before the content of a member, without its name."""
OTHER_KEYS = {"SECRET_KEY": "another-signing-key-" * 3, "SECRETS_KEYS": "another-sealing-key-" * 2}


def new_installation(folder: Path) -> Installation:
    if "postgresql" not in settings.DATABASES["default"]["ENGINE"]:
        return Installation(folder)
    return Installation(folder, create_database(os.environ["TEST_DATABASE_URL"]))


@pytest.fixture(scope="module")
def source(new_data_folder) -> Installation:
    """Return an installation with three runs, whose inputs are payloads, and a secret."""
    installed = new_installation(new_data_folder("source") / "var")
    if installed.database_url:
        installed.succeed("migrate", "--verbosity=0")
    installed.python(SEED)
    return installed


@pytest.fixture(scope="module")
def archive(source, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "conductor.backup"
    source.succeed("backup", path)
    return path


@pytest.fixture
def full(source, tmp_path) -> Installation:
    """Return a copy of the installation, with a change that the archive does not have."""
    copied = copy_installation(source, tmp_path / "full")
    copied.query("UPDATE conductor_run SET status = 'PAUSED'")
    return copied


@pytest.fixture(autouse=True)
def with_keys_of_the_installation(settings):
    settings.SECRET_KEY = KEYS["SECRET_KEY"]
    settings.CONDUCTOR_SECRETS_KEYS = (KEYS["SECRETS_KEYS"],)


def test_a_restore_into_an_empty_database_has_all_rows_and_payloads(source, archive, tmp_path):
    empty = new_installation(tmp_path)

    output = empty.succeed("restore", archive)

    assert "Start the server." in output
    assert empty.contents() == source.contents()
    assert len(empty.contents()["payloads"]) == 3
    [(action, facts)] = empty.query("SELECT action, facts FROM conductor_auditentry WHERE object_type = 'server'")
    assert (action, json.loads(facts)["archive"]) == ("restore", "conductor.backup")
    assert empty.query("SELECT status FROM conductor_run LIMIT 1") == [("RUNNING",)]


LATE_PAYLOAD = "task/output/late.json"


@pytest.fixture(scope="module")
def replaced(source, archive, tmp_path_factory) -> Installation:
    """Return an installation after a restore. Before, it had other rows, another payload, and a damaged one."""
    copied = copy_installation(source, tmp_path_factory.mktemp("replaced"))
    copied.query("UPDATE conductor_run SET status = 'PAUSED'")
    copied.query(f"INSERT INTO conductor_storedpayload (path, size, created_at) VALUES ('{LATE_PAYLOAD}', 2, 1)")
    next(copied.payloads.rglob("*.json")).write_text("{}")
    copied.succeed("restore", archive, "--replace")
    return copied


def test_a_replaced_database_has_the_rows_and_the_payloads_of_the_archive(source, replaced):
    assert replaced.contents() == source.contents()


def test_payloads_that_only_the_former_database_used_expire(replaced):
    [(expires_at,)] = replaced.query(f"SELECT expires_at FROM conductor_storedpayload WHERE path = '{LATE_PAYLOAD}'")

    assert expires_at > 1
    assert replaced.query("SELECT count(*) FROM conductor_storedpayload WHERE expires_at IS NULL") == [(3,)]


def test_rows_that_are_added_after_a_restore_get_new_ids(source, replaced):
    [(last,)] = source.query("SELECT max(id) FROM auth_permission")

    replaced.query(
        "INSERT INTO auth_permission (name, content_type_id, codename) "
        "SELECT 'a', min(id), 'added' FROM django_content_type"
    )

    assert replaced.query("SELECT id FROM auth_permission WHERE codename = 'added'") == [(last + 1,)]


def test_a_database_with_rows_is_not_replaced_without_the_option(archive, full):
    before = full.contents()

    assert "The database is not empty" in full.refuse("restore", archive)
    assert full.contents() == before


def test_a_restore_is_refused_while_another_process_uses_the_database(archive, full):
    connection = psycopg.connect(full.database_url) if full.database_url else sqlite3.connect(full.file)
    try:
        connection.execute("SELECT count(*) FROM conductor_run").fetchall()
        connection.commit()
        refusal = full.refuse("restore", archive, "--replace")
    finally:
        connection.close()

    assert "Stop" in refusal and "Nothing was changed." in refusal
    assert full.query("SELECT DISTINCT status FROM conductor_run") == [("PAUSED",)]


def test_a_backup_refuses_a_database_without_tables_and_a_file_that_exists(source, archive, tmp_path):
    assert "no tables" in new_installation(tmp_path / "a").refuse("backup", tmp_path / "empty.backup")
    assert "exists" in source.refuse("backup", archive)
    assert "cannot be written" in source.refuse("backup", tmp_path / "no folder" / "a.backup")
    assert list(tmp_path.glob("*.backup")) + list(tmp_path.glob(".*.backup*")) == []


def test_an_archive_is_readable_only_by_its_owner_and_contains_no_key(source, archive):
    content = archive.read_bytes()
    with zipfile.ZipFile(archive) as members:
        content += b"".join(map(members.read, members.namelist()))

    assert archive.stat().st_mode & 0o777 == 0o600
    assert not any(key.encode() in content for key in KEYS.values())
    assert b"a password" not in content


@pytest.mark.parametrize("part", [0, 0.3, 0.9, 0.999])
def test_a_truncated_archive_is_refused(archive, tmp_path, part):
    copy = tmp_path / "truncated"
    copy.write_bytes(archive.read_bytes()[: int(archive.stat().st_size * part)])

    with pytest.raises(ArchiveDamaged), open_archive(copy) as opened:
        opened.verify_contents()


def changed(archive: Path, target: Path, **contents: bytes) -> Path:
    """Copy an archive with other members. A value of b"" removes a member."""
    with zipfile.ZipFile(archive) as members, zipfile.ZipFile(target, "w") as copy:
        replaced = {name: members.read(name) for name in members.namelist()} | contents
        for name, content in replaced.items():
            if content or name not in contents:
                copy.writestr(name, content)
    return target


@pytest.mark.parametrize(
    ("member", "content"),
    [
        ("tables/conductor_run.jsonl", b"[]\n"),
        ("tables/conductor_run.jsonl", b""),
        ("tables/another.jsonl", b"[1]\n"),
        (PAYLOADS, b"{}"),
        (SIGNATURE, b""),
        (SIGNATURE, b"wrong"),
        (MANIFEST, b"{}"),
        (MANIFEST, b"no JSON"),
    ],
)
def test_a_changed_archive_is_refused(archive, tmp_path, member, content):
    copy = changed(archive, tmp_path / "changed", **{member: content})

    with pytest.raises(BackupRefused), open_archive(copy) as opened:
        opened.verify_signature()
        opened.verify_contents()


def test_a_changed_manifest_has_no_valid_signature(archive, tmp_path):
    with zipfile.ZipFile(archive) as members:
        manifest = members.read(MANIFEST)
    copy = changed(archive, tmp_path / "changed", **{MANIFEST: manifest.replace(b'"format": 1', b'"format":  1')})

    with pytest.raises(ArchiveDamaged, match="signature"), open_archive(copy) as opened:
        opened.verify_signature()


def test_a_damaged_byte_in_any_member_is_noticed(archive, tmp_path):
    content = archive.read_bytes()
    with zipfile.ZipFile(archive) as members:
        middles = [
            member.header_offset + LOCAL_HEADER_BYTES + len(member.filename) + member.compress_size // 2
            for member in members.infolist()
            if member.file_size
        ]

    for position in middles:
        copy = tmp_path / f"damaged.{position}"
        copy.write_bytes(content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :])
        with pytest.raises(BackupRefused), open_archive(copy) as opened:
            opened.verify_signature()
            opened.verify_contents()
    assert len(middles) > 10


def test_a_file_that_is_no_archive_is_refused(full, tmp_path):
    (tmp_path / "text").write_text("hello")

    assert "truncated or damaged" in full.refuse("restore", tmp_path / "text", "--replace")
    assert "cannot be read" in full.refuse("restore", tmp_path / "missing", "--replace")


def test_an_archive_of_a_newer_format_or_version_is_refused(archive, full, tmp_path):
    with zipfile.ZipFile(archive) as members:
        document = json.loads(members.read(MANIFEST))

    with pytest.raises(BackupRefused, match="newer version"):
        parse_manifest(json.dumps(document | {"format": 2}).encode())
    document["migrations"]["conductor"].append("9999_future")
    manifest = json.dumps(document).encode()
    copy = changed(archive, tmp_path / "newer", **{MANIFEST: manifest, SIGNATURE: archive_keys.sign(manifest)})
    assert "conductor.9999_future" in full.refuse("restore", copy, "--check")


def test_a_restore_without_the_keys_is_refused_before_anything_is_changed(archive, full):
    full.keys = OTHER_KEYS
    before = full.contents()

    refusal = full.refuse("restore", archive, "--replace")

    assert "--without-keys" in refusal and "SECRETS_KEYS" in refusal
    assert full.contents() == before


def test_a_restore_without_the_keys_is_possible_on_request(source, archive, full):
    full.keys = OTHER_KEYS

    output = full.succeed("restore", archive, "--replace", "--without-keys")

    assert "Warning: Values in the archive are encrypted with keys that this server does not have" in output
    assert full.contents() == source.contents()


def test_new_keys_in_front_of_the_former_ones_are_sufficient(archive, full):
    full.keys = {
        "SECRET_KEY": OTHER_KEYS["SECRET_KEY"],
        "SECRETS_KEYS": f"{OTHER_KEYS['SECRETS_KEYS']},{KEYS['SECRETS_KEYS']}",
    }

    assert "this server can restore it" in full.succeed("restore", archive, "--check")
    assert full.query("SELECT DISTINCT status FROM conductor_run") == [("PAUSED",)]


def test_a_failed_restore_leaves_the_former_database_and_payloads(archive, full, tmp_path):
    broken = with_repeated_row(archive, tmp_path / "broken", "conductor_secret")
    shutil.rmtree(full.payloads)
    before = full.contents()

    refusal = full.refuse("restore", broken, "--replace")

    assert "Row 2 of conductor_secret is refused by the database" in refusal and "Nothing was changed." in refusal
    assert "a password" not in refusal
    assert full.contents() == before
    assert not list(full.folder.glob(".conductor.sqlite3.restore*"))
    if full.database_url:
        assert full.query("SELECT 1 FROM pg_namespace WHERE nspname = 'conductor_restore'") == []


def with_repeated_row(archive: Path, target: Path, table: str) -> Path:
    """Copy an archive in which a table has its first row twice, with a valid signature."""
    with open_archive(archive) as opened, create_archive(target) as copy:
        for name in opened.manifest.members:
            with opened.open(name) as stream, copy.member(name) as writer:
                content = stream.read()
                writer.write(content * (2 if name == f"tables/{table}.jsonl" else 1))
        document = json.loads(opened.manifest.to_bytes())
        document["members"] = {name: {"size": one.size, "sha256": one.sha256} for name, one in copy.members.items()}
        copy.finish(parse_manifest(json.dumps(document).encode()))
    return target


def test_an_archive_of_an_older_version_is_migrated(full, tmp_path):
    full.succeed("migrate", "conductor", "0001", "--verbosity=0")
    full.succeed("backup", tmp_path / "older.backup")
    empty = new_installation(tmp_path / "empty")

    empty.succeed("restore", tmp_path / "older.backup")

    assert empty.contents() == full.contents()
    assert "No problem was found." in empty.succeed("check")


def test_an_archive_that_only_lists_payloads_requires_the_same_storage(source, full, tmp_path):
    path = tmp_path / "listed.backup"
    assert "3 payloads" in source.succeed("backup", path, "--without-payload-contents")
    with zipfile.ZipFile(path) as members:
        assert "😀".encode() not in members.read(PAYLOADS)
    next(full.payloads.rglob("*.json")).write_text("{}")

    refusal = full.refuse("restore", path, "--replace")
    assert "PAYLOAD_STORAGE does not have them as they were" in refusal
    shutil.copytree(source.payloads, full.payloads, dirs_exist_ok=True)
    full.succeed("restore", path, "--replace")
    assert full.contents() == source.contents()


def test_a_full_disk_is_reported_and_leaves_no_archive(full, tmp_path):
    next(full.payloads.rglob("*.json")).write_bytes(os.urandom(2_000_000))
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
        f"import sys; sys.argv = ['conductor-app', 'backup', {str(tmp_path / 'a.backup')!r}]\n"
        "from conductor_app.processes.command_line import main; main()"
    )

    done = full.run_python(script)

    assert done.returncode == 1
    assert "a.backup cannot be written: File too large." in done.stderr
    assert list(tmp_path.glob("*.backup*")) + list(tmp_path.glob(".*.backup*")) == []


def test_a_payload_that_the_storage_has_lost_is_reported(full, tmp_path):
    next(full.payloads.rglob("*.json")).unlink()

    done = full.execute("backup", tmp_path / "a.backup")

    assert done.returncode == 0
    assert "did not have 1 payloads that runs use" in done.stderr


def test_large_tables_and_payloads_need_little_memory(source, tmp_path):
    large = copy_installation(source, tmp_path / "large")
    text = "repeat('0', 1200000)" if large.database_url else "hex(zeroblob(600000))"
    large.query(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100) "
        "INSERT INTO conductor_variable (name, value, tags, created_at, created_by, updated_at, updated_by) "
        f"SELECT 'v' || n, {text}, '[]', 0, '', 0, '' FROM numbers"
    )
    os.truncate(next(large.payloads.rglob("*.json")), 120_000_000)
    empty = new_installation(tmp_path / "empty")

    backup_peak = peak_memory(large, "backup", tmp_path / "large.backup")
    restore_peak = peak_memory(empty, "restore", tmp_path / "large.backup")

    # Without these contents, a restore takes 160 MB.
    assert max(backup_peak, restore_peak) < 220_000_000
    assert empty.query("SELECT sum(length(value)) FROM conductor_variable") == [(120_000_000,)]
    assert max(path.stat().st_size for path in empty.payloads.rglob("*.json")) == 120_000_000


def peak_memory(installed: Installation, *arguments: str | Path) -> int:
    """Execute `conductor-app`, and return the largest resident memory of the process in bytes."""
    script = (
        f"import sys; sys.argv = ['conductor-app', *{[*map(str, arguments)]!r}]\n"
        "from conductor_app.processes.command_line import main; main()\n"
        "print(open('/proc/self/status').read())"
    )
    return int(re.search(r"VmHWM:\s+(\d+) kB", installed.python(script))[1]) * 1024


def test_masked_values_are_counted_once_however_a_stream_is_divided():
    text = b'{"a": "sealed-by-conductor:0123456789ab.xx", "b": "sealed-by-conductor:ba9876543210.yy"} ' * 3
    for size in range(1, len(text), 7):
        uses = KeyUses()
        stream = StreamKeyUses(uses)
        for begin in range(0, len(text), size):
            stream.count(text[begin : begin + size])
        assert uses.counts == {"0123456789ab": 3, "ba9876543210": 3}


def test_missing_keys_are_listed_with_the_number_of_their_values():
    with pytest.raises(KeysMissing, match=r"0123456789ab \(3 values\)"):
        archive_keys.require_keys({"0123456789ab": 3, archive_keys.fingerprints()[0]: 1})
