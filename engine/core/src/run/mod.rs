//! Runs a load: from a [`RunSpec`] to a [`RunRecord`].
//!
//! Opens the connections, starts one worker per engine thread at the same moment, and adds up their
//! intervals until the last worker ends.

#[cfg(test)]
mod faults;
#[cfg(test)]
mod simulation;
mod threads;

use crate::error::Failure;
use crate::reactor::{Choice, Delayed, DryRun, Epoll, OpenReactor, Reactor, Uring, settle};
use crate::record::interval::Interval;
use crate::record::interval::Merger;
use crate::record::recorder::{LastAnswers, Recorder, WindowCpu};
use crate::record::run_record::{Fairness, LiveInterval, MeasuredCpu, RunRecord, Share, encoded};
use crate::spec::{Generator, RunSpec};
use crate::system::become_batch_thread;
use crate::time::clock::{Clock, make_timers_exact, ns};
use crate::time::due_times::DueTimes;
use crate::time::schedule::{Slice, Timetable};
use crate::worker::ReconnectThreads;
use crate::worker::connection::Connection;
use crate::worker::{
    Control, MAX_WAIT, Orders, Pacing, Parts, Reconnect, STOP_GRACE_NS, SharedQueue, Worker,
    WorkerEnd,
};
use crate::workload::Workload;
use serde_json::value::RawValue;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, OnceLock};
use threads::{ConnectionSource, ServerInfo, ThreadConnections};

/// Drives the load of `spec`; `on_interval` gets each finished interval.
///
/// A run that fails half-way still gives a record, with the failure in it.
///
/// # Errors
/// Causes that prevent the load from beginning: an invalid spec, no connection, a refused
/// statement.
pub fn run(
    spec: &RunSpec,
    stop: &AtomicBool,
    on_interval: &mut dyn FnMut(&LiveInterval),
) -> Result<RunRecord, Failure> {
    let workload = spec.workload().map_err(|mistakes| Failure::new("spec", mistakes.join("\n")))?;
    let load = Load { spec, workload: &*workload, stop, on_interval };
    let opened = |connections: Vec<ThreadConnections>| {
        connections.into_iter().map(ConnectionSource::Open).collect()
    };
    if let Some(script) = &spec.script {
        let threads = threads::of_script(spec, script, stop)?;
        let is_looped = threads.iter().all(|thread| !thread.sockets.is_empty());
        let sizes: Vec<usize> = threads.iter().map(|it| it.connections.len() + 1).collect();
        return match settle(spec.reactor, &sizes) {
            Choice::IoUring if is_looped => load.run::<Uring>(opened(threads)),
            _ => load.run::<Epoll>(opened(threads)),
        };
    }
    if spec.dry_run {
        return load.run::<DryRun>(opened(threads::dry_run(spec, &*workload)));
    }
    let sources = threads::sources(spec, stop)?;
    let sizes: Vec<usize> = sources.iter().map(|connections| connections.size(spec)).collect();
    match settle(spec.reactor, &sizes) {
        Choice::IoUring => load.run::<Uring>(sources),
        _ => load.run::<Epoll>(sources),
    }
}

/// Opens the reactor of a thread.
type Opening<'a, R> = &'a (dyn Fn(Vec<OwnedFd>) -> io::Result<R> + Sync);

/// Load ready to begin.
struct Load<'a> {
    spec: &'a RunSpec,
    workload: &'a dyn Workload,
    stop: &'a AtomicBool,
    on_interval: &'a mut dyn FnMut(&LiveInterval),
}

impl Load<'_> {
    /// Loads the server through `R`, behind a simulated network if the spec has a round trip.
    fn run<R: OpenReactor>(self, sources: Vec<ConnectionSource>) -> Result<RunRecord, Failure> {
        let open = |sockets| R::open(sockets, MAX_WAIT);
        let delay = self.spec.round_trip();
        if delay.is_zero() {
            return self.run_through(sources, &open);
        }
        self.run_through(sources, &|sockets| Ok(Delayed::new(open(sockets)?, delay)))
    }

    fn run_through<R: Reactor>(
        self,
        sources: Vec<ConnectionSource>,
        open: Opening<'_, R>,
    ) -> Result<RunRecord, Failure> {
        let Self { spec, workload, stop, on_interval } = self;
        let threads = sources.len();
        let shared = Shared::new(spec, threads, stop);
        let given_up = given_up(&sources);
        let (finished, arriving) = channel();
        let start = Start::new(threads);
        let (collected, ends) = std::thread::scope(|scope| {
            let workers: Vec<_> = sources
                .into_iter()
                .enumerate()
                .map(|(number, connections)| {
                    let recorder = (number, finished.clone());
                    let (start, shared) = (&start, &shared);
                    scope.spawn(move || {
                        work(spec, workload, connections, recorder, start, shared, open)
                    })
                })
                .collect();
            drop(finished);
            start.ready.wait();
            if spec.tell_begin {
                let nothing = Slice { end_ns: 0, ..spec.timetable().slice_from(0) };
                let nothing = Interval::new(0, nothing);
                let record = spec.tell_records.then(|| encoded(&nothing));
                tell(spec, &nothing, record, on_interval);
            }
            start.go.wait();
            let (clock, control) = (*start.clock.get_or_init(Clock::start), &shared.control);
            let watcher = given_up.as_deref().map(|given_up| {
                (given_up, scope.spawn(move || give_up_in_time(given_up, spec, control, clock)))
            });
            let collected = collect(spec, &arriving, threads, on_interval);
            if let Some((given_up, watcher)) = watcher {
                given_up.store(true, Ordering::Relaxed);
                watcher.thread().unpark();
            }
            let ends =
                workers.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
            (collected, ends.collect::<Result<Vec<_>, Failure>>())
        });
        let record = record_of::<R>(spec, collected, ends?, &shared.control);
        let server = start.server.into_inner().unwrap_or_default();
        Ok(RunRecord {
            server_version: server.server_version,
            transport: server.transport,
            ..record
        })
    }
}

