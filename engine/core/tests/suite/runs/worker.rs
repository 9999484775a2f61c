//! The loop on bare sockets: the test acts as a server with rare behaviour.

use dbdyno_core::driver::Driver;
use dbdyno_core::error::CONNECTION_LOST;
use dbdyno_core::random::{Distribution, Random};
use dbdyno_core::reactor::{Epoll, OpenReactor, Uring, io_uring_is_allowed};
use dbdyno_core::record::interval::Interval;
use dbdyno_core::record::recorder::Recorder;
use dbdyno_core::reference::{Reference, Script};
use dbdyno_core::spec::{IgnoredErrors, RunSpec};
use dbdyno_core::time::clock::Clock;
use dbdyno_core::time::schedule::Timetable;
use dbdyno_core::worker::connection::Connection;
use dbdyno_core::worker::{
    Control, MAX_WAIT, Orders, Pacing, Parts, Reconnect, ReconnectThreads, Worker, WorkerEnd,
};
use dbdyno_core::workload::{Client, ConnectionRange, WorkloadSpec, build};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::channel;
use std::time::Duration;

/// OK as packet number 1.
const OK: &[u8] = b"\x07\0\0\x01\0\0\0\x02\0\0\0";
/// ERR 4031 as packet number 0: sent by MySQL 8 before it closes an idle session.
const DISCONNECTED: &[u8] = b"\x0b\0\0\0\xff\xbf\x0f#HY000go";
/// ERR 1053 as packet number 2: sent by MySQL during its shutdown, after [`OK`].
const SHUT_DOWN: &[u8] = b"\x0b\0\0\x02\xff\x1d\x04#08S01go";

/// Point selects as text over `sockets`, without a time limit, until `budget` events are done.
fn load<R: OpenReactor>(
    sockets: Vec<OwnedFd>,
    connections: usize,
    budget: u64,
    pacing: Pacing<'_>,
    reconnect: Reconnect,
) -> (WorkerEnd, Vec<Interval>) {
    let workload = build(&WorkloadSpec {
        driver: Driver::Mysql,
        name: "oltp_point_select".into(),
        options: serde_json::Map::new(),
        distribution: Distribution::Uniform {},
        prepared: false,
        connections: connections as u32,
        own: ConnectionRange::ALL,
    });
    let (stop, ignored) = (AtomicBool::new(false), IgnoredErrors::Codes(Vec::new()));
    let control = Control {
        stop: &stop,
        failed: AtomicBool::new(false),
        budget: Some(AtomicU64::new(budget)),
    };
    let connections = (0..connections as u64)
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
    let reactor = R::open(sockets, MAX_WAIT).unwrap();
    let parts = Parts { reactor, connections, recorder, orders, pacing, reconnect };
    let end = Worker::new(parts).drive();
    (end, intervals.iter().map(|(_, interval)| interval).collect())
}

/// The second connection is idle and closed by the server; the first is answered later.
fn the_server_closes_an_idle_connection<R: OpenReactor + 'static>(last_words: &[u8]) {
    let (busy, mut busy_peer) = UnixStream::pair().unwrap();
    let (resting, mut resting_peer) = UnixStream::pair().unwrap();
    let worker = std::thread::spawn(|| {
        load::<R>(vec![busy.into(), resting.into()], 2, 1, Pacing::closed(), Reconnect::default())
    });
    let mut request = [0; 512];
    assert!(busy_peer.read(&mut request).unwrap() > 4);
    resting_peer.write_all(last_words).unwrap();
    drop(resting_peer);
    std::thread::sleep(Duration::from_millis(150));
    busy_peer.write_all(OK).unwrap();
    let (end, intervals) = worker.join().expect("the worker does not panic");
    assert_eq!(end.failure, None, "{}", R::NAME);
    assert_eq!(intervals.iter().map(|interval| interval.events).sum::<u64>(), 1);
    let cpu = end.remainder.cpu.thread;
    assert!(cpu < Duration::from_millis(50), "{} waits busily: {cpu:?} of 150 ms", R::NAME);
}

#[test]
fn an_idle_connection_may_be_closed() {
    for last_words in [&b""[..], DISCONNECTED] {
        the_server_closes_an_idle_connection::<Epoll>(last_words);
        if io_uring_is_allowed() {
            the_server_closes_an_idle_connection::<Uring>(last_words);
        }
    }
}

