//! Kernels as users write them, and the Tile IR they build.

#[path = "support/mod.rs"]
mod tilewright;

use std::collections::HashSet;
use std::marker::PhantomData;
use tilewright::dsl::*;
use tilewright::{KernelArg, Slice, View};
use tilewright_compiler::dtype::DType;
use tilewright_compiler::tile::{Function, Op, Region, Value, rules};

/// The mnemonics of a region, regions in braces.
fn outline(f: &Function, region: Region) -> String {
    let ops: Vec<String> = f.regions[region]
        .ops
        .iter()
        .map(|&op| {
            let data = &f.ops[op];
            let inner: Vec<String> = data.regions.iter().map(|&r| format!("{{ {} }}", outline(f, r))).collect();
            std::iter::once(data.op.mnemonic()).chain(inner).collect::<Vec<_>>().join(" ")
        })
        .collect();
    ops.join(" ")
}

/// Builds a kernel and checks what holds for every function: operands are in scope, types obey the rules, and regions
/// give the types that their ops promise.
fn build(def: &KernelDef) -> Function {
    let f = def.build(&Specialization::general()).unwrap_or_else(|e| panic!("{e}"));
    check(&f, f.body, &mut HashSet::new());
    f
}

fn check(f: &Function, region: Region, in_scope: &mut HashSet<Value>) {
    let types = |values: &[Value]| values.iter().map(|&v| f.ty(v).clone()).collect::<Vec<_>>();
    let mut inside = in_scope.clone();
    inside.extend(&f.regions[region].params);
    for &op in &f.regions[region].ops {
        let data = &f.ops[op];
        assert!(data.operands.iter().all(|v| inside.contains(v)), "{:?} uses what is not in scope", data.op);
        rules::check(&data.op, &types(&data.operands), &types(&data.results)).expect("the op obeys its rule");
        assert!(data.loc.is_known() || data.op.is_terminator(), "{:?} has no place", data.op);
        for &inner in &data.regions {
            check(f, inner, &mut inside);
            let end = &f.ops[f.terminator(inner)];
            if end.op == Op::Yield {
                assert_eq!(types(&end.operands), types(&data.results), "{:?}", data.op);
            }
        }
        inside.extend(&data.results);
    }
}

/// The outline without constants and broadcasts, which say little.
fn ops(def: &KernelDef) -> String {
    let f = build(def);
    outline(&f, f.body).split(' ').filter(|w| !matches!(*w, "const" | "broadcast")).collect::<Vec<_>>().join(" ")
}

/// Adds two vectors, in the style of pointers and masks.
#[kernel(crate = crate::tilewright)]
fn vector_add(x: Ptr<f32>, y: Ptr<f32>, out: Ptr<f32>, n: i32, #[comptime] block: usize) {
    let offsets = program_id(0) * block + arange(0, block);
    let mask = offsets < n;
    let sum = (x + offsets).load_if(mask) + (y + offsets).load_or(mask, 0.0);
    (out + offsets).store_if(mask, sum);
}

#[kernel(crate = crate::tilewright)]
fn softmax<T: Float>(x: In<T, 2>, y: Out<T, 2>, #[comptime] block: usize) {
    let row = program_id(0);
    let v = x.load_or([row, 0], [1, block], -inf()).to::<f32>();
    let e = exp(v - max(v, 1));
    y.store([row, 0], (e / sum(e, 1)).to::<T>());
}

#[kernel(crate = crate::tilewright)]
fn matmul<T: Float>(
    a: In<T, 2>,
    b: In<T, 2>,
    c: Out<T, 2>,
    k: i32,
    #[comptime] bm: usize,
    #[comptime] bn: usize,
    #[comptime] bk: usize,
) {
    let (m0, n0) = (program_id(0) * bm, program_id(1) * bn);
    let mut acc = zeros::<f32>([bm, bn]);
    for k0 in (0..k).step_by(bk) {
        acc = dot(a.load([m0, k0], [bm, bk]), b.load([k0, n0], [bk, bn]), acc);
    }
    c.store([m0, n0], acc.to::<T>());
}