/// Flag that makes scripts abandon their own waits for servers; None if the loop does all waiting.
fn given_up(sources: &[ConnectionSource]) -> Option<Arc<AtomicBool>> {
    let ConnectionSource::Open(first) = sources.first()? else { return None };
    first.connections.first()?.given_up()
}

/// Sets `given_up` at the time the loop would give up.
fn give_up_in_time(given_up: &AtomicBool, spec: &RunSpec, control: &Control<'_>, clock: Clock) {
    let mut give_up_ns = give_up_ns(spec);
    while !given_up.load(Ordering::Relaxed) {
        std::thread::park_timeout(MAX_WAIT);
        let now_ns = clock.now_ns();
        if control.is_over() {
            give_up_ns = give_up_ns.min(now_ns + STOP_GRACE_NS);
        }
        if now_ns >= give_up_ns {
            given_up.store(true, Ordering::Relaxed);
        }
    }
}

/// Time after which events in flight are abandoned.
fn give_up_ns(spec: &RunSpec) -> u64 {
    let patience_ns = if spec.drain_s > 0.0 { ns(spec.drain_s) } else { u64::MAX };
    spec.timetable().deadline_ns().saturating_add(patience_ns)
}

/// Record of a run from its workers' measurements.
fn record_of<R: Reactor>(
    spec: &RunSpec,
    (intervals, unserved): (Vec<Box<RawValue>>, u64),
    ends: Vec<WorkerEnd>,
    control: &Control,
) -> RunRecord {
    let shares: Vec<Share> = ends.iter().flat_map(|end| end.shares.iter().copied()).collect();
    let windows: Vec<WindowCpu> = ends.iter().map(|end| end.remainder.cpu).collect();
    let unfinished = ends.iter().map(|end| end.remainder.unfinished).sum();
    let failure = ends.iter().find_map(|end| end.failure.clone());
    RunRecord {
        engine_version: env!("CARGO_PKG_VERSION"),
        reactor: R::NAME,
        threads: ends.len(),
        connections: spec.own_connections() as usize,
        server_version: String::new(),
        transport: String::new(),
        distribution: spec.distribution,
        prepared: spec.prepared,
        rate_per_s: spec.rate_per_s,
        unfinished,
        unserved,
        intervals,
        measured: MeasuredCpu::of(&windows),
        fairness: Fairness::of(&shares),
        stopped_by: stopped_by(failure.as_ref(), control),
        failure,
    }
}

fn stopped_by(failure: Option<&Failure>, control: &Control) -> &'static str {
    match failure {
        Some(_) => "error",
        None if control.stop.load(Ordering::Relaxed) => "stop",
        None if control.is_spent() => "events",
        None => "time",
    }
}

/// Starts all workers at the same moment and with the same clock, after the caller is told that all
/// connections are open.
struct Start {
    ready: Barrier,
    go: Barrier,
    clock: OnceLock<Clock>,
    /// Server information of the first session.
    server: OnceLock<ServerInfo>,
}

impl Start {
    fn new(threads: usize) -> Self {
        let barrier = || Barrier::new(threads + 1);
        Self { ready: barrier(), go: barrier(), clock: OnceLock::new(), server: OnceLock::new() }
    }

    fn wait(&self) -> Clock {
        self.ready.wait();
        self.go.wait();
        *self.clock.get_or_init(Clock::start)
    }
}

/// State shared by the workers of a run.
struct Shared<'a> {
    control: Control<'a>,
    queue: SharedQueue,
    answers: Arc<LastAnswers>,
}

impl<'a> Shared<'a> {
    fn new(spec: &RunSpec, threads: usize, stop: &'a AtomicBool) -> Self {
        let control = Control {
            stop,
            failed: AtomicBool::new(false),
            budget: (spec.events > 0).then(|| AtomicU64::new(spec.events)),
        };
        let answers = LastAnswers::new(threads);
        Self { control, queue: SharedQueue::default(), answers }
    }
}

