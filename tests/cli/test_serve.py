"""`dbdyno serve` as it is typed, up to the moment when it would serve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbdyno import __main__
from dbdyno.serve import server
from support.made_workspace import stored_run


def typed(*arguments: str, workspace: Path) -> int:
    return __main__.main(["serve", "--port", "0", "--workspace", str(workspace), *arguments])


def test_the_address_is_data_and_the_rest_is_said_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored_run(tmp_path, blocks=1)

    def interrupted(folder: Path, listening: Any, begun: Any, language: Any) -> None:
        with listening:
            begun()
        raise KeyboardInterrupt

    monkeypatch.setattr(server, "serve", interrupted)
    assert typed(workspace=tmp_path) == 0
    said = capsys.readouterr()
    assert said.out.startswith("http://127.0.0.1:")
    assert said.out.endswith("/\n")
    assert said.err == "Ctrl-C closes it\nthe page is closed\n"


def test_a_workspace_that_is_not_there_is_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(workspace=tmp_path / "typo") == 1
    assert "holds no run yet" in capsys.readouterr().err
    assert not (tmp_path / "typo").exists()


def test_other_machines_are_not_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored_run(tmp_path, blocks=1)
    assert typed("--host", "0.0.0.0", workspace=tmp_path) == 2
    assert "ssh -L" in capsys.readouterr().err
