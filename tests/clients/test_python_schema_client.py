"""The Python SDK's schema client: every method of it."""

import pytest
from conductor.client.http.models.schema_def import SchemaDef, SchemaType
from conductor.client.http.rest import ApiException

DATA = {"type": "object", "required": ["id"]}


@pytest.fixture
def schemas(clients):
    return clients.get_schema_client()


def test_a_schema_is_registered_returned_and_deleted(schemas):
    schemas.register_schema(SchemaDef("order", 1, SchemaType.JSON, DATA))
    schemas.register_schema(SchemaDef("order", 2, SchemaType.JSON, DATA))
    schemas.register_schema(SchemaDef("other", 1, SchemaType.AVRO, {"type": "record"}))

    schema = schemas.get_schema("order", 1)
    assert (schema.name, schema.version, str(schema.type), schema.data) == ("order", 1, "JSON", DATA)
    assert [(each.name, each.version) for each in schemas.get_all_schemas()] == [
        ("order", 1),
        ("order", 2),
        ("other", 1),
    ]
    schemas.delete_schema("order", 1)
    schemas.delete_schema_by_name("other")

    assert [(each.name, each.version) for each in schemas.get_all_schemas()] == [("order", 2)]
    with pytest.raises(ApiException) as missing:
        schemas.get_schema("order", 1)
    assert missing.value.status == 404
