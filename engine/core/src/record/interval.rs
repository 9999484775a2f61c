//! Counts and latencies of a slice of a run, and sums over threads.
//!
//! Threads are combined by adding ([`Interval::add`]), never by averaging.

use crate::error::ErrorCode;
use crate::record::histogram::Histogram;
use crate::time::schedule::Slice;
use crate::workload::event::StatementKind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Counts and latencies of a slice; as JSON an interval of the record.
#[derive(Clone, Debug, Serialize)]
pub struct Interval {
    /// Place among the run's slices, from 0.
    #[serde(skip)]
    pub index: u64,
    /// Time range; `end_ns` is the real end once the interval is closed.
    #[serde(flatten)]
    pub slice: Slice,
    /// Events completed.
    pub events: u64,
    /// Statements that returned a result set.
    pub reads: u64,
    /// Statements that changed a row.
    pub writes: u64,
    /// Other statements: BEGIN, COMMIT, an update without a changed row.
    pub others: u64,
    /// Failed statements by error code.
    #[serde(serialize_with = "by_text")]
    pub errors: BTreeMap<ErrorCode, u64>,
    /// Events retried after an ignored error.
    pub restarts: u64,
    /// Lost connections opened again, and connections renewed by plan.
    pub reconnects: u64,
    /// Events that fell due; 0 in a closed loop.
    pub arrivals: u64,
    /// Events due and not yet begun at the end, on any thread; set by [`Merger`].
    pub backlog: u64,
    /// Due events begun in the slice.
    #[serde(skip)]
    pub taken: u64,
    /// True if events due before the slice and not begun are dropped.
    #[serde(skip)]
    pub drops_backlog: bool,
    /// True for the worker's last interval.
    #[serde(skip)]
    pub is_last: bool,
    /// Events begun and not yet complete at the end.
    pub in_flight: u64,
    /// Longest silence ending in the slice, ns: events were in flight and no engine thread received
    /// an answer. It counts from the begin of the phase; silences up to 1 ms are those of a single
    /// thread. Events with a sleeping script do not count.
    pub silence_ns_max: u64,
    /// Bytes of replies.
    pub bytes_received: u64,
    /// Bytes of requests.
    pub bytes_sent: u64,
    /// Sum of the events' latencies, ns, exact.
    pub latency_ns_sum: u64,
    /// Smallest latency, ns, exact; `u64::MAX` without events.
    #[serde(serialize_with = "zero_for_none")]
    pub latency_ns_min: u64,
    /// Largest latency, ns, exact.
    pub latency_ns_max: u64,
    /// Distributions of latencies.
    pub histograms: Histograms,
}

/// Latency histograms of a slice; as JSON the non-empty ones by name, in base64.
#[derive(Clone, Debug, Default)]
pub struct Histograms {
    /// Events from their intended start.
    pub event: Histogram,
    /// Events from the sending of their first statement.
    pub event_service: Histogram,
    /// Statements by kind; None for kinds without statements.
    pub statements: [Option<Box<Histogram>>; StatementKind::ALL.len()],
    /// Events named by a script, from their intended start.
    pub kinds: BTreeMap<Arc<str>, Histogram>,
    /// Generator's lag, with a schedule only: from an event's intended start to its sending, if a
    /// connection was free at the intended start.
    pub timer_lag: Option<Box<Histogram>>,
}

impl Histograms {
    pub(crate) fn of_kind(&mut self, kind: &Arc<str>) -> &mut Histogram {
        self.kinds.entry(Arc::clone(kind)).or_default()
    }

    fn add(&mut self, other: &Self) {
        self.event.add(&other.event);
        self.event_service.add(&other.event_service);
        for (kind, counts) in &other.kinds {
            self.of_kind(kind).add(counts);
        }
        let own = self.statements.iter_mut().chain([&mut self.timer_lag]);
        for (own, others) in own.zip(other.statements.iter().chain([&other.timer_lag])) {
            if let Some(others) = others {
                own.get_or_insert_default().add(others);
            }
        }
    }
}

impl Serialize for Histograms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let events = [("event", &self.event), ("event_service", &self.event_service)];
        let statements = StatementKind::ALL.iter().zip(&self.statements);
        let statements =
            statements.filter_map(|(kind, counts)| Some((kind.name(), counts.as_deref()?)));
        let lag = self.timer_lag.as_deref().map(|counts| ("timer_lag", counts));
        let all = events.into_iter().chain(statements).chain(lag);
        let all = all.map(|(name, counts)| (Cow::from(name), counts));
        let kinds =
            self.kinds.iter().map(|(kind, counts)| (format!("event_kind_{kind}").into(), counts));
        let encoded = all
            .chain(kinds)
            .filter(|(_, counts)| counts.count() > 0)
            .map(|(name, counts)| (name, STANDARD.encode(counts.encode())));
        encoded.collect::<BTreeMap<_, _>>().serialize(serializer)
    }
}

