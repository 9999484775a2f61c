//! Reactors without open files to spare. Alone in its process, because other tests need theirs.

use dbdyno_core::reactor::{Choice, io_uring_is_allowed, settle};

#[test]
fn auto_takes_epoll_where_the_rings_of_all_workers_are_too_many() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls read or fill `limit`, which lives through them.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        limit.rlim_cur = 32;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
    }
    assert_eq!(settle(Choice::Auto, &[1; 64]), Choice::Epoll);
    let few = if io_uring_is_allowed() { Choice::IoUring } else { Choice::Epoll };
    assert_eq!(settle(Choice::Auto, &[1; 2]), few);
}
