//! The scanner against replies written by the other end of the protocol, whole and cut at any
//! place.

use dbdyno_wire::mysql::packet::{self, PAYLOAD_LENGTH_MAX, begin_packet, end_packet};
use dbdyno_wire::mysql::response::{Ok as OkPacket, PrepareOk, STATUS_MORE_RESULTS, write_eof};
use dbdyno_wire::mysql::result_set;
use dbdyno_wire::mysql::scanner::{Outcome, ReplyShape, ScanError, Scanner, ServerError, Summary};
use proptest::prelude::*;

/// A reply and its expected outcome.
#[derive(Clone, Debug)]
struct Sample {
    shape: ReplyShape,
    deprecate_eof: bool,
    bytes: Vec<u8>,
    outcome: Outcome,
}

fn done(affected_rows: u64, rows: u64, columns: u64, bytes: &[u8]) -> Outcome {
    several(1, affected_rows, rows, columns, bytes)
}

fn several(results: u32, affected_rows: u64, rows: u64, columns: u64, bytes: &[u8]) -> Outcome {
    let bytes = bytes.len() as u64;
    Outcome::Done(Summary { affected_rows, last_insert_id: 0, rows, columns, results, bytes })
}

fn deadlock() -> ServerError {
    ServerError::new(1213, *b"40001", "Deadlock found".into())
}

struct Writer {
    out: Vec<u8>,
    sequence: u8,
    deprecate_eof: bool,
}

impl Writer {
    fn new(deprecate_eof: bool) -> Self {
        Self { out: Vec::new(), sequence: 1, deprecate_eof }
    }

    fn ok(&mut self, affected_rows: u64, status: u16) {
        OkPacket { affected_rows, status, ..OkPacket::default() }
            .write(&mut self.out, &mut self.sequence);
    }

    fn definitions(&mut self, count: usize) {
        for _ in 0..count {
            result_set::write_column(&mut self.out, &mut self.sequence, "c");
        }
        if count > 0 && !self.deprecate_eof {
            write_eof(&mut self.out, &mut self.sequence, 2);
        }
    }

    fn rows(&mut self, shape: ReplyShape, rows: &[Vec<u8>], columns: usize) {
        result_set::write_column_count(&mut self.out, &mut self.sequence, columns as u64);
        self.definitions(columns);
        for row in rows {
            let values = vec![Some(&row[..]); columns];
            if shape == ReplyShape::Binary {
                result_set::write_binary_row(&mut self.out, &mut self.sequence, &values);
            } else {
                result_set::write_text_row(&mut self.out, &mut self.sequence, &values);
            }
        }
    }

    fn end(&mut self, status: u16) {
        OkPacket { status, ..OkPacket::default() }.write_end(
            &mut self.out,
            &mut self.sequence,
            self.deprecate_eof,
        );
    }
}

fn result_set_sample(
    shape: ReplyShape,
    deprecate_eof: bool,
    rows: &[Vec<u8>],
    columns: usize,
    fails: bool,
) -> Sample {
    let mut writer = Writer::new(deprecate_eof);
    writer.rows(shape, rows, columns);
    let outcome = if fails {
        deadlock().write(&mut writer.out, &mut writer.sequence);
        Outcome::Failed(deadlock())
    } else {
        writer.end(2);
        done(0, rows.len() as u64, columns as u64, &writer.out)
    };
    Sample { shape, deprecate_eof, bytes: writer.out, outcome }
}

fn prepare_sample(deprecate_eof: bool, parameters: u16, columns: u16) -> Sample {
    let mut writer = Writer::new(deprecate_eof);
    let ok = PrepareOk { statement_id: 77, columns, parameters };
    ok.write(&mut writer.out, &mut writer.sequence);
    writer.definitions(parameters.into());
    writer.definitions(columns.into());
    let outcome = several(0, 0, 0, columns.into(), &writer.out);
    Sample { shape: ReplyShape::Prepare, deprecate_eof, bytes: writer.out, outcome }
}

fn samples() -> impl Strategy<Value = Sample> {
    let shape = prop_oneof![Just(ReplyShape::Text), Just(ReplyShape::Binary)];
    let row = prop::collection::vec(any::<u8>(), 0..300);
    let results =
        (shape, any::<bool>(), prop::collection::vec(row, 0..40), 1_usize..4, any::<bool>())
            .prop_map(|(shape, deprecate_eof, rows, columns, fails)| {
                result_set_sample(shape, deprecate_eof, &rows, columns, fails)
            });
    let prepares = (any::<bool>(), 0_u16..4, 0_u16..4)
        .prop_map(|(eof, parameters, columns)| prepare_sample(eof, parameters, columns));
    prop_oneof![3 => results, 1 => prepares]
}

