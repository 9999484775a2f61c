//! The specification of a run, as JSON; all mistakes of a spec are reported at once.

use crate::driver::Driver;
use crate::error::ErrorCode;
use crate::random::{Distribution, Seeding};
use crate::reactor::Choice;
use crate::session::Endpoint;
use crate::time::clock::ns;
use crate::time::due_times::{RATE_PER_S_MAX, Spacing};
use crate::time::schedule::Timetable;
use crate::workload::{self, ConnectionRange, Scripted, Workload, WorkloadSpec};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;

mod script;

pub use script::{DatabaseSpec, ScriptSpec};

/// Rate of a schedule that an engine thread sustains with ease, events a second.
const RATE_OF_A_THREAD: f64 = 50_000.0;
/// Upper limit of engine threads, beyond any load's need; each is a thread of the system.
const THREADS_MAX: u32 = 1024;

/// A workload and its options, under sysbench's names with underscores.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedWorkload {
    /// Name of the workload.
    pub name: String,
    /// Its options; sysbench's defaults hold for the rest.
    #[serde(default)]
    pub options: Map<String, Value>,
}

/// Declares a specification of work at a server: the server, the login and the transport come
/// first, followed by the struct's own fields.
macro_rules! server_spec {
    ($(#[$about:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$about])*
        #[derive(Clone, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Kind of server.
            #[serde(default)]
            pub driver: $crate::driver::Driver,
            /// The server, or a list: sessions are dealt out to it in turn.
            pub endpoint: $crate::spec::Endpoints,
            /// User of the login.
            pub user: String,
            /// Password of the login; never shown.
            #[serde(default)]
            pub password: String,
            /// The database, which must exist.
            pub database: String,
            /// Encryption of sessions.
            #[serde(default)]
            pub tls: $crate::session::tls::TlsSpec,
            /// True to use the compressed protocol.
            #[serde(default)]
            pub compression: bool,
            /// File of the server's public key (PEM), which encrypts the password without TLS.
            #[serde(default)]
            pub server_key: Option<String>,
            /// True to encrypt it with the key that the server sends, in place of a file; a server on
            /// this machine may always send its key.
            #[serde(default)]
            pub takes_any_key: bool,
            $($own)*
        }

        impl $name {
            /// User, password and database of the login.
            #[must_use]
            pub fn login(&self) -> $crate::session::Login {
                $crate::session::Login {
                    user: self.user.clone(),
                    password: self.password.clone(),
                    database: self.database.clone(),
                }
            }

            /// Encryption and compression of sessions.
            ///
            /// # Errors
            /// A certificate or key is unusable, at stage `connect`.
            pub fn transport(
                &self,
            ) -> Result<$crate::session::Transport, $crate::error::Failure> {
                let key = self.server_key.as_deref();
                let any = self.takes_any_key;
                $crate::session::Transport::new(&self.tls, self.compression, key, any)
            }
        }
    };
}
pub(crate) use server_spec;

