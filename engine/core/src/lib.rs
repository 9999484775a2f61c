//! The load generator: runs a load against a server, from a [`spec`] to a [`record`].
//!
//! [`run`] opens connections ([`opening`], [`session`]), deals them out to engine threads, and lets
//! a [`worker`] loop on each thread send the events of a [`workload`] through a [`reactor`].
//! [`time`] schedules events. [`dataset`] creates and fills the tables; [`control`] is an
//! administrator's session; [`reference`] holds servers of known behaviour for tests and
//! calibration; [`relay`] is a network between servers.
pub mod control;
pub mod dataset;
pub mod driver;
pub mod error;
pub mod opening;
pub mod random;
pub mod reactor;
pub mod record;
pub mod reference;
pub mod relay;
pub mod run;
pub mod script;
pub mod session;
pub mod spec;
pub mod system;
pub mod time;
pub mod worker;
pub mod workload;

#[cfg(test)]
extern crate self as dbdyno_core;

#[cfg(test)]
#[path = "../tests/suite/support/record.rs"]
mod test_record;
