//! Fault injection: whole runs against misbehaving servers, under a virtual clock.
//!
//! A seed gives a run (closed loop, rate or think time; reconnecting; limits of time and events; a
//! stop) and a server. The server answers late, in pieces, with errors or nonsense, or not at all,
//! speaks at rest, closes, breaks and refuses further connections. After every turn each connection
//! must be in exactly one state (`Worker::check`), the run must end, and its counts must add up.

use super::simulation::{play, spec};
use super::*;
use crate::driver::Driver;
use crate::error::{CANNOT_CONNECT, CONNECTION_LOST};
use crate::opening::Opened;
use crate::random::Random;
use crate::reactor::simulated::{Coming, DEADLOCK, MS, OK, Request, Server, Socket, Wire, World};
use crate::session::link::Link;
use crate::test_record::total;
use crate::worker::{Attempt, Sessions};
use rustls::pki_types::PrivateKeyDer;
use rustls::{
    ClientConfig, ClientConnection, Connection as Records, RootCertStore, ServerConfig,
    ServerConnection,
};
use serde_json::{Map, Value, json};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

/// Seeds of a quick test; `DBDYNO_SEEDS` sets another number.
const SEEDS: u64 = 1000;

/// ERR 1064 as packet number 1.
const SYNTAX: &[u8] = b"\x0b\0\0\x01\xff\x28\x04#42000go";
/// ERR 4031 as packet number 0: sent by MySQL 8 before it closes an idle session.
const DISCONNECTED: &[u8] = b"\x0b\0\0\0\xff\xbf\x0f#HY000go";

/// Random draws of a scenario.
#[derive(Clone)]
struct Dice(Rc<RefCell<Random>>);

impl Dice {
    fn of(seed: u64) -> Self {
        Self(Rc::new(RefCell::new(Random::for_stream(seed, 0))))
    }

    /// True with probability `share`.
    fn hits(&self, share: f64) -> bool {
        self.0.borrow_mut().uniform_double() < share
    }

    fn below(&self, most: u64) -> u64 {
        (self.0.borrow_mut().uniform_double() * most as f64) as u64
    }

    fn one_of<T: Clone>(&self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }

    /// A time: often 0, mostly short, rarely long.
    fn time_ns(&self) -> u64 {
        let most = self.one_of(&[0, MS / 10, 2 * MS, 2 * MS, 20 * MS, 300 * MS]);
        if most == 0 { 0 } else { self.below(most) }
    }
}

/// Probabilities of a server's faults.
#[derive(Clone)]
struct Habits {
    /// Faults so far.
    faults: Rc<Cell<u64>>,
    errors: f64,
    losses: f64,
    silence: f64,
    nonsense: f64,
    at_rest: f64,
    peers: Peers,
}

fn habits(dice: &Dice) -> Habits {
    let rare = || dice.one_of(&[0.0, 0.0, 0.001, 0.02, 0.2]);
    Habits {
        faults: Rc::default(),
        errors: rare(),
        losses: rare(),
        silence: dice.one_of(&[0.0, 0.0, 0.0, 0.002]),
        nonsense: dice.one_of(&[0.0, 0.0, 0.0, 0.001]),
        at_rest: rare(),
        peers: Peers::of(dice),
    }
}

fn settings(dice: &Dice, seed: u64) -> Value {
    let connections = 1 + dice.below(6);
    let mut settings = json!({
        "seed": seed, "connections": connections, "threads": 1 + dice.below(3),
        "warmup_s": dice.one_of(&[0.0, 0.0, 0.05]), "window_s": dice.one_of(&[0.05, 0.2, 0.5]),
        "interval_s": dice.one_of(&[0.0, 0.0, 0.0, 0.1]), "drain_s": dice.one_of(&[0.05, 1.0]),
        "prepared": dice.hits(0.5),
        "workload": {"name": dice.one_of(&["oltp_point_select", "oltp_read_write", "bulk_insert",
            "oltp_write_only"])},
        "ignore_errors": dice.one_of(&[json!("all"), json!([1213]), json!([1213, 2013])]),
    });
    let mut also = Map::new();
    let mut set = |key: &str, value: Value| also.insert(key.to_owned(), value);
    match dice.below(3) {
        0 => {}
        1 => {
            set("rate_per_s", json!(dice.one_of(&[5.0, 200.0, 5000.0])));
            set("arrival", json!(dice.one_of(&["poisson", "uniform"])));
        }
        _ => drop(set("think_time_ms", json!(dice.one_of(&[[0.0, 1.0], [5.0, 5.0], [0.0, 80.0]])))),
    }
    if dice.hits(0.2) {
        set("events", json!(1 + dice.below(300)));
    }
    if dice.hits(0.3) {
        set("reconnect_every", json!(dice.one_of(&[1, 2, 7])));
    }
    if dice.hits(0.3) {
        set("round_trip_ms", json!(dice.one_of(&[0.8, 30.0])));
    }
    settings.as_object_mut().unwrap().extend(also);
    settings
}