/// Layer norm of one row by pointers: two passes over the row, each a device loop with promoted scalars.
#[kernel(crate = crate::tilewright)]
fn layer_norm(x: Ptr<f32>, w: Ptr<f32>, y: Ptr<f32>, stride: i32, n: i32, eps: f32, #[comptime] block: usize) {
    let row = x + program_id(0) * stride;
    let out = y + program_id(0) * stride;
    let lanes = arange(0, block);
    let mut total = 0.0;
    let mut squares = zeros::<f32>([block]);
    for start in range(0, n, block) {
        let v = (row + (start + lanes)).load_or(start + lanes < n, 0.0);
        total += sum(v, 0);
        squares += v * v;
    }
    let mean = total / n.to::<f32>();
    let rstd = rsqrt(sum(squares, 0) / n.to::<f32>() - mean * mean + eps);
    for start in range(0, n, block) {
        let at = start + lanes;
        let mask = at < n && at >= 0;
        let v = (row + at).load_or(mask, 0.0);
        (out + at).store_if(mask, (v - mean) * rstd * (w + at).load_if(mask));
    }
}

#[test]
fn vector_add_is_built() {
    let def = vector_add::definition(128);
    assert_eq!(def.id.path, "dsl_kernels::vector_add");
    assert_eq!(def.id.comptime, [ComptimeValue::Int(128)]);
    assert_eq!(ops(&def), "program_id mul arange add lt ptr_add load ptr_add load add ptr_add store yield");
    let f = build(&def);
    let names: Vec<_> = f.params.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["x", "y", "out", "n"]);
}

#[test]
fn softmax_is_built_for_every_float() {
    for def in [softmax::definition::<f16>(256), softmax::definition::<bf16>(256)] {
        assert_eq!(
            ops(&def),
            "program_id view_load cast reduce_max reshape sub exp reduce_sum reshape div cast view_store yield"
        );
    }
    assert_eq!(softmax::definition::<f16>(256).id.dtypes, [DType::F16]);
    assert_ne!(softmax::definition::<f16>(256), softmax::definition::<f16>(128));
    let f = build(&softmax::definition::<f32>(256));
    assert_eq!(f.hints.len(), 10, "base, two extents and two strides of two views");
}

#[test]
fn matmul_is_built() {
    assert_eq!(
        ops(&matmul::definition::<f16>(64, 128, 32)),
        "program_id mul program_id mul for { view_load view_load dot yield } cast view_store yield"
    );
}

#[test]
fn layer_norm_is_built() {
    let text = ops(&layer_norm::definition(512));
    assert_eq!(text.matches("for {").count(), 2, "{text}");
    assert!(text.contains("reduce_sum reshape add") || text.contains("reduce_sum add"), "{text}");
}

#[test]
fn the_launcher_passes_arguments_in_order() {
    let view = || View::<f16, 2>(PhantomData);
    let launch = softmax::<f16>(view(), view(), 64);
    assert_eq!(launch.args, [("x", KernelArg::View(Access::In)), ("y", KernelArg::View(Access::Out))]);
    assert_eq!(launch.def, softmax::definition::<f16>(64));
    let slice = || Slice::<f32>(PhantomData);
    let launch = vector_add(slice(), slice(), slice(), 5, 64);
    assert_eq!(launch.args[3], ("n", KernelArg::Scalar("i32")));
}

#[test]
fn hints_and_the_index_type_come_from_the_specialisation() {
    let mut spec = Specialization { index: DType::I32, ..Specialization::general() };
    spec.hints =
        (0..10).map(|i| tilewright_compiler::tile::ParamHint { divisor: 1 << i, ..Default::default() }).collect();
    spec.fp_fusion = true;
    let f = softmax::definition::<f32>(64).build(&spec).unwrap();
    assert!(f.fp_fusion);
    assert_eq!(f.hints, spec.hints);
    assert_eq!(f.ty(f.flat_params(0)[3]).dtype(), DType::I32);
}

// ---- control flow -------------------------------------------------------------------------------------------------

#[derive(Clone, Copy, PartialEq, Comptime)]
#[comptime(crate = crate::tilewright)]
enum Mode {
    Double,
    Square,
}

#[device_fn(crate = crate::tilewright)]
fn apply(x: Tile<f32>, f: impl Fn(Tile<f32>) -> Tile<f32>) -> Tile<f32> {
    f(x)
}

#[device_fn(crate = crate::tilewright)]
fn relu<T: Float>(x: Tile<T>) -> Tile<T> {
    where_(x > 0.0, x, 0.0)
}

