//! A script's thread on a stack of its own, where it rests in the middle of a call while it waits for a
//! server.
//!
//! Lua's own coroutines would do, but LuaJIT compiles no code that yields, so every script would be
//! interpreted.

use super::host::Host;
use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::io;
use std::ptr;

/// Of the address space, as much as a thread of sysbench has: memory is taken as it is used, some 20 KiB.
const STACK_BYTES: usize = 8 << 20;

/// Space that a function of prelude.lua's `guarded` wants on the stack before it calls the script back. The other
/// functions that do so need less, as LuaJIT ends a thread of Lua that has 65,500 values.
const ROOM_BYTES: usize = STACK_BYTES / 2;

thread_local! {
    /// The stack of the last [`call`] on this thread of the system.
    static SPARE: Cell<Option<DefaultStack>> = const { Cell::new(None) };
}

fn new_stack() -> io::Result<DefaultStack> {
    let stack = DefaultStack::new(STACK_BYTES)?;
    let floor = stack.limit().get();
    // SAFETY: the pages are the stack's. In huge ones a thread would take 2 MiB; a kernel without them refuses,
    // which is as well.
    unsafe { libc::madvise(floor as *mut _, stack.base().get() - floor, libc::MADV_NOHUGEPAGE) };
    Ok(stack)
}

/// The lowest address that a stack may reach while it has room.
fn room_from(stack: &DefaultStack) -> usize {
    stack.limit().get() + ROOM_BYTES
}

/// Calls `work`, which may run Lua, on a stack of [`STACK_BYTES`]: that of the caller may be small.
///
/// # Errors
/// When there is no memory for the stack.
///
/// # Safety
/// `host` must be there, and `work` leave it so.
pub(super) unsafe fn call<R>(host: *mut Host, work: impl FnOnce() -> R) -> io::Result<R> {
    let mut stack = SPARE.take().map_or_else(new_stack, Ok)?;
    // SAFETY: the caller says so.
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

// SAFETY: what runs on the stack belongs to a state, which is handed from one thread to another with it.
unsafe impl Send for Thread {}

impl Drop for Thread {
    fn drop(&mut self) {
        if !self.stack.done() {
            // SAFETY: what rests there are frames of Lua, which own nothing that the state does not.
            unsafe { self.stack.force_reset() };
        }
    }
}

/// Why a thread came back.
pub(super) enum CameBack {
    /// It asks for something.
    Asks,
    /// Its function has returned.
    Ended,
    /// It raised something.
    Raised(String),
}

impl Thread {
    /// A thread that will run `main`, which finds its way back in `host`.
    ///
    /// # Errors
    /// When there is no memory for its stack.
    ///
    /// # Safety
    /// Whatever `main` uses, and `host`, must be there as long as it goes on.
    pub(super) unsafe fn new(
        host: *mut Host,
        main: impl FnOnce() -> CameBack + 'static,
    ) -> io::Result<Self> {
        let stack = new_stack()?;
        let room_from = room_from(&stack);
        let body = move |yielder: &Yielder<(), ()>, ()| {
            // SAFETY: the caller says so.
            unsafe { (*host).way_back = ptr::from_ref(yielder) };
            main()
        };
        Ok(Self { stack: Coroutine::with_stack(stack, body), host, room_from })
    }

    /// Goes on until the script asks for something, ends or raises; it must not have ended.
    #[inline]
    pub(super) fn resume(&mut self) -> CameBack {
        // SAFETY: the caller of `new` said so.
        unsafe { (*self.host).room_from = self.room_from };
        match self.stack.resume(()) {
            CoroutineResult::Yield(()) => CameBack::Asks,
            CoroutineResult::Return(ended) => ended,
        }
    }
}