/// Server ends of the links of a run, by socket.
#[derive(Clone)]
struct Peers {
    is_compressed: bool,
    is_encrypted: bool,
    links: Rc<RefCell<BTreeMap<Socket, Link>>>,
}

impl Peers {
    fn of(dice: &Dice) -> Self {
        // Encryption is rare: a handshake takes a millisecond.
        let (is_compressed, is_encrypted) = (dice.hits(0.2), dice.hits(0.02));
        Self { is_compressed, is_encrypted, links: Rc::default() }
    }

    /// Client end of a new session.
    fn link(&self, socket: Socket) -> Link {
        let (mut client, mut server) = (Link::default(), Link::default());
        if self.is_encrypted {
            let (ours, theirs) = encrypted();
            client.encrypt(ours);
            server.encrypt(theirs);
        }
        if self.is_compressed {
            client.compress();
        }
        self.links.borrow_mut().insert(socket, server);
        client
    }

    /// Packets of a server as they travel.
    fn sealed(&self, socket: Socket, packets: &[u8]) -> Vec<u8> {
        let mut links = self.links.borrow_mut();
        let link = links.get_mut(&socket).expect("it was opened");
        if !self.is_compressed {
            return link.more(packets).to_vec();
        }
        // An uncompressed frame with the number of a reply.
        let length = u32::try_from(packets.len()).unwrap().to_le_bytes();
        link.more(&[&length[..3], &[1, 0, 0, 0], packets].concat()).to_vec()
    }

    /// TLS message of a key change, allowed at any time; empty without TLS.
    fn change_keys(&self, socket: Socket) -> Vec<u8> {
        self.links.borrow_mut().get_mut(&socket).expect("it was opened").change_keys()
    }

    /// Reads a request at the server, which may answer at TLS level.
    fn read(&self, socket: Socket, bytes: &[u8]) {
        if self.is_encrypted {
            let mut links = self.links.borrow_mut();
            let link = links.get_mut(&socket).expect("it was opened");
            link.decode(bytes, &mut |_| Ok(())).expect("the client keeps to TLS");
        }
    }
}

/// Both ends of a TLS session after its handshake.
fn encrypted() -> (Records, Records) {
    thread_local! {
        static CONFIG: (Arc<ClientConfig>, Arc<ServerConfig>) = configs();
    }
    let (client, server) = CONFIG.with(Clone::clone);
    let name = "localhost".try_into().unwrap();
    let mut client = Records::Client(ClientConnection::new(client, name).unwrap());
    let mut server = Records::Server(ServerConnection::new(server).unwrap());
    while client.is_handshaking() || server.is_handshaking() {
        tell(&mut client, &mut server);
        tell(&mut server, &mut client);
    }
    (client, server)
}

fn tell(from: &mut Records, to: &mut Records) {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    to.read_tls(&mut &*bytes).unwrap();
    to.process_new_packets().unwrap();
}

fn configs() -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(client), Arc::new(server))
}

