//! Equal behaviour of both reactors, on socket pairs with an echo at the other end.

use crate::support::in_a_quiet_moment;
use dbdyno_core::reactor::{
    ArrivalKind, Choice, Epoll, OpenReactor, Uring, io_uring_is_allowed, settle,
};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const MAX_WAIT: Duration = Duration::from_millis(60);

/// Sockets with an echo at the other end.
fn echoes(count: usize) -> (Vec<OwnedFd>, Vec<JoinHandle<()>>) {
    (0..count)
        .map(|_| {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let echo = std::thread::spawn(move || {
                let mut bytes = vec![0; 70_000];
                while let Ok(length @ 1..) = theirs.read(&mut bytes) {
                    if theirs.write_all(&bytes[..length]).is_err() {
                        break;
                    }
                }
            });
            (OwnedFd::from(ours), echo)
        })
        .unzip()
}

/// Sends a request of `bytes` bytes on every slot and waits for its echo, `rounds` times.
fn ping_pong<R: OpenReactor>(count: usize, rounds: usize, bytes: usize) {
    let (sockets, echoes) = echoes(count);
    let mut reactor = R::open(sockets, MAX_WAIT).unwrap();
    let request = |slot: usize, round: usize| vec![((slot * 31 + round) % 251) as u8; bytes];
    for round in 0..rounds {
        let mut received = vec![Vec::new(); count];
        for slot in 0..count {
            reactor.send(u32::try_from(slot).unwrap(), &request(slot, round)).unwrap();
        }
        let began = Instant::now();
        while received.iter().any(|one| one.len() < bytes) {
            assert!(began.elapsed() < Duration::from_secs(20), "{} lost replies", R::NAME);
            reactor.wait(None).unwrap();
            while let Some(arrival) = reactor.next_arrival() {
                assert_eq!(arrival.kind, ArrivalKind::Bytes);
                received[arrival.slot as usize].extend_from_slice(reactor.bytes(&arrival));
                reactor.give_back(arrival);
            }
        }
        for (slot, one) in received.iter().enumerate() {
            assert_eq!(one, &request(slot, round), "slot {slot} of {}", R::NAME);
        }
    }
    drop(reactor);
    echoes.into_iter().for_each(|echo| echo.join().unwrap());
}

fn a_closed_socket_is_told<R: OpenReactor>() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut reactor = R::open(vec![ours.into()], MAX_WAIT).unwrap();
    reactor.flush().unwrap();
    drop(theirs);
    let mut seen = None;
    let began = Instant::now();
    while seen.is_none() && began.elapsed() < Duration::from_secs(5) {
        reactor.wait(None).unwrap();
        while let Some(arrival) = reactor.next_arrival() {
            seen = Some(arrival.kind);
            reactor.give_back(arrival);
        }
    }
    assert_eq!(seen, Some(ArrivalKind::Closed), "{}", R::NAME);
    // Between the ends of the last two lies a whole MAX_WAIT; the first may end at once.
    let began = Instant::now();
    for _ in 0..3 {
        reactor.wait(None).unwrap();
        assert!(reactor.next_arrival().is_none(), "{} tells it twice", R::NAME);
    }
    assert!(began.elapsed() >= Duration::from_millis(50), "{} waits busily", R::NAME);
}

fn a_wait_ends_in_time<R: OpenReactor>() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let began = Instant::now(); // so does the timer of a reactor that opens
    let mut reactor = R::open(vec![ours.into()], MAX_WAIT).unwrap();
    reactor.wait(None).unwrap();
    assert!(reactor.next_arrival().is_none());
    assert!(began.elapsed() >= Duration::from_millis(50), "{}", R::NAME);
}

fn a_wait_can_be_short<R: OpenReactor>() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let mut reactor = R::open(vec![ours.into()], MAX_WAIT).unwrap();
    // The tick of max_wait may end a wait early, a busy machine may end it late.
    assert!(in_a_quiet_moment(|| {
        let began = Instant::now();
        reactor.wait(Some(Duration::from_millis(3))).unwrap();
        assert!(reactor.next_arrival().is_none());
        (Duration::from_millis(3)..Duration::from_millis(20)).contains(&began.elapsed())
    }));
}

/// Bytes are on their way on the old socket, which then closes; only the new socket may be heard.
fn a_replaced_socket_is_never_heard_again<R: OpenReactor>(request: usize) {
    let (old, mut old_peer) = UnixStream::pair().unwrap();
    let mut reactor = R::open(vec![old.into()], MAX_WAIT).unwrap();
    reactor.wait(Some(Duration::ZERO)).unwrap();
    assert!(reactor.next_arrival().is_none());
    for round in 0..5_u8 {
        let (new, mut new_peer) = UnixStream::pair().unwrap();
        reactor.send(0, &vec![1; request]).unwrap();
        old_peer.write_all(b"stale").unwrap();
        reactor.replace(0, new.into()).unwrap();
        drop(old_peer);
        let began = Instant::now();
        new_peer.write_all(&[round; 7]).unwrap();
        let mut heard = Vec::new();
        while heard.len() < 7 || began.elapsed() < Duration::from_millis(20) {
            assert!(began.elapsed() < Duration::from_secs(20), "{} is deaf", R::NAME);
            reactor.wait(Some(Duration::from_millis(5))).unwrap();
            while let Some(arrival) = reactor.next_arrival() {
                assert_eq!(arrival.kind, ArrivalKind::Bytes, "{}", R::NAME);
                heard.extend_from_slice(reactor.bytes(&arrival));
                reactor.give_back(arrival);
            }
        }
        assert_eq!(heard, [round; 7], "{}", R::NAME);
        reactor.send(0, b"to the new one").unwrap();
        reactor.flush().unwrap();
        let mut received = [0; 14];
        new_peer.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"to the new one", "{}", R::NAME);
        old_peer = new_peer;
    }
}

/// Runs `$check` on each reactor that this kernel allows.
macro_rules! on_both {
    ($name:ident, $check:ident $(, $argument:expr)*) => {
        #[test]
        fn $name() {
            $check::<Epoll>($($argument),*);
            if io_uring_is_allowed() {
                $check::<Uring>($($argument),*);
            }
        }
    };
}

on_both!(small_requests_come_back, ping_pong, 5, 200, 40);
on_both!(more_sockets_than_receive_buffers, ping_pong, 300, 3, 300);
on_both!(large_requests_come_back_whole, ping_pong, 3, 20, 600_000);
on_both!(closing_is_an_arrival, a_closed_socket_is_told);
on_both!(silence_ends_the_wait, a_wait_ends_in_time);
on_both!(a_schedule_ends_the_wait, a_wait_can_be_short);
on_both!(a_socket_with_a_small_request_is_replaced, a_replaced_socket_is_never_heard_again, 40);
on_both!(
    a_socket_with_a_large_request_is_replaced,
    a_replaced_socket_is_never_heard_again,
    900_000
);

#[test]
fn auto_takes_io_uring_where_it_is_allowed() {
    let expected = if io_uring_is_allowed() { Choice::IoUring } else { Choice::Epoll };
    assert_eq!(settle(Choice::Auto, &[8, 8]), expected);
    assert_eq!(settle(Choice::Epoll, &[8]), Choice::Epoll);
}
