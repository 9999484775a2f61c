//! Lua scripts in sysbench's language: each thread of a script has its own LuaJIT state and stack.
//!
//! A thread with a single connection gives it to the engine's loop: a query suspends the thread,
//! the loop sends it with the queries of hundreds of other threads, and resumes the thread with the
//! answer. Everything else in a script (several connections, a connection for each event, commands
//! such as `prepare`) is served by blocking sessions, with a system thread for each of the
//! script's, as in sysbench.
//!
//! A script is a program with the user's rights: it can open files and run other programs.

mod chunks;
mod connections;
mod database;
mod host;
mod log;
mod modules;
mod protocol;
mod results;
mod stack;
mod state;
mod task;
mod thread;

pub(crate) use connections::HandedOver;
pub use host::uses_database;
pub use modules::is_released;
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

/// Builds the state shared by a script's threads. The unique sequence begins where sysbench's does.
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
    /// State for the hooks of interval reports.
    reporter: Option<State>,
}

/// An option declared by a script.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DeclaredOption {
    /// Its name.
    pub name: String,
    /// sysbench's type: `BOOL`, `INT`, `SIZE`, `DOUBLE`, `STRING`, `LIST` or `FILE`.
    pub kind: String,
    /// Its default as text, if it has any.
    pub default: Option<String>,
    /// Its description.
    pub text: String,
}

impl Script {
    /// Loads the script: its top level runs.
    ///
    /// # Errors
    /// At stage `script`: the script raised an error, or its syntax is wrong.
    pub fn load(spec: &ScriptSpec) -> Result<Self, Failure> {
        unbuffered_output();
        let common = common(spec)?;
        // sysbench's prepare ignores the seed: its main thread is seeded before options are read.
        let random = Random::from_glibc(&mut GlibcRandom::new(1));
        let main = loaded(&common, 0, random)?;
        Ok(Self { common, main, reporter: None })
    }

    /// The options it declares, by name.
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

    /// Sets `sysbench.opt` here and for all later threads.
    ///
    /// # Errors
    /// At stage `script`: a validator of the script raised an error.
    pub fn set_options(&mut self, options: Map<String, Value>) -> Result<(), Failure> {
        self.common.spec.options = options;
        let options = Value::Object(self.common.spec.options.clone());
        let globals = &self.common.spec.globals;
        self.main.set_options(&options, globals).map_err(|raised| failure(&raised))
    }

    /// True if it has a global function of this name.
    pub fn defines(&mut self, name: &str) -> bool {
        self.main.defines(name)
    }

    /// Looks up a declared command of this name; the value is true if it runs in all threads.
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
    /// At stage `script`: the function raised an error.
    pub fn call(&mut self, name: &str) -> Result<(), Failure> {
        self.main
            .call(name)
            .map_err(|raised| failure(&format!("`{name}' function failed: {raised}")))
    }

    /// Runs a command declared by the script, in `threads` threads; false if a single thread's
    /// command returned false. Its preparation runs once. The first thread to fail ends the others
    /// at their next request to a server, as they may wait for its work.
    ///
    /// # Errors
    /// At stage `script`: the first error raised.
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
                        // Set once: later failures of the others are a consequence, not the
                        // script's own.
                        let _ = first.set(failure);
                        is_over.store(true, Ordering::Relaxed);
                    }
                });
            }
        });
        is_over.store(false, Ordering::Relaxed);
        first.into_inner().map_or(Ok(true), Err)
    }

    /// Loads the script once more, for reports of intervals, with thread number `thread`.
    ///
    /// # Errors
    /// At stage `script`: the script raised an error.
    pub fn open_reporter(&mut self, thread: u32) -> Result<(), Failure> {
        let random = Random::for_stream(1, u64::from(thread));
        self.reporter = Some(ready(&self.common, thread, random)?);
        Ok(())
    }

    /// Closes the state of [`Self::open_reporter`].
    pub fn close_reporter(&mut self) {
        self.reporter = None;
    }

    /// Calls a hook for reports with a report's figures; false if the script has no such hook.
    /// Reports of intervals have their own state, if it was opened.
    ///
    /// # Errors
    /// At stage `script`: the hook raised an error.
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

/// Calls this function of `sysbench.cmdline` for a command. Messages name `call_command`, the only
/// one known in sysbench.
fn call_command(state: &mut State, function: &str, name: &str) -> Result<bool, Failure> {
    let named = Value::from(name);
    state
        .call_of_sysbench("cmdline", function, Some(&named))
        .map(|answer| answer != Some(false))
        .map_err(|raised| {
            failure(&format!("`sysbench.cmdline.call_command' function failed: {raised}"))
        })
}

/// A new state, with the script loaded.
fn loaded(common: &Common, thread: u32, random: Random) -> Result<State, Failure> {
    let mut state = State::new(common, thread, random).map_err(|raised| failure(&raised))?;
    state.load(&common.chunks).map_err(|raised| failure(&raised))?;
    Ok(state)
}

/// A new state, with the script loaded and its options set.
fn ready(common: &Common, thread: u32, random: Random) -> Result<State, Failure> {
    let mut state = loaded(common, thread, random)?;
    // Reads the script's own declarations, so its validators see the options.
    state.declared_options().map_err(|raised| failure(&raised))?;
    let options = Value::Object(common.spec.options.clone());
    state.set_options(&options, &common.spec.globals).map_err(|raised| failure(&raised))?;
    Ok(state)
}

fn failure(message: &str) -> Failure {
    Failure::new("script", message)
}

/// Turns off the buffer of C's stdout, used by scripts: their output and ours must stay in order.
fn unbuffered_output() {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // SAFETY: C's stdout, which is open; no other thread of this process writes to it yet.
    unsafe { libc::setvbuf(stdout, std::ptr::null_mut(), libc::_IONBF, 0) };
}
