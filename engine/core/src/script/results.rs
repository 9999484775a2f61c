//! The results within a stored answer: a text of several statements has several.

use dbdyno_wire::mysql::packet::HEADER_LENGTH;
use dbdyno_wire::mysql::response;
use dbdyno_wire::mysql::result_set;
use dbdyno_wire::postgres::message;

/// A result within an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ResultSpan {
    /// Start of its first packet.
    pub(super) start: usize,
    /// Start of the first packet after it; 0 for the only result of an answer.
    pub(super) end: usize,
    pub(super) columns: usize,
    pub(super) rows: u64,
    pub(super) affected_rows: u64,
}

/// The result that begins at `start`. An answer may hold a million of them, so there is no list.
pub(super) fn result_at(reply: &[u8], start: usize, deprecate_eof: bool) -> Option<ResultSpan> {
    let (first, mut at) = packet(reply, start)?;
    if first.first() == Some(&response::OK) {
        let affected_rows = response::Ok::parse(first).ok()?.affected_rows;
        return Some(ResultSpan { start, end: at, affected_rows, ..ResultSpan::default() });
    }
    let columns = usize::try_from(result_set::parse_column_count(first).ok()?).ok()?;
    for _ in 0..columns + usize::from(!deprecate_eof) {
        at = packet(reply, at)?.1;
    }
    let mut result = ResultSpan { start, columns, ..ResultSpan::default() };
    loop {
        let (payload, next) = packet(reply, at)?;
        at = next;
        if response::ends_rows(*payload.first()?, payload.len(), deprecate_eof) {
            result.end = at;
            return Some(result);
        }
        result.rows += 1;
    }
}

/// PostgreSQL's result that begins at `start`: each command ends with its tag, after its rows.
pub(super) fn result_of_postgres_at(reply: &[u8], start: usize) -> Option<ResultSpan> {
    let mut result = ResultSpan { start, end: start, ..ResultSpan::default() };
    loop {
        let (kind, payload, next) = message_at(reply, result.end)?;
        result.end = next;
        match kind {
            b'T' => {
                let count = payload.first_chunk().map_or(0, |count| u16::from_be_bytes(*count));
                result.columns = usize::from(count);
            }
            b'D' => result.rows += 1,
            b'C' => {
                if result.columns == 0 {
                    let count = payload.strip_suffix(&[0]).unwrap_or(payload);
                    let last = count.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
                    let number = str::from_utf8(last).ok().and_then(|text| text.parse().ok());
                    result.affected_rows = number.unwrap_or_default();
                }
                return Some(result);
            }
            _ => {}
        }
    }
}

/// The next row of PostgreSQL's result that begins or goes on at `at`, and the start of the next
/// message.
pub(super) fn next_row(reply: &[u8], mut at: usize) -> Option<(&[u8], usize)> {
    loop {
        match message_at(reply, at)? {
            (b'D', payload, next) => return Some((payload, next)),
            (b'C' | b'Z', ..) => return None,
            (_, _, next) => at = next,
        }
    }
}

/// The number of columns in an answer with rows; PostgreSQL tells no names of a prepared statement's.
pub(super) fn columns_of_postgres(reply: &[u8]) -> Option<usize> {
    let (row, _) = next_row(reply, 0)?;
    row.first_chunk().map(|count| usize::from(u16::from_be_bytes(*count)))
}

/// Type and payload of PostgreSQL's message at `at`, and the start of the next.
fn message_at(bytes: &[u8], at: usize) -> Option<(u8, &[u8], usize)> {
    let &[kind, a, b, c, d] = bytes.get(at..)?.first_chunk()?;
    let next = (at + 1).checked_add(u32::from_be_bytes([a, b, c, d]) as usize)?;
    Some((kind, bytes.get(at + message::HEADER_LENGTH..next)?, next))
}

/// The payload of the packet at `at`, and the start of the next.
pub(super) fn packet(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let header = bytes.get(at..at + HEADER_LENGTH)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
    let next = at + HEADER_LENGTH + length;
    Some((bytes.get(at + HEADER_LENGTH..next)?, next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbdyno_wire::mysql::response::STATUS_MORE_RESULTS;

    /// All results of an answer.
    fn all(result_at: impl Fn(usize) -> Option<ResultSpan>) -> Vec<ResultSpan> {
        std::iter::successors(result_at(0), |result| result_at(result.end)).collect()
    }

    #[test]
    fn several_results_of_postgresql_are_told_apart() {
        let mut out = Vec::new();
        message::from_server(&mut out, b'T', b"\0\x01");
        message::from_server(&mut out, b'D', b"\0\x01\0\0\0\x01x");
        message::from_server(&mut out, b'C', b"SELECT 1\0");
        let second = out.len();
        message::from_server(&mut out, b'C', b"UPDATE 3\0");
        let end = out.len();
        message::from_server(&mut out, b'Z', b"I");
        let rows = ResultSpan { start: 0, end: second, columns: 1, rows: 1, affected_rows: 0 };
        let changed = ResultSpan { start: second, end, columns: 0, rows: 0, affected_rows: 3 };
        assert_eq!(all(|at| result_of_postgres_at(&out, at)), [rows, changed]);
        let (row, behind) = next_row(&out, 0).expect("a row");
        assert_eq!(message::row(row), Some(vec![Some(&b"x"[..])]));
        assert_eq!(next_row(&out, behind), None);
        assert_eq!(columns_of_postgres(&out), Some(1));
        assert_eq!(columns_of_postgres(&out[second..]), None);
        for end in 0..out.len() {
            assert!(all(|at| result_of_postgres_at(&out[..end], at)).len() <= 2);
        }
    }

    #[test]
    fn several_results_of_a_text_are_told_apart() {
        let (mut out, mut number) = (Vec::new(), 1);
        result_set::write_column_count(&mut out, &mut number, 1);
        result_set::write_column(&mut out, &mut number, "a");
        response::write_eof(&mut out, &mut number, 2);
        result_set::write_text_row(&mut out, &mut number, &[Some(b"x")]);
        result_set::write_text_row(&mut out, &mut number, &[None]);
        response::write_eof(&mut out, &mut number, 2 | STATUS_MORE_RESULTS);
        let second = out.len();
        let ok = response::Ok { affected_rows: 3, status: 2, ..response::Ok::default() };
        ok.write(&mut out, &mut number);
        let end = out.len();
        let rows = ResultSpan { start: 0, end: second, columns: 1, rows: 2, affected_rows: 0 };
        let changed = ResultSpan { start: second, end, columns: 0, rows: 0, affected_rows: 3 };
        assert_eq!(all(|at| result_at(&out, at, false)), [rows, changed]);
        for end in 0..out.len() {
            assert!(all(|at| result_at(&out[..end], at, false)).len() < 2);
        }
    }
}
