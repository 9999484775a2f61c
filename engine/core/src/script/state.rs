//! A LuaJIT state with sysbench's API, loaded with the script; each thread has its own.
//!
//! LuaJIT is used through its C interface and not through a wrapper's values: a thread is resumed
//! for every statement, which is a switch of stacks here (`stack`) without any conversion.

use super::chunks::{Chunk, Chunks};
use super::connections::{Connections, Database};
use super::host::{Draws, Host, push_row_function};
use super::log::Log;
use super::stack::{self, CameBack, Thread};
use crate::random::{Distribution, Random, UniqueSequence};
use crate::spec::ScriptSpec;
use mlua_sys as lua;
use serde_json::Value;
use std::ffi::{CStr, CString, c_int, c_void};
use std::io::Write as _;
use std::ptr;
use std::slice;
use std::sync::Arc;

/// State shared by all Lua states of a script.
pub(super) struct Common {
    pub(super) spec: ScriptSpec,
    pub(super) chunks: Chunks,
    pub(super) database: Arc<Database>,
    pub(super) unique: Arc<UniqueSequence>,
    pub(super) log: Arc<Log>,
}

/// A Lua state. Lua has no threads of its own: only one thread at a time may use it.
pub(super) struct State {
    raw: *mut lua::lua_State,
    pub(super) host: Box<Host>,
    /// True if it stays until the process ends, as it is suspended within compiled code: LuaJIT must
    /// not call its finalizers there.
    pub(super) is_abandoned: bool,
    /// Bytes allocated by the state.
    _memory: Box<usize>,
}

// SAFETY: a state has no data of its creating thread; `&mut self` keeps it to one thread at a time.
unsafe impl Send for State {}

impl Drop for State {
    fn drop(&mut self) {
        self.host.leave_loop();
        if self.is_abandoned {
            return;
        }
        if !self.host.caller.is_run {
            let _ = self.call_of_host("finish", |_| 0, 0);
        }
        let raw = self.raw;
        // SAFETY: the state is open, without references to it. Its finalizers call functions of the
        // host, which is dropped after.
        let close = || unsafe { lua::lua_close(raw) };
        let closed = self.on_stack(|_| {
            close();
            Ok(())
        });
        if closed.is_err() {
            close();
        }
    }
}

impl State {
    /// Makes a state before the script's start; `thread` is its `sysbench.tid`.
    ///
    /// # Errors
    /// LuaJIT's message for a chunk, which would be a mistake of ours.
    pub(super) fn new(common: &Common, thread: u32, random: Random) -> Result<Self, String> {
        let spec = &common.spec;
        let distributions = [
            Distribution::Uniform {},
            spec.distribution,
            spec.gaussian,
            spec.special,
            spec.pareto,
            spec.zipfian,
        ];
        let draws = Draws::new(random, Arc::clone(&common.unique), distributions);
        let connections = Connections::new(Arc::clone(&common.database));
        let host = Host::new(draws, connections, Arc::clone(&common.log));
        let mut memory = Box::new(0);
        let counted: *mut usize = &raw mut *memory;
        // SAFETY: a new state, closed when this is dropped; the count outlives it.
        let raw = unsafe { lua::lua_newstate(allocate, counted.cast()) };
        if raw.is_null() {
            return Err("there is no memory for a Lua state".to_owned());
        }
        let mut state = Self { raw, host, is_abandoned: false, _memory: memory };
        // SAFETY: the state is open.
        unsafe {
            lua::lua_atpanic(raw, given_up);
            lua::luaL_openlibs(raw);
        }
        state.prepare(common, thread)?;
        Ok(state)
    }

    fn prepare(&mut self, common: &Common, thread: u32) -> Result<(), String> {
        let spec = &common.spec;
        self.set_search_paths(&spec.package_path, &spec.package_cpath);
        if let Some(command) = &spec.luajit_cmd {
            self.luajit_command(command)?;
        }
        self.make_host(spec, thread);
        for (place, chunk) in common.chunks.api.iter().enumerate() {
            let is_first = place == 0;
            let [task, api] = self.host.addresses();
            self.run(chunk, |raw| {
                // SAFETY: there is room for four values on a stack nearly empty.
                unsafe {
                    if is_first {
                        lua::lua_pushlightuserdata(raw, task);
                        lua::lua_pushlightuserdata(raw, api);
                        push_row_function(raw, task);
                    }
                    get_host(raw);
                }
                if is_first { 4 } else { 1 }
            })?;
        }
        self.offer_modules(common.chunks.modules)
    }

