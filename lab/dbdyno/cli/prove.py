"""`dbdyno prove-durability`, of a server, and `dbdyno certify`, of this machine's load generator.

Exit status 0: it was proved. 3: it was not. Commits were lost, or had reached no disk when they
were answered; or a number of the generator lies beyond its limit, and runs on this machine give no
verdict until the certificate is made again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dbdyno.cli import options
from dbdyno.cli.progress import note, noted
from dbdyno.errors import GateError
from dbdyno.experiment import certify, durability
from dbdyno.files import locked, temporary_folder
from dbdyno.judge.checks.durability import DurabilityVerdict, Proof, verdict_of
from dbdyno.judge.uses import power
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Text, listed, name, say
from dbdyno.measurement.certificate import LAG_MS_MAX, PRODUCTS, Certificate
from dbdyno.measurement.parts import KilledServer
from dbdyno.plan.systems import label_of
from dbdyno.report.formats.stdout import Output, Result, render
from dbdyno.report.numbers import NONE, number
from dbdyno.report.parts import Items, Paragraph, Table, numeric, table
from dbdyno.report.tell.durability import proof_reasons, proof_sentence
from dbdyno.report.tell.measured import QUESTIONS, certificate_faults
from dbdyno.report.tell.terms import term
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.programs import places

KEPT: Final = (Proof.DURABLE,)


def prove_durability(
    system: options.Reference,
    settings: options.ServerSettings = None,
    kills: options.Kills = 3,
    connections: options.CommitConnections = durability.CONNECTIONS,
    seconds: options.CommitSeconds = durability.LOAD_S,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Kill a server under load and look for lost commits. dbdyno kills the server with SIGKILL."""
    spec = ServerSpec(label_of(system), system, options.settings_of(settings or []))
    cache = places.make_cache_folder()
    with (
        locked(cache / "durability.lock", "the proof of durability", wait=note),
        temporary_folder(cache) as folder,
        noted() as lines,
    ):
        folder.chmod(0o755)  # the servers' user must enter it
        killed = durability.prove(
            spec,
            folder / "server",
            lines.stage,
            kills=kills,
            connections=connections,
            load_s=seconds,
        )
    verdict = verdict_of(killed)
    sys.stdout.write(render(DurabilityResult(killed, verdict), output, lang))
    if verdict.proof not in KEPT:
        raise GateError(
            f"{spec.label}: durable commits are not proved",
            wanted="every acknowledged commit, flushed before it was acknowledged",
            found=f"{verdict.proof.value}: {proof_sentence(verdict, killed)}",
            hint="see docs/how-to/durability.md for what each word means",
        )


@dataclass(frozen=True)
class DurabilityResult(Result):
    """Commits of a killed server after recovery, and the verdict."""

    killed: KilledServer
    verdict: DurabilityVerdict

    def plain(self, language: Language) -> Iterator[Text]:
        """The verdict, its evidence, and a line for each kill."""
        yield self._answer()
        yield from _indented(proof_reasons(self.verdict, self.killed))
        yield name("")
        yield from _indented(_rounds(self.killed))

    def markdown(self) -> Iterator[Paragraph | Items]:
        """The verdict, and a list of each of the two."""
        yield Paragraph(self._answer(), strong=True)
        yield Items(tuple(proof_reasons(self.verdict, self.killed)))
        yield Items(tuple(_rounds(self.killed)))

    def document(self) -> dict[str, Any]:
        """The verdict and every count behind it."""
        return {
            "verdict": {
                **self.verdict.model_dump(mode="json"),
                "sentence": proof_sentence(self.verdict, self.killed),
                "reasons": proof_reasons(self.verdict, self.killed),
            },
            "seen": self.killed.model_dump(mode="json", exclude={"settings"}),
        }

    def _answer(self) -> Text:
        sentence = proof_sentence(self.verdict, self.killed)
        return say("{proof}: {sentence}", proof=term(self.verdict.proof), sentence=sentence)


def _rounds(killed: KilledServer) -> list[Text]:
    return [
        say(
            "kill {number}: {acknowledged} commits acknowledged in {load_s:.1f} s; found after "
            "recovery: {kept} of these, and {unanswered} not yet acknowledged; server back after "
            "{recovery_s:.1f} s",
            number=number,
            acknowledged=one.acknowledged,
            load_s=one.load_s,
            kept=one.kept,
            unanswered=one.unanswered,
            recovery_s=one.recovery_s,
        )
        for number, one in enumerate(killed.kills, 1)
    ]


