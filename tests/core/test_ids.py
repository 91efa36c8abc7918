"""Derived ids, ordered by time and by position within one moment."""

from uuid import RFC_4122, UUID

from conductor_app.core.primitives import derived_id


def test_ids_of_the_same_time_sort_by_position():
    ids = [derived_id(5, "run", place, place=place) for place in (0, 1, 15, 16, 17, 255, 4096, 65_535)]

    assert ids == sorted(ids)
    assert derived_id(4, "run", place=65_535) < ids[0] < ids[-1] < derived_id(6, "run", place=0)


def test_an_id_is_a_uuid_of_version_7_with_and_without_a_place():
    for id in (derived_id(5, "run"), derived_id(5, "run", place=3), derived_id(5, "run", place=70_000)):
        assert (UUID(id).version, UUID(id).variant) == (7, RFC_4122)


def test_ids_of_the_same_position_differ_in_random_bits():
    assert len({derived_id(5, run, place=1)[21:] for run in range(1000)}) == 1000
