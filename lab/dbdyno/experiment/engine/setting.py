"""What a cell's setting means here: keys of one server's start, and how the load is sent.

The axes are the plan's, the names of a product's variables those of `servers.bundles`. A share of
the dataset is a share of the baseline's: a quarter means as many bytes of memory on every system,
though one may store the same rows in fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dbdyno.errors import UsageError
from dbdyno.measurement.measurement import Cell
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import OptionValue, combinations, share
from dbdyno.servers import axes, endpoint_reference, open

OF_THE_LOAD: Final = "prepared_statements"
"""The axis that no server knows of."""


def values_of(plan: Plan, setting: str) -> dict[str, str]:
    """The value on each axis of a setting of the plan; none for one the plan does not have."""
    return combinations(plan.settings).get(setting, {})


def prepared(plan: Plan, cell: Cell) -> bool:
    """Whether the cell's load uses prepared statements: as its setting says, else the procedure."""
    chosen = values_of(plan, cell.setting).get(OF_THE_LOAD)
    return plan.procedure.prepared_statements if chosen is None else chosen == "on"


def wants_dataset_bytes(plan: Plan) -> bool:
    """Whether some setting is a share of the loaded dataset."""
    return any(share(size) is not None for size in plan.settings.buffer_pool or ())


def start_keys(
    plan: Plan, label: str, setting: str, dataset_bytes: Callable[[], int | None]
) -> dict[str, OptionValue]:
    """The keys with which a system is started for a setting; none where nothing is varied.

    Args:
        dataset_bytes: the baseline's loaded tables; asked only if a share of them is wanted.

    Raises:
        UsageError: this product or version cannot have the setting.
    """
    values = {axis: v for axis, v in values_of(plan, setting).items() if axis != OF_THE_LOAD}
    if not values:
        return {}
    reference = plan.system(label).reference
    if endpoint_reference.is_endpoint(reference):
        raise UsageError(
            f"{label}: the settings of an endpoint are its owner's, so they cannot be varied",
            wanted=setting,
            hint="set them at the server and name it once for each, or vary prepared_statements",
        )
    product, version = open.product_of(reference)
    known_bytes = dataset_bytes() if wants_dataset_bytes(plan) else None
    return axes.keys_of(product, version, values, plan.settings.own, known_bytes)
