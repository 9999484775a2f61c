//! Session of the reference server: a thread reads a command, waits as scripted, and answers.

use std::collections::HashMap;
use std::io::{self, BufReader, Write};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use dbdyno_wire::mysql::capability;
use dbdyno_wire::mysql::command::Command;
use dbdyno_wire::mysql::parameter::{self, TypeCode};
use dbdyno_wire::mysql::response::ServerError;

use super::answer::Answers;
use super::script::Malformed;
use super::{MESSAGE_LENGTH_MAX, Shared, Statement, file, locked, login};
use crate::session::frame;
use crate::session::socket::Socket;

/// Size of a part of endless rows.
const ENDLESS_PART: usize = 64 * 1024;
/// Pause between slow rows.
const SLOW_PAUSE: Duration = Duration::from_millis(20);

struct Prepared {
    text: String,
    parameters: u16,
    types: Vec<TypeCode>,
}

struct Session<'a> {
    shared: &'a Shared,
    connection_id: u32,
    reader: BufReader<Socket>,
    writer: Socket,
    answers: Answers,
    prepared: HashMap<u32, Prepared>,
    prepared_count: u32,
}

/// Serves a client until it leaves.
pub(super) fn serve(shared: &Shared, connection_id: u32, socket: Socket) -> io::Result<()> {
    let mut writer = socket.try_clone()?;
    let mut reader = BufReader::new(socket);
    let Some(agreed) = login::accept(&shared.script, connection_id, &mut reader, &mut writer)?
    else {
        return Ok(());
    };
    let answers = Answers::new(agreed & capability::DEPRECATE_EOF != 0);
    let prepared = HashMap::new();
    Session { shared, connection_id, reader, writer, answers, prepared, prepared_count: 0 }.run()
}

/// Refuses a client before its login: the server is full.
pub(super) fn refuse(mut socket: Socket) -> io::Result<()> {
    let message = "Too many connections".to_owned();
    let mut out = Vec::new();
    ServerError::new(1040, *b"08004", message).write(&mut out, &mut 0);
    socket.write_all(&out)
}

impl Session<'_> {
    fn run(&mut self) -> io::Result<()> {
        let mut payload = Vec::new();
        while !self.shared.is_stopped() {
            frame::read_payload(&mut self.reader, &mut 0, MESSAGE_LENGTH_MAX, &mut payload)?;
            self.answers.out.clear();
            match Command::parse(&payload).map_err(io::Error::other)? {
                Command::Quit => return Ok(()),
                Command::Ping | Command::InitDb(_) | Command::Reset(_) => self.answers.ok(0),
                Command::Query(sql) => {
                    self.statement(None, &String::from_utf8_lossy(sql), Vec::new())?;
                }
                Command::Prepare(sql) => self.prepare(&String::from_utf8_lossy(sql)),
                Command::Execute(statement_id, bytes) => self.execute(statement_id, bytes)?,
                Command::Close(statement_id) => {
                    self.prepared.remove(&statement_id);
                }
                Command::Other(code) => {
                    let message = format!("the reference server knows no command {code}");
                    self.answers.error(1047, *b"08S01", message);
                }
            }
            self.answer()?;
        }
        Ok(())
    }

    fn answer(&mut self) -> io::Result<()> {
        let Some(pause) = self.shared.script.drip else {
            return self.writer.write_all(&self.answers.out);
        };
        for byte in self.answers.out.chunks(1) {
            self.writer.write_all(byte)?;
            thread::sleep(pause);
        }
        Ok(())
    }

    fn prepare(&mut self, text: &str) {
        self.prepared_count += 1;
        let parameters = text.bytes().filter(|&byte| byte == b'?').count() as u16;
        self.answers.prepared(self.prepared_count, text, parameters);
        let prepared = Prepared { text: text.to_owned(), parameters, types: Vec::new() };
        self.prepared.insert(self.prepared_count, prepared);
    }

    fn execute(&mut self, statement_id: u32, bytes: &[u8]) -> io::Result<()> {
        let Some(prepared) = self.prepared.get_mut(&statement_id) else {
            let message = format!("Unknown prepared statement handler ({statement_id})");
            self.answers.error(1243, *b"HY000", message);
            return Ok(());
        };
        let values = parameter::parse(bytes, prepared.parameters.into(), &mut prepared.types)
            .map_err(io::Error::other)?;
        let text = prepared.text.clone();
        self.statement(Some(statement_id), &text, values)
    }

    /// Waits as planned and encodes the answer.
    fn statement(
        &mut self,
        statement_id: Option<u32>,
        text: &str,
        parameters: Vec<parameter::Value>,
    ) -> io::Result<()> {
        let (shared, connection_id, arrived) = (self.shared, self.connection_id, Instant::now());
        let number = shared.statements.fetch_add(1, Ordering::SeqCst) + 1;
        if shared.script.die_after_statements.is_some_and(|last| number > last) {
            shared.die();
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let hangs_up = |every| number.is_multiple_of(every);
        if shared.script.hang_up_every_nth_statement.is_some_and(hangs_up) {
            self.writer.shut_down();
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if shared.script.log_statements {
            let text = text.to_owned();
            locked(&shared.log).push(Statement { connection_id, statement_id, text, parameters });
        }
        let due = shared.workers.due(arrived);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if let Some(work) = shared.script.work {
            work();
        }
        match self.refusal(text) {
            Some(error) => error.write(&mut self.answers.out, &mut 1),
            None if text.starts_with("LOAD DATA LOCAL") && shared.script.files.is_some() => {
                let plan = shared.script.files.expect("there is one");
                file::take(plan, text, &mut self.reader, &mut self.writer, &mut self.answers)?;
            }
            None => self.answers.statement(text, statement_id.is_some()),
        }
        let answering_ns = u64::try_from(arrived.elapsed().as_nanos()).unwrap_or(u64::MAX);
        shared.answering_ns.fetch_add(answering_ns, Ordering::SeqCst);
        shared.script.malformed.map_or(Ok(()), |kind| self.spoil(kind, statement_id.is_some()))
    }

    fn refusal(&self, text: &str) -> Option<ServerError> {
        let fail = self.shared.script.fail.as_ref()?;
        if fail.only_containing.as_ref().is_some_and(|part| !text.contains(part)) {
            return None;
        }
        let number = self.shared.failable.fetch_add(1, Ordering::SeqCst) + 1;
        let error = ServerError::new(fail.code, fail.sqlstate, fail.message.clone());
        number.is_multiple_of(fail.every_nth_statement.max(1)).then_some(error)
    }

    fn spoil(&mut self, malformed: Malformed, binary: bool) -> io::Result<()> {
        self.answers.spoil(malformed);
        match malformed {
            Malformed::BadSequence | Malformed::HugeLength => Ok(()),
            Malformed::Truncated => {
                self.writer.write_all(&self.answers.out)?;
                self.writer.shut_down();
                Err(io::ErrorKind::ConnectionAborted.into())
            }
            Malformed::Endless => self.send_rows_forever(binary, ENDLESS_PART, Duration::ZERO),
            Malformed::EndlessSlowly => self.send_rows_forever(binary, 1, SLOW_PAUSE),
        }
    }

    fn send_rows_forever(&mut self, binary: bool, part: usize, pause: Duration) -> io::Result<()> {
        self.answers.out.clear();
        let mut sequence = self.answers.open_rows();
        while !self.shared.is_stopped() {
            while self.answers.out.len() < part {
                sequence = self.answers.row(sequence, binary);
            }
            self.writer.write_all(&self.answers.out)?;
            self.answers.out.clear();
            thread::sleep(pause);
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}
