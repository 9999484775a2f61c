//! Reading replies allocates nothing, wherever the network cuts them.

use dbdyno_wire::mysql::response::{Ok as OkPacket, write_eof};
use dbdyno_wire::mysql::result_set;
use dbdyno_wire::mysql::scanner::{Outcome, ReplyShape, Scanner};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

const ROWS: u64 = 100;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts what the calling thread asks for.
struct Counting;

// SAFETY: all is handed on to the system's allocator; a counter without destructor is added to.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as our caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as our caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The reply to sysbench's range query.
fn range(shape: ReplyShape, deprecate_eof: bool) -> Vec<u8> {
    let (mut out, mut sequence) = (Vec::new(), 1);
    result_set::write_column_count(&mut out, &mut sequence, 1);
    result_set::write_column(&mut out, &mut sequence, "c");
    if !deprecate_eof {
        write_eof(&mut out, &mut sequence, 2);
    }
    for _ in 0..ROWS {
        let values = [Some(&[b'7'; 119][..])];
        if shape == ReplyShape::Binary {
            result_set::write_binary_row(&mut out, &mut sequence, &values);
        } else {
            result_set::write_text_row(&mut out, &mut sequence, &values);
        }
    }
    OkPacket::default().write_end(&mut out, &mut sequence, deprecate_eof);
    out
}

#[test]
fn a_reply_cut_anywhere_is_read_without_an_allocation() {
    for shape in [ReplyShape::Text, ReplyShape::Binary] {
        for deprecate_eof in [true, false] {
            let reply = range(shape, deprecate_eof);
            let mut scanner = Scanner::new(deprecate_eof);
            let before = ALLOCATIONS.get();
            for piece in [1, 2, 3, 7, 61, 119, 4096, reply.len()] {
                scanner.begin(shape);
                let mut outcome = None;
                for bytes in reply.chunks(piece) {
                    outcome = scanner.feed(bytes).expect("a reply of the protocol");
                }
                let Some(Outcome::Done(summary)) = outcome else { panic!("no end") };
                assert_eq!((summary.rows, summary.bytes), (ROWS, reply.len() as u64));
            }
            assert_eq!(ALLOCATIONS.get(), before, "{shape:?}, deprecate_eof {deprecate_eof}");
        }
    }
}