/// Feeds the sample's bytes in pieces, with the lengths in `cuts` repeated.
fn feed(sample: &Sample, cuts: &[usize]) -> Result<Option<Outcome>, ScanError> {
    let mut scanner = Scanner::new(sample.deprecate_eof);
    scanner.begin(sample.shape);
    let mut rest = &sample.bytes[..];
    let mut cuts = cuts.iter().cycle();
    while !rest.is_empty() {
        let length = cuts.next().map_or(rest.len(), |&cut| cut.min(rest.len()));
        let (now, later) = rest.split_at(length);
        rest = later;
        match scanner.feed(now)? {
            Some(outcome) if rest.is_empty() => return Ok(Some(outcome)),
            Some(outcome) => panic!("{outcome:?} came before the end"),
            None => {}
        }
    }
    Ok(None)
}

fn check(sample: &Sample) {
    assert_eq!(feed(sample, &[]), Ok(Some(sample.outcome.clone())), "whole");
    assert_eq!(feed(sample, &[1]), Ok(Some(sample.outcome.clone())), "byte by byte");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_cut_gives_the_same_outcome(
        sample in samples(),
        cuts in prop::collection::vec(1_usize..200, 1..8),
    ) {
        check(&sample);
        prop_assert_eq!(feed(&sample, &cuts), Ok(Some(sample.outcome.clone())));
    }

    /// From 4 bytes on: a cut header is not refused yet.
    #[test]
    fn a_packet_after_the_end_is_refused(sample in samples(), more in 4_usize..9) {
        let mut longer = sample.clone();
        longer.bytes.extend(vec![0; more]);
        prop_assert_eq!(feed(&longer, &[]), Err(ScanError::Trailing { count: more }));
    }

    #[test]
    fn a_wrong_sequence_number_is_refused(sample in samples()) {
        let mut wrong = sample;
        wrong.bytes[3] = 9;
        let expected = Err(ScanError::Sequence { expected: 1, found: 9 });
        prop_assert_eq!(feed(&wrong, &[]), expected.clone());
        prop_assert_eq!(feed(&wrong, &[1]), expected);
    }
}

#[test]
fn an_ok_gives_the_affected_rows_and_the_key_of_an_insert() {
    let mut writer = Writer::new(true);
    let ok = OkPacket { affected_rows: 300, last_insert_id: 70_000, status: 2, warnings: 0 };
    ok.write(&mut writer.out, &mut writer.sequence);
    let bytes = writer.out.len() as u64;
    let outcome = Outcome::Done(Summary {
        affected_rows: 300,
        last_insert_id: 70_000,
        results: 1,
        bytes,
        ..Summary::default()
    });
    check(&Sample { shape: ReplyShape::Text, deprecate_eof: true, bytes: writer.out, outcome });
}

#[test]
fn several_results_are_one_reply() {
    let mut writer = Writer::new(true);
    writer.rows(ReplyShape::Text, &[b"a".to_vec(), b"b".to_vec()], 1);
    writer.end(2 | STATUS_MORE_RESULTS);
    writer.ok(4, 2 | STATUS_MORE_RESULTS);
    writer.rows(ReplyShape::Text, &[b"c".to_vec()], 2);
    writer.end(2 | STATUS_MORE_RESULTS);
    writer.ok(1, 2);
    let outcome = several(4, 5, 3, 0, &writer.out);
    check(&Sample { shape: ReplyShape::Text, deprecate_eof: true, bytes: writer.out, outcome });
}

#[test]
fn a_row_of_several_packets_is_one_row() {
    for deprecate_eof in [true, false] {
        for length in [PAYLOAD_LENGTH_MAX - 9, PAYLOAD_LENGTH_MAX + 10] {
            let rows = [vec![1; length], b"short".to_vec()];
            let sample = result_set_sample(ReplyShape::Text, deprecate_eof, &rows, 1, false);
            assert_eq!(feed(&sample, &[]), Ok(Some(sample.outcome.clone())));
            assert_eq!(feed(&sample, &[16_384]), Ok(Some(sample.outcome.clone())));
        }
    }
}

