from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import StoreError
from dbdyno.store.store import LATEST, Store, find, opened
from support.stored_run import store_made


def test_latest_is_the_newest_and_an_id_is_itself(tmp_path: Path) -> None:
    first = store_made(tmp_path, (0.9,))
    second = store_made(tmp_path, (0.8,))
    with opened(tmp_path) as store:
        assert find(store, LATEST) == second
        assert find(store, first.run_id) == first


def test_reading_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no run yet"):
        opened(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []
    with Store.open(tmp_path) as store, pytest.raises(StoreError, match="no run yet"):
        find(store, LATEST)
