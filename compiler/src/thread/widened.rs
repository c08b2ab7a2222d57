//! Order among numbers of 64 bits that were widened from 32: it is that of the numbers of 32 bits, which compare faster on
//! every GPU (and rightly on llvmpipe, which gets the order of a widened number and a constant wrong).

use super::builder::Builder;
use super::function::Value;
use super::ops::{Cmp, Conv, IBin, Op, Ty};

/// What is right of a widened number in a comparison.
enum Other {
    /// As a number of 32 bits, widened in the same way.
    Narrow(Value),
    /// Beyond what widened numbers can be; above all of them, as the operation orders?
    Beyond { above: bool },
}

/// Where no number of 32 bits stands for `c`: how numbers widened by `conv` lie to it. `None` if some are above and some below.
fn beyond(conv: Conv, signed: bool, c: u64) -> Option<Other> {
    match (conv, signed) {
        (_, true) => Some(Other::Beyond { above: (c as i64) > 0 }),
        // Zeros above: all are below any such `c`.
        (Conv::ZExt64, false) => Some(Other::Beyond { above: true }),
        // Repeated signs: half of the numbers are above.
        _ => None,
    }
}

impl Builder {
    /// The number of 32 bits that `v` was widened from.
    fn widened(&self, v: Value) -> Option<(Conv, Value)> {
        match self.def(v)?.op {
            Op::Conv(conv @ (Conv::SExt64 | Conv::ZExt64)) => Some((conv, self.def(v)?.operands[0])),
            _ => None,
        }
    }

    fn other(&mut self, conv: Conv, signed: bool, y: Value) -> Option<Other> {
        if let Some((same, narrow)) = self.widened(y) {
            return (same == conv).then_some(Other::Narrow(narrow));
        }
        let c = self.bits(y)?;
        let again = if conv == Conv::SExt64 { c as i32 as i64 as u64 } else { u64::from(c as u32) };
        if again == c { Some(Other::Narrow(self.constant(Ty::I32, c))) } else { beyond(conv, signed, c) }
    }

    /// Is the order of widened numbers that of signed ones? Repeated signs keep both orders; zeros above make all
    /// numbers unsigned.
    fn narrow_sign(conv: Conv, signed: bool) -> bool {
        conv == Conv::SExt64 && signed
    }

    /// A comparison of two widened numbers, or of one with a constant.
    pub(super) fn compare_widened(&mut self, cmp: Cmp, signed: bool, x: Value, y: Value) -> Option<Value> {
        let Some((conv, narrow)) = self.widened(x) else {
            // The constant first: seen from the other side.
            self.bits(x)?;
            self.widened(y)?;
            return self.compare_widened(cmp.swapped(), signed, y, x);
        };
        Some(match self.other(conv, signed, y)? {
            Other::Narrow(other) if Self::narrow_sign(conv, signed) => self.icmp_s(cmp, narrow, other),
            Other::Narrow(other) => self.icmp_u(cmp, narrow, other),
            Other::Beyond { above } => self.pred(match cmp {
                Cmp::Eq => false,
                Cmp::Ne => true,
                Cmp::Lt | Cmp::Le => above,
                Cmp::Gt | Cmp::Ge => !above,
            }),
        })
    }

    /// The lesser or greater of two widened numbers, or of one and a constant.
    pub(super) fn extreme_widened(&mut self, op: IBin, x: Value, y: Value) -> Option<Value> {
        let (least, signed) = match op {
            IBin::MinS => (true, true),
            IBin::MaxS => (false, true),
            IBin::MinU => (true, false),
            IBin::MaxU => (false, false),
            _ => return None,
        };
        let Some((conv, narrow)) = self.widened(x) else {
            self.bits(x)?;
            self.widened(y)?;
            return self.extreme_widened(op, y, x);
        };
        Some(match self.other(conv, signed, y)? {
            Other::Narrow(other) => {
                let op = match (least, Self::narrow_sign(conv, signed)) {
                    (true, true) => IBin::MinS,
                    (true, false) => IBin::MinU,
                    (false, true) => IBin::MaxS,
                    (false, false) => IBin::MaxU,
                };
                let narrow = self.ibin(op, narrow, other);
                self.conv(conv, narrow, Ty::I64)
            }
            Other::Beyond { above } => {
                if above == least {
                    x
                } else {
                    y
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::thread::{AbiParam, AbiTy, Builder, Cmp, Conv, Function, IBin, InstId, Op, Ty, eval};

    /// Evaluates the straight code of a function whose only parameter has these bits.
    fn value(func: &Function, argument: u64, at: crate::thread::Value) -> u64 {
        let mut known = std::collections::HashMap::new();
        let insts: Vec<InstId> = func.blocks[func.body].insts.clone();
        for id in insts {
            let inst = &func.insts[id];
            let Some(&result) = inst.results.first() else { continue };
            let bits = match inst.op {
                Op::Const(bits) => bits,
                Op::Param(_) => argument,
                _ => {
                    let operands: Vec<u64> = inst.operands.iter().map(|v| known[v]).collect();
                    let types: Vec<Ty> = inst.operands.iter().map(|&v| func.ty(v)).collect();
                    eval::eval(&inst.op, &types, &operands, func.ty(result)).expect("pure ops have values")
                }
            };
            known.insert(result, bits);
        }
        known[&at]
    }

    #[test]
    fn the_order_is_kept() {
        let narrow = [0u64, 1, 5, 0x7fff_fffe, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_ffff];
        let mut wide: Vec<u64> = narrow.iter().flat_map(|&n| [n, n as i32 as i64 as u64]).collect();
        wide.extend([1 << 32, (1 << 32) + 5, 1 << 62, 1 << 63, (1 << 63) + 1, 0xffff_ffff_0000_0000]);
        for conv in [Conv::SExt64, Conv::ZExt64] {
            for &c in &wide {
                for swapped in [false, true] {
                    let mut b = Builder::new("order", vec![AbiParam { name: "n".into(), ty: AbiTy::I32 }], 32, 32);
                    let n = b.param(0);
                    let x = b.conv(conv, n, Ty::I64);
                    let y = b.constant(Ty::I64, c);
                    let (x, y) = if swapped { (y, x) } else { (x, y) };
                    let mut results = Vec::new();
                    for cmp in [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge] {
                        results.push((Op::ICmpS(cmp), b.icmp_s(cmp, x, y), Ty::Pred));
                        results.push((Op::ICmpU(cmp), b.icmp_u(cmp, x, y), Ty::Pred));
                    }
                    for op in [IBin::MinS, IBin::MaxS, IBin::MinU, IBin::MaxU] {
                        results.push((Op::IBin(op), b.ibin(op, x, y), Ty::I64));
                    }
                    let func = b.finish();
                    for &n in &narrow {
                        let w = if conv == Conv::SExt64 { n as u32 as i32 as i64 as u64 } else { n };
                        let operands = if swapped { [c, w] } else { [w, c] };
                        for (op, result, ty) in &results {
                            let expected = eval::eval(op, &[Ty::I64; 2], &operands, *ty).expect("pure");
                            assert_eq!(value(&func, n, *result), expected, "{op:?} of {operands:x?}, {conv:?}");
                        }
                    }
                }
            }
        }
    }
}
