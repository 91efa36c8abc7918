"""Settings of the server: defaults, overrides and checks of names and values."""

import pytest

from conductor_app.apps import check_open_access, check_settings
from conductor_app.settings import conf


def test_a_setting_that_is_not_given_has_its_default():
    assert conf.isolation_threads == 4


def test_a_setting_is_read_from_djangos(settings):
    settings.CONDUCTOR_ISOLATION_THREADS = 7

    assert conf.isolation_threads == 7


def test_a_setting_that_does_not_exist_is_an_error_of_the_programmer():
    with pytest.raises(AttributeError, match="no setting 'isolation_treads'"):
        _ = conf.isolation_treads


def test_the_suites_own_settings_are_in_order():
    assert check_settings() == []


@pytest.mark.parametrize(
    ("name", "value", "validation_error"),
    [
        ("CONDUCTOR_ISOLATION_THREADS", "7", "CONDUCTOR_ISOLATION_THREADS is '7', but must be of type int."),
        ("CONDUCTOR_API_ACCESS", "none", "CONDUCTOR_API_ACCESS is 'none', but must be one of: open, token."),
        ("CONDUCTOR_ISOLATION_TREADS", 500, "CONDUCTOR_ISOLATION_TREADS is not a setting of this server."),
    ],
)
def test_a_wrong_setting_is_refused_by_name(settings, name, value, validation_error):
    setattr(settings, name, value)

    assert [error.msg for error in check_settings()] == [validation_error]


def test_open_access_is_refused_where_others_can_reach_the_server(settings):
    settings.HOST, settings.ON_LOOPBACK, settings.CONDUCTOR_API_ACCESS = "0.0.0.0", False, "open"

    (error,) = check_open_access()

    assert "CONDUCTOR_API_ACCESS is open, but HOST=0.0.0.0" in error.msg
