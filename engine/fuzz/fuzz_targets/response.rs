//! Any payload: each reader of an answer refuses or understands, and never panics.
#![no_main]

use dbdyno_wire::mysql::{local_infile::FileRequest, response, result_set};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, Vec<u8>)| {
    let (columns, bytes) = input;
    let _ = (response::Ok::parse(&bytes), response::parse_eof(&bytes));
    let _ = (response::ServerError::parse(&bytes), response::PrepareOk::parse(&bytes));
    let _ = result_set::parse_column_count(&bytes);
    let _ = result_set::parse_text_row(&bytes, columns.into());
    let _ = FileRequest::parse(&bytes).map(|request| request.is_for("rows"));
});
