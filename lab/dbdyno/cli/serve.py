"""`dbdyno serve`: the workspace as pages for a browser on this machine."""

from __future__ import annotations

import sys
from typing import Final

from dbdyno.cli import options
from dbdyno.cli.progress import note
from dbdyno.language.catalogues import Language
from dbdyno.store.store import opened

PORT: Final = 8732
"""The default of --port."""


def command(
    port: options.Port = PORT,
    host: options.Host = None,
    token_file: options.TokenFile = None,
    workspace: options.Workspace = options.WORKSPACE,
    lang: options.Lang = Language.EN,
) -> None:
    """Show runs, reports and a run in progress in a browser."""
    from dbdyno.serve import server  # noqa: PLC0415 - a web server is not loaded by other commands
    from dbdyno.serve.guard import decide  # noqa: PLC0415 - a web server is not loaded by other commands

    access = decide(host, token_file)
    opened(workspace).close()
    listening = server.listen(access, port)
    try:
        server.serve(
            workspace,
            access,
            listening,
            begun=lambda: _say(server.address(listening)),
            language=lang,
        )
    except KeyboardInterrupt:
        note("the page is closed")


def _say(address: str) -> None:
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    note("Ctrl-C closes it")
