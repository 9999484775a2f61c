//! Timetable of a run: phases, and the slices of its record.
//!
//! Pure: functions take the time as an argument and read no clock.

use super::clock::seconds;
use serde::{Serialize, Serializer};

/// Phase of a run. Only `Measured` enters rates and percentiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Load before the server is ready for measurement.
    Warmup,
    /// The measured window.
    Measured,
    /// Completion of events in flight at the end.
    Drain,
}

/// Time range recorded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Slice {
    /// Phase of the slice.
    pub phase: Phase,
    /// Begin, ns since the load began; as JSON in seconds.
    #[serde(rename = "start_s", serialize_with = "as_seconds")]
    pub start_ns: u64,
    /// End, ns; `u64::MAX` for the drain.
    #[serde(rename = "end_s", serialize_with = "as_seconds")]
    pub end_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn as_seconds<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(seconds(*ns))
}

/// Division of a run's time into phases and slices.
#[derive(Clone, Copy, Debug)]
pub struct Timetable {
    warmup_ns: u64,
    deadline_ns: u64,
    interval_ns: u64,
}

impl Timetable {
    /// A `window_ns` of 0 means no time limit. An `interval_ns` of 0 means one slice per phase.
    #[must_use]
    pub fn new(warmup_ns: u64, window_ns: u64, interval_ns: u64) -> Self {
        let deadline_ns =
            if window_ns == 0 { u64::MAX } else { warmup_ns.saturating_add(window_ns) };
        let interval_ns = if interval_ns == 0 { u64::MAX } else { interval_ns };
        Self { warmup_ns, deadline_ns, interval_ns }
    }

    /// Begin of the measured window, ns.
    #[must_use]
    pub const fn warmup_ns(&self) -> u64 {
        self.warmup_ns
    }

    /// End of the window, ns; from then on no event is begun.
    #[must_use]
    pub const fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// Slice beginning at `start_ns`. Slices never straddle two phases.
    #[must_use]
    pub fn slice_from(&self, start_ns: u64) -> Slice {
        let (phase, phase_end_ns) = if start_ns < self.warmup_ns {
            (Phase::Warmup, self.warmup_ns)
        } else if start_ns < self.deadline_ns {
            (Phase::Measured, self.deadline_ns)
        } else {
            return Slice { phase: Phase::Drain, start_ns, end_ns: u64::MAX };
        };
        let end_ns = start_ns.saturating_add(self.interval_ns).min(phase_end_ns);
        Slice { phase, start_ns, end_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_run_is_cut_at_its_phases() {
        let timetable = Timetable::new(2 * SECOND + 500, 2 * SECOND, SECOND);
        let mut slices = vec![timetable.slice_from(0)];
        while slices.last().is_some_and(|slice| slice.phase != Phase::Drain) {
            slices.push(timetable.slice_from(slices.last().unwrap().end_ns));
        }
        let ends: Vec<_> = slices.iter().map(|slice| (slice.phase, slice.end_ns)).collect();
        assert_eq!(
            ends,
            [
                (Phase::Warmup, SECOND),
                (Phase::Warmup, 2 * SECOND),
                (Phase::Warmup, 2 * SECOND + 500),
                (Phase::Measured, 3 * SECOND + 500),
                (Phase::Measured, 4 * SECOND + 500),
                (Phase::Drain, u64::MAX),
            ]
        );
    }

    #[test]
    fn without_a_window_the_measuring_never_ends() {
        let timetable = Timetable::new(0, 0, 0);
        assert_eq!(timetable.deadline_ns(), u64::MAX);
        let slice = timetable.slice_from(7);
        assert_eq!((slice.phase, slice.end_ns), (Phase::Measured, u64::MAX));
    }

    proptest! {
        #[test]
        fn a_slice_always_moves_on(
            warmup in 0..10 * SECOND, window in 0..10 * SECOND, interval in 0..3 * SECOND,
            start in 0..30 * SECOND,
        ) {
            let slice = Timetable::new(warmup, window, interval).slice_from(start);
            prop_assert!(slice.end_ns > slice.start_ns);
        }
    }
}