#[kernel(crate = crate::tilewright)]
fn host_control(x: Ptr<f32>, #[comptime] mode: Mode, #[comptime] name: &'static str, #[comptime] n: usize) {
    let mut v = x.load();
    if mode == Mode::Double && n > 1 {
        v = v * 2.0;
    } else if mode == Mode::Square {
        v = v * v;
    }
    let mut parts = Vec::new();
    for i in unroll(0..n) {
        if i % 2 == 1 {
            continue;
        }
        parts.push(v + i);
    }
    for part in &parts {
        v += *part;
    }
    if name == "relu" {
        v = relu(v);
    }
    let half = 0.5;
    let scaled = apply(v, |t| 2.0 * t + half);
    match mode {
        Mode::Double => x.store(scaled),
        Mode::Square => x.store(1.0 - scaled),
    }
}

#[test]
fn comptime_control_leaves_no_regions() {
    assert_eq!(
        ops(&host_control::definition(Mode::Double, "relu", 3)),
        "load mul add add add add gt select mul add store yield"
    );
    assert_eq!(ops(&host_control::definition(Mode::Square, "", 0)), "load mul mul add sub store yield");
    let id = host_control::definition(Mode::Square, "", 0).id;
    assert_eq!(id.comptime[1..], [ComptimeValue::Text(String::new()), ComptimeValue::Int(0)]);
    assert_eq!(id, host_control::definition(Mode::Square, "", 0).id);
    assert_ne!(id, host_control::definition(Mode::Double, "", 0).id);
}

#[derive(Clone, Copy, Carry)]
#[carry(crate = crate::tilewright)]
struct Running {
    max: Tile<f32>,
    sum: Tile<f32>,
}

#[kernel(crate = crate::tilewright)]
fn device_control(x: Ptr<f32>, n: i32, m: i64) {
    let mut state = Running { max: scalar(-inf()), sum: scalar(0.0) };
    let mut count = 0;
    let mut p = x;
    let (mut a, mut b) = (scalar::<f32>(1.0), scalar::<f32>(2.0));
    for i in 0..n {
        let v = p.load();
        if v > state.max {
            state.sum = state.sum * exp(state.max - v) + 1.0;
            state.max = v;
        } else {
            state.sum += exp(v - state.max);
        }
        (a, b) = (b, a + b);
        p += 1;
        count += i;
    }
    while count > 0 && a < 100.0 {
        count -= 2;
        a = a + 1.0;
    }
    let picked = if n > 3 || n == 0 {
        a
    } else if m < 7 {
        b
    } else {
        state.sum
    };
    for j in 0..m {
        (x + j).store(picked + 1.0);
    }
    let one = unroll_free(|t| if t > 0.0 { t } else { -t }, picked);
    x.store(one + count.to::<f32>());
}

#[device_fn(crate = crate::tilewright)]
fn unroll_free(f: impl Fn(Tile<f32>) -> Tile<f32>, x: Tile<f32>) -> Tile<f32> {
    f(x)
}

#[test]
fn device_control_becomes_regions() {
    let f = build(&device_control::definition());
    let text = ops(&device_control::definition());
    assert_eq!(
        text,
        "for { load gt if { sub exp mul add yield } { sub exp add yield } add ptr_add add yield } \
         while { gt lt and condition } { sub add yield } \
         gt eq or if { yield } { lt if { yield } { yield } yield } for { ptr_add add store yield } \
         gt if { yield } { neg yield } cast add store yield"
    );
    let the_for = f.regions[f.body].ops.iter().find(|&&op| f.ops[op].op.mnemonic() == "for").unwrap();
    assert_eq!(f.ops[*the_for].results.len(), 6, "max, sum, a, b, p and count");
}

#[kernel(crate = crate::tilewright)]
fn mixed(x: Ptr<f32>, flag: i32, #[comptime] wide: bool) {
    // The condition's type is found by rustc: the macro cannot know that `host` is a host value.
    let host = identity(wide);
    let mut names = vec!["a"];
    if host {
        names.push("b");
        names = vec!["c", "d", "e"];
    }
    let text = if host { "yes" } else { "no" };
    let v = x.load() + names.len() + text.len();
    let both = host && flag != 0;
    if both {
        x.store(v);
    }
    if !wide || identity(true) {
        x.store(v + 1);
    }
}

