//! Memory, tensor cores, shuffles and barriers.

use super::body::{Emitter, address};
use super::registers::mma_operands;
use crate::thread::{Access, InstData, MmaKind, Op, Shared, Shuffle, Ty, Value, WgmmaLeft, WgmmaMatrix};
use crate::{Error, Result};

/// `.v4.f32` and so on. Elements of 8 and 16 bits are read into 32-bit registers, zero-extended.
fn width(access: Access, ty: Ty) -> String {
    let vector = if access.n > 1 { format!(".v{}", access.n) } else { String::new() };
    let element = match (ty, access.bits) {
        (_, 8) => "u8",
        (_, 16) => "u16",
        (Ty::F32, _) => "f32",
        (Ty::F64, _) => "f64",
        (_, 64) => "b64",
        _ => "b32",
    };
    format!("{vector}.{element}")
}

impl Emitter<'_> {
    /// Prints an op that is not pure and has no blocks.
    pub(super) fn effect(&mut self, inst: &InstData) -> Result<()> {
        let o = &inst.operands;
        match inst.op {
            Op::GlobalLoad(access) => {
                let guard = o.get(1).map_or(String::new(), |&p| format!("@{} ", self.register(p)));
                for (&d, &other) in inst.results.iter().zip(o.iter().skip(2)) {
                    let ty = super::declared(self.func.ty(d));
                    self.line(format_args!("mov.{ty} {}, {}", self.register(d), self.operand(other)));
                }
                let from = address(&self.register(o[0]), access.offset.into());
                let width = width(access, self.func.ty(inst.results[0]));
                self.line(format_args!("{guard}ld.global{width} {}, {from}", self.vector(&inst.results)));
            }
            Op::GlobalStore(access) => {
                let to = address(&self.register(o[0]), access.offset.into());
                self.store("global", access, &to, &o[1..]);
            }
            Op::SharedLoad(buf, access) => {
                let from = self.shared(buf, o[0], access.offset);
                let width = width(access, self.func.ty(inst.results[0]));
                self.line(format_args!("ld.shared{width} {}, {from}", self.vector(&inst.results)));
            }
            Op::SharedStore(buf, access) => {
                let to = self.shared(buf, o[0], access.offset);
                self.store("shared", access, &to, &o[1..]);
            }
            Op::CpAsync { buf, bytes, shared_offset, global_offset } => {
                let to = self.shared(buf, o[0], shared_offset);
                let from = address(&self.register(o[1]), global_offset.into());
                // Copies of 16 bytes may bypass the first cache; smaller ones cannot.
                let cache = if bytes == 16 { "cg" } else { "ca" };
                let size = o.get(2).map(|&p| {
                    let t = self.temporary(Ty::I32);
                    self.line(format_args!("selp.b32 {t}, {bytes}, 0, {}", self.register(p)));
                    t
                });
                let size = size.map_or(String::new(), |t| format!(", {t}"));
                self.line(format_args!("cp.async.{cache}.shared.global {to}, {from}, {bytes}{size}"));
            }
            Op::CpAsyncCommit => self.line("cp.async.commit_group"),
            Op::CpAsyncWait(n) => self.line(format_args!("cp.async.wait_group {n}")),
            Op::LdMatrix { buf, n, trans, offset } => {
                let from = self.shared(buf, o[0], offset);
                let trans = if trans { ".trans" } else { "" };
                let results = self.braces(&inst.results);
                self.line(format_args!("ldmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 {results}, {from}"));
            }
            Op::Mma(kind) => self.mma(kind, &inst.results, o),
            Op::Wgmma { kind, n, a, b } => self.wgmma((kind, n), (a, b), o, &inst.results),
            // A store that never happens, which ptxas does not know.
            Op::Hold => {
                let store = |&v: &Value| {
                    let ty = super::declared(self.func.ty(v));
                    format!("; @never st.shared.{ty} [{}], {}", super::SHARED_BASE, self.operand(v))
                };
                let stores: String = o.iter().map(store).collect();
                self.scope(format_args!(
                    ".reg .pred never; .reg .b32 programs; mov.u32 programs, %nctaid.x; setp.eq.u32 never, programs, 0{stores}"
                ));
            }
            Op::WgmmaFence => self.line("wgmma.fence.sync.aligned"),
            Op::WgmmaCommit => self.line("wgmma.commit_group.sync.aligned"),
            Op::WgmmaWait(n) => {
                self.line(format_args!("wgmma.wait_group.sync.aligned {n}"));
                self.copies(&inst.results, o);
            }
            Op::AsyncProxyFence => self.line("fence.proxy.async.shared::cta"),
            Op::Shuffle(how) => {
                let (mode, lane) = match how {
                    Shuffle::Xor(mask) => ("bfly", mask.to_string()),
                    Shuffle::Index => ("idx", self.operand(o[1])),
                };
                let (d, a) = (self.register(inst.results[0]), self.operand(o[0]));
                self.line(format_args!("shfl.sync.{mode}.b32 {d}, {a}, {lane}, 31, -1"));
            }
            Op::Barrier => self.line("bar.sync 0"),
            Op::WarpBarrier => self.line("bar.warp.sync -1"),
            ref op => return Err(Error::Internal(format!("{op:?} has no PTX"))),
        }
        Ok(())
    }

    fn shared(&mut self, buf: Shared, byte: Value, offset: i32) -> String {
        self.shared_address(byte, i64::from(self.func.shared[buf].offset) + i64::from(offset))
    }

    /// `values` are the registers to store and perhaps a predicate.
    fn store(&mut self, space: &str, access: Access, to: &str, values: &[Value]) {
        let (values, guard) = values.split_at(access.n.into());
        let guard = guard.first().map_or(String::new(), |&p| format!("@{} ", self.register(p)));
        let width = width(access, self.func.ty(values[0]));
        self.line(format_args!("{guard}st.{space}{width} {to}, {}", self.vector(values)));
    }

    /// The register of a matrix's descriptor (PTX manual, "Matrix Descriptor Format"): address, leading and stride byte
    /// offsets in units of 16 bytes, swizzle.
    fn descriptor(&mut self, m: &WgmmaMatrix, byte: Value) -> String {
        let offset = i64::from(self.func.shared[m.buf].offset) + i64::from(m.offset);
        let (base, offset) = self.shared_sum(byte, offset);
        // Where rows go along k, a product reads within one block: the leading offset is not looked at.
        let leading = if m.k_inner { 1 } else { m.block / 16 };
        let stride = u32::from(m.swizzle) * 8 / 16;
        let mode = match m.swizzle {
            128 => 1u32,
            64 => 2,
            _ => 3,
        };
        // Shared memory has fewer than 2^18 bytes, so sums of addresses in units of 16 bytes stay in their field.
        let mut low = self.descriptor_start(&base, leading);
        if offset != 0 {
            let start = std::mem::replace(&mut low, self.temporary(Ty::I32));
            self.line(format_args!("add.u32 {low}, {start}, {}", offset / 16));
        }
        let descriptor = self.temporary(Ty::I64);
        self.line(format_args!("mov.b64 {descriptor}, {{{low}, {}}}", (mode << 30 | stride) as i32));
        descriptor
    }

    fn wgmma(
        &mut self,
        (kind, n): (MmaKind, u16),
        (a, b): (WgmmaLeft, WgmmaMatrix),
        operands: &[Value],
        results: &[Value],
    ) {
        let (left, rest) = operands.split_at(a.operands());
        self.copies(results, &rest[1..]);
        let transposed = |m: WgmmaMatrix| u8::from(!m.k_inner);
        let (a, a_transposed) = match a {
            WgmmaLeft::Shared(m) => (self.descriptor(&m, left[0]), format!("{}, ", transposed(m))),
            WgmmaLeft::Registers => {
                let registers: Vec<_> = left.iter().map(|&v| self.register(v)).collect();
                (format!("{{{}}}", registers.join(", ")), String::new())
            }
        };
        let b_descriptor = self.descriptor(&b, rest[0]);
        let element = if kind == MmaKind::F16 { "f16" } else { "bf16" };
        // Without `c` the results' registers are not read.
        let add = if rest.len() > 1 { "eq" } else { "ne" };
        self.scope(format_args!(
            ".reg .pred add; setp.{add}.u32 add, 0, 0; wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{element}.{element} {}, {a}, \
             {b_descriptor}, add, 1, 1, {a_transposed}{}",
            self.braces(results),
            transposed(b)
        ));
    }

    fn mma(&mut self, kind: MmaKind, results: &[Value], operands: &[Value]) {
        let shape = match kind {
            MmaKind::F16 => "m16n8k16.row.col.f32.f16.f16.f32",
            MmaKind::Bf16 => "m16n8k16.row.col.f32.bf16.bf16.f32",
            MmaKind::Tf32 => "m16n8k8.row.col.f32.tf32.tf32.f32",
            MmaKind::S8 => "m16n8k32.row.col.s32.s8.s8.s32",
            MmaKind::U8 => "m16n8k32.row.col.s32.u8.u8.s32",
        };
        let (a, b) = mma_operands(kind);
        let registers = |values: &[Value]| {
            format!("{{{}}}", values.iter().map(|&v| self.register(v)).collect::<Vec<_>>().join(", "))
        };
        let text = [results, &operands[..a], &operands[a..a + b], &operands[a + b..]].map(registers).join(", ");
        self.line(format_args!("mma.sync.aligned.{shape} {text}"));
    }
}
