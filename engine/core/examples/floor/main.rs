//! The floor: CPU cost of point selects for a client that only sends ready-made packets and counts
//! the packets of their replies.
//!
//! It draws nothing, records nothing and follows no protocol while it runs: a lower bound for
//! engines. Each `--way` to the sockets is a function in a file of its own.
//!
//! `DBDYNO_PASSWORD=… floor --driver mysql --way io_uring --socket PATH --user U --database D
//! --connections N` prints its count, its CPU and its seconds as JSON; `--help` lists the ways.

mod blocking;
mod epoll;
mod load;
mod uring;

use dbdyno_core::driver::Driver;
use dbdyno_core::opening::limits::raise_open_files_limit;
use dbdyno_core::session::{Endpoint, Login, PostgresSession, Session, Timeouts, Transport};
use dbdyno_core::time::clock::process_cpu;
use dbdyno_wire::postgres::message::INT8;
use load::{Load, Tally};
use std::error::Error;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use uring::Flavour;

const TIMEOUT: Duration = Duration::from_secs(10);
const WARM_UP: Duration = Duration::from_millis(300);

/// Way to the sockets: drives the load until the tally is over.
type Way = fn(Vec<OwnedFd>, &Load, &Tally);

const AS_THE_ENGINE: Flavour = Flavour {
    deferred: true,
    multishot: true,
    wait_all: true,
    no_iowait: false,
    min_wait_us: 0,
    wanted: 1,
};

/// All ways; the engine's figures are compared with the first four.
const WAYS: [(&str, Way); 12] = [
    ("io_uring", |s, l, t| uring::drive(s, l, t, AS_THE_ENGINE)),
    ("epoll", epoll::drive),
    ("blocking", blocking::drive),
    ("io_uring_coop", |s, l, t| {
        uring::drive(s, l, t, Flavour { deferred: false, ..AS_THE_ENGINE });
    }),
    ("io_uring_single_receive", |s, l, t| {
        uring::drive(s, l, t, Flavour { multishot: false, ..AS_THE_ENGINE });
    }),
    ("io_uring_no_wait_all", |s, l, t| {
        uring::drive(s, l, t, Flavour { wait_all: false, ..AS_THE_ENGINE });
    }),
    ("io_uring_no_iowait", |s, l, t| {
        uring::drive(s, l, t, Flavour { no_iowait: true, ..AS_THE_ENGINE });
    }),
    ("io_uring_wait_20us", |s, l, t| uring::drive(s, l, t, Flavour::patient(20))),
    ("io_uring_wait_50us", |s, l, t| uring::drive(s, l, t, Flavour::patient(50))),
    ("io_uring_wait_100us", |s, l, t| uring::drive(s, l, t, Flavour::patient(100))),
    ("io_uring_wait_200us", |s, l, t| uring::drive(s, l, t, Flavour::patient(200))),
    ("epoll_edge", epoll::drive_edge),
];

struct Options {
    driver: Driver,
    endpoint: Endpoint,
    login: Login,
    connections: usize,
    tables: u32,
    table_size: u64,
    seconds: f64,
    way: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let known = WAYS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let (_, way) = WAYS
        .iter()
        .find(|(name, _)| *name == options.way)
        .ok_or(format!("--way={}? known are {known}", options.way))?;
    raise_open_files_limit(options.connections as u64)?;
    let (sockets, load) = open(&options)?;
    let tally = Tally::default();
    let (count, cpu, seconds) = std::thread::scope(|scope| {
        scope.spawn(|| way(sockets, &load, &tally));
        std::thread::sleep(WARM_UP);
        let before = (tally.count(), process_cpu(), Instant::now());
        std::thread::sleep(Duration::from_secs_f64(options.seconds));
        // On a crowded machine a single connection may get no turn in a whole window.
        while tally.count() == before.0 && before.2.elapsed() < TIMEOUT {
            std::thread::sleep(WARM_UP);
        }
        let after = (tally.count(), process_cpu(), before.2.elapsed());
        tally.end();
        (after.0 - before.0, after.1 - before.1, after.2)
    });
    if count == 0 {
        return Err("no query was answered".into());
    }
    let cpu_us = cpu.as_secs_f64() * 1e6 / count as f64;
    let told = serde_json::json!({
        "way": options.way, "connections": options.connections, "queries": count,
        "cpu_s": cpu.as_secs_f64(), "seconds": seconds.as_secs_f64(), "cpu_us_per_query": cpu_us,
    });
    writeln!(std::io::stdout(), "{told}")?;
    Ok(())
}