    /// Makes the table shared by the chunks, with their settings.
    fn make_host(&mut self, spec: &ScriptSpec, thread: u32) {
        let raw = self.raw;
        // SAFETY: the state is open, and each pushed value is taken off at once.
        unsafe {
            lua::lua_createtable(raw, 0, 32);
            lua::lua_pushvalue(raw, -1);
            lua::lua_setfield(raw, lua::LUA_REGISTRYINDEX, HOST.as_ptr());
            let fields = [
                (c"version", Value::from(spec.version.as_str())),
                (c"thread", Value::from(thread)),
                (c"driver", Value::from(spec.driver.as_str())),
                (c"driver_name", Value::from(spec.driver.as_str())),
                (c"prepares", Value::from(spec.database.prepared)),
                (c"command", spec.command.clone().into()),
                (c"script_path", spec.script_path.clone().into()),
            ];
            for (name, value) in fields {
                push(raw, &value);
                lua::lua_setfield(raw, -2, name.as_ptr());
            }
            lua::lua_createtable(raw, 0, 4);
            for (place, argument) in (0..).zip(&spec.argv) {
                push(raw, &Value::from(argument.as_str()));
                lua::lua_rawseti(raw, -2, place);
            }
            lua::lua_setfield(raw, -2, c"argv".as_ptr());
            lua::lua_settop(raw, 0);
        }
    }

    /// Offers modules for `require` without a file. Each is loaded by the state that requires it.
    fn offer_modules(&mut self, modules: &'static [(CString, Chunk)]) -> Result<(), String> {
        self.call_of_host(
            "offer_modules",
            |raw| {
                // SAFETY: there is room for two values; the chunks outlive every state.
                unsafe {
                    lua::lua_createtable(raw, 0, 8);
                    for (name, chunk) in modules {
                        let at: *const Chunk = chunk;
                        lua::lua_pushlightuserdata(raw, at.cast_mut().cast());
                        lua::lua_pushcclosure(raw, load_module, 1);
                        lua::lua_setfield(raw, -2, name.as_ptr());
                    }
                }
                1
            },
            0,
        )
    }

    fn set_search_paths(&mut self, path: &str, cpath: &str) {
        let raw = self.raw;
        // SAFETY: as above.
        unsafe {
            lua::lua_getfield(raw, lua::LUA_GLOBALSINDEX, c"package".as_ptr());
            for (name, text) in [(c"path", path), (c"cpath", cpath)] {
                push(raw, &Value::from(text));
                lua::lua_setfield(raw, -2, name.as_ptr());
            }
            lua::lua_settop(raw, 0);
        }
    }

    /// Runs `--luajit-cmd`, as LuaJIT's `-j`: `on`, `off`, or a module such as `opt`, with
    /// arguments separated by commas after `=`.
    fn luajit_command(&mut self, command: &str) -> Result<(), String> {
        let (name, arguments) = command.split_once('=').unwrap_or((command, ""));
        let code = include_str!("lua/luajit_cmd.lua").into();
        let chunk = Chunk { name: c"=luajit-cmd".to_owned(), code };
        self.run(&chunk, |raw| {
            let words = arguments.split(',').filter(|_| !arguments.is_empty());
            let mut count = 0;
            for word in std::iter::once(name).chain(words) {
                let value = if word.is_empty() { Value::Null } else { Value::from(word) };
                // SAFETY: the state is open, and `push` makes room.
                unsafe { push(raw, &value) };
                count += 1;
            }
            count
        })
    }

    /// Runs the top level of the script.
    ///
    /// # Errors
    /// The script raised an error, or its syntax is wrong.
    pub(super) fn load(&mut self, chunks: &Chunks) -> Result<(), String> {
        self.run(&chunks.script, |_| 0)
    }

    fn run(
        &mut self,
        Chunk { name, code }: &Chunk,
        push_arguments: impl FnOnce(*mut lua::lua_State) -> c_int,
    ) -> Result<(), String> {
        let raw = self.raw;
        // SAFETY: the state is open; name and code outlive the call.
        self.on_stack(|state| unsafe {
            let status = lua::luaL_loadbuffer(raw, code.as_ptr().cast(), code.len(), name.as_ptr());
            if status != lua::LUA_OK {
                return Err(take_error(raw));
            }
            let arguments = push_arguments(raw);
            state.protected_call(arguments, 0)
        })
    }

