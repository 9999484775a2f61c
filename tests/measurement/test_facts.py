from __future__ import annotations

import pytest
from pydantic import ValidationError

from dbdyno.measurement.outcome import RunFacts
from support import making
from support.made_run import facts


def test_facts_survive_json_and_cannot_be_changed() -> None:
    made = facts(making.plan())
    assert RunFacts.model_validate_json(made.model_dump_json()) == made
    with pytest.raises(ValidationError):
        made.complete = False  # type: ignore[misc]
