//! Who works for which engine thread: a run's connections, dealt out in turn.
//!
//! As a rule all are opened first, so that nothing begins before the last one is there. Where the
//! system's limit of open files does not let one table hold them, each engine thread has a table of its
//! own (`system::own_file_table`) and opens its connections itself: a socket cannot be handed from one
//! table to another.

use crate::error::Failure;
use crate::opening::limits;
use crate::opening::{Hand, Opened, open_all, open_hand};
use crate::random::Random;
use crate::spec::RunSpec;
use crate::system::own_file_table;
use crate::worker::connection::Connection;
use crate::workload::{Client, Workload};
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;

/// What a session sees of its server.
#[derive(Default)]
pub struct Seen {
    /// What the server says it is.
    pub server_version: String,
    /// What lies between packets and socket.
    pub transport: String,
}

/// The sockets and states of one worker's connections, slot by slot. A dry run has no sockets.
#[derive(Default)]
pub struct Team {
    /// One for each connection.
    pub sockets: Vec<OwnedFd>,
    /// In the order of their numbers.
    pub connections: Vec<Connection>,
    /// By the run's first connection, if it is in this team.
    pub seen: Option<Seen>,
}

impl Team {
    fn add(&mut self, spec: &RunSpec, number: u32, one: Opened, random: Random) {
        if number == 0 {
            let transport = one.link.to_string();
            self.seen = Some(Seen { server_version: one.server_version, transport });
        }
        let client = Client::new(number, one.statement_ids, random);
        let connection = Connection::new(one.deprecate_eof, client).over(one.link);
        self.sockets.push(one.socket);
        self.connections.push(if spec.endpoint.are_several() {
            connection.at(&spec.endpoint.of(number))
        } else {
            connection
        });
    }
}

/// How an engine thread comes by its team.
pub enum Hiring {
    /// It is there.
    Ready(Team),
    /// The thread opens it, in a table of open files of its own.
    Apart(Hand),
}

impl Hiring {
    /// How many connections the team has.
    #[must_use]
    pub fn size(&self, spec: &RunSpec) -> usize {
        match self {
            Self::Ready(team) => team.connections.len(),
            Self::Apart(hand) => hand.count(spec.connections) as usize,
        }
    }

    /// The team; to be called by the thread that it works for.
    ///
    /// # Errors
    /// Those of opening connections.
    pub fn team(self, spec: &RunSpec, stop: &AtomicBool) -> Result<Team, Failure> {
        let hand = match self {
            Self::Ready(team) => return Ok(team),
            Self::Apart(hand) => hand,
        };
        own_file_table().map_err(|error| {
            Failure::new("limits", format!("no table of open files for a thread: {error}"))
        })?;
        let opened = open_hand(spec, hand, stop)?;
        let mut team = Team::default();
        for (number, one, random) in numbered(spec, hand, opened) {
            team.add(spec, number, one, random);
        }
        Ok(team)
    }
}

/// Opens the connections of a run, or leaves that to its threads, and deals them out.
///
/// # Errors
/// Those of opening connections.
pub fn hirings(spec: &RunSpec, stop: &AtomicBool) -> Result<Vec<Hiring>, Failure> {
    let tables = limits::tables_for(u64::from(spec.connections))
        .map_err(|told| Failure::new("limits", told))?;
    if tables > 1 {
        let threads = threads(spec).max(tables as usize);
        let step = u32::try_from(threads).expect("threads are counted in 32 bits");
        return Ok((0..step).map(|first| Hiring::Apart(Hand { first, step })).collect());
    }
    let mut teams: Vec<Team> = (0..threads(spec)).map(|_| Team::default()).collect();
    let count = teams.len();
    let opened = open_all(spec, stop)?;
    for (number, one, random) in numbered(spec, Hand::ALL, opened) {
        teams[number as usize % count].add(spec, number, one, random);
    }
    Ok(teams.into_iter().map(Hiring::Ready).collect())
}

/// The teams of a run without a server: statements are numbered as one would.
#[must_use]
pub fn dry(spec: &RunSpec, workload: &dyn Workload) -> Vec<Team> {
    let ids: Vec<u32> = (1..).take(workload.statements().len()).collect();
    let mut teams: Vec<Team> = (0..threads(spec)).map(|_| Team::default()).collect();
    let count = teams.len();
    for (number, random) in (0..spec.connections).zip(spec.seeding.streams(spec.seed)) {
        let client = Client::new(number, ids.clone(), random);
        teams[number as usize % count].connections.push(Connection::new(true, client));
    }
    teams
}

/// Each opened connection with its number and its stream: seeded by its place among all.
fn numbered(
    spec: &RunSpec,
    hand: Hand,
    opened: Vec<Opened>,
) -> impl Iterator<Item = (u32, Opened, Random)> {
    let streams = spec.seeding.streams(spec.seed);
    let own = streams.skip(hand.first as usize).step_by(hand.step as usize);
    let numbers = (hand.first..).step_by(hand.step as usize);
    numbers.zip(opened).zip(own).map(|((number, one), random)| (number, one, random))
}

fn threads(spec: &RunSpec) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    spec.engine_threads(cores)
}