    /// Calls `work`, in which Lua may run, on a stack with room for it.
    fn on_stack<R>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<R, String>,
    ) -> Result<R, String> {
        let host = &raw mut *self.host;
        // SAFETY: the host lives as long as the state.
        let done = unsafe { stack::call(host, || work(self)) };
        done.map_err(no_stack)?
    }

    /// Calls the function below the `arguments` on the stack.
    ///
    /// # Errors
    /// The function raised an error.
    ///
    /// # Safety
    /// Function and arguments are on the stack of the state.
    unsafe fn protected_call(&mut self, arguments: c_int, results: c_int) -> Result<(), String> {
        // SAFETY: the caller guarantees it, and the state is open.
        unsafe {
            match lua::lua_pcall(self.raw, arguments, results, 0) {
                lua::LUA_OK => Ok(()),
                _ => Err(take_error(self.raw)),
            }
        }
    }

    /// Pushes a field of the value at `place`, which may call the script's metatable.
    ///
    /// # Errors
    /// The metatable raised an error.
    ///
    /// # Safety
    /// The value is on the stack of the state.
    unsafe fn get_field(&mut self, place: c_int, name: &CStr) -> Result<(), String> {
        let raw = self.raw;
        // SAFETY: the caller guarantees it, and there is room for three values.
        unsafe {
            lua::lua_pushvalue(raw, place);
            lua::lua_pushcclosure(raw, field, 0);
            lua::lua_insert(raw, -2);
            lua::lua_pushlstring(raw, name.as_ptr(), name.count_bytes());
            self.protected_call(2, 1)
        }
    }

    /// True if the script has a global function of this name, or a metatable whose error its call
    /// will raise.
    pub(super) fn defines(&mut self, name: &str) -> bool {
        let name = CString::new(name).unwrap_or_default();
        let raw = self.raw;
        // SAFETY: the state is open; pushed values are taken off.
        let is_function = self.on_stack(|state| unsafe {
            state.get_field(lua::LUA_GLOBALSINDEX, &name)?;
            let is_function = lua::lua_type(raw, -1) == lua::LUA_TFUNCTION;
            lua::lua_settop(raw, 0);
            Ok(is_function)
        });
        is_function.unwrap_or(true)
    }

    /// Calls a global function without arguments.
    ///
    /// # Errors
    /// The function raised an error.
    pub(super) fn call(&mut self, name: &str) -> Result<(), String> {
        let name = CString::new(name).unwrap_or_default();
        let raw = self.raw;
        // SAFETY: the state is open.
        self.on_stack(|state| unsafe {
            let found = state.get_field(lua::LUA_GLOBALSINDEX, &name);
            let outcome = found.and_then(|()| state.protected_call(0, 0));
            lua::lua_settop(raw, 0);
            state.host.note_database();
            outcome
        })
    }

    /// Calls `sysbench.<table>.<name>`; returns its result as a boolean, `None` if it is no
    /// function.
    ///
    /// # Errors
    /// The function raised an error.
    pub(super) fn call_of_sysbench(
        &mut self,
        table: &str,
        name: &str,
        argument: Option<&Value>,
    ) -> Result<Option<bool>, String> {
        let raw = self.raw;
        let (table, name) =
            (CString::new(table).unwrap_or_default(), CString::new(name).unwrap_or_default());
        // SAFETY: the state is open; tables replaced by a script are noticed by their types.
        self.on_stack(|state| unsafe {
            state.get_field(lua::LUA_GLOBALSINDEX, c"sysbench")?;
            for name in [&table, &name] {
                if lua::lua_type(raw, -1) != lua::LUA_TTABLE {
                    lua::lua_settop(raw, 0);
                    return Ok(None);
                }
                state.get_field(-1, name)?;
            }
            if lua::lua_type(raw, -1) != lua::LUA_TFUNCTION {
                lua::lua_settop(raw, 0);
                return Ok(None);
            }
            if let Some(argument) = argument {
                push(raw, argument);
            }
            let outcome = state
                .protected_call(c_int::from(argument.is_some()), 1)
                .map(|()| Some(lua::lua_toboolean(raw, -1) != 0));
            lua::lua_settop(raw, 0);
            state.host.note_database();
            outcome
        })
    }

    /// The options declared by the script: name, type, default (if any) and description of each.
    ///
    /// # Errors
    /// The mistake in the script's table.
    pub(super) fn declared_options(&mut self) -> Result<Vec<[Option<String>; 4]>, String> {
        self.call_of_host("declared_options", |_| 0, 1)?;
        let raw = self.raw;
        // SAFETY: the state is open, and `declared_options` returns an array of tables of strings.
        self.on_stack(|_| unsafe {
            let mut options = Vec::new();
            for place in 1.. {
                lua::lua_rawgeti(raw, 1, place);
                if lua::lua_type(raw, -1) != lua::LUA_TTABLE {
                    break;
                }
                options.push([c"name", c"kind", c"default", c"text"].map(|field| {
                    lua::lua_getfield(raw, -1, field.as_ptr());
                    let text = text_at(raw, -1);
                    lua::lua_settop(raw, -2);
                    text
                }));
                lua::lua_settop(raw, 1);
            }
            lua::lua_settop(raw, 0);
            Ok(options)
        })
    }

    /// Sets `sysbench.opt`, and the options in `globals` as globals too if the script declares no
    /// options.
    ///
    /// # Errors
    /// A validator of the script raised an error.
    pub(super) fn set_options(
        &mut self,
        options: &Value,
        globals: &[String],
    ) -> Result<(), String> {
        let globals = Value::from(globals);
        self.call_of_host(
            "set_options",
            |raw| {
                // SAFETY: there is room for both on the stack.
                unsafe {
                    push(raw, options);
                    push(raw, &globals);
                }
                2
            },
            0,
        )
    }

    /// Calls a function of the table shared by our chunks; its results stay on the stack, from 1.
    fn call_of_host(
        &mut self,
        name: &str,
        push_arguments: impl FnOnce(*mut lua::lua_State) -> c_int,
        results: c_int,
    ) -> Result<(), String> {
        let name = CString::new(name).unwrap_or_default();
        let raw = self.raw;
        // SAFETY: the state is open.
        self.on_stack(|state| unsafe {
            lua::lua_settop(raw, 0);
            get_host(raw);
            if lua::lua_type(raw, -1) != lua::LUA_TTABLE {
                lua::lua_settop(raw, 0);
                return Err("the state is not ready".to_owned());
            }
            lua::lua_getfield(raw, -1, name.as_ptr());
            lua::lua_remove(raw, 1);
            let arguments = push_arguments(raw);
            state.protected_call(arguments, results)
        })
    }

    /// The script's thread, before its first instruction.
    ///
    /// # Errors
    /// There is no memory for its stack.
    pub(super) fn thread(&mut self, number: u32) -> Result<Thread, String> {
        self.host.caller.is_run = true;
        let raw = self.raw;
        // SAFETY: the state is open. The Lua thread stays in the registry as long as the state.
        // A new object may call finalizers.
        let own = self.on_stack(|_| unsafe {
            lua::lua_settop(raw, 0);
            let own = lua::lua_newthread(raw);
            lua::lua_setfield(raw, lua::LUA_REGISTRYINDEX, THREAD.as_ptr());
            get_host(raw);
            lua::lua_getfield(raw, -1, c"thread_main".as_ptr());
            lua::lua_xmove(raw, own, 1);
            lua::lua_settop(raw, 0);
            lua::lua_pushnumber(own, f64::from(number));
            Ok(own)
        })?;
        // SAFETY: as above; the Lua thread runs on this stack alone.
        let main = move || unsafe {
            match lua::lua_pcall(own, 1, 0, 0) {
                lua::LUA_OK => CameBack::Ended,
                _ => CameBack::Raised(take_error(own)),
            }
        };
        // SAFETY: `ScriptThread` closes or abandons the state before it frees the stack.
        unsafe { Thread::new(&raw mut *self.host, main) }.map_err(no_stack)
    }
}

