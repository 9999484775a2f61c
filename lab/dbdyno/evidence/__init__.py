"""What verdicts rest on, as a value that can be loaded, sealed into a file and opened again.

evidence   a run with its measurements, from a workspace or from a bundle
bundle     evidence ⇄ the files of a bundle
strict_json   JSON whose numbers are finite
archive    files ⇄ one zip file with their SHA-256 sums, read as if an enemy had written it
histogram_log   a trial's histograms as HdrHistogram's interval log
foreign    what a plan that somebody else wrote would do here
"""

from dbdyno.evidence.evidence import (
    Evidence,
    facts_of,
    load,
    of_bundle,
    of_run,
    of_stored,
    trials_at_most,
    trials_owed,
)

__all__ = [
    "Evidence",
    "facts_of",
    "load",
    "of_bundle",
    "of_run",
    "of_stored",
    "trials_at_most",
    "trials_owed",
]
