"""An honest publication has the same cells, and no accusation, in whatever form it is printed."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from validation.audit_rates import any_honest, reading
from validation.printed_forms import FORMS, Form


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_a_form_changes_no_cell_and_accuses_nobody(tmp_path: Path, form: Form) -> None:
    dice = random.Random(7)
    for layouts in [(layout,) for layout in form.layouts] or [()]:
        for _ in range(2):
            page = reading(any_honest(dice), replace(form, layouts=layouts), dice, tmp_path)
            assert (page.cells, page.is_accused) == ("exact", False), layouts
