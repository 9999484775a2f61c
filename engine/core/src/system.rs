//! System calls used by several modules, and the end of processes that scripts started.

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{
    Pid, Signal, WaitOptions, getpgrp, getpid, kill_process, set_child_subreaper, waitpid,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, ptr, thread};

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

/// Makes the calling thread a batch thread, which does not preempt a server's thread at each reply.
///
/// It needs no privilege; a thread to which the system refuses it goes on as it is.
pub(crate) fn become_batch_thread() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` lives through the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
}

/// How long [`end_descendants`] tries: a script may start programs faster than they are ended.
const ENDING_S_MAX: Duration = Duration::from_secs(2);

/// True in a process whose descendants may be ended.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// Makes descendants of this process its children once their own parents have ended, so that
/// [`end_descendants`] sees them.
///
/// # Errors
/// The system's error; none on Linux.
pub fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    ADOPTS.store(true, Ordering::Relaxed);
    Ok(())
}

/// Kills all descendants of this process, if it has adopted its orphans; none on a kernel that does
/// not list children.
pub fn end_descendants() {
    if !ADOPTS.load(Ordering::Relaxed) {
        return;
    }
    let ends = Instant::now() + ENDING_S_MAX;
    loop {
        let children = children();
        if children.is_empty() || Instant::now() > ends {
            return;
        }
        for child in children {
            // A child that has just ended is waited for here or where it was started.
            let _ = kill_process(child, Signal::KILL);
            let _ = waitpid(Some(child), WaitOptions::NOHANG);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The children of all threads.
fn children() -> Vec<Pid> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers: Vec<String> = lists.collect();
    let words = numbers.iter().flat_map(|list| list.split_whitespace());
    words.filter_map(|word| word.parse().ok().and_then(Pid::from_raw)).collect()
}

/// Has the kernel kill this process once its parent thread ends, however it ends; the leader of a
/// process group with its whole group.
///
/// # Errors
/// The system's error.
pub fn end_with_parent() -> io::Result<()> {
    let mut number = libc::SIGKILL;
    if getpgrp() == getpid() {
        number = libc::SIGRTMIN();
        let handler: extern "C" fn(libc::c_int) = end_group;
        // SAFETY: a zeroed action is valid, and the handler does nothing but a system call.
        let set = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as usize;
            libc::sigaction(number, &raw const action, ptr::null_mut())
        };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: no memory is handed over.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, number) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

extern "C" fn end_group(_number: libc::c_int) {
    // SAFETY: no memory is handed over.
    unsafe { libc::kill(0, libc::SIGKILL) };
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

    #[test]
    fn only_the_calling_thread_becomes_a_batch_thread() {
        // SAFETY: asks about the calling thread only.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        let batch = thread::spawn(move || {
            become_batch_thread();
            policy()
        });
        assert_eq!(batch.join().unwrap(), libc::SCHED_BATCH);
        assert_eq!(policy(), before);
    }
}
