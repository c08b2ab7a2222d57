//! Larger kernels, written the ways that users of other kernel languages write them.

#[path = "support/mod.rs"]
#[allow(dead_code)] // These kernels are built, not launched.
mod tilewright;

use tilewright::dsl::*;
use tilewright_compiler::tile::Function;

fn build(def: &KernelDef) -> Function {
    def.build(&Specialization::general()).unwrap_or_else(|e| panic!("{e}"))
}

/// How many ops of a kind there are.
fn count(f: &Function, mnemonic: &str) -> usize {
    let mut n = 0;
    f.walk(f.body, &mut |op| n += usize::from(f.ops[op].op.mnemonic() == mnemonic));
    n
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Activation {
    None,
    Relu,
    Gelu,
}

#[device_fn(crate = crate::tilewright)]
fn activate(x: Tile<f32>, #[comptime] kind: Activation) -> Tile<f32> {
    match kind {
        Activation::None => x,
        Activation::Relu => maximum(x, 0),
        Activation::Gelu => 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)),
    }
}

/// A matrix product by pointers, strides and masks, with programs in groups.
#[kernel(crate = crate::tilewright)]
#[allow(clippy::too_many_arguments)] // Triton's tutorial passes every stride as an argument of its own.
fn matmul_pointers<T: Float>(
    a: Ptr<T>,
    b: Ptr<T>,
    c: Ptr<T>,
    m: i32,
    n: i32,
    k: i32,
    stride_am: i64,
    stride_bk: i64,
    stride_cm: i64,
    #[comptime] bm: usize,
    #[comptime] bn: usize,
    #[comptime] bk: usize,
    #[comptime] group: usize,
    #[comptime] activation: Activation,
) {
    let pid = program_id(0);
    let (rows, columns) = (cdiv(m, bm), cdiv(n, bn));
    let in_group = columns * group;
    let first = pid / in_group * group;
    let size = minimum(rows - first, group);
    let (pid_m, pid_n) = (first + pid % in_group % size, pid % in_group / size);

    let offs_m = expand_dims(pid_m * bm + arange(0, bm), 1);
    let offs_n = expand_dims(pid_n * bn + arange(0, bn), 0);
    let offs_k = arange(0, bk);
    let mut pa = a + offs_m.to::<i64>() * stride_am + expand_dims(offs_k, 0);
    let mut pb = b + expand_dims(offs_k, 1).to::<i64>() * stride_bk + offs_n;
    let mut acc = zeros::<f32>([bm, bn]);
    for step in 0..cdiv(k, bk) {
        let left = k - step * bk;
        let x = pa.load_if(offs_m < m && expand_dims(offs_k, 0) < left);
        let y = pb.load_or(expand_dims(offs_k, 1) < left && offs_n < n, 0.0);
        acc = dot(x, y, acc);
        pa += bk;
        pb += bk * stride_bk;
    }
    let acc = activate(acc, activation);
    (c + offs_m.to::<i64>() * stride_cm + offs_n).store_if(offs_m < m && offs_n < n, acc.to::<T>());
}

#[test]
fn matmul_by_pointers() {
    let f = build(&matmul_pointers::definition::<f16>(64, 64, 32, 8, Activation::Gelu));
    assert_eq!((count(&f, "dot"), count(&f, "for"), count(&f, "erf")), (1, 1, 1));
    let f = build(&matmul_pointers::definition::<bf16>(64, 64, 32, 8, Activation::None));
    assert_eq!(count(&f, "erf"), 0);
    assert_ne!(
        matmul_pointers::definition::<f16>(64, 64, 32, 8, Activation::Relu),
        matmul_pointers::definition::<f16>(64, 64, 32, 8, Activation::Gelu)
    );
}

/// Attention with an online softmax: the running maximum, sum and output are carried by the loop.
#[kernel(crate = crate::tilewright)]
fn attention<T: Float>(
    q: In<T, 3>,
    k: In<T, 3>,
    v: In<T, 3>,
    out: Out<T, 3>,
    scale: f32,
    #[comptime] bm: usize,
    #[comptime] bn: usize,
    #[comptime] d: usize,
    #[comptime] causal: bool,
) {
    let (head, m0) = (program_id(1), program_id(0) * bm);
    let queries = reshape(q.load([head, m0, 0], [1, bm, d]), [bm, d]);
    let length = k.dim(1);
    let (mut top, mut total) = (full::<f32>([bm, 1], -inf()), zeros::<f32>([bm, 1]));
    let mut acc = zeros::<f32>([bm, d]);
    let end = if causal { minimum(m0 + bm, length) } else { length };
    for n0 in (0..end).step_by(bn) {
        let keys = reshape(k.load([head, n0, 0], [1, bn, d]), [bn, d]);
        let mut s = dot(queries, trans(keys), zeros::<f32>([bm, bn])) * scale;
        let columns = expand_dims(n0 + arange(0, bn), 0);
        let mut keep = columns < length;
        if causal {
            keep = keep && expand_dims(m0 + arange(0, bm), 1) >= columns;
        }
        s = where_(keep, s, -inf());
        let new = maximum(top, max(s, 1));
        let p = exp(s - new);
        let alpha = exp(top - new);
        total = total * alpha + sum(p, 1);
        let values = reshape(v.load([head, n0, 0], [1, bn, d]), [bn, d]);
        acc = dot(p.to::<T>(), values, acc * alpha);
        top = new;
    }
    out.store([head, m0, 0], reshape((acc / total).to::<T>(), [1, bm, d]));
}

#[test]
fn attention_carries_its_state() {
    for causal in [false, true] {
        let f = build(&attention::definition::<f16>(64, 32, 128, causal));
        assert_eq!((count(&f, "dot"), count(&f, "for"), count(&f, "if")), (2, 1, 0));
        assert_eq!(count(&f, "ge"), usize::from(causal));
    }
}

/// A search: nested loops and branches, tuples as values, scalars of a generic type.
#[kernel(crate = crate::tilewright)]
fn nearest<T: Float>(points: In<T, 2>, x: T, y: T, found: Ptr<i32>, distance: Ptr<T>, tries: u32) {
    let (mut best, mut at) = (scalar::<T>(inf()), scalar::<i32>(-1));
    let mut i = 0;
    while i < points.dim(0) && best > 0.0 {
        let px = points.ptr() + i.to::<i64>() * points.stride(0);
        let (dx, dy) = (px.load() - x, (px + points.stride(1)).load() - y);
        let d = dx * dx + dy * dy;
        (best, at) = if d < best { (d, i) } else { (best, at) };
        for j in range(3, -1, -1) {
            if j == 2 && !(d < best) {
                at += 0 * j;
            } else if tries == 7 {
                at = at | 0;
            } else {
                best = best * 1.0;
            }
        }
        i += 1;
    }
    let bits = [at & 1, at >> 1 & 1];
    let both = bits[0] != 0 || bits[1] == 1;
    found.store_if(both, at);
    distance.store(if both { sqrt(best) } else { T::lit(-1.0) });
}

#[test]
fn nested_control_flow() {
    for def in [nearest::definition::<f32>(), nearest::definition::<f64>()] {
        let f = build(&def);
        assert_eq!((count(&f, "while"), count(&f, "for"), count(&f, "if")), (1, 1, 4));
    }
}
