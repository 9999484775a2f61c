//! The loop on bare sockets: the test is the server, and does what a real one does too rarely.

use dbdyno_core::random::{Distribution, Random};
use dbdyno_core::reactor::{Epoll, Reactor, Uring, io_uring_is_allowed};
use dbdyno_core::record::interval::Interval;
use dbdyno_core::record::recorder::Recorder;
use dbdyno_core::spec::IgnoredErrors;
use dbdyno_core::time::clock::Clock;
use dbdyno_core::time::schedule::Timetable;
use dbdyno_core::worker::connection::Connection;
use dbdyno_core::worker::{Control, Legacy, Orders, PATIENCE, Worker};
use dbdyno_core::workload::{Client, WorkloadSpec, build};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::channel;
use std::time::Duration;

/// OK as packet number 1.
const OK: &[u8] = b"\x07\0\0\x01\0\0\0\x02\0\0\0";
/// ERR 4031 as packet number 0: what MySQL 8 says before it closes a session that rested too long.
const DISCONNECTED: &[u8] = b"\x0b\0\0\0\xff\xbf\x0f#HY000go";

/// Point selects as text over `sockets`, without a time limit, until `budget` events are done.
fn load<R: Reactor>(sockets: Vec<OwnedFd>, budget: u64) -> (Legacy, Vec<Interval>) {
    let workload = build(&WorkloadSpec {
        name: "oltp_point_select".into(),
        options: serde_json::Map::new(),
        distribution: Distribution::Uniform {},
        prepared: false,
        connections: sockets.len() as u32,
    });
    let (stop, ignored) = (AtomicBool::new(false), IgnoredErrors::Codes(Vec::new()));
    let control = Control {
        stop: &stop,
        failed: AtomicBool::new(false),
        budget: Some(AtomicU64::new(budget)),
    };
    let connections = (0..sockets.len() as u64)
        .map(|stream| {
            Connection::new(true, Client::new(0, Vec::new(), Random::for_stream(1, stream)))
        })
        .collect();
    let (finished, intervals) = channel();
    let recorder = Recorder::new(Timetable::new(0, 0, 0), 0, finished);
    let orders = Orders {
        workload: &*workload.unwrap(),
        ignored: &ignored,
        clock: Clock::start(),
        deadline_ns: u64::MAX,
        give_up_ns: u64::MAX,
        control: &control,
    };
    let reactor = R::open(sockets, PATIENCE).unwrap();
    let legacy = Worker::new(reactor, connections, recorder, orders).drive();
    (legacy, intervals.iter().map(|(_, interval)| interval).collect())
}

/// The second connection has nothing to do and is closed by the server; the first is answered later.
fn a_resting_connection_may_be_closed<R: Reactor + 'static>(last_words: &[u8]) {
    let (busy, mut busy_peer) = UnixStream::pair().unwrap();
    let (resting, mut resting_peer) = UnixStream::pair().unwrap();
    let worker = std::thread::spawn(|| load::<R>(vec![busy.into(), resting.into()], 1));
    let mut request = [0; 512];
    assert!(busy_peer.read(&mut request).unwrap() > 4);
    resting_peer.write_all(last_words).unwrap();
    drop(resting_peer);
    std::thread::sleep(Duration::from_millis(300));
    busy_peer.write_all(OK).unwrap();
    let (legacy, intervals) = worker.join().expect("the worker does not panic");
    assert_eq!(legacy.failure, None, "{}", R::NAME);
    assert_eq!(intervals.iter().map(|interval| interval.events).sum::<u64>(), 1);
    let cpu = legacy.rest.cpu.thread;
    assert!(cpu < Duration::from_millis(100), "{} waits busily: {cpu:?} of 300 ms", R::NAME);
}

#[test]
fn a_connection_that_rests_may_be_closed() {
    for last_words in [&b""[..], DISCONNECTED] {
        a_resting_connection_may_be_closed::<Epoll>(last_words);
        if io_uring_is_allowed() {
            a_resting_connection_may_be_closed::<Uring>(last_words);
        }
    }
}