server_spec! {
    /// The specification of a run.
    pub struct RunSpec {
        /// Connections, each with one event in flight; of all generators together.
        pub connections: u32,
        /// This process's place among several generators.
        #[serde(default)]
        pub generator: Generator,
        /// Engine threads; 0 lets the engine choose.
        #[serde(default)]
        pub threads: u32,
        /// Load before the window, s.
        #[serde(default)]
        pub warmup_s: f64,
        /// Measured window, s; 0 for no limit.
        pub window_s: f64,
        /// Events begun after the warm-up until the run ends; 0 for no limit.
        #[serde(default)]
        pub events: u64,
        /// Length of a recorded interval, s.
        #[serde(default = "one_second")]
        pub interval_s: f64,
        /// Time for events in flight to complete after the end, s; 0 for no limit.
        #[serde(default = "drain_limit")]
        pub drain_s: f64,
        /// Seed of all draws.
        pub seed: u64,
        /// Derivation of the connections' seeds from it.
        #[serde(default)]
        pub seeding: Seeding,
        /// System interface used for the sockets.
        #[serde(default)]
        pub reactor: Choice,
        /// Workload to run.
        pub workload: NamedWorkload,
        /// Script to run in place of the workload.
        #[serde(default)]
        pub script: Option<ScriptSpec>,
        /// Distribution of the rows used.
        #[serde(default)]
        pub distribution: Distribution,
        /// Prepared statements, or text.
        #[serde(default = "yes")]
        pub prepared: bool,
        /// Errors after which an event is retried.
        #[serde(default)]
        pub ignore_errors: IgnoredErrors,
        /// Percentiles of each interval for `on_interval`.
        #[serde(default = "interval_percentiles")]
        pub percentiles: Vec<f64>,
        /// True to call `on_interval` with an empty interval at 0 s when all connections are open.
        #[serde(default)]
        pub tell_begin: bool,
        /// Arrival rate, events a second, independent of the server; 0 for a closed loop.
        #[serde(default)]
        pub rate_per_s: f64,
        /// Distribution of the gaps between arrivals.
        #[serde(default)]
        pub arrival: Spacing,
        /// Least and most time between an event's end and the same connection's next intended
        /// start, ms.
        #[serde(default)]
        pub think_time_ms: [f64; 2],
        /// Round trip of a simulated network between the load and the server: each reply is held
        /// back by it, ms; 0 for no delay.
        #[serde(default)]
        pub round_trip_ms: f64,
        /// Events of a connection after which it logs out and connects again; 0 for never.
        #[serde(default)]
        pub reconnect_every: u32,
        /// True to answer every statement with OK, without any connection.
        #[serde(default)]
        pub dry_run: bool,
        /// True to give `on_interval` also each interval in the form of the record.
        #[serde(default)]
        pub tell_records: bool,
        /// Timeout of connecting, and of each answer of the login, s.
        #[serde(default = "connect_limit")]
        pub connect_timeout_s: f64,
    }
}

const fn connect_limit() -> f64 {
    10.0
}

const fn one_second() -> f64 {
    1.0
}

const fn drain_limit() -> f64 {
    30.0
}

const fn yes() -> bool {
    true
}

fn interval_percentiles() -> Vec<f64> {
    vec![50.0, 95.0, 99.0]
}

