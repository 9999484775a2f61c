"""A setting's keys are the product's, shares are of the baseline's data, the load has its own."""

import pytest

from dbdyno.errors import UsageError
from dbdyno.experiment.engine.spec import prepared, start_keys, values_of, wants_dataset_bytes
from dbdyno.measurement.measurement import Cell
from dbdyno.plan.settings import SettingsPlan, setting_names
from dbdyno.plan.systems import SystemPlan
from support import making


def plan(**axes):
    return making.plan(settings=SettingsPlan(**axes))


def keys(chosen, label=making.A, dataset_bytes=None):
    return [
        start_keys(chosen, label, setting, dataset_bytes)
        for setting in setting_names(chosen.settings)
    ]


def test_nothing_varied_is_nothing_set():
    assert keys(plan()) == [{}]
    assert values_of(plan().settings, "of an imported log") == {}


def test_a_settings_keys_are_those_of_the_systems_product_and_version():
    assert keys(plan(durability=("double-1", "0/2"))) == [
        {"innodb_flush_log_at_trx_commit": 1, "sync_binlog": 1},
        {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0},
    ]


def test_a_share_is_one_of_the_baselines_bytes_for_every_system():
    chosen = plan(buffer_pool=("50%",))
    assert wants_dataset_bytes(chosen.settings)
    sizes = {
        keys(chosen, label, 100 * 1024**2)[0]["innodb_buffer_pool_size"]
        for label in (making.A, making.B)
    }
    assert sizes == {50 * 1024**2}


def test_bytes_need_no_dataset():
    chosen = plan(buffer_pool=("1G",))
    assert not wants_dataset_bytes(chosen.settings)
    assert keys(chosen)[0]["innodb_buffer_pool_size"] == 1024**3


def test_what_a_version_cannot_have_is_said():
    with pytest.raises(UsageError, match="no thread pool"):
        keys(plan(thread_pool=("on",)), making.B)


def test_prepared_statements_are_the_loads_and_no_servers():
    chosen = plan(prepared_statements=("on", "off"))
    assert keys(chosen) == [{}, {}]
    found = [
        prepared(chosen, Cell(workload="w", threads=1, setting=setting))
        for setting in (*setting_names(chosen.settings), "unknown")
    ]
    assert found == [True, False, True]
    plain = making.with_parts(plan(), procedure={"prepared_statements": False})
    assert prepared(plain, Cell(workload="w", threads=1)) is False


def test_an_endpoints_settings_cannot_be_varied_but_the_loads_can():
    endpoint = SystemPlan(label="e", reference="mysql://u@h:1/d")
    chosen = plan(durability=("0/2",), prepared_statements=("on",))
    with pytest.raises(UsageError, match="its owner's"):
        keys(chosen.model_copy(update={"systems": (endpoint,)}), "e")
    of_the_load = plan(prepared_statements=("off",)).model_copy(update={"systems": (endpoint,)})
    assert keys(of_the_load, "e") == [{}]
