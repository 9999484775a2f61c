#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dbdyno_fuzz::wire::response(bytes));
