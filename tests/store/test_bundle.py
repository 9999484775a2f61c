"""What goes into a bundle comes out the same; what was forged with right sums is refused too."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbdyno import __version__
from dbdyno.errors import BundleError
from dbdyno.judge.judgement import judge
from dbdyno.store import archive, bundle
from dbdyno.store.reading import StoredRun
from support import making

MEASUREMENTS = making.pairs((0.9, 0.95, 1.0))
Change = Callable[[dict[str, Any]], object]


def stored(**fields: object) -> StoredRun:
    made: dict[str, Any] = {
        "run_id": "run-1",
        "created_at": "2026-11-21T06:00:00+00:00",
        "finished_at": None,
        "plan": making.plan(blocks=3),
        "command": "dbdyno compare a b",
        "dbdyno_version": "0.1.0",
        "environment": {"kernel": "6.1"},
        "trials_planned": 6,
    }
    return StoredRun(**{**made, **fields})


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "run-1.dbdyno.zip"
    bundle.write(path, stored(), MEASUREMENTS)
    return path


def forged(sealed: Path, name: str, change: Change, into: Path) -> Path:
    """The bundle with one JSON file changed and sums that are right."""
    files, _ = archive.read(sealed)
    value = json.loads(files[name])
    change(value)
    archive.write(into, {**files, name: json.dumps(value).encode()})
    return into


def profile(stacks: dict[str, int]) -> dict[str, Any]:
    """A profile as JSON values."""
    numbers = {"period_us": 1000.0, "window_s": 5.0, "events": 900.0, "sampler_cpu_s": 0.1}
    return {"sampler": "perf", **numbers, "stacks": stacks}


def test_a_run_comes_back_as_it_was(sealed: Path, tmp_path: Path) -> None:
    kept = bundle.read_bundle(sealed)
    assert kept.run == stored()
    assert list(kept.measurements) == MEASUREMENTS
    assert judge(kept.measurements, kept.run.plan) == judge(MEASUREMENTS, kept.run.plan)
    assert bundle.write(tmp_path / "again.zip", stored(), MEASUREMENTS) == kept.digest
    assert (tmp_path / "again.zip").read_bytes() == sealed.read_bytes()


def test_anybody_can_check_the_sums(sealed: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(sealed) as opened:
        opened.extractall(tmp_path)
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(check, cwd=tmp_path, check=True)
    assert "sha256sum --check SHA256SUMS" in (tmp_path / "README.txt").read_text()


def test_passwords_stay_at_home(tmp_path: Path) -> None:
    secret = making.measurement(settings={"report_password": "hunter2", "port": "3306"})
    bundle.write(tmp_path / "b.zip", stored(), [secret])
    assert not any(
        b"hunter2" in content for content in archive.read(tmp_path / "b.zip")[0].values()
    )
    (back,) = bundle.read_bundle(tmp_path / "b.zip").measurements
    assert back.server.settings["port"] == "3306"


def test_a_bundle_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    odd = making.with_trial(MEASUREMENTS[0], run_id="another")
    with pytest.raises(BundleError, match="of another run"):
        bundle.write(tmp_path / "b.zip", stored(), [odd])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BundleError, match="cannot be written"):
        bundle.write(tmp_path / "nowhere" / "b.zip", stored(), MEASUREMENTS)


FORGERIES: list[tuple[str, Change, str]] = [
    ("run.json", lambda v: v.update(run_id="../../etc"), "cannot read"),
    ("run.json", lambda v: v.update(format=99, dbdyno_version="9.1"), "by dbdyno 9.1 in another"),
    ("run.json", lambda v: v.update(measurements=7), "lacks trials/00006"),
    ("run.json", lambda v: v.update(trials_planned=-1), "cannot read"),
    ("run.json", lambda v: v.update(plan_hash="\x1b[2J"), "not the one that was run"),
    ("run.json", lambda v: v.pop("environment"), "cannot read"),
    ("plan.json", lambda v: v.update(seed=2), "not the one that was run"),
    ("plan.json", lambda v: v["design"].update(blocks=1000), "not the one that was run"),
    (
        "plan.json",
        lambda v: v["settings"].update(
            own={f"axis{n}": {f"v{m}": {} for m in range(10)} for n in range(30)}
        ),
        "are the most: ",
    ),
    ("trials/00002.json", lambda v: v["trial"].update(run_id="run-2"), "of another run"),
    ("trials/00002.json", lambda v: v.update(intervals=v["intervals"][:3]), "fewer intervals"),
    ("trials/00002.json", lambda v: v.update(window_s=float("nan")), "no JSON"),
    ("trials/00002.json", lambda v: v.update({"\x1b]0;x": 1}), "cannot read"),
    ("trials/00002.json", lambda v: v.update(intervals={"a": 1}), "cannot read"),
    (
        "trials/00002.json",
        lambda v: v["server"].update(newer=1),
        f"found: server.newer: dbdyno {__version__} does not know this field\n"
        "  hint: read it with dbdyno 0.1.0, which began it",
    ),
    ("run.json", lambda v: v.update(newer=1, dbdyno_version="1.7.0"), "with dbdyno 1.7.0, which"),
    ("trials/00002.json", lambda v: v.update(profile=profile({"f" * 20_001: 1})), "cannot read"),
    ("trials/00002.json", lambda v: v.update(profile=profile({"f": 10**13})), "cannot read"),
    (
        "trials/00002.json",
        lambda v: v.update(profile=profile({f"f{n}": 1 for n in range(100_001)})),
        "cannot read",
    ),
]


@pytest.mark.parametrize(("name", "change", "said"), FORGERIES)
def test_forged_content_with_right_sums_is_refused(
    sealed: Path, tmp_path: Path, name: str, change: Change, said: str
) -> None:
    path = forged(sealed, name, change, tmp_path / "forged.zip")
    with pytest.raises(BundleError, match=said) as caught:
        bundle.read_bundle(path)
    assert "\x1b" not in str(caught.value)


NO_JSON = (
    *(b"NaN", b"[Infinity]", b"-Infinity", b"1e999", b"[" * 100_000, b"", b"\xff\xfe", b"{"),
    b"1" * 9999,
)


@pytest.mark.parametrize("content", [*NO_JSON, b"[]", b"null"])
def test_files_that_are_no_json_of_ours_are_refused(
    sealed: Path, tmp_path: Path, content: bytes
) -> None:
    files, _ = archive.read(sealed)
    for name in ("run.json", "plan.json", "trials/00000.json", "trials/00000.hlog"):
        archive.write(tmp_path / "odd.zip", {**files, name: content})
        is_other = content not in NO_JSON or name.endswith("hlog")
        with pytest.raises(BundleError, match=None if is_other else f"{name} .* is no JSON"):
            bundle.read_bundle(tmp_path / "odd.zip")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_in_any_place_is_read_or_refused(
    data: st.DataObject, sealed: Path, tmp_path: Path
) -> None:
    name = data.draw(st.sampled_from(["run.json", "plan.json", "trials/00001.json"]))

    def change(value: dict[str, Any]) -> None:
        inner = value
        while data.draw(st.booleans()):
            nested = [v for v in inner.values() if isinstance(v, dict) and v]
            if not nested:
                break
            inner = data.draw(st.sampled_from(nested))
        inner[data.draw(st.sampled_from(sorted(inner)))] = data.draw(VALUES)

    path = forged(sealed, name, change, tmp_path / "forged.zip")
    try:
        kept = bundle.read_bundle(path)
    except BundleError:
        return
    assert len(kept.measurements) == 6
    assert kept.run.run_id
