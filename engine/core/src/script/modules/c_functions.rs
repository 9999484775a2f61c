//! Lua's functions of C for compiled modules (`cjson`, `socket`) that a script requires.
//!
//! Such a module is a shared library which leaves Lua's functions to the program. Here they are part
//! of a Python extension: its linker hides all but Python's entry point, and Python loads it for
//! itself alone. So a library without code is made in memory, whose symbols are the addresses of the
//! functions (`SHN_ABS`, which glibc takes as they are since 2.28), and it is opened for the process.

use std::ffi::{CStr, CString};
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::sync::OnceLock;

macro_rules! functions {
    ($($name:ident)*) => {
        // Only their addresses are used, so their types do not matter.
        unsafe extern "C" { $(fn $name();)* }

        /// Names and addresses of the functions of lua.h, lauxlib.h and luajit.h.
        fn functions() -> Vec<(&'static str, u64)> {
            vec![$((stringify!($name), $name as *const () as u64)),*]
        }
    };
}

functions! {
    lua_atpanic lua_call lua_checkstack lua_close lua_concat lua_copy lua_cpcall lua_createtable
    lua_dump lua_equal lua_error lua_gc lua_getallocf lua_getfenv lua_getfield lua_gethook
    lua_gethookcount lua_gethookmask lua_getinfo lua_getlocal lua_getmetatable lua_getstack
    lua_gettable lua_gettop lua_getupvalue lua_insert lua_iscfunction lua_isnumber lua_isstring
    lua_isuserdata lua_isyieldable lua_lessthan lua_load lua_loadx lua_newstate lua_newthread
    lua_newuserdata lua_next lua_objlen lua_pcall lua_pushboolean lua_pushcclosure lua_pushfstring
    lua_pushinteger lua_pushlightuserdata lua_pushlstring lua_pushnil lua_pushnumber lua_pushstring
    lua_pushthread lua_pushvalue lua_pushvfstring lua_rawequal lua_rawget lua_rawgeti lua_rawset
    lua_rawseti lua_remove lua_replace lua_resume lua_setallocf lua_setfenv lua_setfield lua_sethook
    lua_setlocal lua_setmetatable lua_settable lua_settop lua_setupvalue lua_status lua_toboolean
    lua_tocfunction lua_tointeger lua_tointegerx lua_tolstring lua_tonumber lua_tonumberx
    lua_topointer lua_tothread lua_touserdata lua_type lua_typename lua_upvalueid lua_upvaluejoin
    lua_version lua_xmove lua_yield
    luaL_addlstring luaL_addstring luaL_addvalue luaL_argerror luaL_buffinit luaL_callmeta
    luaL_checkany luaL_checkinteger luaL_checklstring luaL_checknumber luaL_checkoption
    luaL_checkstack luaL_checktype luaL_checkudata luaL_error luaL_execresult luaL_fileresult
    luaL_findtable luaL_getmetafield luaL_gsub luaL_loadbuffer luaL_loadbufferx luaL_loadfile
    luaL_loadfilex luaL_loadstring luaL_newmetatable luaL_newstate luaL_openlib luaL_openlibs
    luaL_optinteger luaL_optlstring luaL_optnumber luaL_prepbuffer luaL_pushmodule luaL_pushresult
    luaL_ref luaL_register luaL_setfuncs luaL_setmetatable luaL_testudata luaL_traceback
    luaL_typerror luaL_unref luaL_where luaJIT_setmode
}

/// Offers the functions to all libraries opened after; returns the reason why that cannot be.
pub(crate) fn offer() -> Option<&'static CStr> {
    static REFUSED: OnceLock<Option<CString>> = OnceLock::new();
    REFUSED.get_or_init(|| opened().err()).as_deref()
}

fn opened() -> Result<(), CString> {
    let failed = |error: std::io::Error| CString::new(error.to_string()).unwrap_or_default();
    // SAFETY: the name is a C string; the new descriptor belongs to the file alone.
    let mut file = unsafe {
        match libc::memfd_create(c"lua".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => return Err(failed(std::io::Error::last_os_error())),
            descriptor => std::fs::File::from_raw_fd(descriptor),
        }
    };
    file.write_all(&library(&functions())).map_err(failed)?;
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default();
    // SAFETY: a library without code, which stays open if its symbols are right.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
        if library.is_null() {
            return Err(CStr::from_ptr(libc::dlerror()).to_owned());
        }
        if libc::dlsym(library, c"lua_gettop".as_ptr()).cast_const().cast()
            != lua_gettop as *const ()
        {
            libc::dlclose(library);
            return Err(c"the C library is not glibc 2.28 or later".to_owned());
        }
    }
    Ok(())
}

