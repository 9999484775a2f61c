//! The functions of scripts called through `ffi`: random numbers, counters, the log, and requests.

use super::connections::{Connections, place};
use super::database::Caller;
use super::log::Log;
use super::task::{Op, SqlConnection, SqlParam, SqlResult, SqlStatement, Task, length};
use crate::random::{Distribution, Random, Sampler, UniqueSequence};
use corosensei::Yielder;
use mlua_sys as lua;
use std::collections::VecDeque;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Number of a script's own counters, numbered as in sysbench.
const COUNTERS: usize = 9;

/// Maximum of event kinds named by a script.
const EVENT_KINDS_MAX: usize = 256;
const EVENT_KIND_LENGTH_MAX: usize = 63;

/// The random draws of a script.
pub(super) struct Draws {
    random: Random,
    unique: Arc<UniqueSequence>,
    distributions: [Distribution; 6],
    /// The last sampler of each distribution: scripts draw from the same range again and again.
    samplers: [Option<(u32, u32, Sampler)>; 6],
}

impl Draws {
    /// `default` is the distribution of `sysbench.rand.default`; the parameters of the others come
    /// from the options.
    pub(super) fn new(
        random: Random,
        unique: Arc<UniqueSequence>,
        distributions: [Distribution; 6],
    ) -> Self {
        Self { random, unique, distributions, samplers: [const { None }; 6] }
    }

    fn draw(&mut self, which: usize, low: u32, high: u32) -> u32 {
        let Some(distribution) = self.distributions.get(which) else { return self.unique.draw() };
        if let Some((least, most, sampler)) = &self.samplers[which]
            && (*least, *most) == (low, high)
        {
            return sampler.draw(&mut self.random);
        }
        let sampler = distribution.over(low, high);
        let drawn = sampler.draw(&mut self.random);
        self.samplers[which] = Some((low, high, sampler));
        drawn
    }
}

/// True once any script of this process has used a database: reports differ.
static USES_DATABASE: AtomicBool = AtomicBool::new(false);

/// True if any script of this process has asked for a database driver so far.
#[must_use]
pub fn uses_database() -> bool {
    USES_DATABASE.load(Ordering::Relaxed)
}

/// An address set by the main state of a test without a database, before its threads begin.
static SHARED: AtomicU64 = AtomicU64::new(0);

/// A script's thread as its functions see it. Its task comes first, so both have the same address.
#[repr(C)]
pub(super) struct Host {
    pub(super) caller: Caller,
    api: Api,
    draws: Draws,
    counters: [i64; COUNTERS],
    /// Names of events given by the script, by their numbers less 1.
    pub(super) event_kinds: Vec<Arc<str>>,
    /// The yielder from the script's thread back to the loop; null outside of it.
    pub(super) way_back: *const Yielder<(), ()>,
    /// The lowest address of Lua's current stack with room for calls within calls.
    pub(super) room_from: usize,
}

impl Host {
    pub(super) fn new(draws: Draws, connections: Connections, log: Arc<Log>) -> Box<Self> {
        let (task, happened) = (Task::new(), VecDeque::new());
        let (clock, round_trip, is_run) = (None, Duration::ZERO, false);
        let caller = Caller { task, connections, log, clock, round_trip, is_run, happened };
        let (api, counters) = (Api::new(), [0; COUNTERS]);
        let event_kinds = Vec::new();
        let (way_back, room_from) = (ptr::null(), 0);
        Box::new(Self { caller, api, draws, counters, event_kinds, way_back, room_from })
    }

    /// The addresses passed to prelude.lua.
    pub(super) fn addresses(&mut self) -> [*mut c_void; 2] {
        [(&raw mut self.caller.task).cast(), (&raw mut self.api).cast()]
    }

    /// Ends an event's draws, see [`Random::end_event`].
    pub(super) fn end_event(&mut self) {
        self.draws.random.end_event();
    }

    /// Leaves the loop: later Lua code runs on a stack it cannot suspend, without the loop's
    /// connection.
    pub(super) fn leave_loop(&mut self) {
        self.way_back = ptr::null();
        self.caller.task.looped = 0;
    }

