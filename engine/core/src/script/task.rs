//! Memory shared by a script's thread and the engine: the structures of lua/prelude.lua.
//!
//! [`Task`] is written by Lua and read here, field by field and without conversion, so a statement
//! costs no Lua value at all. Its layout is C's; the declaration in prelude.lua must be the same.

use crate::error::ErrorCode;
use crate::record::recorder::Answer;
use dbdyno_wire::postgres::message;
use std::ffi::c_char;
use std::slice;

/// A script's request to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Connect,
    Reconnect,
    Query,
    Prepare,
    Execute,
    Close,
    Ready,
    NextEvent,
    Restart,
    Sleep,
    StartEvent,
    StopEvent,
    NextResult,
}

impl Op {
    const ALL: [Self; 13] = [
        Self::Connect,
        Self::Reconnect,
        Self::Query,
        Self::Prepare,
        Self::Execute,
        Self::Close,
        Self::Ready,
        Self::NextEvent,
        Self::Restart,
        Self::Sleep,
        Self::StartEvent,
        Self::StopEvent,
        Self::NextResult,
    ];
}

/// A request of the script and its answer.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Task {
    op: u32,
    /// Nonzero if another event is to begin.
    pub(super) goes_on: u32,
    /// Nonzero if the event just ended counts.
    pub(super) completed: u32,
    /// Number of the connection in the loop; 0 without.
    pub(super) looped: u32,
    pub(super) uses_database: u32,
    /// 0 while `thread_init` runs, 1 for events, 2 for `thread_done`.
    pub(super) phase: u32,
    pub(super) connection: *mut SqlConnection,
    pub(super) statement: *mut SqlStatement,
    text: *const u8,
    text_len: u64,
    /// Microseconds to sleep.
    pub(super) number: f64,
    pub(super) failed: u32,
    pub(super) affected_rows: u64,
    pub(super) last_insert_id: u64,
    pub(super) rows: u64,
    pub(super) columns: u32,
    /// Results of the last text not taken yet.
    pub(super) more_results: u32,
    /// Number of a connection in the loop closed by the script; 0 without.
    pub(super) parted: u32,
    /// The script's name for the running event, by its number from 1; 0 without a name.
    pub(super) kind: u32,
}

impl Task {
    pub(super) fn new() -> Self {
        Self {
            op: 0,
            goes_on: 0,
            completed: 0,
            looped: 0,
            uses_database: 0,
            phase: 0,
            connection: std::ptr::null_mut(),
            statement: std::ptr::null_mut(),
            text: std::ptr::null(),
            text_len: 0,
            number: 0.0,
            failed: 0,
            affected_rows: 0,
            last_insert_id: 0,
            rows: 0,
            columns: 0,
            more_results: 0,
            parted: 0,
            kind: 0,
        }
    }

    /// Requests the execution of a prepared statement.
    pub(super) fn execute(&mut self, statement: *mut SqlStatement) {
        (self.op, self.statement) = (Op::Execute as u32 + 1, statement);
    }

    /// Requests the closing of a prepared statement.
    pub(super) fn close(&mut self, statement: *mut SqlStatement) {
        self.execute(statement);
        self.op = Op::Close as u32 + 1;
    }

    /// Sets a request on a connection.
    pub(super) fn ask(
        &mut self,
        op: u32,
        connection: *mut SqlConnection,
        statement: *mut SqlStatement,
        (text, length): (*const u8, u64),
    ) {
        (self.op, self.connection, self.statement) = (op, connection, statement);
        (self.text, self.text_len) = (text, length);
    }

    /// Sets a request to the loop.
    pub(super) fn wait(&mut self, op: u32, microseconds: f64) {
        (self.op, self.number) = (op, microseconds);
    }

    /// The requested operation; `None` for an unknown number.
    pub(super) fn op(&self) -> Option<Op> {
        Op::ALL.get(self.op.checked_sub(1)? as usize).copied()
    }

    /// The text of a query, or of a statement to be prepared.
    pub(super) fn text(&self) -> &[u8] {
        if self.text.is_null() {
            return &[];
        }
        // SAFETY: Lua has just set both from one of its strings, which the calling function holds
        // until the answer; the text is not used longer.
        unsafe { slice::from_raw_parts(self.text, length(self.text_len)) }
    }
}

/// A script's connection, as the script sees it.
#[repr(C)]
pub(super) struct SqlConnection {
    pub(super) error: u32,
    pub(super) sql_errno: i32,
    pub(super) sql_state: *const c_char,
    pub(super) sql_errmsg: *const c_char,
    /// From 1; 0 without a session.
    pub(super) number: u32,
    pub(super) is_open: u32,
    /// Counts its sessions; statements prepared by an earlier session cannot be executed.
    pub(super) session: u32,
}

