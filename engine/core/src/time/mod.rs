//! When things happen in a run: the clock, and the schedules that are computed without one.
pub mod clock;
pub mod due_times;
pub mod schedule;
