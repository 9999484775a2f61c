"""Runs on many machines, by Ray: generators apart from servers, blocks spread over machines."""

import os

from dbdyno.errors import not_installed

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before Ray is imported: it reports nothing
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # a warning about GPUs less
try:
    import ray  # noqa: F401 - whether it is there
except ImportError as error:
    raise not_installed("a fleet takes Ray", "fleet", error) from error
