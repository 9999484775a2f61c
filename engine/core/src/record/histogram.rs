//! Latency histograms.
//!
//! A thin type around the `hdrhistogram` crate fixes the format for all of dbdyno: nanoseconds,
//! three significant digits, one hour at most (sysbench stops at 100 s), and the V2 encoding of the
//! HDR family, which other tools read. Merging adds counts; percentiles are read after merging
//! only, because averaging them is wrong (docs/how-it-works/stability.md).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::borrow::Cow;
use std::fmt;
use std::io::Read;

/// Largest distinct latency, ns; longer latencies count here.
pub const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// Largest sum of foreign counts: years of any load, and far from overflow when summed.
const FOREIGN_COUNT_MAX: u64 = 1 << 44;
const INFLATED_LENGTH_MAX: u64 = 1 << 20;
/// Length of the plain V2 encoding before the counts.
const HEAD_LENGTH: usize = 40;
const DEFLATED: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();

/// Counts of latencies in nanoseconds.
#[derive(Clone)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
}

/// Decoding error: the bytes are no HDR V2 histogram of nanoseconds.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an HDR V2 histogram of nanoseconds: {0}")]
pub struct DecodeError(String);

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({} values, at most {} ns)", self.count(), self.max())
    }
}

impl Histogram {
    /// An empty histogram.
    ///
    /// # Panics
    /// Never: the crate accepts the constant bounds.
    #[must_use]
    pub fn new() -> Self {
        let counts =
            hdrhistogram::Histogram::new_with_bounds(1, LATENCY_NS_MAX, SIGNIFICANT_DIGITS)
                .expect("the bounds are valid");
        Self { counts }
    }

    /// Adds a latency.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.counts.saturating_record(latency_ns);
    }

    /// Adds the other's counts to this one's.
    ///
    /// # Panics
    /// Never: all our histograms have the same bounds.
    pub fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts).expect("all histograms have the same bounds");
    }

    /// Number of recorded latencies.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Smallest latency, within the histogram's precision; 0 if empty.
    #[must_use]
    pub fn min(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.counts.min() }
    }

    /// Largest latency, within the histogram's precision; 0 if empty.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.counts.max()
    }

    /// Latency at or below which `fraction` of the counts lie; 0 if empty.
    #[must_use]
    pub fn quantile(&self, fraction: f64) -> u64 {
        self.counts.value_at_quantile(fraction)
    }

    /// Size classes with counts, smallest first: middle of the class, and its count.
    #[must_use]
    pub fn recorded(&self) -> Vec<(u64, u64)> {
        let steps = self.counts.iter_recorded();
        steps
            .map(|step| {
                (self.counts.median_equivalent(step.value_iterated_to()), step.count_at_value())
            })
            .collect()
    }

    /// Encodes the histogram in HDR's deflated V2 format.
    ///
    /// # Panics
    /// Never: writing to memory does not fail.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.counts, &mut bytes)
            .expect("writing to memory does not fail");
        bytes
    }

    /// Reads a V2 histogram, deflated or plain.
    ///
    /// # Errors
    /// [`DecodeError`] for any other bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let plain = inflated(bytes)?;
        check(&plain)?;
        let foreign: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut &plain[..])
            .map_err(|error| DecodeError(error.to_string()))?;
        let (mut own, mut all) = (Self::new(), 0_u64);
        for step in foreign.iter_recorded() {
            all = all.saturating_add(step.count_since_last_iteration());
            if all > FOREIGN_COUNT_MAX {
                return Err(DecodeError("it counts more than any load makes".to_owned()));
            }
            own.counts.saturating_record_n(step.value_iterated_to(), step.count_at_value());
        }
        Ok(own)
    }
}

/// Inflates a histogram if it is deflated.
fn inflated(bytes: &[u8]) -> Result<Cow<'_, [u8]>, DecodeError> {
    if !bytes.starts_with(&DEFLATED) {
        return Ok(Cow::Borrowed(bytes));
    }
    let Some((head, stream)) = bytes.split_first_chunk::<8>() else {
        return Ok(Cow::Borrowed(bytes));
    };
    let [_, _, _, _, length @ ..] = *head;
    let length = stream.len().min(u32::from_be_bytes(length) as usize);
    let mut plain = Vec::new();
    ZlibDecoder::new(&stream[..length])
        .take(INFLATED_LENGTH_MAX + 1)
        .read_to_end(&mut plain)
        .map_err(|error| DecodeError(error.to_string()))?;
    if plain.len() as u64 > INFLATED_LENGTH_MAX {
        return Err(DecodeError("it unpacks to more than a histogram".to_owned()));
    }
    Ok(Cow::Owned(plain))
}

/// Refuses input for which the crate's reader would reserve memory in vain or panic. Digits and
/// highest value of the head take 48 MB at most.
fn check(plain: &[u8]) -> Result<(), DecodeError> {
    let refused = |reason: &str| Err(DecodeError(reason.to_owned()));
    let Some((head, counts)) = plain.split_first_chunk::<HEAD_LENGTH>() else {
        return refused("its head is cut off");
    };
    let [_, _, _, _, a, b, c, d, ..] = *head;
    if u32::from_be_bytes([a, b, c, d]) as usize > counts.len() {
        return refused("its counts are cut off");
    }
    // The reader negates counts and would overflow at the least 64-bit number.
    if counts.windows(9).any(|number| number == [0xff; 9]) {
        return refused("one of its counts is none");
    }
    Ok(())
}