    /// Sets the process's flag if the script has asked for a driver.
    pub(super) fn note_database(&self) {
        if self.caller.task.uses_database != 0 {
            USES_DATABASE.store(true, Ordering::Relaxed);
        }
    }
}

/// The functions declared by prelude.lua as `dbdyno_api`, in its order. Handles have their types,
/// as sysbench.sql.lua checks, or are null for its nil.
#[repr(C)]
struct Api {
    ask: extern "C" fn(
        *mut Host,
        u32,
        *mut SqlConnection,
        *mut SqlStatement,
        *const u8,
        u64,
    ) -> bool,
    execute: extern "C" fn(*mut Host, *mut SqlStatement) -> i32,
    wait: extern "C" fn(*mut Host, u32, f64),
    bind: extern "C" fn(*mut SqlStatement, *const *const SqlParam, u32),
    close: extern "C" fn(*mut Host, *mut SqlStatement),
    disconnect: extern "C" fn(*mut Host, *mut SqlConnection),
    forget: extern "C" fn(*mut Host, *mut SqlConnection),
    result: extern "C" fn(*mut Host, u32) -> *mut SqlResult,
    free: extern "C" fn(*mut SqlResult),
    set_null: extern "C" fn(*mut SqlParam),
    set_integer: extern "C" fn(*mut SqlParam, i64),
    set_real: extern "C" fn(*mut SqlParam, f64),
    set_text: extern "C" fn(*mut SqlParam, *const u8, u64),
    set_random: extern "C" fn(*mut Host, *mut SqlParam, *const u8, u64),
    draw: extern "C" fn(*mut Host, u32, u32, u32) -> u32,
    word: extern "C" fn(*mut Host) -> u64,
    real: extern "C" fn(*mut Host) -> f64,
    fill: extern "C" fn(*mut Host, *const u8, u64, *mut u8),
    count: extern "C" fn(*mut Host, u32, i64),
    counted: extern "C" fn(*mut Host, u32) -> u64,
    log: extern "C" fn(*mut Host, u32, *const u8, u64),
    kind: extern "C" fn(*mut Host, *const u8, u64) -> u32,
    has_room: extern "C" fn(*mut Host) -> bool,
    is_released: extern "C" fn(*const u8, u64, *const u8, u64) -> bool,
    offer_functions: extern "C" fn() -> *const c_char,
    shared: &'static AtomicU64,
    touch: extern "C" fn(*mut Host, *mut u64, u64, u32, bool),
}

impl Api {
    fn new() -> Self {
        Self {
            ask,
            execute,
            wait,
            bind,
            close,
            disconnect,
            forget,
            result,
            free,
            set_null,
            set_integer,
            set_real,
            set_text,
            set_random,
            draw,
            word,
            real,
            fill,
            count,
            counted,
            log,
            kind,
            has_room,
            is_released,
            offer_functions,
            shared: &SHARED,
            touch,
        }
    }
}

/// The host passed to a function of [`Api`].
fn host<'a>(host: *mut Host) -> &'a mut Host {
    // SAFETY: prelude.lua passes the address given to it, of a `Host` which outlives its Lua state.
    // One thread at a time runs the state, and no function of `Api` calls back into it.
    unsafe { &mut *host }
}

fn serve(at: *mut Host) {
    let host = host(at);
    host.note_database();
    super::database::serve(&mut host.caller);
}

extern "C" fn draw(at: *mut Host, which: u32, low: u32, high: u32) -> u32 {
    host(at).draws.draw(which as usize, low, high)
}

extern "C" fn word(at: *mut Host) -> u64 {
    host(at).draws.random.next_u64()
}

extern "C" fn real(at: *mut Host) -> f64 {
    host(at).draws.random.uniform_double()
}

