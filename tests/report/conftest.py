from __future__ import annotations

import pytest
from tests import making
from tests.report.made_run import Run, run, whole

from dbdyno.report import Written, write


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