/// HdrHistogram's interval log, format 1.3, of encoded histograms; the column of maxima is in ms.
///
/// The crate's own `IntervalLogWriter` is not used: it always writes three decimals, omits the line
/// of column names, and encodes histograms anew, while a bundle returns its bytes unchanged.
pub struct IntervalLog {
    text: String,
    decimals: usize,
}

impl IntervalLog {
    /// A log without intervals. `decimals` is the precision of times; `start_time` is the text of
    /// the comment naming the origin of interval times.
    #[must_use]
    pub fn new(description: &str, start_time: Option<&str>, decimals: usize) -> Self {
        let mut log = Self { text: String::new(), decimals };
        log.comment(description);
        log.comment("Histogram log format version 1.3");
        if let Some(moment) = start_time {
            log.comment(&format!("StartTime: {moment}"));
        }
        log.text += "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",";
        log.text += "\"Interval_Compressed_Histogram\"\n";
        log
    }

    /// Adds a comment line, skipped by readers of logs.
    pub fn comment(&mut self, text: &str) {
        self.text += &format!("#[{text}]\n");
    }

    /// Adds a line for the encoded `histogram` of an interval. `max_ns` replaces the histogram's
    /// maximum if known exactly.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are no histogram; the log stays unchanged.
    pub fn add(
        &mut self,
        histogram: &[u8],
        start_s: f64,
        length_s: f64,
        tag: Option<&str>,
        max_ns: Option<u64>,
    ) -> Result<(), DecodeError> {
        let max_ns = max_ns.map_or_else(|| Histogram::decode(histogram).map(|it| it.max()), Ok)?;
        if let Some(tag) = tag {
            self.text += &format!("Tag={tag},");
        }
        #[expect(clippy::cast_precision_loss, reason = "an hour in ns has 42 bits")]
        let max_ms = max_ns as f64 / 1e6;
        let decimals = self.decimals;
        for number in [start_s, length_s, max_ms] {
            self.text += &format!("{number:.decimals$},");
        }
        STANDARD.encode_string(histogram, &mut self.text);
        self.text.push('\n');
        Ok(())
    }

    /// The whole log.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quantile_is_within_a_thousandth() {
        let mut histogram = Histogram::new();
        (1..=100_000).for_each(|us: u64| histogram.record(us * 1000));
        let p99 = histogram.quantile(0.99);
        assert!(p99.abs_diff(99_000_000) <= 99_000, "{p99}");
    }

    #[test]
    fn what_is_longer_than_an_hour_counts_as_an_hour() {
        let mut histogram = Histogram::new();
        histogram.record(u64::MAX);
        assert_eq!(histogram.count(), 1);
        assert!(histogram.max() >= LATENCY_NS_MAX);
    }

    #[test]
    fn size_classes_are_told_by_their_middle() {
        let mut histogram = Histogram::new();
        for value in [7, 1_000_000, 1_000_001, 2_000_000_000] {
            histogram.record(value);
        }
        let recorded = histogram.recorded();
        assert_eq!(recorded.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1, 2, 1]);
        assert_eq!(recorded[0].0, 7);
        assert!(recorded[1].0.abs_diff(1_000_000) <= 512, "{recorded:?}");
        assert!(recorded[2].0.abs_diff(2_000_000_000) <= 1 << 20, "{recorded:?}");
    }

    #[test]
    fn foreign_bytes_are_an_error() {
        assert!(Histogram::decode(b"not a histogram").is_err());
        assert!(Histogram::decode(&[]).is_err());
    }

    #[test]
    fn a_head_that_promises_more_than_there_is_is_refused() {
        let plain = inflated(&Histogram::new().encode()).expect("our own").into_owned();
        assert!(Histogram::decode(&plain).is_ok());
        let mut changed = plain.clone();
        changed[4] = 0xff;
        for cut_off in [&changed[..], &plain[..plain.len() - 1], &plain[..HEAD_LENGTH - 1]] {
            let error = Histogram::decode(cut_off).expect_err("a refusal").to_string();
            assert!(error.contains("cut off"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn the_sum_of_parts_is_the_whole(
            values in prop::collection::vec(0_u64..10_000_000_000, 0..200), split in 0_usize..200
        ) {
            let (mut left, mut right, mut whole) =
                (Histogram::new(), Histogram::new(), Histogram::new());
            for (index, value) in values.iter().enumerate() {
                whole.record(*value);
                if index < split { left.record(*value) } else { right.record(*value) }
            }
            left.add(&right);
            prop_assert_eq!(left.encode(), whole.encode());
        }

        #[test]
        fn encoding_and_decoding_give_the_same(
            values in prop::collection::vec(0_u64..10_000_000_000, 0..100)
        ) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            let again = Histogram::decode(&histogram.encode()).unwrap();
            prop_assert_eq!(again.encode(), histogram.encode());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Histogram::decode(&bytes);
        }
    }
}
