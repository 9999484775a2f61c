//! Record of a run, in the form that Python reads (JSON; histograms as base64 HDR V2).
//!
//! Each connection counts its events and busy time since the warm-up in a [`Share`]; [`Fairness`]
//! summarises them.

use crate::error::Failure;
use crate::random::Distribution;
use crate::record::histogram::Histogram;
use crate::record::interval::Interval;
use crate::record::recorder::WindowCpu;
use crate::time::clock::seconds;
use crate::time::schedule::Phase;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;

/// The whole record of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunRecord {
    /// Version of the engine.
    pub engine_version: &'static str,
    /// Name of the reactor.
    pub reactor: &'static str,
    /// Engine threads.
    pub threads: usize,
    /// Connections.
    pub connections: usize,
    /// Version reported by the server.
    pub server_version: String,
    /// `plain`, `compressed`, or the version and cipher suite of TLS.
    pub transport: String,
    /// The distribution of the draws, with its parameters.
    pub distribution: Distribution,
    /// True with prepared statements.
    pub prepared: bool,
    /// Scheduled events per second; 0 in a closed loop.
    pub rate_per_s: f64,
    /// Events begun and abandoned in flight at the end.
    pub unfinished: u64,
    /// Scheduled events that were never begun.
    pub unserved: u64,
    /// All [`Interval`]s in order of time. Each is encoded as soon as it is complete: with all its
    /// histograms an interval takes a megabyte.
    pub intervals: Vec<Box<RawValue>>,
    /// Generator's CPU cost in the measured window.
    pub measured: MeasuredCpu,
    /// Spread of events over connections.
    pub fairness: Fairness,
    /// End of the run: `time`, `events`, `stop` or `error`.
    pub stopped_by: &'static str,
    /// Reason of an early end.
    pub failure: Option<Failure>,
}

/// CPU of the generator in the measured window.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct MeasuredCpu {
    /// User and system time of the whole process, s.
    pub cpu_s: f64,
    /// CPU share of the busiest engine thread (0 to 1).
    pub cpu_share_max: f64,
}

impl MeasuredCpu {
    /// Combines the readings of the workers.
    #[must_use]
    pub fn of(windows: &[WindowCpu]) -> Self {
        let share = |cpu: &WindowCpu| {
            let window_s = seconds(cpu.window_ns);
            if window_s > 0.0 { cpu.thread.as_secs_f64() / window_s } else { 0.0 }
        };
        Self {
            cpu_s: windows.iter().map(|cpu| cpu.process.as_secs_f64()).fold(0.0, f64::max),
            cpu_share_max: windows.iter().map(share).fold(0.0, f64::max),
        }
    }
}

/// A connection's share of the load after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Events completed.
    pub events: u64,
    /// Time spent in them, ns.
    pub busy_ns: u64,
}

/// Means and population standard deviations over connections, as in sysbench's threads fairness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Fairness {
    events_mean: f64,
    events_stddev: f64,
    seconds_mean: f64,
    seconds_stddev: f64,
}

