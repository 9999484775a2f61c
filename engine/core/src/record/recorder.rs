//! Recorder of a worker's measurements, slice by slice.
//!
//! A worker records into its own [`Interval`] without locks. At the end of a slice it sends the
//! interval off and begins a new one. [`Recorder::finish`] closes the last slice and returns the
//! [`Remainder`]: the CPU cost of the measured window, and the number of events still in flight.
//!
//! A silence is a time in which events of the run wait and no engine thread receives an answer.
//! Each thread publishes its last answer and the begin of its wait in [`LastAnswers`] for the
//! others.

use crate::error::ErrorCode;
use crate::record::interval::Interval;
use crate::time::clock;
use crate::time::schedule::{Phase, Timetable};
use crate::workload::event::StatementKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Threshold below which a thread does not check the other threads: each check reads their cache
/// lines, so it is made 1,000 times a second at most.
const SHORT_SILENCE_NS: u64 = 1_000_000;

/// CPU time between the two ends of the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCpu {
    /// CPU time of the recording thread.
    pub thread: Duration,
    /// CPU time of the whole process.
    pub process: Duration,
    /// Length of the window so far, ns.
    pub window_ns: u64,
}

/// Final state of a recorder, known after its last slice is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remainder {
    /// CPU cost of the measured window.
    pub cpu: WindowCpu,
    /// Events begun and never completed.
    pub unfinished: u64,
}

/// Last answer and begin of the current wait of each engine thread.
pub struct LastAnswers(Vec<LastAnswer>);

/// Written by its thread for every answer; cheap in a cache line of its own.
#[repr(align(64))]
struct LastAnswer {
    answered_ns: AtomicU64,
    /// `IDLE` without a waiting event.
    waits_since_ns: AtomicU64,
}

const IDLE: u64 = u64::MAX;

impl LastAnswers {
    /// State of `threads` threads at the run's begin.
    #[must_use]
    pub fn new(threads: usize) -> Arc<Self> {
        let idle = || LastAnswer { answered_ns: 0.into(), waits_since_ns: IDLE.into() };
        Arc::new(Self((0..threads).map(|_| idle()).collect()))
    }

    /// Silence at `now_ns`: time since the last answer to any thread, at most the longest current
    /// wait. `waited_ns` is the wait of the calling thread. A result up to `short_ns` is an upper
    /// bound.
    fn silence_ns(&self, now_ns: u64, mut waited_ns: u64, short_ns: u64) -> u64 {
        let mut silence_ns = now_ns;
        for thread in &self.0 {
            let answered_ns = thread.answered_ns.load(Ordering::Acquire);
            silence_ns = silence_ns.min(now_ns.saturating_sub(answered_ns));
            if silence_ns <= short_ns {
                break;
            }
            let since_ns = thread.waits_since_ns.load(Ordering::Acquire);
            waited_ns = waited_ns.max(now_ns.saturating_sub(since_ns));
        }
        silence_ns.min(waited_ns)
    }
}

/// Recorder of a worker.
pub struct Recorder {
    timetable: Timetable,
    current: Interval,
    finished: Sender<(usize, Interval)>,
    worker: usize,
    window_began: Option<(Duration, Duration, u64)>,
    window: WindowCpu,
    in_flight: u64,
    /// Events in flight with a sleeping script.
    resting: u64,
    /// Time of the last answer.
    answered_ns: u64,
    /// Begin of the current wait; `IDLE` while all events in flight sleep.
    waits_since_ns: u64,
    /// Begin of the current phase; a silence is split there.
    phase_since_ns: u64,
    is_scripted: bool,
    answers: Arc<LastAnswers>,
}

impl Recorder {
    /// Begins with the run's first slice. Closed intervals go to `finished`, with the worker's
    /// number.
    #[must_use]
    pub fn new(timetable: Timetable, worker: usize, finished: Sender<(usize, Interval)>) -> Self {
        let current = Interval::new(0, timetable.slice_from(0));
        let mut recorder = Self {
            timetable,
            current,
            finished,
            worker,
            window_began: None,
            window: WindowCpu::default(),
            in_flight: 0,
            resting: 0,
            answered_ns: 0,
            waits_since_ns: IDLE,
            phase_since_ns: 0,
            is_scripted: false,
            answers: LastAnswers::new(worker + 1),
        };
        recorder.note_window(None, 0);
        recorder
    }