extern "C" fn fill(at: *mut Host, format: *const u8, bytes: u64, out: *mut u8) {
    let bytes = length(bytes);
    // SAFETY: both are buffers of the script of at least this length, and `out` is not a Lua
    // string.
    let (format, out) =
        unsafe { (slice::from_raw_parts(format, bytes), slice::from_raw_parts_mut(out, bytes)) };
    host(at).draws.random.fill_string(format, out);
}

extern "C" fn count(at: *mut Host, counter: u32, by: i64) {
    let host = host(at);
    if let Some(own) = host.counters.get_mut(counter as usize) {
        *own += by;
        host.caller.note_count(counter, u64::try_from(by).unwrap_or_default());
    }
}

extern "C" fn counted(at: *mut Host, counter: u32) -> u64 {
    host(at).counters.get(counter as usize).map_or(0, |count| count.unsigned_abs())
}

extern "C" fn log(at: *mut Host, level: u32, text: *const u8, bytes: u64) {
    // SAFETY: a Lua string and its length.
    let text = unsafe { slice::from_raw_parts(text, length(bytes)) };
    host(at).caller.log.line(level, &String::from_utf8_lossy(text));
}

/// Closes a connection; the number of the loop's connection goes to the next.
extern "C" fn disconnect(at: *mut Host, connection: *mut SqlConnection) {
    let caller = &mut host(at).caller;
    // SAFETY: a connection of the script.
    let asked = unsafe { &mut *connection };
    asked.is_open = 0;
    asked.session += 1;
    let number = asked.number;
    if caller.task.looped == number && number != 0 {
        // The loop closes its session as soon as it reads this.
        (caller.task.looped, caller.task.parted) = (0, number);
    }
    caller.connections.close(number);
    if caller.task.parted == number {
        asked.number = 0;
        (asked.sql_state, asked.sql_errmsg) = (ptr::null(), ptr::null());
    }
}

/// Closes a connection without a handle and frees its number. A finalizer of the script may still
/// use it.
extern "C" fn forget(at: *mut Host, connection: *mut SqlConnection) {
    // SAFETY: a connection of the script.
    let asked = unsafe { &mut *connection };
    disconnect(at, connection);
    if asked.number != 0 {
        host(at).caller.connections.forget(asked.number);
    }
    asked.number = 0;
    (asked.sql_state, asked.sql_errmsg) = (ptr::null(), ptr::null());
}

/// Result of a connection, valid as long as the state.
extern "C" fn result(at: *mut Host, number: u32) -> *mut SqlResult {
    let shown = host(at).caller.connections.shown.get_mut(place(number));
    shown.map_or(ptr::null_mut(), |result| &raw mut **result)
}

extern "C" fn free(result: *mut SqlResult) {
    // SAFETY: a live result, so of a connection.
    let result = unsafe { &mut *result };
    (result.is_live, result.nrows, result.nfields) = (0, 0, 0);
}

/// Sends a request to the loop, and suspends the script's thread until it is resumed.
extern "C" fn wait(at: *mut Host, op: u32, microseconds: f64) {
    host(at).caller.task.wait(op, microseconds);
    rest(at);
}

/// Suspends the script's thread until it is resumed.
fn rest(at: *mut Host) {
    // SAFETY: as for `host`, but no reference may be held while the script is suspended. The way
    // back belongs to the calling stack: no other stack runs the thread's script.
    unsafe {
        if let Some(yielder) = (*at).way_back.as_ref() {
            yielder.suspend(());
        }
    }
}

/// Sends a request on a connection; true if it succeeded. It is a single call, so no code of the
/// script runs between a request's fields. A connection opened after the loop's was closed takes
/// its place there.
extern "C" fn ask(
    at: *mut Host,
    op: u32,
    connection: *mut SqlConnection,
    statement: *mut SqlStatement,
    text: *const u8,
    length: u64,
) -> bool {
    // SAFETY: as for `rest`. The script holds connection, statement and text during the call.
    unsafe {
        let caller = &mut (*at).caller;
        caller.task.ask(op, connection, statement, (text, length));
        let (number, is_open) = ((*connection).number, (*connection).is_open != 0);
        let waits = match caller.task.op() {
            Some(Op::Connect | Op::Reconnect) => {
                let is_looped = number != 0 && number == caller.task.looped;
                is_looped || (number == 0 && caller.task.parted != 0)
            }
            Some(Op::Query | Op::Prepare) if !is_open => {
                super::database::is_closed(caller);
                return false;
            }
            Some(Op::NextResult) => false,
            Some(Op::Prepare) if !caller.connections.database.spec.prepared => false,
            _ => number != 0 && number == caller.task.looped,
        };
        if waits {
            rest(at);
        } else {
            serve(at);
        }
        (*at).caller.task.failed == 0
    }
}

