//! One run from its spec to its record.

mod threads;

use crate::error::Failure;
use crate::placement::Place;
use crate::reactor::{Choice, DryRun, Epoll, Reactor, Uring, settle};
use crate::record::interval::Interval;
use crate::record::interval::Merger;
use crate::record::recorder::{Recorder, WindowCpu};
use crate::record::run_record::{
    Fairness, IntervalRecord, MeasuredCpu, Progress, RunRecord, Share,
};
use crate::spec::RunSpec;
use crate::time::clock::{Clock, ns};
use crate::time::due_times::Part;
use crate::time::pauses::{Meeting, Standstills};
use crate::time::schedule::{Slice, Timetable};
use crate::worker::Diallers;
use crate::worker::connection::Connection;
use crate::worker::{Control, Legacy, Orders, PATIENCE, Pacing, Revival, Standing, Worker};
use crate::workload::Workload;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Barrier, OnceLock};
use threads::{Hiring, Seen, Team};

/// Drives the load that `spec` asks for, and tells each finished interval.
///
/// A run that fails half-way still gives a record, with the failure in it.
///
/// # Errors
/// When the load could not begin: nonsense in the spec, no connection, a statement refused.
pub fn run(
    spec: &RunSpec,
    stop: &AtomicBool,
    on_interval: &mut dyn FnMut(&Progress),
) -> Result<RunRecord, Failure> {
    let workload = spec.workload().map_err(|mistakes| Failure::new("spec", mistakes.join("\n")))?;
    if spec.dry_run {
        let teams = threads::dry(spec, &*workload).into_iter().map(Hiring::Ready).collect();
        return load::<DryRun>(spec, &*workload, teams, stop, on_interval);
    }
    let teams = threads::hirings(spec, stop)?;
    let sizes: Vec<usize> = teams.iter().map(|team| team.size(spec)).collect();
    match settle(spec.reactor, &sizes) {
        Choice::IoUring => load::<Uring>(spec, &*workload, teams, stop, on_interval),
        _ => load::<Epoll>(spec, &*workload, teams, stop, on_interval),
    }
}

fn load<R: Reactor>(
    spec: &RunSpec,
    workload: &dyn Workload,
    teams: Vec<Hiring>,
    stop: &AtomicBool,
    on_interval: &mut dyn FnMut(&Progress),
) -> Result<RunRecord, Failure> {
    let threads = teams.len();
    let control = Control {
        stop,
        failed: AtomicBool::new(false),
        budget: (spec.events > 0).then(|| AtomicU64::new(spec.events)),
    };
    let (finished, arriving) = channel();
    let start = Start::new(threads);
    let meeting = Meeting::new(threads);
    let (intervals, legacies) = std::thread::scope(|scope| {
        let workers: Vec<_> = teams
            .into_iter()
            .enumerate()
            .map(|(number, team)| {
                let recorder = (number, finished.clone());
                let together = (&start, &meeting, &control);
                scope.spawn(move || work::<R>(spec, workload, team, recorder, together))
            })
            .collect();
        drop(finished);
        start.ready.wait();
        if spec.tell_begin {
            let nothing = Slice { end_ns: 0, ..spec.timetable().slice_from(0) };
            tell(spec, &Interval::new(0, nothing), on_interval);
        }
        start.go.wait();
        let intervals = collect(spec, &arriving, threads, on_interval);
        let legacies = workers.into_iter().map(|one| one.join().expect("a worker does not panic"));
        (intervals, legacies.collect::<Result<Vec<_>, Failure>>())
    });
    let record = put_together::<R>(spec, intervals, legacies?, &control);
    let seen = start.seen.into_inner().unwrap_or_default();
    Ok(RunRecord { server_version: seen.server_version, transport: seen.transport, ..record })
}

