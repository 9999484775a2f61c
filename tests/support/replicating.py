"""MySQL's way of replication without programs, for servers that only answer."""

from pathlib import Path

import pytest

from dbdyno.plan.systems import TopologyPlan
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.mysql import replication
from dbdyno.servers.reference import find


def ways(
    kind="semisync", reference="mysql:8.0.33", *, settings=(), replica_ms=0.0, replicas=1, **plan
):
    """A `MysqlReplication` whose programs have every plugin."""
    topology = TopologyPlan.model_validate({"replicas": replicas, "replication": kind, **plan})
    spec = ServerSpec("both", reference, dict(settings), topology, replica_ms=replica_ms)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replication, "_check_plugins", lambda *asked: None)
        return replication.MysqlReplication(spec, find(reference), Path(), print)