    /// Joins the recorders of other threads, so that their answers end silences here too. Waits of
    /// a script (`is_scripted`) are not published: it may begin an event long before its first
    /// statement.
    #[must_use]
    pub fn among(mut self, answers: &Arc<LastAnswers>, is_scripted: bool) -> Self {
        self.answers = Arc::clone(answers);
        self.is_scripted = is_scripted;
        self
    }

    /// Closes every slice that has ended by `now_ns`.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        while now_ns >= self.current.slice.end_ns {
            self.rotate(self.current.slice.end_ns);
        }
    }

    /// Phase of the current slice.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.current.slice.phase
    }

    /// Counts an event due at `due_ns`. Call it before anything later is recorded.
    #[inline]
    pub fn fell_due(&mut self, due_ns: u64) {
        self.advance(due_ns);
        self.current.arrivals += 1;
    }

    /// Drops the events due before the current slice and not begun.
    pub fn drop_backlog(&mut self) {
        self.current.drops_backlog = true;
    }

    #[cfg(test)]
    pub(crate) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Counts an event begun at `sent_ns`.
    #[inline]
    pub fn begun(&mut self, sent_ns: u64) {
        if self.in_flight == self.resting {
            self.waits_since(sent_ns);
        }
        self.in_flight += 1;
    }

    /// Notes a sleeping script of an event in flight.
    pub fn rests(&mut self) {
        self.resting += 1;
        self.waits_no_more_if_idle();
    }

    /// Notes the end of a script's sleep at `now_ns`.
    pub fn wakes(&mut self, now_ns: u64) {
        if self.in_flight == self.resting {
            self.waits_since(now_ns);
        }
        self.resting -= 1;
    }

    /// Restarts the wait at `asked_ns`, the request of the only event in flight.
    pub fn asked_alone(&mut self, asked_ns: u64) {
        self.waits_since(self.waits_since_ns.max(asked_ns));
    }

    #[inline]
    fn waits_since(&mut self, since_ns: u64) {
        self.waits_since_ns = since_ns;
        if self.is_scripted {
            return;
        }
        self.answers.0[self.worker].waits_since_ns.store(since_ns, Ordering::Release);
    }

    #[inline]
    fn waits_no_more_if_idle(&mut self) {
        if self.in_flight == self.resting {
            self.waits_since(IDLE);
        }
    }

    /// Counts a due event about to begin.
    #[inline]
    pub fn taken_from_backlog(&mut self) {
        self.current.taken += 1;
    }

    /// Records the lag of an event due at `due_ns` and sent at `sent_ns`. Its connection was free
    /// all the while, so the lag is the generator's own.
    #[inline]
    pub fn lag(&mut self, due_ns: u64, sent_ns: u64) {
        let lag_ns = sent_ns.saturating_sub(due_ns);
        self.current.histograms.timer_lag.get_or_insert_default().record(lag_ns);
    }

    /// Notes an answer at `now_ns`.
    #[inline]
    fn heard(&mut self, now_ns: u64) {
        // Read the others' answers before writing this one: of two threads ending a silence
        // together, at least one then sees all of it.
        self.end_silence(now_ns);
        // Answers during a script's start-up are reported with its first event.
        self.answered_ns = self.answered_ns.max(now_ns);
        self.answers.0[self.worker].answered_ns.store(self.answered_ns, Ordering::Release);
    }

    /// Ends a silence at `now_ns`, if an event of any thread waited.
    #[inline]
    fn end_silence(&mut self, now_ns: u64) {
        let longest_ns = self.current.silence_ns_max;
        let known_ns = longest_ns.max(SHORT_SILENCE_NS);
        let mut silence_ns = now_ns.saturating_sub(self.answered_ns.max(self.waits_since_ns));
        if now_ns.saturating_sub(self.answered_ns) > known_ns {
            silence_ns = self.answers.silence_ns(now_ns, silence_ns, known_ns);
        }
        silence_ns = silence_ns.min(now_ns.saturating_sub(self.phase_since_ns));
        self.current.silence_ns_max = longest_ns.max(silence_ns);
    }

    /// Records a statement answered at `done_ns` after waiting since `asked_ns`.
    #[inline]
    pub fn statement(&mut self, kind: StatementKind, asked_ns: u64, done_ns: u64, reply: Answer) {
        self.advance(done_ns);
        self.heard(done_ns);
        let interval = &mut self.current;
        // sysbench's accounting: a result set is a read, a changed row a write, the rest is other.
        if reply.columns > 0 {
            interval.reads += 1;
        } else if reply.affected_rows > 0 {
            interval.writes += 1;
        } else {
            interval.others += 1;
        }
        interval.bytes_received += reply.bytes;
        interval.histograms.statements[kind as usize]
            .get_or_insert_default()
            .record(done_ns.saturating_sub(asked_ns));
    }

    /// Records a complete event, due at `due_ns` and begun at `sent_ns`; `kind` is its script's
    /// name for it.
    #[inline]
    pub fn event(&mut self, due_ns: u64, sent_ns: u64, done_ns: u64, kind: Option<&Arc<str>>) {
        self.advance(done_ns); // a script goes on for a while behind its last answer
        let latency_ns = done_ns.saturating_sub(due_ns);
        self.in_flight -= 1;
        self.waits_no_more_if_idle();
        let interval = &mut self.current;
        interval.events += 1;
        interval.latency_ns_sum += latency_ns;
        interval.latency_ns_min = interval.latency_ns_min.min(latency_ns);
        interval.latency_ns_max = interval.latency_ns_max.max(latency_ns);
        interval.histograms.event.record(latency_ns);
        if let Some(kind) = kind {
            interval.histograms.of_kind(kind).record(latency_ns);
        }
        interval.histograms.event_service.record(done_ns.saturating_sub(sent_ns));
    }

    /// Ends a begun event without counting it.
    pub fn abandon(&mut self) {
        self.in_flight -= 1;
        self.waits_no_more_if_idle();
    }

    /// Records a refused statement.
    pub fn refused(&mut self, code: ErrorCode, now_ns: u64) {
        self.error(code, now_ns);
        self.heard(now_ns);
    }

    /// Records a failure without an answer: a connection could not be opened, or was lost.
    pub fn error(&mut self, code: ErrorCode, now_ns: u64) {
        self.advance(now_ns);
        *self.current.errors.entry(code).or_default() += 1;
    }

    /// Adds a script's own count, by number of `sb_counter_type`. Events are not among them: they
    /// count at their end.
    pub fn counted(&mut self, counter: u32, by: u64, now_ns: u64) {
        self.advance(now_ns);
        let interval = &mut self.current;
        match counter {
            0 => interval.others += by,
            1 => interval.reads += by,
            2 => interval.writes += by,
            4 => *interval.errors.entry(ErrorCode::Script).or_default() += by,
            5 => interval.reconnects += by,
            _ => {}
        }
    }

    /// Counts a retry of an event.
    pub fn restart(&mut self) {
        self.current.restarts += 1;
    }

    /// Counts a connection opened again.
    pub fn reconnect(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.heard(now_ns);
        self.current.reconnects += 1;
    }

    /// Counts bytes handed to the system.
    #[inline]
    pub fn sent(&mut self, bytes: usize) {
        self.current.bytes_sent += bytes as u64;
    }

    /// Closes the last slice at `now_ns`, which ends a silence too.
    #[must_use]
    pub fn finish(mut self, now_ns: u64) -> Remainder {
        self.advance(now_ns);
        self.end_silence(now_ns);
        self.current.is_last = true;
        self.rotate(now_ns);
        Remainder { cpu: self.window, unfinished: self.in_flight }
    }

    fn rotate(&mut self, end_ns: u64) {
        let phase_before = self.current.slice.phase;
        let next = Interval::new(self.current.index + 1, self.timetable.slice_from(end_ns));
        if next.slice.phase != phase_before {
            self.end_silence(end_ns);
            self.phase_since_ns = end_ns;
        }
        let mut closed = std::mem::replace(&mut self.current, next);
        closed.in_flight = self.in_flight;
        closed.slice.end_ns = end_ns.max(closed.slice.start_ns);
        self.note_window(Some(phase_before), end_ns);
        // The coordinator outlives its workers; once it is gone, the interval is not needed.
        let _ = self.finished.send((self.worker, closed));
    }

    /// Reads the CPU clocks at the begin of the measured window and at the end of each of its
    /// slices.
    fn note_window(&mut self, before: Option<Phase>, now_ns: u64) {
        let now = (clock::thread_cpu(), clock::process_cpu(), now_ns);
        if before == Some(Phase::Measured)
            && let Some(began) = self.window_began
        {
            self.window = WindowCpu {
                thread: now.0.saturating_sub(began.0),
                process: now.1.saturating_sub(began.1),
                window_ns: now.2 - began.2,
            };
        } else if self.current.slice.phase == Phase::Measured {
            self.window_began = Some(now);
        }
    }
}

