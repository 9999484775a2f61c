"""What the plan asks for, a sentence each: data, load, trials, blocks, servers, margin.

`procedure` and `replicas` say what else is done between trials and behind a primary.
"""

from __future__ import annotations

from typing import Final

from dbdyno.language.words import Text, count, listed, name, say
from dbdyno.measurement.metric import PRIMARY, RATE_AT_LIMIT
from dbdyno.plan.cell_metric import latency_of
from dbdyno.plan.plan import Plan
from dbdyno.plan.settings import axes
from dbdyno.report.numbers import seconds, share

SYSBENCH_DEFAULT: Final = "special"


def asked(plan: Plan) -> list[Text]:
    """What is measured and how, in the order in which it is done."""
    dataset, trial, design = plan.dataset, plan.trial, plan.design
    return [
        *(
            [say("This is the scale {scale} of its plan file.", scale=plan.scale)]
            * bool(plan.scale)
        ),
        say(
            "Dataset: {tables} of {rows} each.",
            tables=count(dataset.tables, "table"),
            rows=count(dataset.rows, "row"),
        ),
        *(_load(plan, load) for load in _loads(plan)),
        _distribution(plan),
        say(
            "Each trial: {warmup} warm-up, which is recorded and not counted, then a window of "
            "{window}.",
            warmup=seconds(trial.warmup_s),
            window=seconds(trial.window_s),
        ),
        say(
            "{blocks}{fitted}: in each, every system runs next to the others in time, in an order "
            "drawn from seed {seed}; one seed gives every system of a block the same requests.",
            blocks=count(design.blocks, "block"),
            fitted=_fitted(plan),
            seed=plan.seed,
        ),
        *_until_decided(plan),
        *_varied(plan),
        _servers(plan),
        say(
            "Margin: a difference of {margin} in {metric} is what matters.",
            margin=share(design.margin),
            metric=_compared(plan),
        ),
    ]


def _load(plan: Plan, load: Text) -> Text:
    if plan.procedure.prepared_statements:
        return say("Load: {load}, prepared statements.", load=load)
    return say("Load: {load}, plain statements.", load=load)


def _loads(plan: Plan) -> list[Text]:
    load = plan.load
    levels = listed(str(threads) for threads in sorted(load.threads))
    told: list[Text] = [say("closed loop of {levels} connections, without pauses", levels=levels)]
    rates = listed(load.rates)
    if load.is_open:
        over = {"rates": rates, "connections": load.connections}
        told.append(
            say("open loop of {rates} events/s over {connections} connections", **over)
            if rates
            else say("open loop at rates around the limit, over {connections} connections", **over)
        )
    return told if load.threads else told[1:]


def _compared(plan: Plan) -> Text:
    """What the verdicts are about."""
    labels = [PRIMARY.label] if plan.load.threads else []
    labels += [latency_of(plan).label] if plan.load.rates else []
    labels += [RATE_AT_LIMIT.label] if plan.load.slo else []
    return listed(labels)


def _servers(plan: Plan) -> Text:
    """How often a server is new, and what it finds."""
    restored = plan.procedure.fresh_data == "start"
    match plan.procedure.restart == "block", restored:
        case True, True:
            return say(
                "A freshly started server on a restored dataset for each arm of a block; its load "
                "levels run on it in an order drawn per block."
            )
        case True, False:
            return say(
                "A freshly started server for each arm of a block; its load levels run on it in "
                "an order drawn per block."
            )
        case False, True:
            return say("A freshly started server on a restored dataset for every cell.")
        case _:
            return say("A freshly started server for every cell.")


def _until_decided(plan: Plan) -> list[Text]:
    if plan.design.stop == "blocks":
        return []
    return [
        say(
            "The run was to end when every cell is decided, after {most} blocks at most: each "
            "interval is a repeated one, wide enough to hold with those of all other looks.",
            most=plan.design.blocks,
        )
    ]


def _fitted(plan: Plan) -> Text:
    budget_s = plan.design.budget_s
    if budget_s is None:
        return name("")
    return say(", as many as fit into {hours:.3g} h by forecast", hours=budget_s / 3600)


def _varied(plan: Plan) -> list[Text]:
    return [
        say("Varied on every system: {axis} ({values}).", axis=axis, values=listed(values))
        if len(values) > 1
        else say("On every system: {axis} {value}.", axis=axis, value=values[0])
        for axis, values in axes(plan.settings).items()
    ]


def _distribution(plan: Plan) -> Text:
    """The distribution, with a warning to those who compare with numbers of a plain sysbench."""
    if plan.distribution.name == SYSBENCH_DEFAULT:
        return say(
            "Rows are chosen by sysbench's {distribution} distribution, the default of its 1.0.",
            distribution=SYSBENCH_DEFAULT,
        )
    return say(
        "Rows are chosen by sysbench's {distribution} distribution, not {default}, the default of "
        "its 1.0: numbers under the two cannot be compared.",
        distribution=plan.distribution.name,
        default=SYSBENCH_DEFAULT,
    )
