//! The null responder as a program (`reference/null`): a MySQL server that holds very many sessions
//! and answers at once, without data.
//!
//! `null_responder [--socket PATH] [--sessions N]` prints its addresses as a line of JSON and
//! serves until its standard input is closed, so it never outlives its parent.

use dbdyno_core::driver::Driver;
use dbdyno_core::opening::limits::file_tables_for;
use dbdyno_core::reference::NullResponder;
use dbdyno_core::system::unshare_file_table;
use std::io::{Read, Write};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut socket, mut sessions) = (None, 50_000);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} wants a value"))?;
        match word.as_str() {
            "--socket" => socket = Some(PathBuf::from(value)),
            "--sessions" => sessions = value.parse()?,
            _ => return Err(format!("{word}? known are --socket, --sessions").into()),
        }
    }
    let tables = file_tables_for(sessions)?;
    let responder = NullResponder::bind(Driver::Mysql, socket.as_deref())?;
    let port = responder.port();
    let told = serde_json::json!({"host": "127.0.0.1", "port": port, "socket": socket});
    writeln!(std::io::stdout(), "{told}")?;
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    for _ in 1..tables {
        let sibling = responder.sibling()?;
        std::thread::spawn(move || {
            // SAFETY: the sibling was opened before, and the thread's own descriptors stay in it.
            let own_table = unsafe { unshare_file_table() };
            if let Err(error) = own_table.and_then(|()| serve(sibling)) {
                let _ = writeln!(std::io::stderr(), "a thread of the responder ended: {error}");
            }
        });
    }
    Ok(serve(responder)?)
}

fn serve(mut responder: NullResponder) -> std::io::Result<()> {
    loop {
        responder.serve(-1)?;
    }
}
