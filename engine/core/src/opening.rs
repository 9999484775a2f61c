//! Opens a run's connections and prepares its statements on each of them, before the clock starts.

use crate::dial::Session;
use crate::error::Failure;
use crate::link::Link;
use crate::spec::RunSpec;
use crate::workload::Workload;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Logging in is a matter of round trips, so several go on at once.
const OPENED_AT_ONCE: usize = 16;

/// A connection that is logged in and has its statements prepared.
pub struct Opened {
    /// The socket.
    pub socket: OwnedFd,
    /// What its bytes go through.
    pub link: Link,
    /// The server's numbers of the workload's statements, in their order.
    pub statement_ids: Vec<u32>,
    /// Whether result sets end with OK instead of EOF.
    pub deprecate_eof: bool,
    /// What the server says it is.
    pub server_version: String,
}

/// Opens all connections of `spec`, in order.
///
/// # Errors
/// The first failure by the connections' order; the others are closed.
pub fn open_all(
    spec: &RunSpec,
    workload: &dyn Workload,
    stop: &AtomicBool,
) -> Result<Vec<Opened>, Failure> {
    let count = spec.connections as usize;
    let lanes = count.min(OPENED_AT_ONCE);
    let mut results: Vec<Vec<Result<Opened, Failure>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..lanes)
            .map(|lane| scope.spawn(move || open_lane(spec, workload, stop, lane, lanes)))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("opening does not panic")).collect()
    });
    // Connection i was opened by lane i mod lanes: put them back into their order. A lane that
    // failed is short, and its failure is its last element.
    let mut lanes_left: Vec<_> = results.iter_mut().map(|lane| lane.drain(..)).collect();
    (0..count)
        .map(|index| {
            let stopped =
                || Err(Failure::new("connect", "stopped before all connections were open"));
            lanes_left[index % lanes].next().unwrap_or_else(stopped)
        })
        .collect()
}

fn open_lane(
    spec: &RunSpec,
    workload: &dyn Workload,
    stop: &AtomicBool,
    lane: usize,
    lanes: usize,
) -> Vec<Result<Opened, Failure>> {
    let mut opened = Vec::new();
    for number in (0..spec.connections).skip(lane).step_by(lanes) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        opened.push(open_one(spec, workload, number));
        if opened.last().is_some_and(Result::is_err) {
            break;
        }
    }
    opened
}

/// Opens the run's connection `number`, counted from 0.
///
/// # Errors
/// At stage `connect` or `prepare`.
pub fn open_one(spec: &RunSpec, workload: &dyn Workload, number: u32) -> Result<Opened, Failure> {
    let endpoint = spec.endpoint.of(number);
    let transport = spec.transport()?;
    let mut session = Session::connect_over(&endpoint, &spec.login(), &transport, CONNECT_TIMEOUT)
        .map_err(|error| Failure::refused("connect", "", &error))?;
    let mut statement_ids = Vec::with_capacity(workload.statements().len());
    for statement in workload.statements() {
        let id = session
            .prepare(&statement.sql)
            .map_err(|error| Failure::refused("prepare", &statement.sql, &error))?;
        statement_ids.push(id);
    }
    let (deprecate_eof, version) = (session.deprecate_eof(), session.server_version().to_owned());
    let (socket, link) = session.into_stream();
    Ok(Opened { socket, link, statement_ids, deprecate_eof, server_version: version })
}
