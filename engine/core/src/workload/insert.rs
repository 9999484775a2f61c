//! `oltp_insert`: a row at the end of a table, or with a drawn id.
//!
//! sysbench never prepares this statement, in any `--db-ps-mode`, and neither do we.

use super::options::Options;
use super::statement::Statement;
use super::{Client, StatementText, Workload, WorkloadSpec};
use crate::driver::Driver;
use crate::random::{C_FORMAT, GlibcRandom, PAD_FORMAT, Random, Sampler, UniqueSequence};
use crate::workload::event::{Event, StatementKind};
use dbdyno_wire::mysql::command::Parameter;

/// The name of the workload.
pub(super) const NAME: &str = "oltp_insert";

/// One INSERT for each event.
pub(super) struct Insert {
    statements: Vec<Statement>,
    tables: u32,
    k: Sampler,
    /// The source of ids, shared by all connections; with `auto_inc` the server numbers the rows.
    ids: Option<UniqueSequence>,
    /// True to send rows without an id: PostgreSQL takes 0 for a number like any other.
    leaves_id_out: bool,
}

/// The statement for a server that numbers rows only if the number is left out.
const WITHOUT_ID: &str = "INSERT INTO sbtest{} (k, c, pad) VALUES (?, ?, ?)";

impl Insert {
    pub(super) fn new(spec: &WorkloadSpec, options: &Options) -> Self {
        let (driver, kind) = (spec.driver, StatementKind::Inserts);
        let leaves_id_out = driver == Driver::Pgsql && options.auto_inc;
        let insert = |table: u32| {
            if leaves_id_out {
                return Statement::of(driver, kind, &WITHOUT_ID.replace("{}", &table.to_string()));
            }
            Statement::new(driver, kind, table)
        };
        Self {
            statements: (1..=options.tables).map(insert).collect(),
            tables: options.tables,
            k: spec.distribution.over(1, options.table_size),
            ids: (!options.auto_inc).then(|| sequence_of_sysbench(spec)),
            leaves_id_out,
        }
    }
}

/// Starts the sequence at the same place in every process: sysbench seeds it from the C library
/// before `--rand-seed` is heeded, after the four values of the main thread. Each of several
/// generators has its part of it.
pub(super) fn sequence_of_sysbench(spec: &WorkloadSpec) -> UniqueSequence {
    let mut libc_random = GlibcRandom::new(1);
    let _main_thread = Random::from_glibc(&mut libc_random);
    UniqueSequence::from_glibc(&mut libc_random).every(spec.own.first, spec.own.step)
}

impl Workload for Insert {
    fn statements(&self) -> &[StatementText] {
        &[]
    }

    fn fill(&self, client: &mut Client, event: &mut Event) {
        let random = &mut client.random;
        event.clear();
        let table = random.uniform(1, self.tables) as usize;
        let k = i64::from(self.k.draw(random));
        let (mut c, mut pad) = (*C_FORMAT, *PAD_FORMAT);
        random.fill_string(C_FORMAT, &mut c);
        random.fill_string(PAD_FORMAT, &mut pad);
        // 0 asks the server for the next number; the others fill the range of a signed integer.
        let id = self.ids.as_ref().map_or(0, |ids| i64::from(ids.draw()) - 2_147_483_648);
        let row = [
            Parameter::BigInt(id),
            Parameter::BigInt(k),
            Parameter::Text(&c),
            Parameter::Text(&pad),
        ];
        let row = if self.leaves_id_out { &row[1..] } else { &row[..] };
        self.statements[table - 1].query(row, event);
        random.end_event();
    }
}
