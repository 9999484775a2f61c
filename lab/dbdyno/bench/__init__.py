"""Runs plans: blocks of trials in a drawn order, on real servers, each trial stored as it ends.

    runner   a whole run            arm      one server, one ladder of trials
    trial    one measurement        bracket  the server's counters at the window's two edges
    dataset  loaded once            watch    host and processes each second, read by host
    order    who comes when         forecast how long it takes
    budget   blocks that fit into a time    pilot    finds an open loop's rates
    procedure  steps before a trial    setting  what a cell's setting means here
    settling   a server comes to rest  warm_up  load until it is steady
    disk       is there room           void     a trial that cannot be run
    dataset_digest  are the rows the same
    witness    evidence around trials: probe, ceiling, query_plans, doubled_threads by turns
    held_back  quotas, heat, clock, swap   durability  what a kill -9 leaves
    engine_process  the side of the lab of the child that drives the engine (`dbdyno.worker`)
    load_spec, record, load_error   what the engine is asked, what it saw, what it refuses
    lab      what all steps share   environment     the machine in words

Begin to read at `runner.run`; a trial itself is `trial.run_trial`.
"""

from dbdyno.bench.budget import fitted
from dbdyno.bench.disk import bytes_expected
from dbdyno.bench.forecast import seconds_expected
from dbdyno.bench.order import trials_of
from dbdyno.bench.progress import Progress
from dbdyno.bench.runner import Enough, run

__all__ = ["Enough", "Progress", "bytes_expected", "fitted", "run", "seconds_expected", "trials_of"]
