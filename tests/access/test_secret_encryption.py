"""Encryption at rest: secrets are bound to their names and stay readable after a key rotation."""

import pytest

from conductor_app.access import encryption

OLD, NEW = "an old key of the operator, long enough", "a new key of the operator, long enough"


def test_an_encrypted_value_is_unreadable_until_it_is_decrypted():
    sealed = encryption.encrypt("DB", "s3cret ä\0\n")

    assert "s3cret" not in sealed
    assert encryption.decrypt("DB", sealed) == "s3cret ä\0\n"


def test_the_same_value_is_never_sealed_alike():
    assert encryption.encrypt("DB", "s3cret") != encryption.encrypt("DB", "s3cret")


def test_a_sealed_value_is_of_no_use_under_another_name():
    with pytest.raises(encryption.DecryptionFailed):
        encryption.decrypt("OTHER", encryption.encrypt("DB", "s3cret"))


@pytest.mark.parametrize("damage", [lambda text: text[:-8], lambda text: text + "A", lambda text: "?", lambda text: ""])
def test_a_damaged_value_is_unreadable(damage):
    with pytest.raises(encryption.DecryptionFailed):
        encryption.decrypt("DB", damage(encryption.encrypt("DB", "s3cret")))


def test_a_new_key_seals_and_old_ones_still_open(settings):
    by_the_server = encryption.encrypt("DB", "one")
    settings.CONDUCTOR_SECRETS_KEYS = (OLD,)
    by_the_old = encryption.encrypt("DB", "two")
    settings.CONDUCTOR_SECRETS_KEYS = (NEW, OLD)
    by_the_new = encryption.encrypt("DB", "three")

    assert [encryption.decrypt("DB", each) for each in (by_the_server, by_the_old, by_the_new)] == [
        "one",
        "two",
        "three",
    ]
    assert [encryption.is_current(each) for each in (by_the_server, by_the_old, by_the_new)] == [False, False, True]


def test_without_its_key_a_value_is_lost(settings):
    settings.CONDUCTOR_SECRETS_KEYS = (OLD,)
    sealed = encryption.encrypt("DB", "s3cret")
    settings.CONDUCTOR_SECRETS_KEYS = (NEW,)

    with pytest.raises(encryption.DecryptionFailed):
        encryption.decrypt("DB", sealed)


def test_a_rotated_key_of_the_server_still_opens(settings):
    sealed = encryption.encrypt("DB", "s3cret")
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another key of the server"

    assert encryption.decrypt("DB", sealed) == "s3cret"
