"""The configuration keys that make a server a primary, a replica or a member of a group.

They are laid over what the plan says of the system, so that a primary and its replicas differ in
nothing else. Whether commits wait is not among them: that is switched on once replicas can answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dbdyno.errors import UsageError
from dbdyno.plan.plan_systems import TopologyPlan
from dbdyno.plan.settings import OptionValue
from dbdyno.servers.mysql.settings import OFF_WORDS, normalise
from dbdyno.servers.mysql.topology_words import Words

PLUGINS: Final = "plugin_load_add"
GROUP_PLUGIN: Final = "group_replication.so"


def plugins_of(plan: TopologyPlan, words: Words) -> tuple[str, ...]:
    """The plugin files that the topology needs: the primary's, then the replicas'."""
    if plan.replication == "group":
        return (GROUP_PLUGIN, GROUP_PLUGIN)
    return words.semisync_plugins if plan.replication == "semisync" else ()


def loading_keys(
    plan: TopologyPlan, words: Words, own: Mapping[str, str]
) -> dict[str, OptionValue]:
    """For the primary alone while rows are loaded: nothing is logged, so all copies begin equal."""
    return {"log_bin": False, **_plugin(plan, words, own, 0)}


def member_keys(
    plan: TopologyPlan, words: Words, own: Mapping[str, str], number: int
) -> dict[str, OptionValue]:
    """For the primary (number 0) or a replica that replicates.

    Args:
        own: what the plan says of the system for this start, by variable name.
    """
    keys: dict[str, OptionValue] = {"server_id": number + 1}
    if own.get("log_bin", "OFF").lower() in OFF_WORDS:
        keys["log_bin"] = True
    if words.mariadb:
        keys["binlog_format"] = own.get("binlog_format", "ROW")
    else:
        keys |= {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}
    if number:
        keys["read_only"] = True
    if plan.replication == "semisync":
        keys |= _semisync(plan, words, number)
    return {**keys, **_plugin(plan, words, own, number)}


def group_keys(name: str, addresses: list[str], number: int) -> dict[str, OptionValue]:
    """For a member of the group `name`, whose members talk at `addresses` (host:port)."""
    hosts = [address.rpartition(":")[0] for address in addresses]
    return {
        "group_replication_group_name": name,
        "group_replication_start_on_boot": "OFF",
        "group_replication_local_address": addresses[number],
        "group_replication_group_seeds": ",".join(addresses),
        "group_replication_ip_allowlist": ",".join(dict.fromkeys(hosts)),
        "group_replication_ssl_mode": "DISABLED",  # required from 8.4 on; no server here has TLS
        "group_replication_recovery_use_ssl": "OFF",
        "group_replication_recovery_get_public_key": "ON",
        "report_host": hosts[number],
    }


def own_keys(*asked: Mapping[str, OptionValue]) -> dict[str, str]:
    """What a system is told for a start, by variable name, later ones over earlier ones.

    Raises:
        UsageError: it is told to keep no binary log, which replicas read.
    """
    own: dict[str, str] = {}
    for given in asked:
        own |= normalise(given)
    if own.get("log_bin", "ON").lower() in OFF_WORDS:
        raise UsageError(
            "a system with replicas cannot be without a binary log: they read it",
            wanted="log_bin ON, or not given",
            found="log_bin OFF",
            hint="leave the setting out, or give the system no replicas",
        )
    return own


def _semisync(plan: TopologyPlan, words: Words, number: int) -> dict[str, OptionValue]:
    if number:
        return {words.variable("replica", "enabled"): "ON"}
    return {
        words.variable("source", "timeout"): round(plan.timeout_s * 1000),
        words.variable("source", "wait_point"): plan.wait_point.upper(),
    }


def _plugin(
    plan: TopologyPlan, words: Words, own: Mapping[str, str], number: int
) -> dict[str, OptionValue]:
    """The plugin beside those that the plan itself loads."""
    plugins = plugins_of(plan, words)
    if not plugins:
        return {}
    asked = own.get(PLUGINS)
    return {PLUGINS: ";".join([*([asked] if asked else []), plugins[1 if number else 0]])}