/// Serializes codes as text, sorted by text.
fn by_text<S: Serializer>(
    errors: &BTreeMap<ErrorCode, u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let texts = errors.iter().map(|(code, count)| (code.to_string(), count));
    texts.collect::<BTreeMap<_, _>>().serialize(serializer)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn zero_for_none<S: Serializer>(smallest_ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    let is_none = *smallest_ns == u64::MAX;
    serializer.serialize_u64(if is_none { 0 } else { *smallest_ns })
}

impl Interval {
    /// An empty interval for `slice`.
    #[must_use]
    pub fn new(index: u64, slice: Slice) -> Self {
        Self {
            index,
            slice,
            events: 0,
            reads: 0,
            writes: 0,
            others: 0,
            errors: BTreeMap::new(),
            restarts: 0,
            reconnects: 0,
            arrivals: 0,
            backlog: 0,
            taken: 0,
            drops_backlog: false,
            is_last: false,
            in_flight: 0,
            silence_ns_max: 0,
            bytes_received: 0,
            bytes_sent: 0,
            latency_ns_sum: 0,
            latency_ns_min: u64::MAX,
            latency_ns_max: 0,
            histograms: Histograms::default(),
        }
    }

    /// Adds another worker's interval of the same slice.
    pub fn add(&mut self, other: &Self) {
        self.slice.end_ns = self.slice.end_ns.max(other.slice.end_ns);
        self.events += other.events;
        self.reads += other.reads;
        self.writes += other.writes;
        self.others += other.others;
        for (code, count) in &other.errors {
            *self.errors.entry(*code).or_default() += count;
        }
        self.restarts += other.restarts;
        self.reconnects += other.reconnects;
        self.arrivals += other.arrivals;
        self.taken += other.taken;
        self.drops_backlog |= other.drops_backlog;
        self.in_flight += other.in_flight;
        self.silence_ns_max = self.silence_ns_max.max(other.silence_ns_max);
        self.bytes_received += other.bytes_received;
        self.bytes_sent += other.bytes_sent;
        self.latency_ns_sum += other.latency_ns_sum;
        self.latency_ns_min = self.latency_ns_min.min(other.latency_ns_min);
        self.latency_ns_max = self.latency_ns_max.max(other.latency_ns_max);
        self.histograms.add(&other.histograms);
    }

    /// Statements answered without error.
    #[must_use]
    pub const fn queries(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    /// True if nothing happened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queries() == 0 && self.events == 0 && self.arrivals == 0 && self.errors.is_empty()
    }
}

/// Sums the intervals of several workers slice by slice.
///
/// An event may fall due on one thread and begin on another, so the backlog is known only here.
pub struct Merger {
    delivered: Vec<u64>,
    waiting: BTreeMap<u64, Interval>,
    backlog: u64,
}

impl Merger {
    /// A merger for `workers` workers; each delivers its intervals in order.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { delivered: vec![0; workers], waiting: BTreeMap::new(), backlog: 0 }
    }

    /// Adds a worker's interval; returns the slices completed by it, in order.
    pub fn add(&mut self, worker: usize, interval: Interval) -> Vec<Interval> {
        self.delivered[worker] = if interval.is_last { u64::MAX } else { interval.index + 1 };
        match self.waiting.get_mut(&interval.index) {
            Some(whole) => whole.add(&interval),
            None => drop(self.waiting.insert(interval.index, interval)),
        }
        let complete = self.delivered.iter().copied().min().unwrap_or(0);
        let rest = self.waiting.split_off(&complete);
        let complete = std::mem::replace(&mut self.waiting, rest);
        self.in_order(complete)
    }

    /// Returns the remaining slices in order, after all workers have ended.
    #[must_use]
    pub fn rest(&mut self) -> Vec<Interval> {
        let waiting = std::mem::take(&mut self.waiting);
        self.in_order(waiting)
    }

    /// Events due and not begun at the end of the last returned slice.
    #[must_use]
    pub const fn backlog(&self) -> u64 {
        self.backlog
    }

    fn in_order(&mut self, slices: BTreeMap<u64, Interval>) -> Vec<Interval> {
        let mut complete: Vec<Interval> = slices.into_values().collect();
        for interval in &mut complete {
            let before = if interval.drops_backlog { 0 } else { self.backlog };
            self.backlog = (before + interval.arrivals).saturating_sub(interval.taken);
            interval.backlog = self.backlog;
        }
        complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::schedule::Timetable;

    fn interval(index: u64, events: u64) -> Interval {
        let slice = Timetable::new(0, 0, 1_000).slice_from(index * 1_000);
        Interval { events, ..Interval::new(index, slice) }
    }

    #[test]
    fn a_slice_waits_for_its_last_worker() {
        let mut merger = Merger::new(2);
        assert!(merger.add(0, interval(0, 1)).is_empty());
        assert!(merger.add(0, interval(1, 2)).is_empty());
        let complete = merger.add(1, interval(0, 10));
        assert_eq!(complete.iter().map(|i| (i.index, i.events)).collect::<Vec<_>>(), [(0, 11)]);
        assert_eq!(merger.rest().iter().map(|i| (i.index, i.events)).collect::<Vec<_>>(), [(1, 2)]);
    }

    #[test]
    fn a_worker_that_has_ended_is_not_waited_for() {
        let mut merger = Merger::new(2);
        assert!(merger.add(1, Interval { is_last: true, ..interval(0, 1) }).is_empty());
        for index in 0..2 {
            let complete = merger.add(0, interval(index, 10));
            let complete: Vec<_> = complete.iter().map(|it| (it.index, it.events)).collect();
            assert_eq!(complete, [(index, [11, 10][index as usize])]);
        }
    }

    #[test]
    fn what_falls_due_on_one_thread_may_begin_on_another() {
        let mut merger = Merger::new(2);
        let due = |index, arrivals| Interval { arrivals, ..interval(index, 0) };
        let begun = |index, taken| Interval { taken, ..interval(index, 0) };
        for (index, (arrivals, taken)) in (0..).zip([(5, 3), (0, 2), (7, 0)]) {
            merger.add(0, due(index, arrivals));
            let complete = merger.add(1, begun(index, taken));
            assert_eq!(complete[0].backlog, [2, 0, 7][index as usize]);
        }
        merger.add(0, Interval { drops_backlog: true, ..due(3, 2) });
        assert_eq!((merger.add(1, begun(3, 1))[0].backlog, merger.backlog()), (1, 1));
    }
}
