//! Lua scripts in sysbench's language: each thread of a script has a LuaJIT state and a stack of its own.
//!
//! A thread that has one connection gives it to the engine's loop: a query rests, the loop sends it with
//! those of hundreds of other threads, and goes on with the answer. Whatever else a script
//! does (several connections, a connection for each event, commands such as `prepare`) is served by
//! blocking sessions, one thread of the system for each of the script's, as sysbench does it.
//!
//! A script is a program with the user's rights: it can open files and run other programs.

mod chunks;
mod connections;
mod database;
mod host;
mod log;
mod protocol;
mod results;
mod stack;
mod state;
mod task;
mod thread;

pub(crate) use connections::HandedOver;
pub use host::uses_database;
pub(crate) use task::{Happened, Happening};
pub(crate) use thread::{Next, Reaction, ScriptThread, open_threads};

use crate::error::Failure;
use crate::random::{GlibcRandom, Random, UniqueSequence};
use crate::spec::ScriptSpec;
use chunks::Chunks;
use connections::Database;
use log::Log;
use serde_json::{Map, Value};
use state::{Common, State};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// What all states of a script share. The unique sequence begins where that of sysbench does.
fn common(spec: &ScriptSpec) -> Result<Common, Failure> {
    let mut libc_random = GlibcRandom::new(1);
    let _main = Random::from_glibc(&mut libc_random);
    Ok(Common {
        spec: spec.clone(),
        chunks: Chunks::of(spec),
        database: Arc::new(Database::new(spec.database.clone())?),
        unique: Arc::new(UniqueSequence::from_glibc(&mut libc_random)),
        log: Arc::new(Log::new(spec.verbosity)),
    })
}

/// The script's main state: it has loaded the script, declares options, and runs commands.
pub struct Script {
    common: Common,
    main: State,
    /// Where hooks for reports of intervals run.
    reporter: Option<State>,
}

/// An option as a script declares it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DeclaredOption {
    /// Its name.
    pub name: String,
    /// sysbench's type: `BOOL`, `INT`, `SIZE`, `DOUBLE`, `STRING`, `LIST` or `FILE`.
    pub kind: String,
    /// Its default as text; None for none.
    pub default: Option<String>,
    /// What it is for.
    pub text: String,
}

impl Script {
    /// Loads the script: its top level runs.
    ///
    /// # Errors
    /// At stage `script`: what the script raised, or where its syntax is wrong.
    pub fn load(spec: &ScriptSpec) -> Result<Self, Failure> {
        unbuffered_output();
        let common = common(spec)?;
        // sysbench's prepare ignores the seed: its main thread is seeded before options are read.
        let random = Random::from_glibc(&mut GlibcRandom::new(1));
        let main = loaded(&common, 0, random)?;
        Ok(Self { common, main, reporter: None })
    }

    /// The options that it declares, by name.
    ///
    /// # Errors
    /// At stage `script`: the table is wrong.
    pub fn options(&mut self) -> Result<Vec<DeclaredOption>, Failure> {
        let declared = self.main.declared_options().map_err(|raised| {
            failure(&format!("`sysbench.cmdline.read_cmdline_options' function failed: {raised}"))
        })?;
        let option = |[name, kind, default, text]: [Option<String>; 4]| DeclaredOption {
            name: name.unwrap_or_default(),
            kind: kind.unwrap_or_default(),
            default,
            text: text.unwrap_or_default(),
        };
        Ok(declared.into_iter().map(option).collect())
    }

    /// Sets `sysbench.opt` here and for all threads to come.
    ///
    /// # Errors
    /// At stage `script`: what a validator of the script raised.
    pub fn set_options(&mut self, options: Map<String, Value>) -> Result<(), Failure> {
        self.common.spec.options = options;
        let options = Value::Object(self.common.spec.options.clone());
        let globals = &self.common.spec.globals;
        self.main.set_options(&options, globals).map_err(|raised| failure(&raised))
    }

    /// Whether it has a global function of this name.
    pub fn defines(&mut self, name: &str) -> bool {
        self.main.defines(name)
    }

    /// Whether it declares a command of this name; and whether that runs in all threads.
    ///
    /// # Errors
    /// At stage `script`.
    pub fn command(&mut self, name: &str) -> Result<Option<bool>, Failure> {
        let name = Value::from(name);
        let mut ask = |question| {
            self.main
                .call_of_sysbench("cmdline", question, Some(&name))
                .map(|answer| answer == Some(true))
                .map_err(|raised| failure(&raised))
        };
        if !ask("command_defined")? {
            return Ok(None);
        }
        ask("command_parallel").map(Some)
    }