impl fmt::Debug for RunSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSpec")
            .field("endpoint", &self.endpoint)
            .field("connections", &self.connections)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl RunSpec {
    /// All mistakes of this spec, one sentence each; empty for a valid spec.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let mut check = |holds: bool, sentence: &str| {
            if !holds {
                mistakes.push(sentence.to_owned());
            }
        };
        let seconds = |value: f64| value.is_finite() && (0.0..=1e8).contains(&value);
        check(self.connections >= 1, "connections must be at least 1");
        check(self.threads <= THREADS_MAX, "threads must be at most 1024");
        check(seconds(self.warmup_s), "warmup_s must be 0 or more seconds");
        check(
            seconds(self.window_s) && (self.window_s == 0.0 || self.window_s >= 0.001),
            "window_s must be 0 (no limit) or at least 0.001 seconds",
        );
        check(seconds(self.drain_s), "drain_s must be 0 or more seconds");
        check(
            seconds(self.interval_s) && (self.interval_s == 0.0 || self.interval_s >= 0.01),
            "interval_s must be 0 (one interval) or at least 0.01 seconds",
        );
        check(
            self.percentiles.iter().all(|p| (0.0..=100.0).contains(p)),
            "percentiles must lie between 0 and 100",
        );
        check(!self.endpoint.is_empty(), "endpoint must name at least one server");
        check(
            (0.0..=RATE_PER_S_MAX).contains(&self.rate_per_s),
            "rate_per_s must be 0 (closed loop) or up to 1e9 events a second",
        );
        let [least_ms, most_ms] = self.think_time_ms;
        check(
            least_ms >= 0.0 && (least_ms..=1e9).contains(&most_ms),
            "think_time_ms must be the least and the most time, 0 or more milliseconds",
        );
        check(
            self.rate_per_s == 0.0 || most_ms == 0.0,
            "rate_per_s and think_time_ms exclude each other: both say when events begin",
        );
        check(
            !self.dry_run || self.reconnect_every == 0,
            "reconnect_every has no meaning in a dry run, which has no connections",
        );
        check(
            (0.0..=1e7).contains(&self.round_trip_ms),
            "round_trip_ms must be 0 (no delay) or up to 1e7 milliseconds",
        );
        check(
            seconds(self.connect_timeout_s) && self.connect_timeout_s >= 0.001,
            "connect_timeout_s must be at least 0.001 seconds",
        );
        if self.driver == Driver::Pgsql {
            check(!self.compression, "compression is MySQL's: PostgreSQL's protocol has none");
        }
        check(self.can_be_shared(), "several generators share connections, and nothing else");
        if let IgnoredErrors::Word(word) = &self.ignore_errors {
            check(word == "all", "ignore_errors must be a list of codes or the word \"all\"");
        }
        mistakes.extend(self.tls.mistakes());
        mistakes
    }

    /// True if each generator has a connection and depends on no other: with several generators,
    /// neither a number of events nor a script's threads nor a dry run.
    fn can_be_shared(&self) -> bool {
        let Generator { number, of } = self.generator;
        let is_split = self.events == 0 && self.script.is_none() && !self.dry_run;
        number < of && of <= self.connections && (of == 1 || is_split)
    }

    /// The workload, ready to be run.
    ///
    /// # Errors
    /// All mistakes of the spec or of the workload's options, one sentence each.
    pub fn workload(&self) -> Result<Box<dyn Workload>, Vec<String>> {
        let mut mistakes = self.mistakes();
        if self.script.is_some() {
            return if mistakes.is_empty() { Ok(Box::new(Scripted)) } else { Err(mistakes) };
        }
        let built = workload::build(&WorkloadSpec {
            driver: self.driver,
            name: self.workload.name.clone(),
            options: self.workload.options.clone(),
            distribution: self.distribution,
            prepared: self.prepared,
            connections: self.connections,
            own: self.own(),
        });
        match built {
            Ok(workload) if mistakes.is_empty() => Ok(workload),
            Ok(_) => Err(mistakes),
            Err(more) => {
                mistakes.extend(more);
                Err(mistakes)
            }
        }
    }

    /// Timeout of connecting.
    #[must_use]
    pub fn connect_timeout(&self) -> Duration {
        Duration::from_nanos(ns(self.connect_timeout_s))
    }

    /// The run's connections that belong to this process.
    #[must_use]
    pub const fn own(&self) -> ConnectionRange {
        ConnectionRange { first: self.generator.number, step: self.generator.of }
    }

    /// Number of this process's connections.
    #[must_use]
    pub const fn own_connections(&self) -> u32 {
        self.own().count(self.connections)
    }

    /// The run's layout in time.
    #[must_use]
    pub fn timetable(&self) -> Timetable {
        Timetable::new(ns(self.warmup_s), ns(self.window_s), ns(self.interval_s))
    }

    /// True if events are due by a schedule instead of each after the last.
    #[must_use]
    pub const fn is_scheduled(&self) -> bool {
        self.rate_per_s > 0.0 || self.think_time_ms[1] > 0.0
    }

    /// Delay added to each reply.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        Duration::from_nanos(ns(self.round_trip_ms / 1e3))
    }

    /// True if engine threads also wait for points in time, and not only for replies.
    #[must_use]
    pub const fn is_timed(&self) -> bool {
        self.is_scheduled() || self.round_trip_ms > 0.0
    }

    /// True if sessions may be replaced by others in the middle of the run.
    #[must_use]
    pub fn reopens(&self) -> bool {
        self.reconnect_every > 0 || self.ignore_errors.survives_loss()
    }

    /// Number of engine threads that drive the connections.
    ///
    /// It is 8, and more only on machines with over 64 cores. A single thread would be enough for
    /// some hundred thousand statements a second, but while it waits for a busy core, all replies
    /// wait. Figures are in docs/how-it-works/decisions.md.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked: 0 or more"
    )]
    pub fn engine_threads(&self, cores: usize) -> usize {
        let most = (cores / 8).clamp(8, 16);
        let chosen = match self.threads {
            // Each thread that waits for an event wakes up when it falls due.
            0 if self.rate_per_s > 0.0 => {
                let own_per_s = self.rate_per_s / f64::from(self.generator.of);
                most.min((own_per_s / RATE_OF_A_THREAD).ceil() as usize)
            }
            0 => most,
            threads => threads as usize,
        };
        chosen.min(self.own_connections() as usize)
    }
}

/// A generator process. Several share the load of a single process: connections and due times are
/// dealt out to them in turn.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Generator {
    /// Its number, from 0.
    pub number: u32,
    /// Number of generators.
    pub of: u32,
}

impl Default for Generator {
    fn default() -> Self {
        Self { number: 0, of: 1 }
    }
}

/// The run's servers.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged, expecting = "endpoint must be a host and a port, or a socket, or a list of such")]
pub enum Endpoints {
    /// The server of all connections.
    One(Endpoint),
    /// Servers to which connections are dealt out in turn.
    Several(Vec<Endpoint>),
}

