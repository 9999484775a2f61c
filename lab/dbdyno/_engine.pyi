"""The compiled engine as Python sees it; written by hand, compared with the module in a test."""

from collections.abc import Callable, Sequence
from typing import Any, final

def version() -> str:
    """Version of the engine."""

def workloads() -> list[str]:
    """Names of the built-in workloads."""

def legacy_workloads() -> list[str]:
    """Names of the workloads of before sysbench 1.0, which run on tables of their own layout."""

def is_released(name: str, path: str) -> bool:
    """True if the file has the code of sysbench's script of this name (without ``.lua``)."""

def printable(text: str) -> str:
    """The text with a blank for each sign that steers a terminal, such as a control character."""

def adopt_orphans() -> None:
    """Makes programs that scripts leave behind children of this process."""

def end_descendants() -> None:
    """Kills all descendants of this process, if it has adopted its orphans."""

def end_with_parent() -> None:
    """Has the kernel kill this process, or the group that it leads, once its parent has ended."""

def password_in_file(text: str, host: str, port: int, database: str, user: str) -> str:
    """The password in the text of a ``.pgpass``, by libpq's rules; empty without any."""

@final
class Histogram:
    """Counts of latencies in ns by size class (HDR, 3 significant digits)."""

    def __new__(cls) -> Histogram: ...
    @staticmethod
    def decode(blob: bytes) -> Histogram:
        """Reads an HDR V2 (plain or deflated) blob; ValueError if it is none."""
    def encode(self) -> bytes:
        """The histogram as a deflated HDR V2 blob."""
    def record(self, value_ns: int) -> None:
        """Adds one value; values beyond the range count at its end."""
    def add(self, other: Histogram) -> None:
        """Adds the other's counts to this one."""
    def recorded(self) -> list[tuple[int, int]]:
        """Middle in ns and count of every size class that was hit, smallest first."""
    def quantile(self, fraction: float) -> int:
        """The value in ns at or below which `fraction` of the counts lie; 0 when empty."""
    def count(self) -> int:
        """How many values were recorded."""
    def max(self) -> int: ...
    def min(self) -> int: ...

@final
class IntervalLog:
    """HdrHistogram's interval log, format 1.3; the column of greatest values is in ms."""

    def __new__(
        cls, description: str, *, decimals: int, start_time: str | None = None
    ) -> IntervalLog:
        """A log whose first line is `description`; its times have so many decimals.

        `start_time` says in a comment from which moment the intervals count.
        """
    def comment(self, text: str) -> None:
        """Adds a line that readers of such logs skip."""
    def add(
        self,
        histogram: bytes,
        start_s: float,
        length_s: float,
        *,
        tag: str | None = None,
        max_ns: int | None = None,
    ) -> None:
        """Adds an encoded histogram as it is; ValueError if it is none.

        `max_ns` is its greatest value, where that is known more exactly than the histogram tells.
        """
    def text(self) -> str:
        """The whole log."""

@final
class Stop:
    """A flag that ends a run or a load from another thread."""

    def __new__(cls) -> Stop: ...
    def set(self) -> None: ...
    def is_set(self) -> bool: ...

@final
class Responder:
    """A server that is none: it answers every statement at once, on a port of 127.0.0.1."""

    def __new__(cls, driver: str) -> Responder:
        """Listens to clients of `driver`: ``mysql`` or ``pgsql``.

        Raises:
            ValueError: another driver.
            OSError: the system refuses.
        """
    @property
    def port(self) -> int: ...
    def serve(self, stop: Stop) -> None:
        """Serves until `stop` is set; OSError if the system refuses. The GIL is released."""

@final
class Reference:
    """A server whose truth is known: it speaks MySQL, and each statement takes a planned time.

    A statement takes the worker that is free first. Its time is planned as it arrives, so the truth
    does not depend on how busy the machine is. It serves until it is dropped.
    """

    def __new__(
        cls,
        law: str,
        time_s: float,
        *,
        sigma: float = 0.0,
        workers: int | None = None,
        stall_s: tuple[float, float] | None = None,
    ) -> Reference:
        """Starts it on a free port of 127.0.0.1.

        Args:
            law: of the service time: `fixed`, `exponential` (mean `time_s`) or `lognormal` (median
                `time_s`, `sigma` of the logarithm).
            workers: statements that it works on at a time; None for as many as arrive.
            stall_s: when nothing begins, counted from the first statement, and for how long.

        Raises:
            ValueError: an unknown law, or a time that is none.
            OSError: the system gives no port.
        """
    @property
    def port(self) -> int: ...
    @property
    def login(self) -> tuple[str, str, str]:
        """User, password and database of its only login."""
    def truth(self) -> tuple[Histogram, int]:
        """Times from arrival until the answer was due, waiting included, and their sum in ns."""

Json = dict[str, Any]
"""A spec, a result or a failure: dicts, lists, strings and numbers, as JSON can hold them."""

def run(spec: Json, on_interval: Callable[[Json], None] | None, stop: Stop) -> Json:
    """Drives a load as `spec` says and returns the record.

    The GIL is released while running. `on_interval` gets each finished interval.

    Raises:
        ValueError: the spec is nonsense; one line per mistake.
        RuntimeError: the load could not be begun; its argument is a dict with code and message.
    """