fn server(dice: Dice, habits: Habits, stop: Option<(u64, Rc<AtomicBool>)>) -> Server {
    Box::new(move |Request { now_ns, socket, bytes }| {
        if let Some((at_ns, stop)) = &stop
            && now_ns >= *at_ns
        {
            stop.store(true, Ordering::Relaxed); // the user stops the run
        }
        habits.peers.read(socket, bytes);
        let fault = || habits.faults.set(habits.faults.get() + 1);
        let mut after_ns = dice.time_ns();
        if dice.hits(habits.silence) {
            return Vec::new();
        }
        let broken = dice.one_of(&[Coming::Closed, Coming::Failed(104)]);
        if dice.hits(habits.losses) {
            fault();
            return vec![(after_ns, broken)];
        }
        let packets = if dice.hits(habits.nonsense) {
            fault();
            (0..dice.below(40)).map(|_| dice.below(256) as u8).collect()
        } else if dice.hits(habits.errors) {
            fault();
            let error = dice.one_of(&[DEADLOCK, DEADLOCK, DEADLOCK, SYNTAX]);
            habits.peers.sealed(socket, error)
        } else {
            habits.peers.sealed(socket, OK)
        };
        let mut coming = Vec::new();
        let cut = if dice.hits(0.2) { dice.below(packets.len() as u64 + 1) as usize } else { 0 };
        let (head, tail) = packets.split_at(cut);
        for part in [head, tail] {
            if !part.is_empty() {
                coming.push((after_ns, Coming::Bytes(part.to_vec())));
                after_ns += dice.time_ns();
            }
        }
        if habits.peers.is_encrypted && dice.hits(0.1) {
            coming.push((after_ns, Coming::Bytes(habits.peers.change_keys(socket))));
        }
        if dice.hits(habits.at_rest) {
            fault();
            if dice.hits(0.5) {
                fault();
                let words = habits.peers.sealed(socket, DISCONNECTED);
                coming.push((after_ns, Coming::Bytes(words)));
            }
            coming.push((after_ns, broken));
        }
        coming
    })
}

/// Opens sessions after a while, or fails to, like the real threads; every attempt is reported.
struct Doors {
    world: Rc<World>,
    wire: Rc<RefCell<Wire>>,
    waker: u32,
    dice: Dice,
    peers: Peers,
    faults: Rc<Cell<u64>>,
    retries: bool,
    attempts: RefCell<VecDeque<(u64, Attempt)>>,
}

impl Sessions for Doors {
    fn request(&self, slot: usize, _number: u32) {
        let mut at_ns = self.world.now_ns.get();
        let closed_times = if self.dice.hits(0.1) { 30 } else { self.dice.below(3) };
        for attempt in 0..=closed_times {
            at_ns += self.dice.time_ns();
            let is_open = attempt == closed_times || !self.retries;
            let is_refused = self.dice.hits(0.02) && !self.retries;
            let outcome = if is_open && !is_refused {
                Ok(self.opened(slot))
            } else {
                self.faults.set(self.faults.get() + 1);
                Err(Failure { code: Some(CANNOT_CONNECT), ..Failure::new("connect", "closed") })
            };
            self.attempts.borrow_mut().push_back((at_ns, Attempt { slot, outcome }));
            self.wire.borrow_mut().put(at_ns, self.waker, Coming::Bytes(vec![1]));
            if is_open {
                return;
            }
        }
    }

    fn next(&self) -> Option<Attempt> {
        let now_ns = self.world.now_ns.get();
        let mut attempts = self.attempts.borrow_mut();
        let ready = attempts.iter().position(|(at_ns, _)| *at_ns <= now_ns)?;
        attempts.remove(ready).map(|(_, attempt)| attempt)
    }
}

impl Doors {
    fn opened(&self, slot: usize) -> Opened {
        let (thread, slot, before) = self.wire.borrow().socket(slot as u32);
        Opened {
            socket: std::fs::File::open("/dev/null").unwrap().into(),
            link: self.peers.link((thread, slot, before + 1)),
            statement_ids: (1..100).collect(),
            deprecate_eof: true,
            driver: Driver::Mysql,
            server_version: String::new(),
        }
    }
}

