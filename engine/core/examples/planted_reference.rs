//! The reference server as a program of its own, with known causes of slowness.
//!
//! `planted_reference FILE WORK_US HOT_US LOCK_US SYNCS`: for each statement, the session computes
//! for WORK_US in `base_work` and for HOT_US in `planted_hot_function`, sleeps for LOCK_US while it
//! holds the only lock, and syncs FILE as often as SYNCS says. The program prints port and login as
//! a line of JSON, and its counters as another for each line of its standard input. It ends with
//! its standard input, so it never outlives its parent.
//!
//! Stacks show these functions if the program has symbols: cargo's profile `ci` keeps them,
//! `release` strips them.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dbdyno_core::reference::{Reference, Script};
use serde_json::{Value, json};

/// Rounds of `compute` in about a microsecond at 3 GHz: three cycles each. A count, as a clock would
/// be a call.
const ROUNDS_PER_US: u64 = 1000;

static PLANTED: OnceLock<Planted> = OnceLock::new();
static LOCK: Mutex<()> = Mutex::new(());
static SYNCED: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct Planted {
    file: File,
    work_us: u64,
    hot_us: u64,
    lock_us: u64,
    syncs: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, work_us, hot_us, lock_us, syncs] = words.as_slice() else {
        return Err("usage: planted_reference FILE WORK_US HOT_US LOCK_US SYNCS".into());
    };
    let planted = Planted {
        file: File::create(file)?,
        work_us: work_us.parse()?,
        hot_us: hot_us.parse()?,
        lock_us: lock_us.parse()?,
        syncs: syncs.parse()?,
    };
    PLANTED.set(planted).expect("it is set once");
    let server = Reference::start(Script { work: Some(statement), ..Script::default() })?;
    let (began, login) = (Instant::now(), server.login());
    print(&json!({
        "port": server.port,
        "user": login.user,
        "password": login.password,
        "database": login.database,
    }))?;
    for line in io::stdin().lines() {
        line?;
        print(&json!({
            "Uptime": began.elapsed().as_secs_f64(),
            "Questions": server.statements(),
            "Innodb_data_fsyncs": SYNCED.load(Ordering::Relaxed),
        }))?;
    }
    Ok(())
}

fn print(value: &Value) -> io::Result<()> {
    writeln!(io::stdout(), "{value}")
}

fn statement() {
    let planted = PLANTED.get().expect("it is set before the server starts");
    base_work(planted.work_us);
    planted_hot_function(planted.hot_us);
    critical_section(planted.lock_us);
    for _ in 0..planted.syncs {
        sync(&planted.file);
    }
}

#[inline(never)]
fn base_work(us: u64) {
    compute(us, 0x5851_f42d_4c95_7f2d);
}

#[inline(never)]
fn planted_hot_function(us: u64) {
    compute(us, 0x2545_f491_4f6c_dd1d);
}

/// Computes without calls, so a sampled stack ends at the caller. Each caller has its own factor:
/// the compiler merges equal functions.
#[inline(always)]
fn compute(us: u64, factor: u64) {
    let mut value = us;
    for _ in 0..us * ROUNDS_PER_US {
        value = black_box(value.wrapping_mul(factor));
    }
}

/// Sleeps under the lock: a longer section costs all sessions time, and hardly any CPU.
#[inline(never)]
fn critical_section(us: u64) {
    let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    thread::sleep(Duration::from_micros(us));
}

#[inline(never)]
fn sync(file: &File) {
    file.write_all_at(b"x", 0).and_then(|()| file.sync_data()).expect("the disk takes a byte");
    SYNCED.fetch_add(1, Ordering::Relaxed);
}
