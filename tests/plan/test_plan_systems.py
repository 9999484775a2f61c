"""What a system is called that was given no label, and which ones others run."""

from __future__ import annotations

import pytest

from dbdyno.plan.plan import SystemPlan, label_of


@pytest.mark.parametrize(
    ("reference", "label"),
    [
        ("mysql:8.0.15", "mysql:8.0.15"),
        ("mysql://bench:secret@db1:4000,db2:4000/sbtest", "db1:4000-db2:4000-sbtest"),
        ("container:percona/percona-server@sha256:0f2a", "container:percona-percona-server"),
        ("path:/opt/mysql", "path:-opt-mysql"),
        ("tarball:https://x.org/a/mysql-8.0.33-linux.tar.xz#sha256=0f2a", "mysql-8.0.33-linux"),
    ],
)
def test_a_system_without_a_label_is_called_by_its_reference(reference: str, label: str) -> None:
    assert label_of(reference) == label
    assert SystemPlan(label=label_of(reference), reference=reference).label == label


def test_endpoints_are_known_by_their_reference() -> None:
    assert SystemPlan(label="x", reference="mysql://u@h/d").is_endpoint
    assert not SystemPlan(label="x", reference="mysql:8.0.15").is_endpoint