/// Closes a statement; the server does not answer, so there is no wait.
extern "C" fn close(at: *mut Host, statement: *mut SqlStatement) {
    // SAFETY: as for `ask`; the connection is there until the statement is closed.
    unsafe {
        let session = (*statement).session;
        if session != 0 && session == (*(*statement).connection).session {
            host(at).caller.task.close(statement);
            serve(at);
        }
        (*statement).session = 0;
        (*statement).bind(ptr::null(), 0);
    }
}

extern "C" fn bind(statement: *mut SqlStatement, binds: *const *const SqlParam, count: u32) {
    // SAFETY: a statement of the script, which holds the array until another is bound or it is
    // closed.
    unsafe { (*statement).bind(binds, count) }
}

extern "C" fn set_null(param: *mut SqlParam) {
    // SAFETY: a parameter of the script, as in the next functions.
    unsafe { (*param).set_null() }
}

extern "C" fn set_integer(param: *mut SqlParam, value: i64) {
    // SAFETY: as above.
    unsafe { (*param).set_integer(value) }
}

extern "C" fn set_real(param: *mut SqlParam, value: f64) {
    // SAFETY: as above.
    unsafe { (*param).set_real(value) }
}

extern "C" fn set_text(param: *mut SqlParam, text: *const u8, bytes: u64) {
    // SAFETY: as above; the text is a Lua string of this length.
    unsafe {
        let out = (*param).text_of(length(bytes));
        out.copy_from_slice(slice::from_raw_parts(text, out.len()));
    }
}

/// Fills a text with random characters in place of `#` and `@`.
extern "C" fn set_random(at: *mut Host, param: *mut SqlParam, format: *const u8, bytes: u64) {
    // SAFETY: as above.
    unsafe {
        let out = (*param).text_of(length(bytes));
        let format = slice::from_raw_parts(format, out.len());
        host(at).draws.random.fill_string(format, out);
    }
}

/// True if the stack has room for calls within calls.
extern "C" fn has_room(at: *mut Host) -> bool {
    let here = 0_u8;
    ptr::from_ref(&here).addr() >= host(at).room_from
}

/// True if a file is a released script of this name.
extern "C" fn is_released(name: *const u8, name_bytes: u64, path: *const u8, bytes: u64) -> bool {
    // SAFETY: Lua strings and their lengths.
    let text = |at, bytes| unsafe { slice::from_raw_parts(at, length(bytes)) };
    let [name, path] = [text(name, name_bytes), text(path, bytes)];
    let name = std::str::from_utf8(name).unwrap_or_default();
    super::modules::is_released(name, Path::new(OsStr::from_bytes(path)))
}

/// Offers Lua's functions to compiled modules; null, or the reason why that cannot be.
extern "C" fn offer_functions() -> *const c_char {
    super::modules::c_functions::offer().map_or(ptr::null(), CStr::as_ptr)
}

/// Reads (1) or writes (2) the words of a block, as many times as it has words, in order or at
/// random. No compiler may leave any of it out.
extern "C" fn touch(at: *mut Host, words: *mut u64, count: u64, operation: u32, is_random: bool) {
    let random = is_random.then(|| &mut host(at).draws.random);
    let count = length(count);
    match operation {
        // SAFETY: the test `memory` has allocated `count` words, and `each` stays below that.
        // Threads that share the block race on purpose, one word at a time.
        1 => each(count, random, |place| unsafe {
            words.add(place).read_volatile();
        }),
        // SAFETY: as above.
        2 => each(count, random, |place| unsafe { words.add(place).write_volatile(1) }),
        _ => each(count, random, |place| {
            std::hint::black_box(place);
        }),
    }
}

