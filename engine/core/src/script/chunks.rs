//! The chunks loaded by every state of a script, compiled once: sysbench's API, our modules, the
//! script.
//!
//! Each of hundreds of threads has its own state, and would parse some 50 KB of Lua again. It loads
//! bytecode instead, which contains names, lines and locals for messages. Our chunks are compiled
//! once in a process, as compiling takes most of the time of a short run.

use crate::spec::ScriptSpec;
use mlua_sys as lua;
use std::ffi::{CStr, CString, c_int, c_void};
use std::slice;
use std::sync::LazyLock;

/// sysbench's API, chunk by chunk; the last holds the functions removed in sysbench 1.1. Some
/// errors repeat a chunk's name.
const API: [(&str, &str); 5] = [
    ("=prelude", include_str!("lua/prelude.lua")),
    ("=sysbench", include_str!("lua/sysbench.lua")),
    ("sysbench.cmdline.lua", include_str!("lua/sysbench.cmdline.lua")),
    ("=sysbench.sql", include_str!("lua/sysbench.sql.lua")),
    ("=legacy", include_str!("lua/legacy.lua")),
];

/// Modules for `require` without a file.
const MODULES: [(&str, &str); 19] = [
    ("sysbench.common", include_str!("lua/built_in/common.lua")),
    ("sysbench.cpu", include_str!("lua/built_in/cpu.lua")),
    ("sysbench.fileio", include_str!("lua/built_in/fileio.lua")),
    ("sysbench.memory", include_str!("lua/built_in/memory.lua")),
    ("sysbench.mutex", include_str!("lua/built_in/mutex.lua")),
    ("sysbench.threads", include_str!("lua/built_in/threads.lua")),
    ("sysbench.oltp", include_str!("lua/scripts/oltp.lua")),
    ("sysbench.select_random", include_str!("lua/scripts/select_random.lua")),
    ("oltp_common", include_str!("lua/oltp_common.lua")),
    ("oltp_delete", include_str!("lua/scripts/oltp_delete.lua")),
    ("oltp_insert", include_str!("lua/scripts/oltp_insert.lua")),
    ("oltp_point_select", include_str!("lua/scripts/oltp_point_select.lua")),
    ("oltp_read_only", include_str!("lua/scripts/oltp_read_only.lua")),
    ("oltp_read_write", include_str!("lua/scripts/oltp_read_write.lua")),
    ("oltp_update_index", include_str!("lua/scripts/oltp_update_index.lua")),
    ("oltp_update_non_index", include_str!("lua/scripts/oltp_update_non_index.lua")),
    ("oltp_write_only", include_str!("lua/scripts/oltp_write_only.lua")),
    ("select_random_points", include_str!("lua/scripts/select_random_points.lua")),
    ("select_random_ranges", include_str!("lua/scripts/select_random_ranges.lua")),
];

/// A chunk of Lua.
pub(super) struct Chunk {
    /// Its name in messages.
    pub(super) name: CString,
    /// Its bytecode or its source; LuaJIT recognizes either.
    pub(super) code: Vec<u8>,
}

/// All chunks of a script's states.
pub(super) struct Chunks {
    /// sysbench's API, in the order of its execution.
    pub(super) api: &'static [Chunk],
    /// Modules for `require` without a file, by name.
    pub(super) modules: &'static [(CString, Chunk)],
    pub(super) script: Chunk,
}

impl Chunks {
    pub(super) fn of(spec: &ScriptSpec) -> Self {
        let [of_both @ .., _] = &OURS.api;
        Self {
            api: if spec.version.starts_with("1.0") { &OURS.api } else { of_both },
            modules: &OURS.modules,
            script: Compiler::new().chunk(&spec.chunk, &text_of(&spec.source)),
        }
    }
}

/// The chunks independent of the script.
struct Ours {
    api: [Chunk; API.len()],
    modules: [(CString, Chunk); MODULES.len()],
}

static OURS: LazyLock<Ours> = LazyLock::new(|| {
    let compiler = Compiler::new();
    let module = |(name, source): (&str, &str)| {
        (c_string(name), compiler.chunk(&format!("={name}.lua"), source.as_bytes()))
    };
    Ours {
        api: API.map(|(name, source)| compiler.chunk(name, source.as_bytes())),
        modules: MODULES.map(module),
    }
});

/// A state used only for compiling; null if there was no memory for it.
struct Compiler(*mut lua::lua_State);

impl Compiler {
    fn new() -> Self {
        // SAFETY: a new state, closed when this is dropped.
        Self(unsafe { lua::luaL_newstate() })
    }

    fn chunk(&self, name: &str, source: &[u8]) -> Chunk {
        let name = c_string(name);
        // SAFETY: the state is open, or null.
        let code = unsafe { compiled(self.0, &name, source) };
        Chunk { name, code }
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the state is open, without references to it.
            unsafe { lua::lua_close(self.0) };
        }
    }
}

fn c_string(name: &str) -> CString {
    CString::new(name.replace('\0', "?")).expect("zero bytes were replaced")
}

/// A script's text, its first line blank if it names the program to run it (`#!`). For bytecode it
/// is prelude.lua's error.
fn text_of(source: &str) -> Vec<u8> {
    if source.starts_with('\x1b') {
        return br"error(select(2, load('\27')), 0)".to_vec();
    }
    let mut text = source.as_bytes().to_vec();
    if text.starts_with(b"#") {
        let end = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
        text[..end].fill(b' ');
    }
    text
}

/// Compiles a chunk to bytecode; a chunk with a mistake stays source, and fails when it is loaded.
///
/// # Safety
/// The state is open, or null.
unsafe fn compiled(raw: *mut lua::lua_State, name: &CStr, source: &[u8]) -> Vec<u8> {
    if raw.is_null() {
        return source.to_vec();
    }
    let mut code: Vec<u8> = Vec::new();
    // SAFETY: the caller guarantees it; the texts and the vector outlive the calls, and the stack
    // is left empty.
    unsafe {
        let text = source.as_ptr().cast();
        let loaded = lua::luaL_loadbuffer(raw, text, source.len(), name.as_ptr());
        let is_compiled =
            loaded == lua::LUA_OK && lua::lua_dump(raw, append, (&raw mut code).cast(), 0) == 0;
        lua::lua_settop(raw, 0);
        if is_compiled { code } else { source.to_vec() }
    }
}

/// Appends a piece of bytecode.
unsafe extern "C-unwind" fn append(
    _: *mut lua::lua_State,
    piece: *const c_void,
    length: usize,
    code: *mut c_void,
) -> c_int {
    // SAFETY: called by `lua_dump` only, with the vector given to it.
    unsafe {
        let code: *mut Vec<u8> = code.cast();
        (*code).extend_from_slice(slice::from_raw_parts(piece.cast(), length));
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_becomes_bytecode_unless_it_has_a_mistake() {
        // SAFETY: the test's own state, which it closes.
        unsafe {
            let raw = lua::luaL_newstate();
            for (name, source) in API.into_iter().chain(MODULES) {
                let code = compiled(raw, c"=chunk", source.as_bytes());
                assert!(code.starts_with(b"\x1bLJ"), "{name}");
            }
            assert_eq!(compiled(raw, c"=chunk", b"local 1"), b"local 1");
            lua::lua_close(raw);
        }
    }
}
