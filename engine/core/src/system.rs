//! System calls that more than one module needs.

use std::io;
use std::os::fd::RawFd;

/// What a system call returned, or its error.
///
/// # Errors
/// The system's, when `result` is negative.
pub(crate) fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A limit of this process, soft and hard.
///
/// # Errors
/// The system's, for a limit that it does not know.
pub(crate) fn limit(resource: libc::__rlimit_resource_t) -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one `rlimit` into memory that lives through the call.
    checked(unsafe { libc::getrlimit(resource, &raw mut limit) })?;
    Ok(limit)
}

/// Gives the calling thread a table of open files of its own: a copy of the process's, which from then
/// on changes for this thread alone, and for threads that it starts.
///
/// # Errors
/// The system's, when it has no memory for it.
pub fn unshare_file_table() -> io::Result<()> {
    // SAFETY: takes a number and touches no memory; what the thread has open stays open.
    checked(unsafe { libc::unshare(libc::CLONE_FILES) }).map(|_| ())
}

/// Sends without waiting; gives how many bytes the socket took, 0 when it is full.
///
/// # Errors
/// The system's error number.
pub(crate) fn send_now(socket: RawFd, bytes: &[u8]) -> Result<usize, i32> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the kernel reads `bytes.len()` bytes of a slice that lives through the call.
    let sent = unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), flags) };
    match usize::try_from(sent).map_err(|_| last_error()) {
        Err(libc::EAGAIN | libc::EINTR) => Ok(0),
        sent => sent,
    }
}

/// Receives without waiting; 0 bytes mean that the other side has closed.
///
/// # Errors
/// The system's error number; `EAGAIN` when nothing is there.
pub(crate) fn receive_now(socket: RawFd, buffer: &mut [u8]) -> Result<usize, i32> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into a slice that is ours alone.
    let count =
        unsafe { libc::recv(socket, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
    usize::try_from(count).map_err(|_| last_error())
}

fn last_error() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn bytes_go_both_ways_without_waiting() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let mut buffer = [0; 16];
        assert_eq!(receive_now(far.as_raw_fd(), &mut buffer), Err(libc::EAGAIN));
        near.write_all(b"ask").unwrap();
        assert_eq!(receive_now(far.as_raw_fd(), &mut buffer), Ok(3));
        assert_eq!(send_now(far.as_raw_fd(), b"answer"), Ok(6));
        near.read_exact(&mut buffer[..6]).unwrap();
        assert_eq!(&buffer[..6], b"answer");
        drop(near);
        assert_eq!(receive_now(far.as_raw_fd(), &mut buffer), Ok(0));
        assert_eq!(send_now(far.as_raw_fd(), b"late"), Err(libc::EPIPE));
    }

    #[test]
    fn a_full_socket_takes_nothing_and_that_is_no_error() {
        let (near, _far) = UnixStream::pair().unwrap();
        let part = [7; 4096];
        let mut total = 0;
        loop {
            match send_now(near.as_raw_fd(), &part) {
                Ok(0) => break,
                Ok(sent) => total += sent,
                Err(number) => panic!("error {number}"),
            }
        }
        assert!(total > part.len());
    }

    #[test]
    fn what_a_thread_with_a_table_of_its_own_opens_is_open_there_alone() {
        let number = std::thread::spawn(|| {
            unshare_file_table().unwrap();
            let (near, far) = UnixStream::pair().unwrap();
            std::mem::forget((near.as_raw_fd(), far));
            // As high as possible, where no other test opens anything meanwhile.
            // SAFETY: no memory is handed over.
            let high = unsafe { libc::fcntl(near.as_raw_fd(), libc::F_DUPFD, 900) };
            assert!(high >= 900);
            high
        });
        let number = number.join().unwrap();
        // SAFETY: no memory is handed over.
        let seen = unsafe { libc::fcntl(number, libc::F_GETFD) };
        assert_eq!(seen, -1, "the process sees what one thread alone has open");
    }

    #[test]
    fn a_failed_call_is_an_error() {
        // SAFETY: no memory is handed over; the descriptor is none.
        let error = checked(unsafe { libc::listen(-1, 1) }).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        assert_eq!(checked(3).unwrap(), 3);
    }
}
