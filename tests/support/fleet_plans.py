"""Plans of fleets: whole runs on small data, and the published experiment."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dbdyno.plan.file import read
from dbdyno.plan.fleet import FleetPlan
from dbdyno.plan.plan import DatasetPlan, DesignPlan, Plan, TrialPlan
from dbdyno.plan.systems import SystemPlan
from dbdyno.servers.base import Server
from support.real_server import SMALL_REDO
from support.source import ROOT

SECRET = "FLEET_SECRET"
LABELS = ("a", "b")


def written(
    workspace: Path,
    fleet: dict[str, Any],
    *,
    blocks: int,
    window: str,
    server: Server | None = None,
) -> str:
    """The file of a plan of two systems: servers that the lab starts, or databases of a server."""
    own = [{"label": one, "reference": "mysql:5.7.22", "settings": SMALL_REDO} for one in LABELS]
    plan = {
        "systems": own if server is None else endpoints(server, LABELS),
        "workloads": ["oltp_point_select"],
        "dataset": {"tables": 1, "rows": 1000},
        "load": {"threads": [4]},
        "trial": {"warmup": 0, "window": window},
        "design": {"disturbance_max": "100%", "blocks": blocks},
        "fleet": fleet,
    }
    file = workspace.parent / "plan.yaml"
    file.write_text(json.dumps(plan))
    return str(file)


def endpoints(server: Server, labels: Iterable[str], addresses: int = 1) -> list[dict[str, Any]]:
    """Systems that are databases of one server, whose password the environment has."""
    places = ",".join([f"127.0.0.1:{server.endpoint.port}"] * addresses)
    return [
        {
            "label": label,
            "reference": f"mysql://{server.credentials.user}@{places}/{label}",
            "password_env": SECRET,
        }
        for label in labels
    ]


def published(server: Server) -> Plan:
    """The plan's four workloads at its least load, on small tables and for a second each."""
    plan = read(ROOT / "plans" / "tidb-v3-vs-v2.yaml", lambda reference: None)
    systems = endpoints(server, ("older", "newer"), 3)
    assert len(plan.systems) == len(systems)
    assert plan.load.generators == 3
    parts = {
        "systems": tuple(SystemPlan(**one) for one in systems),
        "published": None,
        "dataset": DatasetPlan(tables=2, rows=1000),
        "load": plan.load.model_copy(update={"threads": (min(plan.load.threads),)}),
        "trial": TrialPlan(warmup_s=0, window_s=1),
        "design": DesignPlan(blocks=1, disturbance_max=1.0),
        "fleet": FleetPlan(generators=3),
    }
    return plan.model_copy(update=parts)
