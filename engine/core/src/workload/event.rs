//! An event (a sysbench "transaction") as request packets, ready to send.
//!
//! A workload fills an [`Event`] completely before its first packet is sent: all random numbers are
//! drawn, all parameters encoded. The worker then only sends a packet, waits for its reply and
//! sends the next. So drawing and encoding take no time between two statements, the buffers are not
//! allocated again once they have grown, and the worker knows no SQL.

use dbdyno_wire::mysql::scanner::ReplyShape;

/// Declares the kinds of statements with their names, in a list.
macro_rules! statement_kinds {
    ($($(#[$about:meta])* $kind:ident = $name:literal,)*) => {
        /// Kind of a statement, in sysbench's vocabulary; each kind has a latency histogram.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum StatementKind { $($(#[$about])* $kind,)* }

        impl StatementKind {
            /// Every kind, in the order of its discriminant.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// The name used in records and reports: sysbench's option of the same meaning.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

statement_kinds! {
    /// `BEGIN`
    Begin = "begin",
    /// `COMMIT`
    Commit = "commit",
    /// `SELECT c FROM sbtestN WHERE id=?`
    PointSelects = "point_selects",
    /// `SELECT c … BETWEEN ? AND ?`
    SimpleRanges = "simple_ranges",
    /// `SELECT SUM(k) … BETWEEN ? AND ?`
    SumRanges = "sum_ranges",
    /// `SELECT c … ORDER BY c`
    OrderRanges = "order_ranges",
    /// `SELECT DISTINCT c … ORDER BY c`
    DistinctRanges = "distinct_ranges",
    /// `UPDATE … SET k=k+1`
    IndexUpdates = "index_updates",
    /// `UPDATE … SET c=?`
    NonIndexUpdates = "non_index_updates",
    /// `DELETE FROM … WHERE id=?`
    Deletes = "deletes",
    /// `INSERT INTO …`
    Inserts = "inserts",
    /// `SELECT id, k, c, pad … WHERE k IN (?, …)`
    RandomPoints = "random_points",
    /// `SELECT count(k) … WHERE k BETWEEN ? AND ? OR …`
    RandomRanges = "random_ranges",
    /// A `ROLLBACK` sent by the engine itself after an error.
    Rollback = "rollback",
    /// A script's text statement.
    Query = "query",
    /// A script's prepared statement.
    Execute = "execute",
}

/// Shape of the reply to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The reply of `COM_QUERY`: rows are text.
    Text,
    /// The reply of `COM_STMT_EXECUTE`: rows are binary.
    Binary,
    /// The reply of `COM_STMT_PREPARE`, not counted as a statement.
    Prepare,
    /// The reply of the engine's own ROLLBACK, not counted as a statement.
    Rollback,
}

impl Reply {
    /// True if it is the reply of a counted statement.
    #[inline]
    #[must_use]
    pub const fn is_counted(self) -> bool {
        matches!(self, Self::Text | Self::Binary)
    }
}

impl From<Reply> for ReplyShape {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Text | Reply::Rollback => Self::Text,
            Reply::Binary => Self::Binary,
            Reply::Prepare => Self::Prepare,
        }
    }
}

/// A statement of an event: its request packet ends at `end` in [`Event::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// End of this packet in the event's bytes; it begins at the end of the step before.
    pub end: u32,
    /// Kind of the statement.
    pub kind: StatementKind,
    /// The shape of its reply.
    pub reply: Reply,
}

/// The packets of an event, in order; reused from event to event.
#[derive(Debug, Default)]
pub struct Event {
    /// All packets in sequence, headers included. Bytes behind the last step are the beginning of a
    /// later event's packet.
    pub bytes: Vec<u8>,
    /// End and kind of each packet.
    pub steps: Vec<Step>,
}

impl Event {
    /// Removes the packets, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.steps.clear();
    }

    /// Closes the packet just appended to `bytes`.
    ///
    /// # Panics
    /// An event holds more than 4 GiB of packets, which no workload makes.
    pub fn close_step(&mut self, kind: StatementKind, reply: Reply) {
        let end = u32::try_from(self.bytes.len()).expect("an event is far below 4 GiB");
        self.steps.push(Step { end, kind, reply });
    }

    /// Removes the closed packets; a packet still open moves to the beginning.
    pub fn drop_closed(&mut self) {
        let closed = self.steps.last().map_or(0, |step| step.end as usize);
        self.bytes.drain(..closed);
        self.steps.clear();
    }

    /// The packet of step `index`.
    #[must_use]
    pub fn packet(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.steps[index - 1].end as usize };
        &self.bytes[start..self.steps[index].end as usize]
    }
}
