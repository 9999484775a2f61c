//! System calls used by several modules.

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::io;
use std::os::fd::AsFd;

/// Gives the calling thread a file table of its own: a copy of the process's, separate from then on
/// for this thread and threads it starts.
///
/// # Safety
/// A descriptor opened from now on is open on one side only: in this thread and its children, or in
/// all other threads. On the other side the number is closed or means another file, so it must be
/// neither used nor closed there.
///
/// # Errors
/// The system's error if memory is short.
pub unsafe fn unshare_file_table() -> io::Result<()> {
    // SAFETY: the caller keeps descriptors on their side.
    Ok(unsafe { unshare_unsafe(UnshareFlags::FILES) }?)
}

/// Sends without waiting; returns the number of bytes taken, 0 for a full socket.
///
/// # Errors
/// The system's error number.
pub(crate) fn send_now(socket: impl AsFd, bytes: &[u8]) -> Result<usize, i32> {
    match send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        sent => sent.map_err(Errno::raw_os_error),
    }
}

/// Receives without waiting; 0 bytes mean the peer has closed.
///
/// # Errors
/// The system's error number; `EAGAIN` if nothing has arrived.
pub(crate) fn receive_now(socket: impl AsFd, buffer: &mut [u8]) -> Result<usize, i32> {
    let received = recv(socket, buffer, RecvFlags::DONTWAIT);
    received.map(|(_, count)| count).map_err(Errno::raw_os_error)
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
        assert_eq!(receive_now(&far, &mut buffer), Err(libc::EAGAIN));
        near.write_all(b"ask").unwrap();
        assert_eq!(receive_now(&far, &mut buffer), Ok(3));
        assert_eq!(send_now(&far, b"answer"), Ok(6));
        near.read_exact(&mut buffer[..6]).unwrap();
        assert_eq!(&buffer[..6], b"answer");
        // Not by dropping it: another test's thread may hold a copy of the file table.
        near.shutdown(std::net::Shutdown::Both).unwrap();
        assert_eq!(receive_now(&far, &mut buffer), Ok(0));
        assert_eq!(send_now(&far, b"late"), Err(libc::EPIPE));
    }

    #[test]
    fn a_full_socket_takes_nothing_and_that_is_no_error() {
        let (near, _far) = UnixStream::pair().unwrap();
        let part = [7; 4096];
        let mut total = 0;
        loop {
            match send_now(&near, &part) {
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
            // SAFETY: no other thread uses descriptors of this thread.
            unsafe { unshare_file_table() }.unwrap();
            let (near, far) = UnixStream::pair().unwrap();
            std::mem::forget((near.as_raw_fd(), far));
            // A high number, unlikely to be opened by another test.
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
}