impl Endpoints {
    /// The server of connection `number`, counted from 0.
    ///
    /// # Panics
    /// The list is empty, which a spec's check refuses.
    #[must_use]
    pub fn of(&self, number: u32) -> Endpoint {
        let places = self.places();
        places[number as usize % places.len()].clone()
    }

    /// True if the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places().is_empty()
    }

    /// Number of servers.
    ///
    /// # Panics
    /// There are more than fit into 32 bits.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.places().len()).expect("places are counted in 32 bits")
    }

    /// True if there are several, so a failure is to name its server.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.places().len() > 1
    }

    fn places(&self) -> &[Endpoint] {
        match self {
            Self::One(place) => std::slice::from_ref(place),
            Self::Several(places) => places,
        }
    }
}

/// Errors of statements after which the event is retried instead of ending the run.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged, expecting = "ignore_errors must be a list of codes or the word \"all\"")]
pub enum IgnoredErrors {
    /// Error codes: MySQL's numbers, or PostgreSQL's SQLSTATEs as texts.
    Codes(Vec<ErrorCode>),
    /// The word `all`.
    Word(String),
}

impl IgnoredErrors {
    /// True if an event is retried after this error.
    #[must_use]
    pub fn contains(&self, code: impl Into<ErrorCode>) -> bool {
        match self {
            Self::Codes(codes) => codes.contains(&code.into()),
            Self::Word(_) => true,
        }
    }

    /// True if a lost connection is opened again: a code for a loss is ignored.
    #[must_use]
    pub fn survives_loss(&self) -> bool {
        match self {
            Self::Codes(codes) => codes.iter().any(|code| code.is_loss()),
            Self::Word(_) => true,
        }
    }
}

impl Default for IgnoredErrors {
    /// As sysbench: deadlock, a changed row, a lock wait timeout; on PostgreSQL deadlock, failed
    /// serialization, and a duplicate key.
    fn default() -> Self {
        let numbers = [1213, 1020, 1205].map(ErrorCode::Number);
        let states = [b"40P01", b"40001", b"23505"].map(|state| ErrorCode::State(*state));
        Self::Codes(numbers.into_iter().chain(states).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Endpoints, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn connections_are_dealt_out_in_turn() {
        let list =
            parsed(r#"[{"host": "a", "port": 1}, {"socket": "/b"}, {"host": "c", "port": 3}]"#);
        let list = list.expect("a list");
        let dealt: Vec<String> = (0..4).map(|number| list.of(number).to_string()).collect();
        assert_eq!(dealt, ["a:1", "/b", "c:3", "a:1"]);
        assert!(list.are_several());
    }

    #[test]
    fn generators_have_each_connection_once_whatever_their_threads() {
        let mut dealt: Vec<u32> = (0..3)
            .flat_map(|number| (0..2).map(move |thread| (number, thread)))
            .map(|(number, thread)| ConnectionRange::ALL.part(number, 3).part(thread, 2))
            .flat_map(|range| (0..range.count(16)).map(move |place| range.number(place)))
            .collect();
        dealt.sort_unstable();
        assert_eq!(dealt, (0..16).collect::<Vec<u32>>());
    }

    #[test]
    fn one_place_takes_all() {
        let one = parsed(r#"{"host": "a", "port": 1}"#).expect("a place");
        assert_eq!((one.of(0), one.of(5)), (one.of(7), one.of(1)));
        assert!(!one.are_several());
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [r#"{"host": "a"}"#, r#"{"socket": "/x", "port": 1}"#, r#"[{"host": 3}]"#] {
            let error = parsed(text).expect_err("no place");
            assert!(error.contains("endpoint must be a host and a port"), "{error}");
        }
        assert!(parsed("[]").expect("an empty list").is_empty());
    }

    #[test]
    fn a_loss_is_survived_when_a_code_that_says_so_is_ignored() {
        assert!(!IgnoredErrors::default().survives_loss());
        let codes: IgnoredErrors = serde_json::from_str(r#"[1213, 2013]"#).expect("codes");
        assert!(codes.survives_loss() && codes.contains(2013) && !codes.contains(0));
        let states: IgnoredErrors = serde_json::from_str(r#"["40P01", "57P01"]"#).expect("codes");
        assert!(states.survives_loss() && states.contains(ErrorCode::State(*b"40P01")));
        assert!(IgnoredErrors::Word("all".into()).survives_loss());
    }
}
