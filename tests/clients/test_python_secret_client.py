"""The Python SDK's secret client: every method of it."""

import pytest
from conductor.client.http.rest import ApiException
from conductor.client.orkes.models.metadata_tag import MetadataTag


@pytest.fixture
def secrets(clients):
    return clients.get_secret_client()


def test_a_secret_is_created_returned_and_deleted(secrets):
    secrets.put_secret("DB", "s3cret")

    assert secrets.get_secret("DB") == "s3cret"
    assert secrets.secret_exists("DB") is True
    assert secrets.list_all_secret_names() == {"DB"}
    assert secrets.list_secrets_that_user_can_grant_access_to() == ["DB"]
    secrets.delete_secret("DB")

    assert secrets.secret_exists("DB") is False
    assert secrets.list_all_secret_names() == set()
    with pytest.raises(ApiException) as missing:
        secrets.get_secret("DB")
    assert missing.value.status == 404


def test_tags_are_set_listed_and_deleted(secrets):
    secrets.put_secret("DB", "s3cret")

    secrets.set_secret_tags([MetadataTag("team", "a"), MetadataTag("cost", "b")], "DB")
    assert [(tag.key, tag.value) for tag in secrets.get_secret_tags("DB")] == [("team", "a"), ("cost", "b")]
    secrets.delete_secret_tags([MetadataTag("team", "a")], "DB")

    assert [tag.key for tag in secrets.get_secret_tags("DB")] == ["cost"]