/// Some bytes of the last words come with the reply; the others arrive after the next request.
fn a_server_may_end_a_session_behind_a_reply<R: OpenReactor>(
    last_words: &'static [u8],
    cut: usize,
) {
    let (near, mut peer) = UnixStream::pair().unwrap();
    let server = std::thread::spawn(move || {
        let (with_the_reply, later) = last_words.split_at(cut);
        for bytes in [&[OK, with_the_reply].concat()[..], later] {
            assert!(peer.read(&mut [0; 512]).unwrap() > 4);
            peer.write_all(bytes).unwrap();
        }
    });
    let (end, intervals) =
        load::<R>(vec![near.into()], 1, u64::MAX, Pacing::closed(), Reconnect::default());
    let failure = end.failure.expect("the connection was lost");
    assert_eq!(failure.code, Some(CONNECTION_LOST), "{}, cut at {cut}: {failure}", R::NAME);
    assert_eq!(intervals.iter().map(|interval| interval.events).sum::<u64>(), 1);
    server.join().unwrap();
}

#[test]
fn a_session_may_end_behind_a_reply() {
    for last_words in [DISCONNECTED, SHUT_DOWN] {
        for cut in [0, 2, 9, last_words.len()] {
            a_server_may_end_a_session_behind_a_reply::<Epoll>(last_words, cut);
            if io_uring_is_allowed() {
                a_server_may_end_a_session_behind_a_reply::<Uring>(last_words, cut);
            }
        }
    }
}

/// Answers each request some milliseconds later, until none comes for a while; returns their
/// number, and closes the connection.
fn answer_until_a_rest(mut peer: UnixStream) -> u64 {
    peer.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (mut request, mut answered) = ([0; 512], 0);
    while peer.read(&mut request).is_ok_and(|length| length > 0) {
        std::thread::sleep(Duration::from_millis(3));
        peer.write_all(OK).unwrap();
        answered += 1;
    }
    answered
}

/// A connection that rests 0.2 s between its events.
fn resting() -> Pacing<'static> {
    Pacing::thinking([200.0, 200.0], 0..1, 1, Timetable::new(0, 0, 0))
}

fn a_server_may_close_a_resting_connection<R: OpenReactor>() {
    let (near, peer) = UnixStream::pair().unwrap();
    let server = std::thread::spawn(|| answer_until_a_rest(peer));
    let (end, intervals) =
        load::<R>(vec![near.into()], 1, u64::MAX, resting(), Reconnect::default());
    let failure = end.failure.expect("the connection was lost");
    assert_eq!(failure.code, Some(CONNECTION_LOST), "{}", R::NAME);
    let events = intervals.iter().map(|interval| interval.events).sum::<u64>();
    assert_eq!(events, server.join().unwrap(), "{}", R::NAME);
}

fn a_connection_lost_at_rest_is_opened_again<R: OpenReactor>() {
    let server = Reference::start(Script::default()).unwrap();
    let spec: RunSpec = serde_json::from_value(serde_json::json!({
        "endpoint": {"host": "127.0.0.1", "port": server.port}, "user": server.login().user,
        "password": server.login().password, "database": "sbtest", "connections": 1,
        "window_s": 0, "seed": 1, "prepared": false, "ignore_errors": [CONNECTION_LOST],
        "workload": {"name": "oltp_point_select"},
    }))
    .unwrap();
    let (near, peer) = UnixStream::pair().unwrap();
    let first_server = std::thread::spawn(|| answer_until_a_rest(peer));
    let (threads, waker) = ReconnectThreads::start(&spec, 1).unwrap();
    let (end, intervals) =
        load::<R>(vec![near.into(), waker], 1, 3, resting(), Reconnect::new(threads, true, 0));
    assert_eq!(end.failure, None, "{}", R::NAME);
    let sum = |count: fn(&Interval) -> u64| intervals.iter().map(count).sum::<u64>();
    assert_eq!(sum(|it| it.events), 3, "{}", R::NAME);
    assert_eq!((sum(|it| it.reconnects), sum(|it| it.restarts)), (1, 1), "{}", R::NAME);
    assert_eq!(first_server.join().unwrap() + server.statements(), 3, "{}", R::NAME);
}

#[test]
fn a_connection_may_be_closed_while_it_rests() {
    a_server_may_close_a_resting_connection::<Epoll>();
    a_connection_lost_at_rest_is_opened_again::<Epoll>();
    if io_uring_is_allowed() {
        a_server_may_close_a_resting_connection::<Uring>();
        a_connection_lost_at_rest_is_opened_again::<Uring>();
    }
}