fn options() -> Result<Options, Box<dyn Error>> {
    let login = Login {
        user: "sbtest".into(),
        password: std::env::var("DBDYNO_PASSWORD").unwrap_or_default(),
        database: "sbtest".into(),
    };
    let endpoint = Endpoint::Tcp { host: "127.0.0.1".into(), port: 3306 };
    let way = "io_uring".into();
    let driver = Driver::Mysql;
    let (connections, tables, table_size, seconds) = (1, 1, 1, 1.0);
    let mut options =
        Options { driver, endpoint, login, connections, tables, table_size, seconds, way };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} wants a value"))?;
        match word.as_str() {
            "--driver" => options.driver = serde_json::from_value(value.into())?,
            "--socket" => options.endpoint = Endpoint::Unix { path: value },
            "--port" => {
                let host = "127.0.0.1".into();
                options.endpoint = Endpoint::Tcp { host, port: value.parse()? };
            }
            "--user" => options.login.user = value,
            "--database" => options.login.database = value,
            "--connections" => options.connections = value.parse()?,
            "--tables" => options.tables = value.parse()?,
            "--table-size" => options.table_size = value.parse()?,
            "--seconds" => options.seconds = value.parse()?,
            "--way" => options.way = value,
            _ => return Err(format!("{word} is not known").into()),
        }
    }
    Ok(options)
}

/// Logs in on every connection and prepares the point select of every table, as the engine does.
fn open(options: &Options) -> Result<(Vec<OwnedFd>, Load), Box<dyn Error>> {
    let (mut sockets, mut numbers) = (Vec::new(), None);
    for _ in 0..options.connections {
        let (socket, prepared) = match options.driver {
            Driver::Mysql => prepared_by_mysql(options)?,
            Driver::Pgsql => prepared_by_postgres(options)?,
        };
        // Servers number statements per session, so one set of packets serves all.
        if *numbers.get_or_insert_with(|| prepared.clone()) != prepared {
            return Err("the sessions number their statements differently".into());
        }
        sockets.push(socket);
    }
    let numbers = numbers.ok_or("at least one connection is needed")?;
    Ok((sockets, Load::new(options.driver, &numbers, options.table_size)))
}

fn prepared_by_mysql(options: &Options) -> Result<(OwnedFd, Vec<u32>), Box<dyn Error>> {
    let mut session = Session::connect(&options.endpoint, &options.login, TIMEOUT)?;
    let prepared = (1..=options.tables)
        .map(|table| session.prepare(&format!("SELECT c FROM sbtest{table} WHERE id=?")))
        .collect::<Result<_, _>>()?;
    Ok((session.into_stream().0, prepared))
}

fn prepared_by_postgres(options: &Options) -> Result<(OwnedFd, Vec<u32>), Box<dyn Error>> {
    let (transport, timeouts) = (Transport::default(), Timeouts::of_login(TIMEOUT));
    let mut session =
        PostgresSession::connect(&options.endpoint, &options.login, &transport, &timeouts)?;
    let prepared = (1..=options.tables)
        .map(|table| {
            let sql = format!("SELECT c FROM sbtest{table} WHERE id=$1");
            session.prepare(table, &sql, &[INT8]).map(|()| table)
        })
        .collect::<Result<_, _>>()?;
    Ok((session.into_stream().0, prepared))
}