const HOST: &CStr = c"dbdyno.host";
const THREAD: &CStr = c"dbdyno.thread";

/// # Safety
/// The state is open and its stack has room.
unsafe fn get_host(raw: *mut lua::lua_State) {
    // SAFETY: the caller guarantees it.
    unsafe { lua::lua_getfield(raw, lua::LUA_REGISTRYINDEX, HOST.as_ptr()) };
}

fn no_stack(error: std::io::Error) -> String {
    format!("no stack: {error}")
}

/// The value of a table, its first argument, under a key, its second.
unsafe extern "C-unwind" fn field(raw: *mut lua::lua_State) -> c_int {
    // SAFETY: called by Lua only, with two arguments.
    unsafe { lua::lua_gettable(raw, 1) };
    1
}

/// Loads the module in the upvalue: its function, which returns the module.
unsafe extern "C-unwind" fn load_module(raw: *mut lua::lua_State) -> c_int {
    // SAFETY: called by Lua only; the upvalue is one of the chunks kept until the process ends.
    unsafe {
        let chunk: *const Chunk = lua::lua_touserdata(raw, lua::lua_upvalueindex(1)).cast();
        let Chunk { name, code } = &*chunk;
        match lua::luaL_loadbuffer(raw, code.as_ptr().cast(), code.len(), name.as_ptr()) {
            lua::LUA_OK => 1,
            _ => lua::lua_error(raw),
        }
    }
}

