"""A stored run as a report (`dbdyno report`), and a workspace as pages (`dbdyno serve`)."""

from __future__ import annotations

import sys

from dbdyno.cli import flow, options
from dbdyno.cli.flow import ReportOptions
from dbdyno.cli.progress import note
from dbdyno.language.catalogues import Language
from dbdyno.report.formats.stdout import Output
from dbdyno.serve import server
from dbdyno.store.store import opened


def report(
    run_id: options.RunOrBundle,
    out: options.ReportFolder = None,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
    exit_code: options.ExitCode = False,
) -> None:
    """Write the report of a stored run or bundle file."""
    flow.report(run_id, workspace, ReportOptions(output, lang, exit_code), out)


def serve(
    port: options.Port = options.PORT,
    host: options.Host = "127.0.0.1",
    workspace: options.Workspace = options.WORKSPACE,
    lang: options.Lang = Language.EN,
) -> None:
    """Show runs, reports and live progress in a browser."""

    def begun() -> None:
        sys.stdout.write(f"{server.address(listening)}\n")
        sys.stdout.flush()
        note("Ctrl-C closes it")

    opened(workspace).close()
    listening = server.listen(host, port)
    try:
        server.serve(workspace, listening, begun=begun, language=lang)
    except KeyboardInterrupt:
        note("the page is closed")