#[test]
fn sequence_numbers_wrap() {
    let rows = vec![b"row".to_vec(); 600];
    check(&result_set_sample(ReplyShape::Text, true, &rows, 1, false));
}

#[test]
fn a_scanner_follows_one_reply_after_another() {
    let mut scanner = Scanner::new(true);
    for sample in
        [prepare_sample(true, 1, 1), result_set_sample(ReplyShape::Binary, true, &[], 1, true)]
    {
        scanner.begin(sample.shape);
        assert_eq!(scanner.feed(&sample.bytes), Ok(Some(sample.outcome)));
    }
    assert_eq!(scanner.statement_id(), 77);
    assert_eq!(scanner.feed(&[]), Ok(None));
    assert_eq!(scanner.feed(&[1, 0, 0, 0, 0]), Err(ScanError::Trailing { count: 5 }));
}

/// ERR 4031 as packet number 0: the last words of MySQL 8 to a session idle for too long.
const DISCONNECTED: &[u8] = b"\x0b\0\0\0\xff\xbf\x0f#HY000go";

#[test]
fn the_last_words_of_a_server_are_no_part_of_a_reply() {
    let mut shut_down = DISCONNECTED.to_vec();
    shut_down[3] = 7;
    for sample in [
        prepare_sample(true, 1, 1),
        result_set_sample(ReplyShape::Text, true, &[b"row".to_vec()], 1, false),
        result_set_sample(ReplyShape::Binary, false, &[], 1, true),
    ] {
        for last_words in [DISCONNECTED, &shut_down[..]] {
            let mut scanner = Scanner::new(sample.deprecate_eof);
            scanner.begin(sample.shape);
            let bytes = [&sample.bytes[..], last_words].concat();
            assert_eq!(scanner.feed(&bytes), Ok(Some(sample.outcome.clone())));
            // In a separate frame or record.
            assert_eq!(scanner.feed(last_words), Ok(None));
        }
        let bytes = [DISCONNECTED, &sample.bytes[..]].concat();
        check(&Sample { outcome: before(sample.outcome), bytes, ..sample });
    }
}

/// The rest of the last words may arrive after the next request. A server shutting down numbers
/// them after the reply before.
#[test]
fn last_words_may_be_cut_by_the_next_request() {
    let mut shut_down = DISCONNECTED.to_vec();
    for number in [0, 4, 5, 7] {
        shut_down[3] = number;
        for cut in 0..=shut_down.len() {
            let sample = prepare_sample(true, 1, 1);
            let (now, later) = shut_down.split_at(cut);
            let mut scanner = Scanner::new(true);
            scanner.begin(sample.shape);
            let bytes = [&sample.bytes[..], now].concat();
            assert_eq!(scanner.feed(&bytes), Ok(Some(sample.outcome)), "{number}, cut at {cut}");
            scanner.begin(ReplyShape::Binary);
            for part in later.chunks(3) {
                assert_eq!(scanner.feed(part), Ok(None), "{number}, cut at {cut}");
            }
        }
    }
}

/// The outcome of a reply after [`DISCONNECTED`], with the bytes of both.
fn before(mut outcome: Outcome) -> Outcome {
    if let Outcome::Done(summary) = &mut outcome {
        summary.bytes += DISCONNECTED.len() as u64;
    }
    outcome
}

#[test]
fn only_last_words_may_come_out_of_turn() {
    let ok = b"\x07\0\0\0\0\0\0\x02\0\0\0";
    for length in [1, ok.len()] {
        let mut scanner = Scanner::new(true);
        scanner.begin(ReplyShape::Text);
        let found = ok.chunks(length).find_map(|part| scanner.feed(part).transpose());
        assert_eq!(found, Some(Err(ScanError::Sequence { expected: 1, found: 0 })));
    }
}

#[test]
fn a_begin_forgets_a_reply_that_was_cut() {
    let sample = result_set_sample(ReplyShape::Text, true, &[b"row".to_vec()], 1, false);
    let mut scanner = Scanner::new(true);
    for length in 0..sample.bytes.len() {
        scanner.begin(sample.shape);
        assert_eq!(scanner.feed(&sample.bytes[..length]), Ok(None), "{length} bytes");
    }
    scanner.begin(sample.shape);
    assert_eq!(scanner.feed(&sample.bytes), Ok(Some(sample.outcome)));
}