/// The result of a connection's last answer, as the script sees it.
#[repr(C)]
#[derive(Default)]
pub(super) struct SqlResult {
    pub(super) counter: u32,
    pub(super) nrows: u32,
    pub(super) nfields: u32,
    pub(super) is_live: u32,
    pub(super) number: u32,
}

/// A prepared statement, as the script sees it.
#[repr(C)]
pub(super) struct SqlStatement {
    pub(super) connection: *mut SqlConnection,
    /// The connection's number.
    pub(super) on: u32,
    pub(super) id: u32,
    number: u32,
    bound: u32,
    /// The connection's session that prepared it; 0 once it is closed.
    pub(super) session: u32,
    binds: *const *const SqlParam,
}

/// A parameter.
#[repr(C)]
pub(super) struct SqlParam {
    kind: u32,
    is_null: u32,
    integer: i64,
    real: f64,
    data_len: u32,
    max_len: u32,
    /// Buffer of `max_len` bytes; null for a number.
    text: *mut u8,
}

impl SqlParam {
    pub(super) fn set_null(&mut self) {
        self.is_null = 1;
    }

    pub(super) fn set_integer(&mut self, value: i64) {
        (self.is_null, self.integer) = (0, value);
    }

    pub(super) fn set_real(&mut self, value: f64) {
        (self.is_null, self.real) = (0, value);
    }

    /// Makes room for a text of this length, cut to the parameter's; returns the buffer.
    pub(super) fn text_of(&mut self, length: usize) -> &mut [u8] {
        self.is_null = 0;
        self.data_len = self.max_len.min(u32::try_from(length).unwrap_or(u32::MAX));
        if self.text.is_null() {
            return &mut [];
        }
        // SAFETY: `bind_create` allocates `max_len` bytes there, which live as long as the
        // parameter.
        unsafe { slice::from_raw_parts_mut(self.text, self.data_len as usize) }
    }
}

const FLOAT: u32 = 5;
const DOUBLE: u32 = 6;

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
}

impl SqlStatement {
    /// Binds `count` parameters; the array must live until others are bound or the statement is
    /// closed.
    pub(super) fn bind(&mut self, binds: *const *const SqlParam, count: u32) {
        (self.binds, self.bound) = (binds, count);
    }

    /// The bound parameters, in their order.
    fn params(&self) -> &[*const SqlParam] {
        if self.binds.is_null() {
            return &[];
        }
        // SAFETY: `bind_param` allocates this array with `bound` elements and holds it, with the
        // parameters, as long as the statement.
        unsafe { slice::from_raw_parts(self.binds, self.bound as usize) }
    }

    /// The bound values.
    pub(super) fn values(&self) -> impl Iterator<Item = Bound<'_>> {
        self.params().iter().map(|&param| {
            // SAFETY: see above; a parameter from a script was made by `bind_create`.
            unsafe { value_of(param) }
        })
    }

    /// The parameters' types, as sysbench gives them to PostgreSQL.
    pub(super) fn types(&self) -> Vec<u32> {
        let type_of = |&param: &*const SqlParam| {
            // SAFETY: as for the values.
            let one = unsafe { &*param };
            if one.max_len > 0 {
                message::VARCHAR
            } else if matches!(one.kind, FLOAT | DOUBLE) {
                message::FLOAT8
            } else {
                message::INT8
            }
        };
        self.params().iter().map(type_of).collect()
    }
}

/// # Safety
/// `param` was made by `bind_create`, and is not written to while the value lives.
unsafe fn value_of<'a>(param: *const SqlParam) -> Bound<'a> {
    // SAFETY: the caller guarantees it.
    let one = unsafe { &*param };
    if one.is_null != 0 {
        Bound::Null
    } else if one.max_len > 0 {
        // SAFETY: `text` has `max_len` bytes, of which `data_len` are set.
        let text = unsafe { slice::from_raw_parts(one.text, one.data_len as usize) };
        Bound::Text(text)
    } else if one.kind == FLOAT || one.kind == DOUBLE {
        Bound::Real(one.real)
    } else {
        Bound::Integer(one.integer)
    }
}

pub(super) fn length(bytes: u64) -> usize {
    usize::try_from(bytes).expect("addresses have 64 bits")
}

/// An action of a script outside the loop, or a count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Happened {
    pub(crate) asked_ns: u64,
    pub(crate) done_ns: u64,
    pub(crate) what: Happening,
}

/// Kind of a [`Happened`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Happening {
    /// A statement was answered; true for a prepared statement.
    Answered(Answer, bool),
    /// The server refused a request, with this code.
    Refused(ErrorCode),
    /// A session was replaced by another.
    Reconnected,
    /// The script added to a counter: its number in `sb_counter_type`, and the amount.
    Counted(u32, u64),
}