#[kernel(crate = crate::tilewright)]
fn host_code(x: Ptr<f32>, #[comptime] limits: Option<usize>) {
    let list = vec![1.5f32, 2.5];
    let table = [0i64; 2 * 3];
    let mut count = 2 * list.len() + 1;
    if list.len() == 2 && list[0] < 2.0 && table.len() > 1 << 1 {
        count += 1;
    }
    while count > 100 {
        count -= 1;
    }
    while let Some(n) = limits
        && n == 3
    {
        count = 9;
        break;
    }
    if limits == None || *"abc" == *"abd" {
        count = 0;
    }
    let found = loop_free(&list, |v| v > 2.0);
    for (i, v) in list.iter().enumerate() {
        if i != 0 {
            x.store(count + scalar::<f32>(*v) + found);
        }
    }
    let size: usize = 4;
    let weights = [0.25; 2].map(|w| x.load() * w);
    for w in &weights {
        x.store(2 * size + *w);
    }
}

fn loop_free(list: &[f32], f: impl Fn(f32) -> bool) -> usize {
    list.iter().position(|&v| f(v)).unwrap_or(7)
}

#[test]
fn host_code_is_plain_rust() {
    let def = host_code::definition(Some(3));
    assert_eq!(def.id, host_code::definition(Some(3)).id);
    assert_ne!(def.id, host_code::definition(Some(4)).id);
    assert_ne!(def.id, host_code::definition(None).id);
    assert_eq!(ops(&def), "add add store load mul load mul add store add store yield");
}

#[kernel(crate = crate::tilewright)]
fn places(x: Ptr<f32>, n: i32) {
    let mut pair = (x.load(), [scalar::<i32>(0); 2]);
    let mut best = None;
    let mut outer = scalar::<f32>(0.0);
    best = best.or(Some(x.load()));
    let alias = &mut outer;
    for i in (n..0).step_by(n) {
        pair.0 += 1.0;
        pair.1[1] = i;
        *alias = pair.0;
        bump(&mut pair.0);
        if let Some(b) = &mut best {
            *b = 1.0 + *b;
        }
        if i > 2 {
            best = best.map(|b| b * 2.0);
        }
    }
    x.store(pair.0 + outer + pair.1[1].to::<f32>() + best.unwrap_or(pair.0));
}

#[device_fn(crate = crate::tilewright)]
fn bump(x: &mut Tile<f32>) {
    if *x > 0.0 {
        *x += 1.0;
    }
}

#[test]
fn every_kind_of_place_is_carried() {
    let f = build(&places::definition());
    let the_for = f.regions[f.body].ops.iter().find(|&&op| f.ops[op].op.mnemonic() == "for").unwrap();
    assert_eq!(f.ops[*the_for].results.len(), 4, "the leaves of `pair` that change, `*alias`, `best`");
}

impl Running {
    #[device_fn(crate = crate::tilewright)]
    fn update(&mut self, v: Tile<f32>) {
        if v > self.max {
            self.rescale(v);
        }
        self.sum += exp(v - self.max);
    }

    #[device_fn(crate = crate::tilewright)]
    fn rescale(&mut self, max: Tile<f32>) {
        self.sum = self.sum * exp(self.max - max);
        self.max = max;
    }
}

#[device_fn(crate = crate::tilewright)]
fn update_twice(state: &mut Running, v: Tile<f32>, again: Tile<bool>) {
    update_once(state, v);
    if again {
        update_once(state, v);
        state.sum += 1.0;
    }
}

fn update_once(state: &mut Running, v: Tile<f32>) {
    state.update(v);
}

macro_rules! add_to {
    ($variable:ident, $value:expr) => {
        $variable = $variable + $value
    };
}

#[kernel(crate = crate::tilewright)]
fn unseen_assignments(x: Ptr<f32>, n: i32) {
    let mut total = scalar::<f32>(0.0);
    for _ in 0..n {
        add_to!(total, 1.0);
        x.store(total);
    }
}

#[test]
fn assignments_inside_macros_are_carried() {
    let f = build(&unseen_assignments::definition());
    let the_for = f.regions[f.body].ops.iter().find(|&&op| f.ops[op].op.mnemonic() == "for").unwrap();
    assert_eq!(f.ops[*the_for].results.len(), 1);
}

#[kernel(crate = crate::tilewright)]
fn methods(x: Ptr<f32>, n: i32) {
    let mut state = Running { max: scalar(-inf()), sum: scalar(0.0) };
    let mut sizes = Vec::new();
    sizes.push(4usize);
    for i in 0..n {
        state.update((x + i).load());
        assert_eq!(sizes.iter().sum::<usize>(), 4);
    }
    update_twice(&mut state, x.load(), n > 3);
    x.store(state.max + state.sum + sizes[0]);
}

