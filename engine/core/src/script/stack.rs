//! A script's thread on its own stack, suspended in the middle of a call while it waits for a
//! server.
//!
//! Lua's own coroutines would do, but LuaJIT does not compile code that yields, so every script
//! would be interpreted.

use super::host::Host;
use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::io;
use std::ptr;

/// Address space of a stack, as much as for a thread of sysbench: memory is taken as it is used,
/// some 20 KiB.
const STACK_BYTES: usize = 8 << 20;

/// Stack space needed by a function of prelude.lua's `guarded` before it calls the script back.
/// Other functions with such a call need less, as LuaJIT ends a Lua thread with 65,500 values.
const ROOM_BYTES: usize = STACK_BYTES / 2;

thread_local! {
    /// The stack of the last [`call`] on this system thread.
    static SPARE: Cell<Option<DefaultStack>> = const { Cell::new(None) };
}

fn new_stack() -> io::Result<DefaultStack> {
    let stack = DefaultStack::new(STACK_BYTES)?;
    let floor = stack.limit().get();
    // SAFETY: the pages are the stack's. With huge pages a thread would take 2 MiB; a kernel
    // without them refuses, with the same result.
    unsafe { libc::madvise(floor as *mut _, stack.base().get() - floor, libc::MADV_NOHUGEPAGE) };
    Ok(stack)
}

/// The lowest address of a stack with room left.
fn room_from(stack: &DefaultStack) -> usize {
    stack.limit().get() + ROOM_BYTES
}

/// Calls `work`, which may run Lua, on a stack of [`STACK_BYTES`], as the caller's may be small.
///
/// # Errors
/// There is no memory for the stack.
///
/// # Safety
/// `host` is valid, and stays valid during `work`.
pub(super) unsafe fn call<R>(host: *mut Host, work: impl FnOnce() -> R) -> io::Result<R> {
    let mut stack = SPARE.take().map_or_else(new_stack, Ok)?;
    // SAFETY: the caller guarantees it.
    let before = unsafe { std::mem::replace(&mut (*host).room_from, room_from(&stack)) };
    let result = corosensei::on_stack(&mut stack, work);
    // SAFETY: as above.
    unsafe { (*host).room_from = before };
    SPARE.set(Some(stack));
    Ok(result)
}

/// A script's thread between two of its requests. Its state must be alive.
pub(super) struct Thread {
    stack: Coroutine<(), (), CameBack>,
    host: *mut Host,
    room_from: usize,
}

// SAFETY: the code on the stack belongs to a state, which is handed from thread to thread with it.
unsafe impl Send for Thread {}

impl Drop for Thread {
    fn drop(&mut self) {
        if !self.stack.done() {
            // SAFETY: the suspended frames are Lua's, and own only what the state owns too.
            unsafe { self.stack.force_reset() };
        }
    }
}

/// Reason for a thread's return to the loop.
pub(super) enum CameBack {
    /// It has a request.
    Asks,
    /// Its function has returned.
    Ended,
    /// It raised an error.
    Raised(String),
}

impl Thread {
    /// Makes a thread to run `main`, which finds its way back in `host`.
    ///
    /// # Errors
    /// There is no memory for its stack.
    ///
    /// # Safety
    /// `host` and everything used by `main` stay valid as long as the thread goes on.
    pub(super) unsafe fn new(
        host: *mut Host,
        main: impl FnOnce() -> CameBack + 'static,
    ) -> io::Result<Self> {
        let stack = new_stack()?;
        let room_from = room_from(&stack);
        let body = move |yielder: &Yielder<(), ()>, ()| {
            // SAFETY: the caller guarantees it.
            unsafe { (*host).way_back = ptr::from_ref(yielder) };
            main()
        };
        Ok(Self { stack: Coroutine::with_stack(stack, body), host, room_from })
    }

    /// True if the thread waits in the middle of a call.
    pub(super) fn is_suspended(&self) -> bool {
        self.stack.started() && !self.stack.done()
    }

    /// Resumes the thread until its next request, its end or an error; it must not have ended.
    #[inline]
    pub(super) fn resume(&mut self) -> CameBack {
        // SAFETY: guaranteed by the caller of `new`.
        unsafe { (*self.host).room_from = self.room_from };
        match self.stack.resume(()) {
            CoroutineResult::Yield(()) => CameBack::Asks,
            CoroutineResult::Return(ended) => ended,
        }
    }
}
