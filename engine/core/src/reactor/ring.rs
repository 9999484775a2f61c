//! Opens an `io_uring`: size, flags, and advice on a refusal.

use super::buffers::BufferRing;
use io_uring::IoUring;
use std::io;

/// Group of all receive buffers of a ring.
pub(super) const BUFFER_GROUP: u16 = 0;
const SUBMISSION_ENTRIES: u32 = 1024;

/// Tests if rings for workers with these numbers of sockets can be open together, within the
/// kernel's permissions and the user's limit of locked memory.
pub(super) fn allows(sockets_of_workers: &[usize]) -> bool {
    let rings: io::Result<Vec<_>> = sockets_of_workers.iter().map(|&n| open_ring(n)).collect();
    rings.is_ok()
}

/// Opens a ring with its buffers. Drop the ring first, as it writes into them.
pub(super) fn open_ring(sockets: usize) -> io::Result<(IoUring, BufferRing)> {
    let ring = build_ring(sockets)?;
    let pool = sockets.next_power_of_two().clamp(8, 256);
    let buffers = BufferRing::new(u16::try_from(pool).expect("at most 256"))?;
    // SAFETY: the owner of the pair keeps the buffers until the ring is closed.
    unsafe {
        ring.submitter().register_buf_ring_with_flags(
            buffers.address(),
            buffers.count(),
            BUFFER_GROUP,
            0,
        )?;
    }
    Ok((ring, buffers))
}

fn build_ring(sockets: usize) -> io::Result<IoUring> {
    // Every socket can have a send, a receive and a re-armed receive completed at once.
    let completions = (sockets * 4).next_power_of_two().clamp(4096, 1 << 18);
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_submit_all()
        .setup_clamp()
        .setup_cqsize(u32::try_from(completions).expect("clamped"))
        .build(SUBMISSION_ENTRIES)
}

/// Adds the administrator's remedy to the refusal of a ring.
pub(super) fn explained(error: &io::Error) -> io::Error {
    let advice = match error.raw_os_error() {
        Some(libc::ENOMEM) => "raise the limit of locked memory (ulimit -l), or take epoll",
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
            "allow it (kernel.io_uring_disabled, the container's seccomp profile), or take epoll"
        }
        _ => "take epoll",
    };
    io::Error::new(error.kind(), format!("{error}; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_is_refused_says_what_to_set() {
        for (number, words) in [(libc::ENOMEM, "ulimit -l"), (libc::EPERM, "io_uring_disabled")] {
            let message = explained(&io::Error::from_raw_os_error(number)).to_string();
            assert!(message.contains(words) && message.contains("os error"), "{message}");
        }
    }
}