const HEADER: usize = 64;
const SEGMENT: usize = 56;
const ENTRY: usize = 16;
const SYMBOL: usize = 24;
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
const SHARED: u16 = 3;
const READ_WRITE: u32 = 6;
/// At least a page of any machine.
const ALIGNMENT: u64 = 0x1_0000;
const GLOBAL_FUNCTION: u8 = 0x12;
const SHN_ABS: u16 = 0xfff1;

/// An ELF library with these symbols: header, segments, dynamic section, symbols, hash table, names.
fn library(functions: &[(&str, u64)]) -> Vec<u8> {
    let (mut names, mut symbols) = (b"\0".to_vec(), vec![0; SYMBOL]);
    for (name, address) in functions {
        symbols.extend(word(names.len()).to_le_bytes());
        symbols.extend([GLOBAL_FUNCTION, 0]);
        symbols.extend(SHN_ABS.to_le_bytes());
        symbols.extend(address.to_le_bytes());
        symbols.extend(0_u64.to_le_bytes());
        names.extend(name.as_bytes());
        names.push(0);
    }
    let hash = hash_table(functions);
    let dynamic_at = HEADER + 3 * SEGMENT;
    let symbols_at = dynamic_at + 6 * ENTRY;
    let hash_at = symbols_at + symbols.len();
    let names_at = hash_at + hash.len();
    let bytes = (names_at + names.len()) as u64;
    let dynamic: [(u64, u64); 6] = [
        (4, hash_at as u64), // DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL
        (5, names_at as u64),
        (6, symbols_at as u64),
        (10, names.len() as u64),
        (11, SYMBOL as u64),
        (0, 0),
    ];
    let dynamic_bytes = (dynamic.len() * ENTRY) as u64;
    let mut library = header();
    // PT_LOAD, PT_DYNAMIC, PT_GNU_STACK: type, place, bytes, alignment. The loader writes into the
    // dynamic section.
    for (kind, place, bytes, alignment) in [
        (1_u32, 0, bytes, ALIGNMENT),
        (2, dynamic_at as u64, dynamic_bytes, 8),
        (0x6474_e551, 0, 0, 16),
    ] {
        library.extend(kind.to_le_bytes());
        library.extend(READ_WRITE.to_le_bytes());
        for field in [place, place, place, bytes, bytes, alignment] {
            library.extend(field.to_le_bytes());
        }
    }
    for (tag, value) in dynamic {
        library.extend(tag.to_le_bytes());
        library.extend(value.to_le_bytes());
    }
    [library, symbols, hash, names].concat()
}

/// The ELF header of a shared library for this machine, without sections.
fn header() -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    header.extend(SHARED.to_le_bytes());
    header.extend(MACHINE.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    for field in [0, HEADER as u64, 0] {
        header.extend(field.to_le_bytes()); // entry, segments, sections
    }
    header.extend(0_u32.to_le_bytes());
    for field in [HEADER as u16, SEGMENT as u16, 3, 0, 0, 0] {
        header.extend(field.to_le_bytes());
    }
    header
}

/// The table by which the loader finds a symbol: a single chain through all of them.
fn hash_table(functions: &[(&str, u64)]) -> Vec<u8> {
    let count = functions.len() + 1;
    let next = (0..count).map(|place| if place == 0 || place + 1 == count { 0 } else { place + 1 });
    let table = [1, count, 1].into_iter().chain(next); // a bucket, and where its chain begins
    table.flat_map(|number| word(number).to_le_bytes()).collect()
}

fn word(number: usize) -> u32 {
    u32::try_from(number).expect("some hundred names")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_find_the_functions_once_they_are_offered() {
        assert_eq!(offer(), None);
        for (name, address) in functions() {
            let name = CString::new(name).expect("no zero byte");
            // SAFETY: the name is a C string.
            let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            assert_eq!(place as u64, address, "{name:?}");
        }
    }
}
