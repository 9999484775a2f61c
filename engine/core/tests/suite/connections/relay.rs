//! Simulated network between servers: its addition to a round trip, without loss or reordering.

use crate::support::{in_a_quiet_moment, median};
use dbdyno_core::relay::Relay;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// Connection through a relay, from both ends.
fn joined(round_trip: Duration) -> (TcpStream, TcpStream) {
    connected(|target| relayed(target, round_trip))
}

/// Connection to the address that leads to a listener's own, from both ends.
fn connected(way: impl FnOnce(SocketAddr) -> SocketAddr) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(ANY).unwrap();
    let near = TcpStream::connect(way(listener.local_addr().unwrap())).unwrap();
    let (far, _) = listener.accept().unwrap();
    for stream in [&near, &far] {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    (near, far)
}

fn relayed(target: SocketAddr, round_trip: Duration) -> SocketAddr {
    let listener = TcpListener::bind(ANY).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || Relay::new(listener, target, round_trip).serve());
    address
}

/// Round trips of a small message to an echo, sorted, in ms.
fn round_trips_ms(mut near: TcpStream, mut far: TcpStream) -> Vec<f64> {
    const TRIPS: usize = 200;
    let echo = thread::spawn(move || {
        let mut message = [0; 64];
        for _ in 0..TRIPS {
            far.read_exact(&mut message).unwrap();
            far.write_all(&message).unwrap();
        }
    });
    let mut message = [7; 64];
    let mut trips: Vec<f64> = (0..TRIPS)
        .map(|_| {
            let began = Instant::now();
            near.write_all(&message).unwrap();
            near.read_exact(&mut message).unwrap();
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    echo.join().unwrap();
    trips.sort_by(f64::total_cmp);
    trips
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean and 99th percentile of what a relay adds to a round trip, ms.
fn added_ms(asked_ms: f64) -> (f64, f64) {
    let (near, far) = connected(|target| target);
    let direct_ms = mean(&round_trips_ms(near, far));
    let (near, far) = joined(Duration::from_secs_f64(asked_ms / 1e3));
    let through_ms = round_trips_ms(near, far);
    (mean(&through_ms) - direct_ms, through_ms[through_ms.len() * 99 / 100] - direct_ms)
}

/// Usually, and not only at best: by the medians of several connections.
#[test]
fn a_round_trip_takes_the_requested_time_longer() {
    const CONNECTIONS: usize = 9;
    let asked_ms = 0.8;
    assert!(in_a_quiet_moment(|| {
        let (means_ms, p99s_ms): (Vec<_>, Vec<_>) =
            (0..CONNECTIONS).map(|_| added_ms(asked_ms)).unzip();
        (median(means_ms) / asked_ms - 1.0).abs() < 0.05 && median(p99s_ms) < asked_ms + 0.3
    }));
}

/// Ten megabytes with a round trip of 200 ms: they would take 15 s if each piece waited for the
/// last.
#[test]
fn many_bytes_are_on_their_way_at_once_and_keep_their_order() {
    let (mut near, mut far) = joined(Duration::from_millis(200));
    let sent: Vec<u8> = (0..10_000_000_u32).map(|n| (n % 251) as u8).collect();
    let mut received = vec![0; sent.len()];
    let began = Instant::now();
    let expected = sent.clone();
    let sender = thread::spawn(move || near.write_all(&sent).map(|()| near).unwrap());
    far.read_exact(&mut received).unwrap();
    let elapsed = began.elapsed();
    drop(sender.join().unwrap());
    assert!(received == expected, "other bytes came than were sent");
    assert!(elapsed >= Duration::from_millis(100), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(7), "{elapsed:?}");
}

#[test]
fn the_end_of_one_direction_is_passed_on_and_the_other_goes_on() {
    let (mut near, mut far) = joined(Duration::from_millis(2));
    near.write_all(b"question").unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let mut asked = String::new();
    far.read_to_string(&mut asked).unwrap();
    far.write_all(b"answer").unwrap();
    drop(far);
    let mut answered = String::new();
    near.read_to_string(&mut answered).unwrap();
    assert_eq!([asked, answered], ["question", "answer"]);
}

/// A peer gone for good breaks the connection of the other end, too.
#[test]
fn a_connection_that_breaks_at_one_end_breaks_at_the_other() {
    let (near, mut far) = joined(Duration::from_millis(2));
    drop(near);
    let began = Instant::now();
    while far.write_all(&[1; 1000]).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(20), "nobody says that the reader is gone");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_server_that_is_not_there_closes_the_connection() {
    let nobody = TcpListener::bind(ANY).unwrap().local_addr().unwrap();
    let mut near = TcpStream::connect(relayed(nobody, Duration::ZERO)).unwrap();
    assert_eq!(near.read(&mut [0]).unwrap_or(0), 0);
}