def _indented(sentences: Iterable[Text]) -> list[Text]:
    return [say("  {sentence}", sentence=sentence) for sentence in sentences]


def prove_generator(
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Test the load generator's accuracy (one minute). It needs no database."""
    with noted() as lines:
        certificate = certify.certify(lines.stage, power.difference_seen_in_time)
    sys.stdout.write(render(CertificateResult(certificate), output, lang))
    if not certificate.passed:
        facts = certificate.facts(certificate.machine).model_dump()
        faults = certificate_faults(facts["wrong"], facts["late"])
        raise GateError(
            "the generator did not pass on this machine",
            wanted="every number within its limit",
            found="; ".join(faults),
            hint="quiet the machine and try again; until it passes, runs here give no verdict",
        )


@dataclass(frozen=True)
class CertificateResult(Result):
    """A new certificate."""

    certificate: Certificate

    def plain(self, language: Language) -> Iterator[Text | Table]:
        """The answer, then each part as a table."""
        yield self._answer()
        for part in self._tables():
            yield name("")
            yield part
        yield name("")
        yield from self._machine()

    def markdown(self) -> Iterator[Paragraph | Items | Table]:
        """The same."""
        yield Paragraph(self._answer(), strong=True)
        yield from self._tables()
        yield Items(tuple(self._machine()))

    def document(self) -> dict[str, Any]:
        """Every number, and whether it passed."""
        certificate = self.certificate
        return {
            "passed": certificate.passed,
            "digest": certificate.digest,
            **certificate.model_dump(mode="json"),
        }

    def _answer(self) -> Text:
        certificate = self.certificate
        about = {"digest": certificate.digest[:12], "made": certificate.made_at}
        if certificate.passed:
            return say("passed: certificate {digest} of {made}", **about)
        return say("NOT passed: certificate {digest} of {made}", **about)

    def _tables(self) -> Iterator[Table]:
        certificate = self.certificate
        yield table(
            say("On a server that answers at once"),
            certificate.reached,
            (say("Protocol"), lambda one: PRODUCTS[one.driver]),
            (numeric(say("Connections")), lambda one: one.connections),
            (numeric(say("Queries/s")), lambda one: number(one.queries_per_s, 0)),
            (
                numeric(say("CPU µs per query")),
                lambda one: number(one.cpu_us_per_query),
            ),
        )
        yield table(
            say("Delay of sending at a fixed rate (p99 at most {limit:g} ms)", limit=LAG_MS_MAX),
            certificate.punctuality,
            (numeric(say("Requests/s asked for")), lambda one: number(one.rate_per_s, 0)),
            (numeric(say("Reached")), lambda one: number(one.reached_per_s, 0)),
            (numeric(say("Late by, p50 ms")), lambda one: number(one.lag_ms_p50, 3)),
            (numeric(name("p99 ms")), lambda one: number(one.lag_ms_p99, 3)),
            (numeric(say("Max ms")), lambda one: number(one.lag_ms_max, 3)),
        )
        yield table(
            say("Compared with a server of known throughput and latency"),
            certificate.answers,
            (say("Server and load"), lambda one: QUESTIONS[one.question]),
            (say("Statistic"), lambda one: one.statistic),
            (numeric(say("True")), lambda one: number(one.truth)),
            (numeric(say("Seen")), lambda one: number(one.seen)),
            (numeric(say("Error")), lambda one: say("{error:+.1%}", error=one.error)),
            (numeric(say("Limit")), lambda one: say("{limit:.1%}", limit=one.allowed)),
        )

    def _machine(self) -> Iterator[Text]:
        noise = self.certificate.noise
        yield say(
            "Machine: computing varied by {cpu:.1%}, a synced write takes {sync} ms, the "
            "hypervisor took {steal:.1%} of the CPU time.",
            cpu=noise.cpu,
            sync=NONE if noise.sync_ms is None else number(noise.sync_ms),
            steal=noise.steal,
        )
        if self.certificate.repeated:
            yield say(
                "Measurements repeated because they were beyond a limit: {repeated}.",
                repeated=self.certificate.repeated,
            )
        yield say(
            "Smallest difference that four of five comparisons find, with a load that needs "
            "only CPU: {differences}.",
            differences=listed(
                say("{ratio:.1%} in {minutes} min", ratio=one.ratio, minutes=one.minutes)
                for one in self.certificate.differences
            ),
        )