fn play_seed(seed: u64) -> RunRecord {
    let dice = Dice::of(seed);
    let (run_spec, habits) = (spec(&settings(&dice, seed)), habits(&dice));
    let stop = Rc::new(AtomicBool::new(false));
    let stops_at = dice.hits(0.1).then(|| (dice.below(600 * MS), Rc::clone(&stop)));
    let (peers, faults) = (habits.peers.clone(), Rc::clone(&habits.faults));
    let world = World::of(server(dice.clone(), habits, stops_at));
    let sessions = |wire: &Rc<RefCell<Wire>>, connections: usize| {
        if !run_spec.reopens() {
            return Reconnect::default();
        }
        let doors = Doors {
            world: Rc::clone(&world),
            wire: Rc::clone(wire),
            waker: connections as u32,
            dice: dice.clone(),
            peers: peers.clone(),
            faults: Rc::clone(&faults),
            retries: run_spec.ignore_errors.survives_loss(),
            attempts: RefCell::default(),
        };
        Reconnect::new(doors, run_spec.ignore_errors.survives_loss(), run_spec.reconnect_every)
    };
    let record =
        play(&run_spec, &world, &stop, sessions, |socket, one| one.over(peers.link(socket)));
    check(&run_spec, &record);
    assert!(total(&record, "restarts") <= faults.get(), "an event was retried without a reason");
    if faults.get() == 0 {
        assert_eq!(record.failure, None, "the server did nothing wrong");
    }
    record
}

/// Asserts the invariants of every record.
fn check(run_spec: &RunSpec, record: &RunRecord) {
    let [events, arrivals] = ["events", "arrivals"].map(|name| total(record, name));
    let is_cut_short = record.failure.is_some() || record.stopped_by == "stop";
    if run_spec.is_scheduled() && run_spec.warmup_s == 0.0 {
        assert_eq!(arrivals, events + record.unserved + record.unfinished, "arrivals");
    }
    if run_spec.events > 0 && run_spec.warmup_s == 0.0 {
        assert!(events + record.unfinished <= run_spec.events, "more events than were asked for");
    }
    assert!(record.unfinished <= record.connections as u64, "unfinished");
    if let Some(failure) = &record.failure {
        assert!(!failure.message.is_empty());
        let lost = failure.code == Some(CONNECTION_LOST);
        assert!(!lost || !run_spec.ignore_errors.survives_loss(), "{failure}");
    }
    assert_eq!(record.stopped_by == "error", record.failure.is_some());
    assert!(is_cut_short || run_spec.events > 0 || record.stopped_by == "time");
}

fn seeds() -> u64 {
    std::env::var("DBDYNO_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS)
}

/// Frames continue the numbering of a reply, and start anew with each request.
#[test]
fn last_words_in_a_frame_of_their_own_lose_the_session() {
    let frame = |number: u8, packet: &[u8]| {
        [&[packet.len() as u8, 0, 0, number, 0, 0, 0][..], packet].concat()
    };
    let mut requests = 0;
    let server: Server = Box::new(move |_| {
        requests += 1;
        let answer = if requests == 1 { frame(1, OK) } else { frame(2, DISCONNECTED) };
        vec![(MS, Coming::Bytes(answer))]
    });
    let record = play(
        &spec(&json!({"connections": 1})),
        &World::of(server),
        &AtomicBool::new(false),
        |_, _| Reconnect::default(),
        |_, one| {
            let mut link = Link::default();
            link.compress();
            one.over(link)
        },
    );
    let failure = record.failure.clone().expect("the connection was lost");
    assert_eq!(failure.code, Some(CONNECTION_LOST), "{failure}");
    assert_eq!(total(&record, "events"), 1);
}

#[test]
fn no_server_breaks_a_worker() {
    let parts = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let ends: Vec<&str> = std::thread::scope(|scope| {
        let play_part = |part| move || (part..seeds()).step_by(parts as usize).map(ended).collect();
        let threads: Vec<_> = (0..parts).map(|part| scope.spawn(play_part(part))).collect();
        let ends = threads.into_iter().map(|thread| -> Vec<&str> { thread.join().unwrap() });
        ends.flatten().collect()
    });
    for way in ["time", "events", "stop", "error"] {
        let count = ends.iter().filter(|end| **end == way).count() as u64;
        assert!(count * 100 > seeds(), "{way}: {count} of {}", seeds());
    }
}

/// End of the run of a seed.
fn ended(seed: u64) -> &'static str {
    let played = std::panic::catch_unwind(|| play_seed(seed));
    played.unwrap_or_else(|_| panic!("seed {seed}")).stopped_by
}