impl Fairness {
    /// Fairness of the connections with these shares.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn of(shares: &[Share]) -> Self {
        let (events_mean, events_stddev) = spread(shares.iter().map(|share| share.events as f64));
        let (seconds_mean, seconds_stddev) =
            spread(shares.iter().map(|share| seconds(share.busy_ns)));
        Self { events_mean, events_stddev, seconds_mean, seconds_stddev }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn spread(values: impl ExactSizeIterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    (mean, (values.map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt())
}

/// Interval as reported during the run.
#[derive(Clone, Debug, Serialize)]
pub struct LiveInterval {
    /// End of the interval, s since the load began.
    pub at_s: f64,
    /// Phase of the interval.
    pub phase: Phase,
    connections: usize,
    events: u64,
    queries: u64,
    reads: u64,
    writes: u64,
    others: u64,
    errors: u64,
    reconnects: u64,
    backlog: u64,
    in_flight: u64,
    seconds: f64,
    latency_ms: BTreeMap<String, f64>,
    /// The interval as in the record, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Box<RawValue>>,
}

impl LiveInterval {
    /// Live form of `interval`, with percentiles of the event latency.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an hour in ns is below 2^52")]
    pub fn of(interval: &Interval, connections: usize, percentiles: &[f64]) -> Self {
        let latency_ms = percentiles.iter().map(|percentile| {
            // The end of a size class may exceed the largest value in it.
            let latency_ns =
                interval.histograms.event.quantile(percentile / 100.0).min(interval.latency_ns_max);
            (percentile.to_string(), latency_ns as f64 / 1e6)
        });
        Self {
            at_s: seconds(interval.slice.end_ns),
            phase: interval.slice.phase,
            connections,
            events: interval.events,
            queries: interval.queries(),
            reads: interval.reads,
            writes: interval.writes,
            others: interval.others,
            errors: interval.errors.values().sum(),
            reconnects: interval.reconnects,
            backlog: interval.backlog,
            in_flight: interval.in_flight,
            seconds: seconds(interval.slice.end_ns - interval.slice.start_ns),
            latency_ms: latency_ms.collect(),
            record: None,
        }
    }
}

/// Encodes an interval for the record.
///
/// # Panics
/// Never: writing to memory does not fail.
#[must_use]
pub fn encoded(interval: &Interval) -> Box<RawValue> {
    to_raw_value(interval).expect("an interval is plain numbers and text")
}

/// Reads a histogram of an encoded interval; None if missing.
#[must_use]
pub fn decoded(interval: &RawValue, name: &str) -> Option<Histogram> {
    let interval: Value = serde_json::from_str(interval.get()).ok()?;
    let bytes = STANDARD.decode(interval["histograms"][name].as_str()?).ok()?;
    Histogram::decode(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use crate::time::schedule::Timetable;
    use crate::workload::event::StatementKind;

    const EMPTY_INTERVAL: &str = r#"{"phase":"measured","start_s":1.25,"end_s":2.5,"events":0,"reads":0,"writes":0,"others":0,"errors":{},"restarts":0,"reconnects":0,"arrivals":0,"backlog":0,"in_flight":0,"silence_ns_max":0,"bytes_received":0,"bytes_sent":0,"latency_ns_sum":0,"latency_ns_min":0,"latency_ns_max":0,"histograms":{}}"#;
    const FULL_INTERVAL: &str = r#"{"phase":"measured","start_s":1.25,"end_s":2.5,"events":1,"reads":2,"writes":3,"others":4,"errors":{"10000":4,"1213":2,"2013":1,"7":1},"restarts":5,"reconnects":6,"arrivals":7,"backlog":8,"in_flight":9,"silence_ns_max":10,"bytes_received":11,"bytes_sent":12,"latency_ns_sum":13,"latency_ns_min":14,"latency_ns_max":15,"histograms":{"event":"HISTFAAAACN4nJNpmSzMwMDAxAABzFCaEch0M9ixgMH+A0RAmgkAV00Eag==","event_service":"HISTFAAAACN4nJNpmSzMwMDAxAABzFCaEch0M9ixgMH+A0RAkgkAV0kEaA==","point_selects":"HISTFAAAACN4nJNpmSzMwMDAxAABzFCaEch0M9ixgMH+A0SAkwkAVykEWA==","timer_lag":"HISTFAAAACN4nJNpmSzMwMDAxAABzFCaEch0M9ixgMH+A0SAlQkAVyEEVA=="}}"#;

    #[test]
    fn a_live_interval_has_the_percentiles_that_are_asked_for() {
        let mut interval = Interval::new(0, Timetable::new(0, 2_000_000_000, 0).slice_from(0));
        (1..=100).for_each(|ms: u64| interval.histograms.event.record(ms * 1_000_000));
        interval.latency_ns_max = 100_000_000;
        let live = LiveInterval::of(&interval, 4, &[50.0, 99.9]);
        assert!((live.latency_ms["50"] - 50.0).abs() < 0.1);
        assert_eq!(live.latency_ms["99.9"], 100.0);
    }

    /// The format that Python and stored runs read, byte for byte.
    #[test]
    fn the_json_of_an_interval_stays_as_it_is() {
        let mut interval =
            Interval::new(3, Timetable::new(0, 2_500_000_000, 0).slice_from(1_250_000_000));
        let empty = serde_json::to_string(&encoded(&interval)).unwrap();
        (interval.events, interval.reads, interval.writes, interval.others) = (1, 2, 3, 4);
        (interval.restarts, interval.reconnects) = (5, 6);
        (interval.arrivals, interval.backlog, interval.in_flight) = (7, 8, 9);
        (interval.silence_ns_max, interval.bytes_received, interval.bytes_sent) = (10, 11, 12);
        (interval.latency_ns_sum, interval.latency_ns_min, interval.latency_ns_max) = (13, 14, 15);
        let errors = [(1213, 2), (2013, 1), (10000, 4), (7, 1)];
        interval.errors.extend(errors.map(|(code, count)| (ErrorCode::Number(code), count)));
        interval.histograms.event.record(14);
        interval.histograms.event_service.record(13);
        interval.histograms.statements[StatementKind::PointSelects as usize]
            .get_or_insert_default()
            .record(5);
        interval.histograms.statements[StatementKind::Begin as usize].get_or_insert_default();
        interval.histograms.timer_lag.get_or_insert_default().record(3);
        let full = serde_json::to_string(&encoded(&interval)).unwrap();
        assert_eq!(empty, EMPTY_INTERVAL);
        assert_eq!(full, FULL_INTERVAL);
        assert_eq!(decoded(&encoded(&interval), "event").unwrap().max(), 14);
        assert!(decoded(&encoded(&interval), "begin").is_none(), "it is empty");
    }

    #[test]
    fn fairness_uses_the_population_deviation() {
        let share = |events, busy_ns| Share { events, busy_ns };
        let fairness = Fairness::of(&[share(1, 1_000_000_000), share(3, 1_000_000_000)]);
        assert_eq!(
            fairness,
            Fairness {
                events_mean: 2.0,
                events_stddev: 1.0,
                seconds_mean: 1.0,
                seconds_stddev: 0.0
            }
        );
        assert_eq!(Fairness::of(&[]), Fairness::default());
    }
}
