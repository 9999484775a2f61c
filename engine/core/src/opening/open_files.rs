//! Every connection is an open file: makes room for them, or says what stands in the way.
//!
//! A shell usually allows 1024, and lets each process raise that itself up to a hard limit. So the
//! engine does it, unasked. The limit counts for each table of open files, and a thread may have a table
//! of its own: so what one table cannot hold is spread over several, and the engine speaks only when
//! that would be too many threads.

use crate::system::{checked, limit};
use std::io;

/// What else the process opens during a run: rings, timers, name look-ups.
const SPARE: u64 = 64;
/// More engine threads than that on a few cores would be in each other's way.
const TABLES_MOST: u64 = 8;

/// Lets the process open `more` files beyond those it has open now.
///
/// # Errors
/// What is needed, what the system allows, and what to set.
pub fn make_room(more: u64) -> Result<(), String> {
    let needed = open_now() + more + SPARE;
    let limit = limit(libc::RLIMIT_NOFILE)
        .map_err(|error| format!("the limit of open files is unknown: {error}"))?;
    if limit.rlim_cur >= needed {
        return Ok(());
    }
    // Beyond the hard limit only a privileged process may go, so trying is all that can be done.
    let wanted = libc::rlimit { rlim_cur: needed, rlim_max: limit.rlim_max.max(needed) };
    set(wanted).map_err(|_| in_the_way(more, needed, limit.rlim_max))
}

/// Makes room for so many connections, in as few tables of open files as can be; gives their number.
/// Each but a single one wants a thread that calls [`crate::system::own_file_table`].
///
/// # Errors
/// What is needed, what the system allows, and what to set.
pub fn tables_for(connections: u64) -> Result<u32, String> {
    let Err(in_the_way) = make_room(connections) else { return Ok(1) };
    let limit = limit(libc::RLIMIT_NOFILE).map_err(|_| in_the_way.clone())?;
    let room = limit.rlim_max.saturating_sub(open_now() + SPARE);
    let tables = connections.checked_div(room).map_or(u64::MAX, |whole| whole + 1);
    if tables > TABLES_MOST || set(libc::rlimit { rlim_cur: limit.rlim_max, ..limit }).is_err() {
        return Err(in_the_way);
    }
    Ok(u32::try_from(tables).expect("few tables"))
}

fn in_the_way(connections: u64, needed: u64, hard: u64) -> String {
    format!(
        "{connections} connections need {needed} open files, and this process may have {hard}; \
         try fewer connections, or raise the limit and start again: `ulimit -n {needed}` as root, \
         `nofile` in /etc/security/limits.conf, LimitNOFILE= of a systemd unit, --ulimit nofile= of \
         a container"
    )
}

fn open_now() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(SPARE, |entries| entries.count() as u64)
}

fn set(limit: libc::rlimit) -> io::Result<()> {
    // SAFETY: the kernel reads one `rlimit` that lives through the call.
    checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_to_what_is_needed() {
        let before = limit(libc::RLIMIT_NOFILE).unwrap();
        let more = before.rlim_max.min(before.rlim_cur + 1000) - open_now() - 2 * SPARE;
        make_room(more).unwrap();
        assert!(limit(libc::RLIMIT_NOFILE).unwrap().rlim_cur >= more + open_now());
        make_room(1).unwrap();
        assert!(
            limit(libc::RLIMIT_NOFILE).unwrap().rlim_cur >= more,
            "a limit once raised was lowered"
        );
    }

    #[test]
    fn what_one_table_cannot_hold_is_spread_over_several() {
        assert_eq!(tables_for(10), Ok(1));
        let hard = limit(libc::RLIMIT_NOFILE).unwrap().rlim_max;
        // A process that may raise its hard limit needs no second table.
        let two = tables_for(hard + hard / 2).unwrap();
        assert!(two == 2 || limit(libc::RLIMIT_NOFILE).unwrap().rlim_max > hard, "{two}");
        let told = tables_for(1 << 40).unwrap_err();
        assert!(told.contains("ulimit -n "), "{told}");
    }

    #[test]
    fn what_no_system_allows_is_explained() {
        let told = make_room(1 << 40).unwrap_err();
        let hard = limit(libc::RLIMIT_NOFILE).unwrap().rlim_max;
        assert!(told.starts_with(&format!("{} connections need ", 1_u64 << 40)), "{told}");
        assert!(told.contains(&format!("may have {hard};")), "{told}");
        assert!(told.contains("ulimit -n ") && told.contains("LimitNOFILE="), "{told}");
    }
}