/// Parts of a reply needed for recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer {
    /// Columns of the result set; 0 without a result set.
    pub columns: u64,
    /// Rows changed.
    pub affected_rows: u64,
    /// Length, headers included.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::mpsc::{Receiver, channel};

    const SECOND: u64 = 1_000_000_000;
    const READ: Answer = Answer { columns: 1, affected_rows: 0, bytes: 60 };
    const WRITE: Answer = Answer { columns: 0, affected_rows: 1, bytes: 11 };
    const OTHER: Answer = Answer { columns: 0, affected_rows: 0, bytes: 11 };

    #[test]
    fn each_second_gets_what_ended_in_it() {
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(Timetable::new(SECOND, 2 * SECOND, SECOND), 3, sender);
        for (done_ns, answer) in
            [(SECOND / 2, OTHER), (SECOND, READ), (2 * SECOND + 1, WRITE), (3 * SECOND + 5, READ)]
        {
            recorder.statement(StatementKind::Deletes, done_ns - 1000, done_ns, answer);
            recorder.begun(done_ns - 1000);
            recorder.event(done_ns - 2000, done_ns - 1000, done_ns, None);
        }
        recorder.error(1213.into(), 3 * SECOND + 6);
        let rest = recorder.finish(3 * SECOND + 7);
        assert_eq!(rest.cpu.window_ns, 2 * SECOND);
        let seen: Vec<_> = receiver
            .iter()
            .map(|(worker, i)| {
                (worker, i.slice.phase, i.slice.end_ns, i.events, (i.reads, i.writes, i.others))
            })
            .collect();
        assert_eq!(
            seen,
            [
                (3, Phase::Warmup, SECOND, 1, (0, 0, 1)),
                (3, Phase::Measured, 2 * SECOND, 1, (1, 0, 0)),
                (3, Phase::Measured, 3 * SECOND, 1, (0, 1, 0)),
                (3, Phase::Drain, 3 * SECOND + 7, 1, (1, 0, 0)),
            ]
        );
    }

    fn two_threads() -> ([Recorder; 2], Receiver<(usize, Interval)>) {
        let (sender, receiver) = channel();
        let answers = LastAnswers::new(2);
        let threads = [0, 1].map(|number| {
            Recorder::new(Timetable::new(0, 0, 0), number, sender.clone()).among(&answers, false)
        });
        (threads, receiver)
    }

    /// The second thread waits for a lock while the first is answered every 100 ms; then both wait
    /// 700 ms.
    #[test]
    fn a_silence_is_one_of_all_threads() {
        let (mut threads, receiver) = two_threads();
        threads.iter_mut().for_each(|thread| thread.begun(0));
        for tenth in 1..=5 {
            threads[0].statement(StatementKind::Deletes, 0, tenth * SECOND / 10, READ);
        }
        threads[1].statement(StatementKind::Deletes, 0, 12 * SECOND / 10, READ);
        threads[0].statement(StatementKind::Deletes, 0, 13 * SECOND / 10, READ);
        let _ = threads.map(|thread| thread.finish(14 * SECOND / 10));
        let silences: Vec<_> =
            receiver.iter().map(|(worker, i)| (worker, i.silence_ns_max)).collect();
        assert_eq!(silences, [(0, SECOND / 10), (1, 7 * SECOND / 10)]);
    }

    /// The first thread asks as the server halts. The second, idle until then, asks shortly before
    /// the server goes on, and is answered first.
    #[test]
    fn a_silence_is_as_long_as_the_longest_wait_in_it() {
        let (mut threads, receiver) = two_threads();
        threads[0].begun(SECOND);
        threads[1].begun(2 * SECOND - SECOND / 100);
        for number in [1, 0] {
            threads[number].statement(StatementKind::Deletes, 0, 2 * SECOND, READ);
            threads[number].event(0, 0, 2 * SECOND, None);
        }
        // A second without requests is no silence.
        threads[0].begun(3 * SECOND);
        threads[0].statement(StatementKind::Deletes, 0, 3 * SECOND + SECOND / 10, READ);
        let _ = threads.map(|thread| thread.finish(4 * SECOND));
        let longest = receiver.iter().map(|(_, interval)| interval.silence_ns_max).max();
        assert_eq!(longest, Some(SECOND));
    }

    /// Silences from 0.6 s to 1.3 s, across the window's begin, and from 2.4 s to 3.6 s, across its
    /// end.
    #[test]
    fn each_phase_has_its_part_of_a_silence() {
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(Timetable::new(SECOND, 2 * SECOND, SECOND), 0, sender);
        let tenths = |count: u64| count * SECOND / 10;
        recorder.begun(0);
        for answered in [3, 6, 13, 16, 19, 22, 24, 36] {
            recorder.statement(StatementKind::Deletes, 0, tenths(answered), READ);
        }
        let _ = recorder.finish(tenths(37));
        let seen: Vec<_> = receiver
            .iter()
            .map(|(_, interval)| (interval.slice.phase, interval.silence_ns_max))
            .collect();
        assert_eq!(
            seen,
            [
                (Phase::Warmup, tenths(4)),
                (Phase::Measured, tenths(3)),
                (Phase::Measured, tenths(6)),
                (Phase::Drain, tenths(6)),
            ]
        );
    }

    #[test]
    fn a_script_that_sleeps_waits_for_no_answer() {
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(Timetable::new(0, 0, 0), 0, sender);
        let tenths = |count: u64| count * SECOND / 10;
        // One script sleeps 2 s, the other 1 s; each is answered after 100 ms.
        for _ in 0..2 {
            recorder.begun(0);
            recorder.rests();
        }
        recorder.wakes(tenths(10));
        recorder.statement(StatementKind::Query, tenths(10), tenths(11), READ);
        recorder.event(0, 0, tenths(11), None);
        recorder.wakes(tenths(20));
        recorder.statement(StatementKind::Query, tenths(20), tenths(21), READ);
        // A script alone on its thread sleeps without a notice to the recorder.
        recorder.asked_alone(tenths(40));
        recorder.statement(StatementKind::Query, tenths(40), tenths(42), READ);
        recorder.rests();
        let _ = recorder.finish(tenths(60));
        let (_, interval) = receiver.recv().unwrap();
        assert_eq!((interval.silence_ns_max, interval.in_flight), (tenths(2), 1));
    }

    #[test]
    fn a_thread_without_events_is_not_silent() {
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(Timetable::new(0, 0, 0), 0, sender);
        recorder.begun(0);
        recorder.statement(StatementKind::Deletes, 0, SECOND / 10, READ);
        recorder.event(0, 0, SECOND / 10, None);
        recorder.reconnect(9 * SECOND);
        let _ = recorder.finish(10 * SECOND);
        let (_, interval) = receiver.recv().unwrap();
        assert_eq!(interval.silence_ns_max, SECOND / 10);
    }

    #[test]
    fn what_was_answered_before_an_event_begins_no_silence_in_it() {
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(Timetable::new(0, 0, 0), 0, sender);
        recorder.begun(5 * SECOND);
        recorder.statement(StatementKind::Query, 0, 0, READ);
        recorder.statement(StatementKind::Query, 5 * SECOND, 5 * SECOND + SECOND / 10, READ);
        let _ = recorder.finish(5 * SECOND + SECOND / 10);
        let (_, interval) = receiver.recv().unwrap();
        assert_eq!((interval.reads, interval.silence_ns_max), (2, SECOND / 10));
    }

    #[test]
    fn an_event_counts_where_it_ends_though_nothing_was_answered_there() {
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(Timetable::new(SECOND, 2 * SECOND, SECOND), 0, sender);
        recorder.begun(0);
        recorder.event(0, 0, 2 * SECOND, None);
        let _ = recorder.finish(2 * SECOND + 1);
        let seen: Vec<_> =
            receiver.iter().map(|(_, i)| (i.slice.phase, i.in_flight, i.events)).collect();
        let (warm, window) = (Phase::Warmup, Phase::Measured);
        assert_eq!(seen, [(warm, 1, 0), (window, 1, 0), (window, 0, 1)]);
    }

    #[test]
    fn latency_counts_from_the_intended_start() {
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(Timetable::new(0, 0, 0), 0, sender);
        recorder.begun(501_000);
        recorder.event(1_000, 501_000, 601_000, None);
        let _ = recorder.finish(SECOND);
        let (_, interval) = receiver.recv().unwrap();
        assert_eq!(interval.latency_ns_sum, 600_000);
        assert_eq!(interval.histograms.event.max() / 1000, 600);
        assert_eq!(interval.histograms.event_service.max() / 1000, 100);
    }

    #[test]
    fn a_silent_stretch_leaves_empty_intervals() {
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(Timetable::new(0, 5 * SECOND, SECOND), 0, sender);
        recorder.advance(4 * SECOND + 1);
        let _ = recorder.finish(4 * SECOND + 2);
        let all: Vec<_> = receiver.iter().collect();
        assert_eq!(all.len(), 5);
        assert!(all.iter().all(|(_, interval)| interval.is_empty()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_sum_of_workers_is_the_whole(
            latencies in prop::collection::vec((0_u64..SECOND, any::<bool>(), 0_u16..3), 0..60)
        ) {
            let slice = Timetable::new(0, 0, 0).slice_from(0);
            let kind = Arc::from("payment");
            let mut parts: Vec<_> = (0..3)
                .map(|_| {
                    let (sender, receiver) = channel();
                    (Recorder::new(Timetable::new(0, 0, 0), 0, sender), receiver)
                })
                .collect();
            for (latency, left, code) in &latencies {
                for part in [usize::from(*left), 2] {
                    let recorder = &mut parts[part].0;
                    recorder.statement(StatementKind::Inserts, 0, *latency, WRITE);
                    recorder.begun(0);
                    recorder.event(0, latency / 2, *latency, left.then_some(&kind));
                    recorder.error((*code).into(), *latency);
                    recorder.sent(7);
                }
            }
            let closed: Vec<_> = parts
                .into_iter()
                .map(|(recorder, receiver)| {
                    let _ = recorder.finish(2 * SECOND);
                    receiver.recv().unwrap().1
                })
                .collect();
            let mut sum = Interval::new(0, slice);
            (sum.slice.end_ns, sum.is_last) = (0, true);
            sum.add(&closed[0]);
            sum.add(&closed[1]);
            prop_assert_eq!(format!("{sum:?}"), format!("{:?}", closed[2]));
            prop_assert_eq!(sum.histograms.event.encode(), closed[2].histograms.event.encode());
        }
    }
}
