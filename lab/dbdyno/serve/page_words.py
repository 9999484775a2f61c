"""What the pages say of themselves; names, numbers and states come from the runs."""

from __future__ import annotations

from typing import Final

from dbdyno.language.words import Said, say

WORDS: Final[dict[str, Said]] = {
    "skip": say("Skip to the content"),
    "title": say("Runs of this workspace"),
    "runs": say("All runs"),
    "run": say("Run"),
    "what": say("What"),
    "systems": say("Systems"),
    "trials": say("Trials stored"),
    "state": say("State"),
    "pages": say("Pages"),
    "report": say("Report"),
    "live": say("Live"),
    "no_runs": say("This workspace holds no run yet. A run that begins appears here."),
    "compare": say("Compare two systems"),
    "compare_how": say(
        "Any two systems of any runs. Only systems of one run were measured in the same blocks; "
        "others are shown side by side without a verdict."
    ),
    "first": say("First system"),
    "second": say("Second system"),
    "show": say("Show"),
    "cell": say("Cell"),
    "metric": say("Metric"),
    "difference": say("Second against first"),
    "numbers": say("Both systems, cell by cell"),
    "no_common": say("They have no cell in common that both have measured."),
    "only": say("Measured by one of them only"),
    "unlike": say("What is not alike in the two runs"),
    "name": say("What"),
    "no_page": say("There is no such page."),
    "trouble": say("This cannot be shown"),
    "enter": say("Enter"),
    "token": say("Token"),
    "token_how": say("The token is in the file that `dbdyno serve` was started with."),
    "token_wrong": say("That is not the token."),
    "now": say("Now"),
    "waiting": say("Waiting for the run's next word."),
    "over": say("Nothing is being measured now; the report has what is stored."),
    "cut_off": say("The connection is interrupted; the page tries again by itself."),
    "seconds": say("The present cell, second by second"),
    "seconds_how": say(
        "Each line is one system's trial of this cell in this block; warm-up is drawn too. The "
        "table below has the outcome of every trial."
    ),
    "ended": say("Trials that have ended"),
    "block": say("block"),
    "system": say("System"),
    "outcome": say("Outcome"),
    "left": say("left"),
    "trial": say("trial"),
    "warmup": say("warm-up"),
    "measured": say("measured"),
    "tps": say("TPS"),
    "p95": say("p95, ms"),
    "second_axis": say("seconds since the load began"),
}
