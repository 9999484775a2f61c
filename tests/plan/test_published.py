"""The shipped plans at full scale are the published experiments, as golden/published.yaml has them.

What a plan leaves out or does otherwise it says under `published: differences`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from dbdyno.errors import PlanError
from dbdyno.plan import file
from dbdyno.plan.plan import Plan, cells, comparisons
from dbdyno.plan.systems import SystemPlan
from dbdyno.servers.mysql.settings import normalise
from support.source import ROOT

PUBLISHED: dict[str, Any] = YAML(typ="safe").load(
    (ROOT / "tests" / "golden" / "published.yaml").read_text()
)
NAMES = list(PUBLISHED)


def plan_of(name: str, scale: str = "") -> Plan:
    path = ROOT / "plans" / f"{name}.yaml"
    return file.read(path, lambda reference: None, scale)


def keys_of(plan: Plan, system: SystemPlan) -> dict[str, str]:
    """A system's own keys and those that an axis with one value gives to all."""
    shared = (next(iter(v.values())) for v in plan.settings.own.values() if len(v) == 1)
    found = dict(system.settings)
    for keys in shared:
        found |= keys
    return normalise(found)


def normalised(asked: dict[str, Any]) -> dict[str, str]:
    return normalise({k: tuple(v) if isinstance(v, list) else v for k, v in asked.items()})


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_is_what_was_published(name: str) -> None:
    plan, facts = plan_of(name), PUBLISHED[name]
    assert list(plan.load.threads) == facts["threads"]
    assert (plan.dataset.tables, plan.dataset.rows) == (facts["tables"], facts["rows"])
    assert sorted(one.name for one in plan.workloads) == sorted(facts["workloads"])
    assert plan.distribution.name == facts["distribution"]
    assert facts.get("window_s") in (None, plan.trial.window_s)
    mixed = [one.options for one in plan.workloads if one.name == "legacy_oltp"]
    assert mixed == ([facts["mixed"]] if "mixed" in facts else [])
    assert list(plan.settings.buffer_pool or ()) == facts.get("buffer_pool", [])
    assert facts.get("durability") in (None, list(plan.settings.durability or ()))


@pytest.mark.parametrize("name", NAMES)
def test_every_system_has_the_published_keys(name: str) -> None:
    plan, facts = plan_of(name), PUBLISHED[name]
    for system in plan.systems:
        own = facts.get("settings_of", {}).get(system.label, {})
        wanted = normalised({**facts.get("settings", {}), **own})
        assert wanted.items() <= keys_of(plan, system).items()
        foreign = {key for label, k in facts.get("settings_of", {}).items() for key in k} - {*own}
        assert not foreign & keys_of(plan, system).keys()
        assert list(system.after_start) == facts.get("after_start", [])
        assert facts.get("notes", {}).items() <= system.notes.items()


COMPARED = {"systems", "workloads", "threads", "tables", "rows", "distribution"}
"""Facts that each plan records."""


@pytest.mark.parametrize("name", NAMES)
def test_what_a_report_calls_published_was(name: str) -> None:
    published, golden = plan_of(name).published, PUBLISHED[name]
    facts = published.facts.model_dump(mode="json", exclude_defaults=True)
    assert facts.keys() >= COMPARED
    if "settings" in facts:
        assert normalised(facts.pop("settings")) == normalised(golden["settings"])
    assert facts == {key: golden[key] for key in facts}
    assert published.setup["repeats"] == golden.get("repeats", "not told")


def test_three_systems_stand_in_one_ladder_and_the_headline_is_judged() -> None:
    facts = PUBLISHED["greatsql-vs-mysql"]
    for scale in ("", "small"):
        plan = plan_of("greatsql-vs-mysql", scale)
        assert len(plan.systems) == len(facts["labels"])
        judged = [" against ".join(one.labels[::-1]) for one in comparisons(plan)]
        pool, plain = judged[0], judged[1]
        assert "thdpool against MySQL" in pool
        assert "thdpool" not in plain
    full = plan_of("greatsql-vs-mysql")
    assert sorted(one.label for one in full.systems) == facts["labels"]
    assert list(full.compare)[:2] == facts["printed"]


@pytest.mark.parametrize("name", NAMES)
def test_small_scales_keep_the_systems_and_what_is_compared(name: str) -> None:
    full, small = plan_of(name), plan_of(name, "small")
    assert len(small.systems) == len(full.systems)
    assert len(comparisons(small)) == len(comparisons(full))


def test_claims_are_about_cells_of_the_whole_plan_and_a_scale_may_leave_them_out() -> None:
    name = "mysql57-vs-80"
    for scale in ("", "short", "small"):
        published = plan_of(name, scale).published
        assert [one.text for one in published.claims] == PUBLISHED[name]["claims"]
    whole, short = plan_of(name), plan_of(name, "short")
    assert cells(short) == cells(whole)
    assert len(cells(short)) == 2 * 3 * 8


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("{text: t, of: b, than: a}", "give ratio_min, ratio_max or both"),
        ("{text: t, of: b, ratio_min: 1.1}", "give the other system as than"),
        ("{text: t, of: b, than: a, ratio_min: 2, ratio_max: 1}", "ratio_max must be above"),
        ("{text: t, of: b, than: a, ratio_min: 2, metric: speed}", "no metric 'speed'; there are"),
        ("{text: t, of: b, than: c, ratio_min: 2}", "claims[0]: the plan has no c;"),
        (
            "{text: t, of: b, than_threads: 99, ratio_min: 2}",
            "claims[0]: the plan has no 99 threads",
        ),
        ("{text: t, of: b, than: a, ratio_min: 2, holds: average}", "are for dbdyno audit"),
        ("{text: t, of: b, than: a, ratio_min: 2, at: {pool: 1G}}", "are for dbdyno audit"),
    ],
)
def test_a_claim_that_cannot_be_judged_is_a_mistake_with_its_line(
    tmp_path: Path, claim: str, message: str
) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "systems: [{label: a, reference: mysql:5.7.22}, {label: b, reference: mysql:8.0.15}]\n"
        "workloads: [oltp_read_only]\n"
        "load: {threads: [8]}\n"
        f"published:\n  source: s\n  claims:\n    - {claim}\n"
    )
    with pytest.raises(PlanError) as caught:
        file.read(path, lambda reference: None)
    assert message in str(caught.value)
