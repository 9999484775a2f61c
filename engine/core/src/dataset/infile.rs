//! Rows as lines for `LOAD DATA LOCAL INFILE` or `COPY`, which spares the server the parsing of
//! SQL.

use super::rows::{Chunk, Form, Rows};
use crate::driver::Driver;
use crate::session::FILE_NAME;

/// Size at which a part of the rows is sent.
const PART_BYTES: usize = 64 * 1024;
/// Default format of both statements.
const FORM: Form = Form {
    begin: b"",
    between_numbers: b"\t",
    before_text: b"\t",
    between_texts: b"\t",
    end: b"\n",
};

/// Verb and text of the statement. MySQL reads the rows as `binary`: they are ASCII and need no
/// conversion.
pub(super) fn statement(driver: Driver, chunk: &Chunk) -> (&'static str, String) {
    let table = chunk.table_name();
    match driver {
        Driver::Mysql => {
            let how = "CHARACTER SET binary (id, k, c, pad)";
            ("LOAD DATA", format!("LOAD DATA LOCAL INFILE '{FILE_NAME}' INTO TABLE {table} {how}"))
        }
        Driver::Pgsql => ("COPY", format!("COPY {table} (id, k, c, pad) FROM STDIN")),
    }
}

/// Appends the next part of the rows; returns their number, 0 at the end.
pub(super) fn write_part(rows: &mut Rows<'_>, out: &mut Vec<u8>) -> u64 {
    let (begin, mut written) = (out.len(), 0);
    while out.len() - begin < PART_BYTES && rows.write_next(&FORM, out).is_some() {
        written += 1;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::{PART_BYTES, statement, write_part};
    use crate::dataset::Layout;
    use crate::dataset::rows::Chunk;
    use crate::driver::Driver;
    use crate::random::Distribution;

    #[test]
    fn a_chunk_is_a_line_for_each_row_in_parts_of_some_length() {
        let k = Distribution::Uniform {}.over(1, 1000);
        let chunk = Chunk::new(Layout::Oltp, 3, 0, 1000);
        let mut rows = chunk.rows(1, &k);
        let (mut text, mut counts) = (Vec::new(), Vec::new());
        loop {
            let before = text.len();
            let count = write_part(&mut rows, &mut text);
            if count == 0 {
                break;
            }
            assert!(text.len() - before < PART_BYTES + 256);
            counts.push(count);
        }
        assert!(counts.len() > 2);
        assert_eq!(counts.iter().sum::<u64>(), 1000);
        let text = String::from_utf8(text).expect("text");
        for (number, line) in text.lines().enumerate() {
            let values: Vec<&str> = line.split('\t').collect();
            assert_eq!((values.len(), values[0]), (4, (number + 1).to_string().as_str()));
            assert_eq!((values[2].len(), values[3].len()), (119, 59));
        }
        assert_eq!(statement(Driver::Pgsql, &chunk).1, "COPY sbtest3 (id, k, c, pad) FROM STDIN");
        assert_eq!(
            statement(Driver::Mysql, &chunk).1,
            "LOAD DATA LOCAL INFILE 'rows made by dbdyno' INTO TABLE sbtest3 CHARACTER SET binary \
             (id, k, c, pad)"
        );
    }
}
