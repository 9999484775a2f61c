"""Runs on many machines, by Ray: generators apart from servers, blocks spread over machines."""

import os

from dbdyno.errors import UsageError

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before Ray is imported: it reports nothing
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # a warning about GPUs less
try:
    import ray  # noqa: F401 - whether it is there
except ImportError as error:
    raise UsageError(
        "a fleet takes Ray, which is not installed here",
        wanted="the same dbdyno and Ray on every node",
        found=str(error),
        hint="pip install 'dbdyno[fleet]'",
    ) from error