/// Takes a raised error off the stack, as text.
///
/// # Safety
/// The state is open and an error was raised.
unsafe fn take_error(raw: *mut lua::lua_State) -> String {
    // SAFETY: the caller guarantees it.
    unsafe {
        let text = text_at(raw, -1).unwrap_or_else(|| "(not a string)".to_owned());
        lua::lua_settop(raw, 0);
        text
    }
}

/// # Safety
/// The state is open; the value is not a number held by a traversal.
unsafe fn text_at(raw: *mut lua::lua_State, place: c_int) -> Option<String> {
    let mut length = 0;
    // SAFETY: the caller guarantees it; the text is copied while it is on the stack.
    unsafe {
        let text = lua::lua_tolstring(raw, place, &raw mut length);
        if text.is_null() {
            return None;
        }
        Some(String::from_utf8_lossy(slice::from_raw_parts(text.cast(), length)).into_owned())
    }
}

/// Memory limit of a state: a leaking script ends with an error, before the machine's memory is
/// used up.
const MEMORY_MAX: usize = 1 << 30;

/// Reports an error in sysbench's words before LuaJIT ends the program with status 1: an error
/// beyond the reach of any `pcall`, such as a callback into Lua out of compiled code.
unsafe extern "C-unwind" fn given_up(raw: *mut lua::lua_State) -> c_int {
    // SAFETY: called by Lua only, with the error on top of the stack.
    let error = unsafe { take_error(raw) };
    // A failed write is ignored: a panic would go through frames of C.
    let _ = writeln!(std::io::stderr(), "PANIC: unprotected error in call to Lua API ({error})");
    0
}

/// Lua's allocator, which counts the bytes.
unsafe extern "C" fn allocate(
    counted: *mut c_void,
    block: *mut c_void,
    old: usize,
    new: usize,
) -> *mut c_void {
    // SAFETY: called by Lua only, with the state's count and its own blocks.
    unsafe {
        let used: *mut usize = counted.cast();
        let old = if block.is_null() { 0 } else { old };
        if new == 0 {
            libc::free(block);
            *used -= old;
            return ptr::null_mut();
        }
        let after = *used - old + new;
        if new > old && after > MEMORY_MAX {
            return ptr::null_mut();
        }
        let moved = libc::realloc(block, new);
        if !moved.is_null() {
            *used = after;
        }
        moved
    }
}

/// Pushes a JSON value: arrays from 1, whole numbers as numbers.
///
/// # Safety
/// The state is open.
unsafe fn push(raw: *mut lua::lua_State, value: &Value) {
    // SAFETY: the caller guarantees it; the stack is made larger before it is used.
    unsafe {
        lua::lua_checkstack(raw, 4);
        match value {
            Value::Null => lua::lua_pushnil(raw),
            Value::Bool(is_on) => lua::lua_pushboolean(raw, c_int::from(*is_on)),
            Value::Number(number) => lua::lua_pushnumber(raw, number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => {
                lua::lua_pushlstring(raw, text.as_ptr().cast(), text.len());
            }
            Value::Array(values) => {
                lua::lua_createtable(raw, 0, 0);
                for (place, one) in (1..).zip(values) {
                    push(raw, one);
                    lua::lua_rawseti(raw, -2, place);
                }
            }
            Value::Object(fields) => {
                lua::lua_createtable(raw, 0, 0);
                for (name, one) in fields {
                    lua::lua_pushlstring(raw, name.as_ptr().cast(), name.len());
                    push(raw, one);
                    lua::lua_rawset(raw, -3);
                }
            }
        }
    }
}