#[test]
fn methods_change_device_state() {
    let f = build(&methods::definition());
    assert_eq!(
        ops(&methods::definition()),
        "for { ptr_add load gt if { sub exp mul yield } { yield } sub exp add yield } load gt \
         gt if { sub exp mul yield } { yield } sub exp add \
         if { gt if { sub exp mul yield } { yield } sub exp add add yield } { yield } add add store yield"
    );
    for &op in &f.regions[f.body].ops {
        if !f.ops[op].regions.is_empty() {
            assert_eq!(f.ops[op].results.len(), 2, "max and sum are carried by {}", f.ops[op].op.mnemonic());
        }
    }
}

fn identity(b: bool) -> bool {
    b
}

#[test]
fn conditions_of_unknown_kind_serve_both() {
    assert_eq!(ops(&mixed::definition(true)), "load add add ne and if { store yield } { yield } add store yield");
}

#[kernel(crate = crate::tilewright)]
fn operators<T: Float>(x: InOut<T, 1>, n: i32, u: u8) {
    let v = x.load([n * 4], [16]);
    let w = 2.0 * v - 1.0 / v + v * 3 - (-v);
    let i = (1 << n) | (n >> 1) & 7 ^ n;
    let j = 7 - i % 3 + floor_mod(i, 4) + cdiv(n, 3) + u.to::<i32>();
    let even = j & 1 == 0;
    let c = clamp(w, 0.0, 1) + T::lit(0.5) + fma(v, 2.0, w) + maximum(w, 1.0);
    let r = where_(!even, c, w);
    x.store([0], r * x.dim(0).to::<T>() + x.stride(0).to::<T>());
    x.store([j], broadcast_to(squeeze(reshape(v, [1, 16]), 0), [16]));
}

#[test]
fn operators_mix_tiles_and_numbers() {
    let text = ops(&operators::definition::<f16>());
    assert!(text.starts_with("mul view_load mul div sub mul add neg sub shl shr and xor or"), "{text}");
}

#[kernel(crate = crate::tilewright, fp_fusion)]
fn constant_generic<const N: usize>(x: Ptr<i32>) {
    x.broadcast_to([N]).store(arange(0, N));
}

#[test]
fn constant_generics_and_options() {
    let def = constant_generic::definition::<8>();
    assert_eq!(def.id.comptime, [ComptimeValue::Int(8)]);
    assert!(build(&def).fp_fusion);
}

#[test]
fn kernels_may_be_written_inside_functions() {
    #[kernel(crate = crate::tilewright)]
    fn local(x: Ptr<i32>) {
        x.store(1);
    }
    assert_eq!(ops(&local::definition()), "store yield");
}

#[kernel(crate = crate::tilewright)]
fn natural<T: Float>(x: In<T, 2>, y: Out<T, 2>, n: i32) {
    // Mixed offsets in a variable, a literal as a tile, and a literal in a tuple that a loop changes.
    let at = [program_id(0), 0];
    let half: Tile<T> = 0.5;
    let (mut sum, mut count) = (zeros::<T>([1, 4]), 0);
    for k in 0..n {
        sum += x.load(at, [1, 4]) * half;
        count += k;
    }
    y.store([count, 0], sum);
}

#[test]
fn found_l9_what_is_meant_works() {
    let f = build(&natural::definition::<f16>());
    let the_for = f.regions[f.body].ops.iter().find(|&&op| f.ops[op].op.mnemonic() == "for").unwrap();
    assert_eq!(f.ops[*the_for].results.len(), 2, "`sum` and `count`");
}

/// What a loop only reads is no state of it, however it is read.
#[kernel(crate = crate::tilewright)]
fn reading(x: Ptr<f32>, n: i32) {
    let mut offset = n.to::<i64>();
    offset += 1;
    let mut state = Running { max: scalar(0.0), sum: scalar(1.0) };
    state.update(x.load());
    for i in 0..n {
        (x + offset.to::<i32>() + i).store(state.max.to::<f32>());
        if i > 2 {
            (x + offset).store(state.sum);
        }
    }
    while n > 3 {
        (x + offset).store(state.max.to::<f16>().to::<f32>());
    }
}

#[test]
fn what_is_only_read_is_not_carried() {
    let f = build(&reading::definition());
    f.walk(f.body, &mut |op| {
        if matches!(f.ops[op].op.mnemonic().as_str(), "for" | "while") {
            assert!(f.ops[op].results.is_empty());
        }
    });
}
