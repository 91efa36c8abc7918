"""Encryption at rest: secrets are bound to their names and stay readable after a key rotation."""

import pytest

from conductor_app.access import secrets as vault

OLD, NEW = "an old key of the operator, long enough", "a new key of the operator, long enough"


def test_an_encrypted_value_is_unreadable_until_it_is_decrypted():
    sealed = vault.encrypt("DB", "s3cret ä\0\n")

    assert "s3cret" not in sealed
    assert vault.decrypt("DB", sealed) == "s3cret ä\0\n"


def test_the_same_value_is_never_sealed_alike():
    assert vault.encrypt("DB", "s3cret") != vault.encrypt("DB", "s3cret")


def test_a_sealed_value_is_of_no_use_under_another_name():
    with pytest.raises(vault.DecryptionFailed):
        vault.decrypt("OTHER", vault.encrypt("DB", "s3cret"))


@pytest.mark.parametrize("damage", [lambda text: text[:-8], lambda text: text + "A", lambda text: "?", lambda text: ""])
def test_a_damaged_value_is_unreadable(damage):
    with pytest.raises(vault.DecryptionFailed):
        vault.decrypt("DB", damage(vault.encrypt("DB", "s3cret")))


def test_a_new_key_seals_and_old_ones_still_open(settings):
    by_the_server = vault.encrypt("DB", "one")
    settings.CONDUCTOR_SECRETS_KEYS = (OLD,)
    by_the_old = vault.encrypt("DB", "two")
    settings.CONDUCTOR_SECRETS_KEYS = (NEW, OLD)
    by_the_new = vault.encrypt("DB", "three")

    assert [vault.decrypt("DB", each) for each in (by_the_server, by_the_old, by_the_new)] == ["one", "two", "three"]
    assert [vault.is_current(each) for each in (by_the_server, by_the_old, by_the_new)] == [False, False, True]


def test_without_its_key_a_value_is_lost(settings):
    settings.CONDUCTOR_SECRETS_KEYS = (OLD,)
    sealed = vault.encrypt("DB", "s3cret")
    settings.CONDUCTOR_SECRETS_KEYS = (NEW,)

    with pytest.raises(vault.DecryptionFailed):
        vault.decrypt("DB", sealed)


def test_a_rotated_key_of_the_server_still_opens(settings):
    sealed = vault.encrypt("DB", "s3cret")
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another key of the server"

    assert vault.decrypt("DB", sealed) == "s3cret"
