//! Allocations of the hot path: five times the events take no more of them, and reading a reply
//! takes none for any cut by the network.

use dbdyno_core::opening::open_all;
use dbdyno_core::random::Seeding;
use dbdyno_core::reactor::{Delayed, Epoll, OpenReactor, Reactor, Uring, io_uring_is_allowed};
use dbdyno_core::record::recorder::Recorder;
use dbdyno_core::reference::{Reference, Script};
use dbdyno_core::spec::RunSpec;
use dbdyno_core::time::clock::Clock;
use dbdyno_core::time::due_times::{DueTimes, Spacing};
use dbdyno_core::time::schedule::Timetable;
use dbdyno_core::worker::connection::Connection;
use dbdyno_core::worker::{Control, MAX_WAIT, Orders, Pacing, Parts, Reconnect, Worker};
use dbdyno_core::workload::Client;
use dbdyno_wire::mysql::response::{Ok as OkPacket, write_eof};
use dbdyno_wire::mysql::result_set;
use dbdyno_wire::mysql::scanner::{Outcome, ReplyShape, Scanner};
use serde_json::json;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counter of the calling thread's allocations.
struct Counting;

// SAFETY: forwards to the system's allocator and counts in a variable without destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as our caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as our caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Schedule of events.
type Schedule = fn() -> Pacing<'static>;

/// A rate above the server's capacity, so that a backlog grows meanwhile.
fn at_a_rate() -> Pacing<'static> {
    let times = DueTimes::new(Spacing::Poisson, 1e5, 1);
    let queue = Box::leak(Box::default());
    Pacing::rate(times, queue, 4, Timetable::new(0, 0, 0))
}

fn with_thinking() -> Pacing<'static> {
    Pacing::thinking([0.0, 0.5], 0..4, 1, Timetable::new(0, 0, 0))
}

fn opened<R: OpenReactor>(sockets: Vec<OwnedFd>) -> R {
    R::open(sockets, MAX_WAIT).unwrap()
}

/// Allocations of a worker in this thread for a number of events.
fn allocations<R: Reactor>(
    server: &Reference,
    events: u64,
    prepared: bool,
    schedule: Schedule,
    open: fn(Vec<OwnedFd>) -> R,
) -> u64 {
    let spec: RunSpec = serde_json::from_value(json!({
        "endpoint": {"host": "127.0.0.1", "port": server.port},
        "user": server.login().user, "password": server.login().password, "database": "sbtest",
        "connections": 4, "window_s": 0, "interval_s": 0, "seed": 1, "prepared": prepared,
        "workload": {"name": "oltp_read_write"},
    }))
    .unwrap();
    let workload = spec.workload().unwrap();
    let stop = AtomicBool::new(false);
    let opened = open_all(&spec, &stop).unwrap();
    let (sockets, connections) = opened
        .into_iter()
        .zip(Seeding::Streams.streams(1))
        .map(|(one, random)| Connection::of(one, Client::new(0, Vec::new(), random)))
        .unzip();
    let (finished, _intervals) = std::sync::mpsc::channel();
    let budget = Some(AtomicU64::new(events));
    let control = Control { stop: &stop, failed: AtomicBool::new(false), budget };
    let orders = Orders {
        workload: &*workload,
        ignored: &spec.ignore_errors,
        clock: Clock::start(),
        deadline_ns: u64::MAX,
        give_up_ns: u64::MAX,
        control: &control,
    };
    let reactor = open(sockets);
    let recorder = Recorder::new(Timetable::new(0, 0, 0), 0, finished);
    let (pacing, reconnect) = (schedule(), Reconnect::default());
    let parts = Parts { reactor, connections, recorder, orders, pacing, reconnect };
    let worker = Worker::new(parts);
    let before = ALLOCATIONS.get();
    let end = worker.drive();
    assert_eq!(end.failure, None);
    ALLOCATIONS.get() - before
}

/// 1600 more replies, and at most one longer event that lets a connection's buffers grow.
fn replies_cost_nothing<R: Reactor>(server: &Reference, open: fn(Vec<OwnedFd>) -> R) {
    let schedules: [Schedule; 3] = [Pacing::closed, at_a_rate, with_thinking];
    for (schedule, prepared) in schedules.into_iter().flat_map(|it| [(it, true), (it, false)]) {
        let few = allocations::<R>(server, 20, prepared, schedule, open);
        let many = allocations::<R>(server, 100, prepared, schedule, open);
        assert!(few > 0 && many <= few + 8, "{}: {few} allocations, then {many}", R::NAME);
    }
}

#[test]
fn a_reply_costs_no_allocation() {
    let server = Reference::start(Script::default()).unwrap();
    replies_cost_nothing(&server, opened::<Epoll>);
    replies_cost_nothing(&server, |sockets| {
        Delayed::new(opened::<Epoll>(sockets), Duration::from_micros(100))
    });
    if io_uring_is_allowed() {
        replies_cost_nothing(&server, opened::<Uring>);
    }
}

const ROWS: u64 = 100;

/// Reply to sysbench's range query.
fn range(shape: ReplyShape, deprecate_eof: bool) -> Vec<u8> {
    let (mut out, mut sequence) = (Vec::new(), 1);
    result_set::write_column_count(&mut out, &mut sequence, 1);
    result_set::write_column(&mut out, &mut sequence, "c");
    if !deprecate_eof {
        write_eof(&mut out, &mut sequence, 2);
    }
    for _ in 0..ROWS {
        let values = [Some(&[b'7'; 119][..])];
        if shape == ReplyShape::Binary {
            result_set::write_binary_row(&mut out, &mut sequence, &values);
        } else {
            result_set::write_text_row(&mut out, &mut sequence, &values);
        }
    }
    OkPacket::default().write_end(&mut out, &mut sequence, deprecate_eof);
    out
}

#[test]
fn a_reply_cut_anywhere_is_read_without_an_allocation() {
    for shape in [ReplyShape::Text, ReplyShape::Binary] {
        for deprecate_eof in [true, false] {
            let reply = range(shape, deprecate_eof);
            let mut scanner = Scanner::new(deprecate_eof);
            let before = ALLOCATIONS.get();
            for piece in [1, 2, 3, 7, 61, 119, 4096, reply.len()] {
                scanner.begin(shape);
                let mut outcome = None;
                for bytes in reply.chunks(piece) {
                    outcome = scanner.feed(bytes).expect("a reply of the protocol");
                }
                let Some(Outcome::Done(summary)) = outcome else { panic!("no end") };
                assert_eq!((summary.rows, summary.bytes), (ROWS, reply.len() as u64));
            }
            assert_eq!(ALLOCATIONS.get(), before, "{shape:?}, deprecate_eof {deprecate_eof}");
        }
    }
}
