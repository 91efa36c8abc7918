"""The database backend: Django's, except that it replaces pooled connections which the server has closed."""

import select
from typing import Any

from django.db.backends.postgresql import base
from psycopg import Connection


class DatabaseWrapper(base.DatabaseWrapper):
    """Connections of Django's backend.

    `CONN_HEALTH_CHECKS` would send a query for each request. Here, a look at the socket finds connections that a
    restart or failover has closed; it takes microseconds and no round trip.
    """

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return an open connection of the pool, or a new one."""
        connection = super().get_new_connection(conn_params)
        while self.pool and _is_closed_by_server(connection):
            connection.close()
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection


def _is_closed_by_server(connection: Connection[Any]) -> bool:
    """Return True if the server has sent anything to an idle connection: the reason for its end, or the end itself.

    A notice, which servers rarely send to idle connections, only costs a new connection.
    """
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))