/// The record of what the workers left behind.
fn put_together<R: Reactor>(
    spec: &RunSpec,
    intervals: Vec<IntervalRecord>,
    legacies: Vec<Legacy>,
    control: &Control,
) -> RunRecord {
    let shares: Vec<Share> = legacies.iter().flat_map(|one| one.shares.iter().copied()).collect();
    let windows: Vec<WindowCpu> = legacies.iter().map(|one| one.rest.cpu).collect();
    let unfinished = legacies.iter().map(|one| one.rest.unfinished).sum();
    let unserved = legacies.iter().map(|one| one.rest.unserved).sum();
    let failure = legacies.iter().find_map(|one| one.failure.clone());
    RunRecord {
        engine_version: env!("CARGO_PKG_VERSION"),
        reactor: R::NAME,
        threads: legacies.len(),
        connections: spec.connections as usize,
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

/// Lets all workers begin at one moment, with one clock, when whoever waits for it was told that they
/// are ready.
struct Start {
    ready: Barrier,
    go: Barrier,
    clock: OnceLock<Clock>,
    /// What the first session saw of its server.
    seen: OnceLock<Seen>,
}

impl Start {
    fn new(threads: usize) -> Self {
        let barrier = || Barrier::new(threads + 1);
        Self { ready: barrier(), go: barrier(), clock: OnceLock::new(), seen: OnceLock::new() }
    }

    fn wait(&self) -> Clock {
        self.ready.wait();
        self.go.wait();
        *self.clock.get_or_init(Clock::start)
    }
}

fn work<R: Reactor>(
    spec: &RunSpec,
    workload: &dyn Workload,
    hiring: Hiring,
    (number, finished): (usize, std::sync::mpsc::Sender<(usize, Interval)>),
    (start, meeting, control): (&Start, &Meeting, &Control),
) -> Result<Legacy, Failure> {
    let give_up = |failure| {
        control.failed.store(true, Ordering::Relaxed);
        failure
    };
    let team = hiring.team(spec, control.stop);
    let Team { mut sockets, connections, seen } = match team {
        Ok(team) => team,
        Err(failure) => {
            let failure = give_up(failure);
            start.wait();
            return Err(failure);
        }
    };
    if let Some(seen) = seen {
        let _ = start.seen.set(seen);
    }
    let place = match &sockets[..] {
        _ if spec.is_scheduled() => Place::on_time(),
        [only] if !spec.reopens() => {
            Place::beside_the_server_of(only.as_fd(), spec.connections == 1)
        }
        _ => Place::behind_the_servers(),
    };
    let revival = revival(spec, connections.len(), &mut sockets);
    // A ring belongs to the thread that opens it.
    let reactor = R::open(sockets, PATIENCE);
    let clock = start.wait();
    let (revival, reactor) = revival.and_then(|it| Ok((it, reactor?))).map_err(|error| {
        give_up(Failure::new("connect", format!("{} cannot be opened: {error}", R::NAME)))
    })?;
    let timetable = spec.timetable();
    let patience_ns = if spec.drain_s > 0.0 { ns(spec.drain_s) } else { u64::MAX };
    let orders = Orders {
        workload,
        ignored: &spec.ignore_errors,
        clock,
        deadline_ns: timetable.deadline_ns(),
        give_up_ns: timetable.deadline_ns().saturating_add(patience_ns),
        control,
    };
    let recorder = Recorder::new(timetable, number, finished);
    let pacing = pacing(spec, timetable, &connections, number);
    let worker = Worker::new(reactor, connections, recorder, orders);
    let standing = standing(spec, timetable, meeting);
    Ok(worker.paced(pacing).reviving(revival).standing(standing).placed(place).drive())
}

/// When this thread stands still, if the run does.
fn standing<'a>(spec: &RunSpec, timetable: Timetable, meeting: &'a Meeting) -> Standing<'a> {
    spec.standstill.map_or_else(Standing::never, |asked| {
        Standing::new(Standstills::new(&asked, timetable), meeting)
    })
}

/// When the connections of thread `number` begin their events.
fn pacing(spec: &RunSpec, timetable: Timetable, team: &[Connection], number: usize) -> Pacing {
    if spec.rate_per_s > 0.0 {
        let part = Part {
            rate_per_s: spec.rate_per_s,
            connections: spec.connections as usize,
            own_connections: team.len(),
            thread: number,
        };
        Pacing::rate(spec.arrival, part, spec.seed, timetable)
    } else if spec.think_time_ms[1] > 0.0 {
        let numbers = team.iter().map(Connection::number);
        Pacing::thinking(spec.think_time_ms, numbers, spec.seed, timetable)
    } else {
        Pacing::closed()
    }
}

/// How sessions are opened again, if the run may need that; its bell is put behind the sockets.
fn revival(
    spec: &RunSpec,
    connections: usize,
    sockets: &mut Vec<OwnedFd>,
) -> std::io::Result<Revival> {
    if spec.dry_run || !spec.reopens() {
        return Ok(Revival::default());
    }
    let (diallers, bell) = Diallers::start(spec, connections)?;
    sockets.push(bell);
    Ok(Revival::new(diallers, spec.ignore_errors.survives_loss(), spec.reconnect_every))
}

/// Puts the workers' intervals together as they come, tells and encodes them.
fn collect(
    spec: &RunSpec,
    arriving: &Receiver<(usize, Interval)>,
    workers: usize,
    on_interval: &mut dyn FnMut(&Progress),
) -> Vec<IntervalRecord> {
    let mut merger = Merger::new(workers);
    let mut records = Vec::new();
    let mut keep = |interval: Interval| {
        if interval.slice.end_ns > interval.slice.start_ns || !interval.is_empty() {
            tell(spec, &interval, on_interval);
            records.push(IntervalRecord::from(&interval));
        }
    };
    for (worker, interval) in arriving {
        merger.add(worker, interval).into_iter().for_each(&mut keep);
    }
    merger.rest().into_iter().for_each(&mut keep);
    records
}

fn tell(spec: &RunSpec, interval: &Interval, on_interval: &mut dyn FnMut(&Progress)) {
    let told = Progress::of(interval, spec.connections as usize, &spec.percentiles);
    on_interval(&if spec.tell_records { told.with_record(interval) } else { told });
}
