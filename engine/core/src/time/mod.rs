//! Time of a run: the clock, and schedules computed without it.
pub mod clock;
pub mod due_times;
pub mod schedule;
