//! A script's thread on a stack of its own, where it rests in the middle of a call while it waits for a
//! server.
//!
//! Lua's own coroutines would do, but LuaJIT compiles no code that yields, so every script would be
//! interpreted.

use super::host::Host;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::ptr;

/// Of the address space: memory is taken as it is used, some 20 KiB. LuaJIT allows 200 C calls within each
/// other.
const STACK_BYTES: usize = 512 * 1024;

/// A script's thread between two of its requests. Its state must be alive.
pub(super) struct Thread {
    stack: Coroutine<(), (), CameBack>,
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
    ) -> std::io::Result<Self> {
        let stack = DefaultStack::new(STACK_BYTES)?;
        let body = move |yielder: &Yielder<(), ()>, ()| {
            // SAFETY: the caller says so.
            unsafe { (*host).way_back = ptr::from_ref(yielder) };
            main()
        };
        Ok(Self { stack: Coroutine::with_stack(stack, body) })
    }

    /// Goes on until the script asks for something, ends or raises; it must not have ended.
    #[inline]
    pub(super) fn resume(&mut self) -> CameBack {
        match self.stack.resume(()) {
            CoroutineResult::Yield(()) => CameBack::Asks,
            CoroutineResult::Return(ended) => ended,
        }
    }
}