    /// Calls a global function of the script.
    ///
    /// # Errors
    /// At stage `script`: what it raised.
    pub fn call(&mut self, name: &str) -> Result<(), Failure> {
        self.main
            .call(name)
            .map_err(|raised| failure(&format!("`{name}' function failed: {raised}")))
    }

    /// Runs a command that the script declares, in so many threads; false when the command said so. What it
    /// has to do before is done once. The first thread that fails ends the others, which may wait for its
    /// work, as they ask a server next.
    ///
    /// # Errors
    /// At stage `script`: what it raised first.
    pub fn run_command(&mut self, name: &str, threads: u32) -> Result<bool, Failure> {
        call_command(&mut self.main, "begin_command", name)?;
        if threads <= 1 {
            return call_command(&mut self.main, "call_command", name);
        }
        let common = &self.common;
        let (is_over, first) = (&common.database.is_over, OnceLock::new());
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let first = &first;
                scope.spawn(move || {
                    let random = Random::for_stream(1, u64::from(thread));
                    let done = ready(common, thread, random)
                        .and_then(|mut state| call_command(&mut state, "call_command", name));
                    if let Err(failure) = done {
                        // Set once: what the others then fail with is none of the script's.
                        let _ = first.set(failure);
                        is_over.store(true, Ordering::Relaxed);
                    }
                });
            }
        });
        is_over.store(false, Ordering::Relaxed);
        first.into_inner().map_or(Ok(true), Err)
    }

    /// Loads the script once more, for reports of intervals; `thread` is what it sees as its number.
    ///
    /// # Errors
    /// At stage `script`: what the script raised.
    pub fn open_reporter(&mut self, thread: u32) -> Result<(), Failure> {
        let random = Random::for_stream(1, u64::from(thread));
        self.reporter = Some(ready(&self.common, thread, random)?);
        Ok(())
    }

    /// Ends what [`Self::open_reporter`] began: its state is closed.
    pub fn close_reporter(&mut self) {
        self.reporter = None;
    }

    /// Calls a hook for reports with the figures of one; false if the script has none. Reports of intervals
    /// have a state of their own, if it was opened.
    ///
    /// # Errors
    /// At stage `script`: what it raised.
    pub fn report(&mut self, hook: &str, figures: &Value) -> Result<bool, Failure> {
        let state = match &mut self.reporter {
            Some(reporter) if hook == "report_intermediate" => reporter,
            _ => &mut self.main,
        };
        state
            .call_of_sysbench("hooks", hook, Some(figures))
            .map(|answer| answer.is_some())
            .map_err(|raised| failure(&format!("`{hook}' function failed: {raised}")))
    }
}

/// Calls this function of `sysbench.cmdline` for a command. sysbench knows and names `call_command` alone.
fn call_command(state: &mut State, function: &str, name: &str) -> Result<bool, Failure> {
    let named = Value::from(name);
    state
        .call_of_sysbench("cmdline", function, Some(&named))
        .map(|answer| answer != Some(false))
        .map_err(|raised| {
            failure(&format!("`sysbench.cmdline.call_command' function failed: {raised}"))
        })
}

/// A state that has loaded the script.
fn loaded(common: &Common, thread: u32, random: Random) -> Result<State, Failure> {
    let mut state = State::new(common, thread, random).map_err(|raised| failure(&raised))?;
    state.load(&common.chunks).map_err(|raised| failure(&raised))?;
    Ok(state)
}

/// A state that has loaded the script and knows its options.
fn ready(common: &Common, thread: u32, random: Random) -> Result<State, Failure> {
    let mut state = loaded(common, thread, random)?;
    // Reads the script's own declarations, whose validators then see the options.
    state.declared_options().map_err(|raised| failure(&raised))?;
    let options = Value::Object(common.spec.options.clone());
    state.set_options(&options, &common.spec.globals).map_err(|raised| failure(&raised))?;
    Ok(state)
}

fn failure(message: &str) -> Failure {
    Failure::new("script", message)
}

/// Scripts print through C's stdout, which keeps lines back; ours and theirs must stay in their order.
fn unbuffered_output() {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // SAFETY: C's stdout, which is open; no other thread of this process writes to it yet.
    unsafe { libc::setvbuf(stdout, std::ptr::null_mut(), libc::_IONBF, 0) };
}
