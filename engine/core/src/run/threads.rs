//! Deals the connections of a run out to its engine threads, round robin.
//!
//! Usually all connections are opened first, so all threads begin with all connections open. If the
//! limit of open files is too low for all of them in one file table, each engine thread gets a
//! table of its own (`unshare(CLONE_FILES)`) and opens its connections itself, because a socket
//! cannot move between tables.

use crate::error::Failure;
use crate::opening::limits;
use crate::opening::{Opened, open_all, open_range};
use crate::random::Random;
use crate::script::{HandedOver, open_threads};
use crate::spec::{RunSpec, ScriptSpec};
use crate::system::unshare_file_table;
use crate::worker::connection::Connection;
use crate::workload::{Client, ConnectionRange, Workload};
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;

/// Server information from a session.
#[derive(Default)]
pub struct ServerInfo {
    /// Version reported by the server.
    pub server_version: String,
    /// TLS version and cipher suite, `compressed` or `plain`.
    pub transport: String,
}

/// Connections of an engine thread and their sockets, slot by slot. A dry run has no sockets.
#[derive(Default)]
pub struct ThreadConnections {
    /// A socket per connection.
    pub sockets: Vec<OwnedFd>,
    /// Connections in order of their numbers.
    pub connections: Vec<Connection>,
    /// Known to the thread with the first connection of the run.
    pub server: Option<ServerInfo>,
}

impl ThreadConnections {
    fn add(&mut self, spec: &RunSpec, number: u32, opened: Opened, random: Random) {
        let connection = self.connect(number, opened, random);
        self.connections.push(if spec.endpoint.are_several() {
            connection.at(&spec.endpoint.of(number))
        } else {
            connection
        });
    }

    /// Takes the socket; returns the connection, not yet added.
    fn connect(&mut self, number: u32, opened: Opened, random: Random) -> Connection {
        if number == 0 {
            let transport = opened.link.to_string();
            let server_version = opened.server_version.clone();
            self.server = Some(ServerInfo { server_version, transport });
        }
        let (socket, connection) = Connection::of(opened, Client::new(number, Vec::new(), random));
        self.sockets.push(socket);
        connection
    }
}

/// Source of an engine thread's connections.
pub enum ConnectionSource {
    /// Connections already open.
    Open(ThreadConnections),
    /// Connections the thread opens itself, in a file table of its own.
    OwnFileTable(ConnectionRange),
}

impl ConnectionSource {
    /// Number of the thread's connections.
    #[must_use]
    pub fn size(&self, spec: &RunSpec) -> usize {
        match self {
            Self::Open(connections) => connections.connections.len(),
            Self::OwnFileTable(range) => range.count(spec.connections) as usize,
        }
    }

    /// Opens the connections if needed; call it on the thread that drives them.
    ///
    /// # Errors
    /// Failures of opening connections.
    pub fn connections(
        self,
        spec: &RunSpec,
        stop: &AtomicBool,
    ) -> Result<ThreadConnections, Failure> {
        let range = match self {
            Self::Open(connections) => return Ok(connections),
            Self::OwnFileTable(range) => range,
        };
        // SAFETY: this engine thread and threads it starts open its sockets, and hand none to
        // another thread.
        unsafe { unshare_file_table() }.map_err(|error| {
            Failure::new("limits", format!("no table of open files for a thread: {error}"))
        })?;
        let opened = open_range(spec, range, stop)?;
        let mut connections = ThreadConnections::default();
        for (number, connection, random) in numbered(spec, range, opened) {
            connections.add(spec, number, connection, random);
        }
        Ok(connections)
    }
}

/// Opens the connections of a run, or leaves it to the threads, and deals them out.
///
/// # Errors
/// Failures of opening connections.
pub fn sources(spec: &RunSpec, stop: &AtomicBool) -> Result<Vec<ConnectionSource>, Failure> {
    let tables = limits::file_tables_for(u64::from(spec.own_connections()))
        .map_err(|message| Failure::new("limits", message))?;
    if tables > 1 {
        let threads = threads(spec).max(tables as usize);
        let threads = u32::try_from(threads).expect("threads are counted in 32 bits");
        return Ok((0..threads)
            .map(|number| ConnectionSource::OwnFileTable(spec.own().part(number, threads)))
            .collect());
    }
    let mut sources: Vec<ThreadConnections> =
        (0..threads(spec)).map(|_| ThreadConnections::default()).collect();
    let count = sources.len();
    let opened = open_all(spec, stop)?;
    for (place, (number, connection, random)) in numbered(spec, spec.own(), opened).enumerate() {
        sources[place % count].add(spec, number, connection, random);
    }
    Ok(sources.into_iter().map(ConnectionSource::Open).collect())
}

/// Threads of a script, ready for their events, with the connections the loop takes over.
///
/// # Errors
/// The failure of a thread, at stage `script`.
pub fn of_script(
    spec: &RunSpec,
    script: &ScriptSpec,
    stop: &AtomicBool,
) -> Result<Vec<ThreadConnections>, Failure> {
    // A script driven outside the loop has two more files per connection, and may open further
    // connections.
    let connections = u64::from(spec.connections);
    limits::raise_open_files_limit(4 * connections)
        .or_else(|_| limits::raise_open_files_limit(connections))
        .map_err(|message| Failure::new("limits", message))?;
    let seeding = (spec.seeding, spec.seed);
    let opened = open_threads(script, spec.connections, seeding, stop)?;
    let is_looped = opened.iter().all(|(_, handed)| handed.is_some());
    let count = if is_looped { threads(spec) } else { opened.len() };
    let mut sources: Vec<ThreadConnections> =
        (0..count).map(|_| ThreadConnections::default()).collect();
    for ((number, (thread, handed)), random) in
        (0..).zip(opened).zip(spec.seeding.streams(spec.seed))
    {
        let own = &mut sources[number as usize % count];
        let connection = match handed {
            Some(HandedOver { socket, link, driver, deprecate_eof, server_version }) => {
                let statement_ids = Vec::new();
                let opened =
                    Opened { socket, link, statement_ids, driver, deprecate_eof, server_version };
                own.connect(number, opened, random)
            }
            None => Connection::new(true, Client::new(number, Vec::new(), random)),
        };
        own.connections.push(connection.scripted(thread));
    }
    Ok(sources)
}

/// Connections of a dry run, which has no server; statements are numbered as a server would.
#[must_use]
pub fn dry_run(spec: &RunSpec, workload: &dyn Workload) -> Vec<ThreadConnections> {
    let ids: Vec<u32> = (1..).take(workload.statements().len()).collect();
    let mut sources: Vec<ThreadConnections> =
        (0..threads(spec)).map(|_| ThreadConnections::default()).collect();
    let count = sources.len();
    for (number, random) in (0..spec.connections).zip(spec.seeding.streams(spec.seed)) {
        let client = Client::new(number, ids.clone(), random);
        sources[number as usize % count].connections.push(Connection::new(true, client));
    }
    sources
}

/// Opened connections with their numbers and random streams, seeded by their place in the whole
/// run.
fn numbered(
    spec: &RunSpec,
    range: ConnectionRange,
    opened: Vec<Opened>,
) -> impl Iterator<Item = (u32, Opened, Random)> {
    let streams = spec.seeding.streams(spec.seed);
    let own = streams.skip(range.first as usize).step_by(range.step as usize);
    let numbers = (range.first..).step_by(range.step as usize);
    numbers.zip(opened).zip(own).map(|((number, connection), random)| (number, connection, random))
}

fn threads(spec: &RunSpec) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    spec.engine_threads(cores)
}
