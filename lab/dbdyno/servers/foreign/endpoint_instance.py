"""An endpoint in the place of an instance: no files, no restart, nothing that can be restored.

Bench treats every system alike, so what it asks is answered as far as an endpoint can: a snapshot
is the mark that the dataset was loaded, restoring is a look whether its tables are still there, a
start is a login. `judge.checks_control` says in the report what that costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.settings import OptionValue
from dbdyno.servers import endpoint_reference
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.foreign.endpoint import EndpointServer
from dbdyno.servers.foreign.endpoint_dataset import MARK, EndpointDataset


class EndpointInstance:
    """Made by `servers.instance`."""

    def __init__(self, spec: ServerSpec, folder: Path, report: Callable[[str], None]) -> None:
        reference = endpoint_reference.read(spec.reference)
        _refuse(spec, spec.settings)
        if spec.topology.replicas:
            raise UsageError(
                f"{spec.label}: replicas of an endpoint are not dbdyno's to make",
                hint="set them up yourself, and leave topology out",
            )
        self.spec = spec
        self.folder = folder
        self._report = report
        self._server = EndpointServer(
            spec.label,
            reference.endpoint,
            endpoint_reference.credentials(reference, spec.password_env),
            reference.database,
        )
        self._dataset = EndpointDataset(
            spec.label, reference.database, spec.dataset, self._server.ask
        )
        self._is_loading = False

    def start(self, settings: Mapping[str, OptionValue] | None = None) -> EndpointServer:
        """Log in; the first time without our rows there, get the database ready to take them.

        Raises:
            UsageError: settings are asked for, which only the endpoint's owner can change.
            ServerError: it cannot be reached, refuses the login, or has other tables of our names.
        """
        _refuse(self.spec, settings or {})
        self._login()
        if not self._is_loading and not self._dataset.is_loaded():
            self._dataset.begin()
            self._is_loading = True
        return self._server

    def snapshot(self) -> None:
        """Remember in the database that this dataset is loaded; ServerError if it refuses."""
        self._login()
        self._dataset.finish()
        self._is_loading = False

    def has_snapshot(self) -> bool:
        """Whether the dataset was loaded and its tables are as they were; ServerError if gone."""
        self._login()
        return self._dataset.is_loaded()

    def restore(self) -> None:
        """Nothing is put back: ServerError unless the tables are still those that were loaded."""
        self._login()
        trouble = self._dataset.trouble()
        if trouble is not None:
            raise ServerError(
                f"{self.spec.label}: the tables are not as they were loaded, and on an endpoint "
                "dbdyno cannot restore them",
                wanted="the tables of this run's dataset",
                found=trouble,
                hint=f"start the run anew to load them again ({MARK} in the database says what is "
                "loaded); measure loads that make tables grow on their own",
            )

    def data_bytes(self) -> int:
        """Bytes of the loaded tables and indexes, by the server's own estimate.

        Raises:
            ServerError: they are not loaded, or the server does not say how large they are.
        """
        found = self._dataset.data_bytes() if self.has_snapshot() else 0
        if not found:
            raise ServerError(f"{self.spec.label}: there is no loaded dataset to measure")
        return found

    def close(self) -> None:
        """Log out; the servers and the rows stay."""
        self._server.stop()

    def _login(self) -> None:
        try:
            self._server.login()
        except ServerError as error:
            if "1045" not in (error.found or ""):
                raise
            named = self.spec.password_env or endpoint_reference.PASSWORD_VARIABLE
            raise ServerError(
                error.message,
                wanted=f"a login as {self._server.credentials.user}",
                found=error.found,
                hint=f"check the user's rights and the password in {named}",
            ) from error


def _refuse(spec: ServerSpec, settings: Mapping[str, OptionValue]) -> None:
    if settings:
        raise UsageError(
            f"{spec.label}: the settings of an endpoint are its owner's: dbdyno only reads them",
            wanted="no settings for this system",
            found=", ".join(sorted(settings)),
            hint="set them at the server; the report shows what is in force",
        )