fn refusal(deprecate_eof: bool, shape: ReplyShape, payloads: &[&[u8]]) -> ScanError {
    let mut bytes = Vec::new();
    for (sequence, payload) in (1..).zip(payloads) {
        let start = begin_packet(&mut bytes, sequence);
        bytes.extend_from_slice(payload);
        end_packet(&mut bytes, start);
    }
    let mut scanner = Scanner::new(deprecate_eof);
    scanner.begin(shape);
    scanner.feed(&bytes).expect_err("a refusal")
}

#[test]
fn a_request_for_a_local_file_is_refused() {
    let error = refusal(true, ReplyShape::Text, &[b"\xfb/etc/passwd"]);
    assert_eq!(error, ScanError::LocalInfile);
    assert!(error.to_string().contains("never sent"));
}

#[test]
fn packets_that_do_not_fit_their_place_are_refused() {
    let definition: &[u8] = b"\x03def\0\0\0\x01c\0";
    let cases: [(bool, ReplyShape, &[&[u8]], &str); 8] = [
        (true, ReplyShape::Text, &[b""], "found an empty packet"),
        (true, ReplyShape::Text, &[b"\x01\x02"], "beginning with 0x01"),
        (true, ReplyShape::Text, &[b"\xfc\x00\x00"], "beginning with 0xfc"),
        (true, ReplyShape::Text, &[b"\0\0"], "beginning with 0x00"),
        (true, ReplyShape::Text, &[b"\x01", b"\x02de"], "a column definition"),
        (false, ReplyShape::Text, &[b"\x01", definition, b"\x01a"], "the end of the column"),
        (true, ReplyShape::Binary, &[b"\x01", definition, b"\x01a"], "a row or the end"),
        (true, ReplyShape::Prepare, &[b"\x01"], "the OK of a prepared statement"),
    ];
    for (deprecate_eof, shape, payloads, words) in cases {
        let text = refusal(deprecate_eof, shape, payloads).to_string();
        assert!(text.contains(words), "{text:?} should say {words:?}");
    }
}

#[test]
fn a_huge_length_is_refused_before_its_bytes_are_awaited() {
    let mut scanner = Scanner::new(true);
    scanner.begin(ReplyShape::Text);
    let result = scanner.feed(&[0xff, 0xff, 0xff, 1]);
    assert!(matches!(result, Err(ScanError::Length { found: packet::PAYLOAD_LENGTH_MAX, .. })));
}

#[test]
fn a_long_error_message_is_kept_only_in_part() {
    let error = ServerError { message: "x".repeat(9_000), ..deadlock() };
    let (mut bytes, mut sequence) = (Vec::new(), 1);
    error.write(&mut bytes, &mut sequence);
    let kept = ServerError { message: "x".repeat(4096 - 9), ..deadlock() };
    let outcome = Outcome::Failed(kept);
    check(&Sample { shape: ReplyShape::Text, deprecate_eof: true, bytes, outcome });
}

/// Packet numbers of a server sending compressed results singly.
#[test]
fn packets_in_numbered_frames_may_have_any_number() {
    let reply = b"\x07\0\0\x05\0\0\0\x0a\0\0\0\x07\0\0\x02\0\0\0\x02\0\0\0";
    let mut strict = Scanner::new(true);
    strict.begin(ReplyShape::Text);
    assert_eq!(strict.feed(reply), Err(ScanError::Sequence { expected: 1, found: 5 }));
    let mut scanner = Scanner::new(true).of_any_number(true);
    scanner.begin(ReplyShape::Text);
    assert!(matches!(scanner.feed(reply), Ok(Some(Outcome::Done(_)))));
}

#[test]
fn a_reply_without_an_end_is_a_failure() {
    let mut writer = Writer::new(true);
    writer.rows(ReplyShape::Text, &[], 1);
    let mut scanner = Scanner::new(true);
    scanner.begin(ReplyShape::Text);
    assert_eq!(scanner.feed(&writer.out), Ok(None));
    let mut row = Vec::new();
    let start = begin_packet(&mut row, 0);
    row.resize(PAYLOAD_LENGTH_MAX, 7);
    end_packet(&mut row, start);
    let found = (0..).find_map(|number: u64| {
        row[3] = (u64::from(writer.sequence) + number) as u8;
        scanner.feed(&row).err().map(|error| (number, error.to_string()))
    });
    assert_eq!(found, Some((64, "a reply longer than 1024 MiB".to_owned())));
}