fn work<R: Reactor>(
    spec: &RunSpec,
    workload: &dyn Workload,
    source: ConnectionSource,
    (number, finished): (usize, Sender<(usize, Interval)>),
    start: &Start,
    shared: &Shared<'_>,
    open: Opening<'_, R>,
) -> Result<WorkerEnd, Failure> {
    let give_up = |failure| {
        shared.control.failed.store(true, Ordering::Relaxed);
        failure
    };
    let connections = source.connections(spec, shared.control.stop);
    let ThreadConnections { mut sockets, mut connections, server } = match connections {
        Ok(connections) => connections,
        Err(failure) => {
            let failure = give_up(failure);
            start.wait();
            return Err(failure);
        }
    };
    if let Some(server) = server {
        let _ = start.server.set(server);
    }
    let reconnect = reconnect(spec, connections.len(), &mut sockets);
    // After the reconnecting threads have started, which would inherit it.
    if spec.is_timed() {
        make_timers_exact();
    } else if spec.own_connections() > 1 {
        become_batch_thread();
    }
    // A ring belongs to the thread that opens it.
    let reactor = open(sockets);
    let clock = start.wait();
    let (reconnect, reactor) = reconnect.and_then(|it| Ok((it, reactor?))).map_err(|error| {
        give_up(Failure::new("connect", format!("{} cannot be opened: {error}", R::NAME)))
    })?;
    let recorder = Recorder::new(spec.timetable(), number, finished);
    connections.iter_mut().for_each(|connection| connection.begin_run(clock, spec.round_trip()));
    let thread = Thread { connections, reactor, reconnect };
    Ok(worker(spec, workload, thread, recorder, clock, shared).drive())
}

/// State of an engine thread.
struct Thread<R: Reactor> {
    connections: Vec<Connection>,
    reactor: R,
    reconnect: Reconnect,
}

fn worker<'a, R: Reactor>(
    spec: &'a RunSpec,
    workload: &'a dyn Workload,
    thread: Thread<R>,
    recorder: Recorder,
    clock: Clock,
    shared: &'a Shared<'a>,
) -> Worker<'a, R> {
    let Thread { connections, reactor, reconnect } = thread;
    let recorder = recorder.among(&shared.answers, spec.script.is_some());
    let timetable = spec.timetable();
    let orders = Orders {
        workload,
        ignored: &spec.ignore_errors,
        clock,
        deadline_ns: timetable.deadline_ns(),
        give_up_ns: give_up_ns(spec),
        control: &shared.control,
    };
    let pacing = pacing(spec, timetable, &connections, &shared.queue);
    Worker::new(Parts { reactor, connections, recorder, orders, pacing, reconnect })
}

/// Pacing of a thread's events.
fn pacing<'a>(
    spec: &RunSpec,
    timetable: Timetable,
    connections: &[Connection],
    queue: &'a SharedQueue,
) -> Pacing<'a> {
    if spec.rate_per_s > 0.0 {
        let Generator { number: own, of } = spec.generator;
        let times = DueTimes::new(spec.arrival, spec.rate_per_s, spec.seed).every(own, of);
        Pacing::rate(times, queue, connections.len(), timetable)
    } else if spec.think_time_ms[1] > 0.0 {
        let numbers = connections.iter().map(Connection::number);
        Pacing::thinking(spec.think_time_ms, numbers, spec.seed, timetable)
    } else {
        Pacing::closed()
    }
}

/// Starts reconnecting threads if the run may need them, and appends the socket that wakes the
/// worker to `sockets`.
fn reconnect(
    spec: &RunSpec,
    connections: usize,
    sockets: &mut Vec<OwnedFd>,
) -> io::Result<Reconnect> {
    let may_reopen = spec.reopens() || (spec.script.is_some() && !sockets.is_empty());
    if spec.dry_run || !may_reopen {
        return Ok(Reconnect::default());
    }
    let (threads, waker) = ReconnectThreads::start(spec, connections)?;
    sockets.push(waker);
    Ok(Reconnect::new(threads, spec.ignore_errors.survives_loss(), spec.reconnect_every))
}

/// Merges, reports and encodes the workers' intervals as they arrive; returns them and the number
/// of events due and never begun.
fn collect(
    spec: &RunSpec,
    arriving: &Receiver<(usize, Interval)>,
    workers: usize,
    on_interval: &mut dyn FnMut(&LiveInterval),
) -> (Vec<Box<RawValue>>, u64) {
    let mut merger = Merger::new(workers);
    let mut records = Vec::new();
    let mut keep = |interval: Interval| {
        if interval.slice.end_ns > interval.slice.start_ns || !interval.is_empty() {
            let record = encoded(&interval);
            tell(spec, &interval, spec.tell_records.then(|| record.clone()), on_interval);
            records.push(record);
        }
    };
    for (worker, interval) in arriving {
        merger.add(worker, interval).into_iter().for_each(&mut keep);
    }
    merger.rest().into_iter().for_each(&mut keep);
    (records, merger.backlog())
}

fn tell(
    spec: &RunSpec,
    interval: &Interval,
    record: Option<Box<RawValue>>,
    on_interval: &mut dyn FnMut(&LiveInterval),
) {
    let mut live = LiveInterval::of(interval, spec.own_connections() as usize, &spec.percentiles);
    live.record = record;
    on_interval(&live);
}
