from __future__ import annotations

import pytest

from dbdyno.report.write import Written, write
from support import making
from support.made_run import Run, run, whole


@pytest.fixture(scope="session")
def made() -> Run:
    return whole()


@pytest.fixture(scope="session")
def empty() -> Run:
    return run(making.plan(), [], complete=False)


@pytest.fixture(scope="session")
def written(made: Run, tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("report") / "new"
    return write(folder, made.plan, made.measurements, made.judgement, made.facts)
