//! Any command and any parameters: the server's end refuses or understands, and never panics.
#![no_main]

use dbdyno_wire::mysql::command::Command;
use dbdyno_wire::mysql::parameter;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, Vec<[u8; 2]>, Vec<u8>)| {
    let (count, mut types, bytes) = input;
    if let Ok(Command::Execute(_, rest)) = Command::parse(&bytes) {
        let _ = parameter::parse(rest, count.into(), &mut types);
    }
    let _ = parameter::parse(&bytes, count.into(), &mut types);
});