/// Visits `count` places below `count`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a block has less than 2^52 words, and a draw is at least 0"
)]
fn each(count: usize, random: Option<&mut Random>, visit: impl Fn(usize)) {
    let Some(random) = random else { return (0..count).for_each(visit) };
    for _ in 0..count {
        visit((random.uniform_double() * count as f64) as usize);
    }
}

/// Result of [`execute`] for an error.
const REFUSED: i32 = -1;
/// Result of [`execute`] for a statement without a current session.
const OUTDATED: i32 = -2;

/// Executes a prepared statement, the most frequent request. Returns the number of the connection
/// if the answer has columns, and 0 if not.
///
/// It is a single call: each field read or written by Lua costs a metamethod until LuaJIT has
/// compiled it, and machine code in every state from then on.
extern "C" fn execute(at: *mut Host, statement: *mut SqlStatement) -> i32 {
    // SAFETY: as for `rest`. The script holds the statement during the call, and the connection of
    // an open statement; nil becomes null.
    unsafe {
        let Some(asked) = statement.as_ref() else { return OUTDATED };
        let (on, session) = (asked.on, asked.session);
        if session == 0 || session != (*asked.connection).session {
            return OUTDATED;
        }
        (*at).caller.task.execute(statement);
        if (*at).caller.task.looped == on {
            rest(at);
        } else {
            serve(at);
        }
        let task = &(*at).caller.task;
        match (task.failed, task.columns) {
            (0, 0) => 0,
            (0, _) => on.cast_signed(),
            _ => REFUSED,
        }
    }
}

/// Registers a name for a kind of event and returns its number; 0 for an invalid name or beyond
/// [`EVENT_KINDS_MAX`].
extern "C" fn kind(at: *mut Host, name: *const u8, bytes: u64) -> u32 {
    // SAFETY: a Lua string and its length.
    let name = unsafe { slice::from_raw_parts(name, length(bytes)) };
    let is_word = name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let kinds = &mut host(at).event_kinds;
    let Ok(name) = std::str::from_utf8(name) else { return 0 };
    if name.is_empty() || name.len() > EVENT_KIND_LENGTH_MAX || !is_word {
        return 0;
    }
    if kinds.len() >= EVENT_KINDS_MAX {
        return 0;
    }
    kinds.push(name.into());
    u32::try_from(kinds.len()).unwrap_or_default()
}

/// Pushes the function that returns the next row of a connection to prelude.lua: a table of texts,
/// with nil for NULL; or nil.
///
/// # Safety
/// The state is open, and `host` outlives it.
pub(super) unsafe fn push_row_function(raw: *mut lua::lua_State, host: *mut c_void) {
    // SAFETY: the caller guarantees it.
    unsafe {
        lua::lua_pushlightuserdata(raw, host);
        lua::lua_pushcclosure(raw, row, 1);
    }
}

unsafe extern "C-unwind" fn row(raw: *mut lua::lua_State) -> c_int {
    // SAFETY: called by Lua only; the upvalue is the host given to `push_row_function`. Values are
    // pushed while their row is borrowed, and no function called here runs a script.
    unsafe {
        let host: *mut Host = lua::lua_touserdata(raw, lua::lua_upvalueindex(1)).cast();
        let number = lua::lua_tonumber(raw, 1);
        let Some(values) = (*host).caller.connections.next_row(number as u32) else {
            lua::lua_pushnil(raw);
            return 1;
        };
        let count = c_int::try_from(values.len()).unwrap_or(c_int::MAX);
        lua::lua_createtable(raw, count, 0);
        for (place, value) in (1..).zip(&values) {
            match value {
                Some(text) => {
                    lua::lua_pushlstring(raw, text.as_ptr().cast(), text.len());
                }
                None => lua::lua_pushnil(raw),
            }
            lua::lua_rawseti(raw, -2, place);
        }
        1
    }
}
