//! `bulk_insert`: each event adds a row to an INSERT, which is sent when no further row fits.
//!
//! So most events send no request and take no time, and one of some 39,000 waits for the server.
//! Each connection fills its own table with the rows (1,1), (2,2) and so on. The INSERT under
//! construction is kept in the [`Event`], behind the packet being sent; the remainder after the
//! last event is sent at the end and belongs to no event.

use std::io::Write as _;

use super::statement::{TEXT_HEADER_LENGTH, begin_text, end_text};
use super::{Client, StatementText, Workload};
use crate::driver::Driver;
use crate::workload::event::{Event, Reply, StatementKind};

/// The name of the workload.
pub(super) const NAME: &str = "bulk_insert";
/// The longest statement, as in sysbench.
const STATEMENT_BYTES_MAX: usize = 524_288;

/// One row for each event.
pub(super) struct BulkInsert {
    driver: Driver,
    /// The number in the name of the first connection's table.
    first_table: u32,
}

impl BulkInsert {
    /// Today's workload: `sbtest1` and so on.
    pub(super) const fn new(driver: Driver) -> Self {
        Self { driver, first_table: 1 }
    }

    /// The script of before 1.0, with tables counted from 0.
    pub(super) const fn legacy() -> Self {
        Self { driver: Driver::Mysql, first_table: 0 }
    }

    fn begin(&self, client: u32, event: &mut Event) {
        begin_text(self.driver, &mut event.bytes);
        write!(event.bytes, "INSERT INTO sbtest{} VALUES", client + self.first_table)
            .expect("writing to memory does not fail");
    }

    fn close(&self, event: &mut Event) {
        end_text(self.driver, &mut event.bytes, 0);
        event.close_step(StatementKind::Inserts, Reply::Text);
    }
}

impl Workload for BulkInsert {
    fn statements(&self) -> &[StatementText] {
        &[]
    }

    fn fill(&self, client: &mut Client, event: &mut Event) {
        event.drop_closed();
        client.rows += 1;
        let number = client.rows;
        let mut room = [0; 24];
        let mut rest = &mut room[..];
        write!(rest, "({number},{number})").expect("two numbers of 10 digits fit");
        let left = rest.len();
        let row = &room[..room.len() - left];
        if is_full(event, row.len()) {
            self.close(event);
            self.begin(client.number, event);
        } else if event.bytes.is_empty() {
            self.begin(client.number, event);
        } else {
            event.bytes.push(b',');
        }
        event.bytes.extend_from_slice(row);
    }

    fn finish(&self, event: &mut Event) {
        event.drop_closed();
        if !event.bytes.is_empty() {
            self.close(event);
        }
    }
}

/// True if a row of this length, a comma and sysbench's byte for the end have no room any more.
fn is_full(event: &Event, row_length: usize) -> bool {
    let statement_length = event.bytes.len().saturating_sub(TEXT_HEADER_LENGTH);
    statement_length + row_length + 2 > STATEMENT_BYTES_MAX
}
