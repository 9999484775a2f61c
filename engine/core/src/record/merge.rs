//! Puts the intervals of several workers together, slice by slice.

use crate::record::recorder::Interval;
use std::collections::BTreeMap;

/// Collects intervals until every worker has delivered its part of a slice.
pub struct Merger {
    delivered: Vec<u64>,
    waiting: BTreeMap<u64, Interval>,
}

impl Merger {
    /// A merger for `workers` workers, each of which delivers its intervals in order.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { delivered: vec![0; workers], waiting: BTreeMap::new() }
    }

    /// Adds a worker's interval; gives back the slices that are complete now, in order.
    pub fn add(&mut self, worker: usize, interval: Interval) -> Vec<Interval> {
        self.delivered[worker] = interval.index + 1;
        match self.waiting.get_mut(&interval.index) {
            Some(whole) => whole.add(&interval),
            None => drop(self.waiting.insert(interval.index, interval)),
        }
        let complete = self.delivered.iter().copied().min().unwrap_or(0);
        let rest = self.waiting.split_off(&complete);
        std::mem::replace(&mut self.waiting, rest).into_values().collect()
    }

    /// What is left when no worker delivers any more, in order.
    #[must_use]
    pub fn rest(self) -> Vec<Interval> {
        self.waiting.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::schedule::Timetable;

    fn interval(index: u64, events: u64) -> Interval {
        let slice = Timetable::new(0, 0, 1_000).slice_from(index * 1_000);
        Interval { events, ..Interval::new(index, slice) }
    }

    #[test]
    fn a_slice_waits_for_its_last_worker() {
        let mut merger = Merger::new(2);
        assert!(merger.add(0, interval(0, 1)).is_empty());
        assert!(merger.add(0, interval(1, 2)).is_empty());
        let complete = merger.add(1, interval(0, 10));
        assert_eq!(complete.iter().map(|i| (i.index, i.events)).collect::<Vec<_>>(), [(0, 11)]);
        assert_eq!(merger.rest().iter().map(|i| (i.index, i.events)).collect::<Vec<_>>(), [(1, 2)]);
    }
}