def relay(routes: Sequence[tuple[int, str, int]], round_trip_ms: float) -> None:
    """Passes connections on, half of the round trip away; it does not return, the GIL is released.

    Args:
        routes: the descriptor of each listener, which is taken over, with its target's address and
            port.

    Raises:
        ValueError: no address, or a time below 0.
        OSError: no listener.
    """

def prepare(spec: Json, on_progress: Callable[[Json], None] | None, stop: Stop) -> Json:
    """Creates and fills the tables of a dataset spec.

    Returns:
        Tables, rows, seconds, and of these the seconds of the stages create, insert, index.
    """

def prewarm(spec: Json, on_progress: Callable[[Json], None] | None, stop: Stop) -> Json:
    """Reads the tables of a dataset spec (as for `prepare`) into the server's memory."""

def cleanup(spec: Json, stop: Stop) -> Json:
    """Drops the tables of a dataset spec; ended within 1.5 s of `stop`, as `prepare` is."""

class SessionError(Exception):
    """No answer: the arguments are what was found, what to try, and the kind of trouble.

    What to try may be None; the kind is absent, late, refused or odd.
    """

@final
class Session:
    """An administrator's session with one server, asked by one thread at a time.

    Ctrl-C is heard while it waits. Its methods raise `SessionError`.
    """

    def __new__(cls, spec: Json) -> Session:
        """A session that is not connected yet.

        The spec has the fields of a run's for the server and its user, and `login_s`.
        """
    def log_in(self) -> None:
        """Connects and logs in."""
    def ask(self, sql: str, limit_s: float) -> list[list[str | None]]:
        """All rows of the answer, which must come within so many seconds."""
    def give_up(self) -> None:
        """Lets whoever waits for this session wait no longer; it is of no further use."""
    def close(self) -> None:
        """Logs out, if it is logged in."""

@final
class Script:
    """A Lua script in sysbench's language that is loaded; its events are run by `run`.

    Every method raises RuntimeError, whose argument is a failure of stage `script`.
    """

    def __new__(cls, spec: Json) -> Script:
        """Loads it, from a script's spec: its top level runs."""
    def options(self) -> list[Json]:
        """The options that it declares: name, kind, default and text of each."""
    def set_options(self, options: Json) -> None:
        """Sets `sysbench.opt`, here and for the threads of commands."""
    def defines(self, name: str) -> bool:
        """Whether it has a global function of this name."""
    def command(self, name: str) -> bool | None:
        """None if it declares no such command, otherwise whether that runs in all threads."""
    def call(self, name: str) -> None:
        """Calls a global function."""
    def run_command(self, name: str, threads: int) -> bool:
        """Runs a command that it declares; false when the command said so."""
    def open_reporter(self, thread: int) -> None:
        """Loads it once more, for hooks that report intervals, as thread number `thread`."""
    def close_reporter(self) -> None:
        """Ends reports of intervals: their state is closed."""
    def report(self, hook: str, figures: Json) -> bool:
        """Calls a hook with the figures of a report; false if it has no such hook."""
    @staticmethod
    def uses_database() -> bool:
        """Whether any script of this process has asked for a database driver."""

# Distribution functions, for `stats/distributions.py`. They fill `out` with their values at each
# place of the arguments; all are views of 64-bit floating-point numbers, of the same length.

def student_cdf(t: memoryview, freedom: memoryview, out: memoryview) -> None:
    """Shares of Student's t below `t`."""

def student_quantile(share: memoryview, freedom: memoryview, out: memoryview) -> None:
    """Student's t with a given share below."""

def student_freedom(share: memoryview, t: memoryview, out: memoryview) -> None:
    """Degrees of freedom, 0.5 to 100,000, for which abs(Student's t) exceeds `t` in that share."""

def chi_square_quantile(share: memoryview, freedom: memoryview, out: memoryview) -> None:
    """χ² with a given share below."""

def f_tail(ratio: memoryview, between: memoryview, within: memoryview, out: memoryview) -> None:
    """Shares of F, with degrees of freedom `between` and `within`, above `ratio`."""

def normal_cdf(value: memoryview, out: memoryview) -> None:
    """Shares of the standard normal distribution below `value`."""

def noncentral_t_cdf(
    t: memoryview, freedom: memoryview, shift: memoryview, out: memoryview
) -> None:
    """Shares of the noncentral t below `t`, from 0 to a million; `shift` (0 or more) moves it."""

def noncentral_t_shift(
    share: memoryview, t: memoryview, freedom: memoryview, out: memoryview
) -> None:
    """The noncentrality, 0 or more, for which a given share of the noncentral t lies below `t`."""

def log_beta(a: memoryview, b: memoryview, out: memoryview) -> None:
    """Natural logarithm of the beta function."""

def digamma(value: memoryview, out: memoryview) -> None:
    """Derivative of the logarithm of the gamma function."""

def trigamma(value: memoryview, out: memoryview) -> None:
    """Second derivative of the logarithm of the gamma function, for numbers above 0."""
