"""PostgreSQL run by somebody else, as far as its questions differ from MySQL's.

Its tables are in the schema `public` of an existing database, as a session belongs to a single
database and cannot make another.
"""

from __future__ import annotations

from dbdyno.servers.base import PGSQL, Endpoint, count_of, row_of, rows_of
from dbdyno.servers.client import Client
from dbdyno.servers.foreign.behind import Identity
from dbdyno.servers.foreign.endpoint import EndpointDataset, EndpointInstance, EndpointServer
from dbdyno.servers.postgres.client import WHICH_VIEWS, PostgresClient, answered, question
from dbdyno.servers.postgres.settings import SETTINGS


class PostgresEndpointServer(EndpointServer):
    """Foreign PostgreSQL servers, ready for logins when `start` hands them out."""

    driver = PGSQL
    version_sql = "SHOW server_version"
    settings_sql = SETTINGS

    def _client(self, label: str, place: Endpoint) -> Client:
        return PostgresClient(label, place, self.credentials, self.database)

    def _identity(self, client: Client) -> Identity:
        return row_of(client, "SELECT extract(epoch FROM pg_postmaster_start_time())")

    def _numbers(self, client: Client) -> dict[str, float]:
        views = [row[0] for row in rows_of(client, WHICH_VIEWS, 1)]
        return answered(client, question(views, self.database))


class PostgresDataset(EndpointDataset):
    """The load's tables in the schema open to everybody."""

    quote = '"'
    backslash = "\\"
    schema = "public"
    analyze = "ANALYZE"

    def _create(self) -> None:
        self._server.ask(f"CREATE SCHEMA {self._quoted(self._schema)}")

    def data_bytes(self) -> int:
        return count_of(
            self._server,
            "SELECT SUM(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n"
            f" ON n.oid = c.relnamespace WHERE n.nspname = '{self.schema}' AND c.relkind = 'r'",
        )

    def _tables(self) -> list[str]:
        # Not of information_schema, which hides tables of others that a schema's owner may drop.
        listed = (
            "SELECT c.relname AS table_name FROM pg_class c JOIN pg_namespace n"
            f" ON n.oid = c.relnamespace WHERE n.nspname = '{self.schema}'"
            " AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"
        )
        return [row[0] for row in rows_of(self._server, listed, 1)]


class PostgresEndpointInstance(EndpointInstance):
    """A PostgreSQL endpoint in the place of an instance."""

    driver = PGSQL
    server_type = PostgresEndpointServer
    dataset_type = PostgresDataset
