//! Deals the connections of a run out to its engine threads, round robin.
//!
//! Usually all connections are opened first, so that no thread begins before the last one is there.
//! If the limit of open files is too low for all of them in one table, each engine thread gets a
//! file table of its own (`unshare(CLONE_FILES)`) and opens its connections itself, because a
//! socket cannot move from one table to another.

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

/// What a session found out about its server.
#[derive(Default)]
pub struct ServerInfo {
    /// What the server says it is.
    pub server_version: String,
    /// TLS version and cipher suite, `compressed` or `plain`.
    pub transport: String,
}

/// The connections of one engine thread and their sockets, slot by slot. A dry run has no sockets.
#[derive(Default)]
pub struct ThreadConnections {
    /// One for each connection.
    pub sockets: Vec<OwnedFd>,
    /// In the order of their numbers.
    pub connections: Vec<Connection>,
    /// Known to the thread that has the first connection of the run.
    pub server: Option<ServerInfo>,
}

impl ThreadConnections {
    fn add(&mut self, spec: &RunSpec, number: u32, one: Opened, random: Random) {
        let connection = self.connect(number, one, random);
        self.connections.push(if spec.endpoint.are_several() {
            connection.at(&spec.endpoint.of(number))
        } else {
            connection
        });
    }

    /// Takes the socket; gives the connection, which is not among the others yet.
    fn connect(&mut self, number: u32, one: Opened, random: Random) -> Connection {
        if number == 0 {
            let transport = one.link.to_string();
            let server_version = one.server_version.clone();
            self.server = Some(ServerInfo { server_version, transport });
        }
        let (socket, connection) = Connection::of(one, Client::new(number, Vec::new(), random));
        self.sockets.push(socket);
        connection
    }
}

/// Where an engine thread gets its connections from.
pub enum ConnectionSource {
    /// They are open.
    Open(ThreadConnections),
    /// The thread opens these itself, in a file table of its own.
    OwnFileTable(ConnectionRange),
}

impl ConnectionSource {
    /// How many connections the thread has.
    #[must_use]
    pub fn size(&self, spec: &RunSpec) -> usize {
        match self {
            Self::Open(connections) => connections.connections.len(),
            Self::OwnFileTable(range) => range.count(spec.connections) as usize,
        }
    }

    /// The connections; to be called by the thread that drives them.
    ///
    /// # Errors
    /// Those of opening connections.
    pub fn connections(
        self,
        spec: &RunSpec,
        stop: &AtomicBool,
    ) -> Result<ThreadConnections, Failure> {
        let range = match self {
            Self::Open(connections) => return Ok(connections),
            Self::OwnFileTable(range) => range,
        };
        // SAFETY: this engine thread opens its sockets itself, here and by threads that it starts, and
        // hands none to another thread.
        unsafe { unshare_file_table() }.map_err(|error| {
            Failure::new("limits", format!("no table of open files for a thread: {error}"))
        })?;
        let opened = open_range(spec, range, stop)?;
        let mut connections = ThreadConnections::default();
        for (number, one, random) in numbered(spec, range, opened) {
            connections.add(spec, number, one, random);
        }
        Ok(connections)
    }
}

/// Opens the connections of a run, or leaves that to its threads, and deals them out.
///
/// # Errors
/// Those of opening connections.
pub fn sources(spec: &RunSpec, stop: &AtomicBool) -> Result<Vec<ConnectionSource>, Failure> {
    let tables = limits::file_tables_for(u64::from(spec.own_connections()))
        .map_err(|told| Failure::new("limits", told))?;
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
    for (place, (number, one, random)) in numbered(spec, spec.own(), opened).enumerate() {
        sources[place % count].add(spec, number, one, random);
    }
    Ok(sources.into_iter().map(ConnectionSource::Open).collect())
}

/// The threads of a script, ready for their events, with the connections that the loop takes over.
///
/// # Errors
/// What a thread failed with, at stage `script`.
pub fn of_script(
    spec: &RunSpec,
    script: &ScriptSpec,
    stop: &AtomicBool,
) -> Result<Vec<ThreadConnections>, Failure> {
    // A script that the loop cannot drive has two files beside each connection, and may open more of those.
    let connections = u64::from(spec.connections);
    limits::raise_open_files_limit(4 * connections)
        .or_else(|_| limits::raise_open_files_limit(connections))
        .map_err(|told| Failure::new("limits", told))?;
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

/// The connections of a dry run, which has no server: statements are numbered as a server would.
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

/// Each opened connection with its number and its stream: seeded by its place among all.
fn numbered(
    spec: &RunSpec,
    range: ConnectionRange,
    opened: Vec<Opened>,
) -> impl Iterator<Item = (u32, Opened, Random)> {
    let streams = spec.seeding.streams(spec.seed);
    let own = streams.skip(range.first as usize).step_by(range.step as usize);
    let numbers = (range.first..).step_by(range.step as usize);
    numbers.zip(opened).zip(own).map(|((number, one), random)| (number, one, random))
}

fn threads(spec: &RunSpec) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    spec.engine_threads(cores)
}
