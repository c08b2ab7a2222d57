//! Shared memory: buffers, when they live, and where they are put.

use crate::thread::{Builder, Shared, SharedBuf};

/// A buffer and the steps of lowering between which it is in use: more than once, if it was opened again.
struct Life {
    buf: Shared,
    spans: Vec<Span>,
}

struct Span {
    from: u32,
    to: u32,
}

impl Life {
    /// Are both in use at some time?
    fn meets(&self, other: &Life) -> bool {
        self.spans.iter().any(|a| other.spans.iter().any(|b| a.from < b.to && b.from < a.to))
    }
}

/// All shared buffers of a function.
#[derive(Default)]
pub(super) struct SharedPool {
    lives: Vec<Life>,
    step: u32,
}

impl SharedPool {
    /// A new buffer, in use from now on.
    pub fn open(&mut self, b: &mut Builder, bytes: u32, elem_bits: u8) -> Shared {
        let align = if bytes >= 1024 { 1024 } else { 16 };
        let buf = b.shared(SharedBuf { bytes, align, elem_bits, offset: 0 });
        self.step += 1;
        self.lives.push(Life { buf, spans: vec![Span { from: self.step, to: u32::MAX }] });
        buf
    }

    /// The buffer, closed before, is in use again from now on.
    pub fn reopen(&mut self, buf: Shared) {
        self.step += 1;
        if let Some(life) = self.lives.iter_mut().find(|l| l.buf == buf) {
            life.spans.push(Span { from: self.step, to: u32::MAX });
        }
    }

    /// The buffer is not used after this.
    pub fn close(&mut self, buf: Shared) {
        self.step += 1;
        if let Some(life) = self.lives.iter_mut().find(|l| l.buf == buf) {
            life.spans.iter_mut().for_each(|s| s.to = s.to.min(self.step));
        }
    }

    /// Gives every buffer its place: those in use at once apart from each other. Gives the bytes needed in all.
    pub fn allocate(&self, b: &mut Builder, untyped: bool) -> u32 {
        let mut order: Vec<&Life> = self.lives.iter().collect();
        // Large ones first: small ones then fit into the gaps.
        order.sort_by_key(|l| (std::cmp::Reverse(b.func().shared[l.buf].bytes), l.spans[0].from));
        let mut placed: Vec<(&Life, SharedBuf)> = Vec::new();
        for life in order {
            let mut buf = b.func().shared[life.buf];
            let mut others: Vec<SharedBuf> = placed
                .iter()
                .filter(|(l, other)| life.meets(l) && (untyped || other.elem_bits == buf.elem_bits))
                .map(|&(_, other)| other)
                .collect();
            others.sort_by_key(|o| o.offset);
            let mut offset = 0u32;
            for other in others {
                if offset + buf.bytes <= other.offset {
                    break;
                }
                offset = offset.max((other.offset + other.bytes).next_multiple_of(buf.align));
            }
            buf.offset = offset;
            b.shared_mut(life.buf).offset = offset;
            placed.push((life, buf));
        }
        if untyped {
            b.func().shared_bytes(None)
        } else {
            [8, 16, 32, 64].into_iter().map(|bits| b.func().shared_bytes(Some(bits))).sum()
        }
    }
}
