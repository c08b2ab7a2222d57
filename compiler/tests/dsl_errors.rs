//! Mistakes found while a kernel is built: what is said, where, and what to do.

#[path = "support/mod.rs"]
#[allow(dead_code)] // These kernels are built, not launched.
mod tilewright;

use tilewright::dsl::*;
use tilewright_compiler::Error;

/// The mistakes of a kernel, each as `+line:col message | help`; lines count from that of `#[kernel]`.
fn mistakes(def: &KernelDef, base: u32) -> Vec<String> {
    let Err(Error::Kernel { kernel, diagnostics }) = def.build(&Specialization::general()) else {
        panic!("the kernel was accepted");
    };
    assert_eq!(kernel, def.name);
    diagnostics
        .iter()
        .map(|d| {
            assert!(d.loc.file.ends_with("tests/dsl_errors.rs"), "{}", d.loc);
            format!("+{}:{} {} | {}", d.loc.line - base, d.loc.col, d.message, d.help.as_deref().unwrap_or("-"))
        })
        .collect()
}

/// Declares a kernel, builds it and compares its mistakes.
macro_rules! expect {
    ($def:expr, $base:expr, [$($expected:expr),* $(,)?]) => {{
        let found = mistakes(&$def, $base);
        let expected: Vec<&str> = vec![$($expected),*];
        assert_eq!(found, expected, "\nFOUND {found:#?}");
    }};
}

#[test]
fn shapes_that_do_not_broadcast_are_told_once() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: Ptr<f32>) {
        let a = zeros::<f32>([16, 8]);
        let b = zeros::<f32>([16]);
        let c = a + b;
        let d = exp(c) * 2.0;
        x.store(sum(sum(d, 1), 5));
    }
    expect!(
        k::definition(),
        base,
        [
            "+4:17 shapes [16, 8] and [16] do not broadcast together: they have 2 and 1 dimensions | insert a dimension of extent 1 with `expand_dims` so that the ranks agree",
        ]
    );
}

#[test]
fn extents_that_differ() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(_x: Ptr<f32>) {
        let a = zeros::<f32>([16, 8]);
        let _ = maximum(a, zeros::<f32>([16, 4]));
        let _ = a < ones::<f32>([8, 8]);
    }
    expect!(
        k::definition(),
        base,
        [
            "+3:17 shapes [16, 8] and [16, 4] do not broadcast together: dimension 1 is 8 in one and 4 in the other | -",
            "+4:17 shapes [16, 8] and [8, 8] do not broadcast together: dimension 0 is 16 in one and 8 in the other | -",
        ]
    );
}

#[test]
fn extents_are_powers_of_two() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: In<f32, 2>, #[comptime] block: usize) {
        let _ = x.load([0, 0], [1, block]);
        let _ = arange(0, block);
        let _ = arange(8, 8);
        let _ = zeros::<f32>([1 << 20, 2]);
    }
    expect!(
        k::definition(100),
        base,
        [
            "+2:19 extent 100 of shape [1, 100] is not a power of two | tile extents are powers of two; use a larger tile and a mask, or a view, for ragged sizes",
            "+3:17 extent 100 of shape [100] is not a power of two | tile extents are powers of two; use a larger tile and a mask, or a view, for ragged sizes",
            "+4:17 arange from 8 to 8 has no elements, or leaves the range of i32 | the end lies above the start, and both fit in i32",
            "+5:17 shape [1048576, 2] has more than 1048576 elements | tile extents are powers of two; use a larger tile and a mask, or a view, for ragged sizes",
        ]
    );
}

#[test]
fn numbers_that_do_not_fit() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: Ptr<i8>, y: Ptr<f16>, z: Ptr<u32>, #[comptime] big: usize) {
        x.store(x.load() + 1000);
        y.store(y.load() * 1e6);
        y.store(y.load() + 4097);
        z.store(z.load() - -1);
        let _ = program_id(0) * big;
    }
    expect!(
        k::definition(1 << 40),
        base,
        [
            "+2:17 the number 1000 does not fit in i8, which holds -128 to 127 | convert the tile to a wider type with `.to::<..>()` first",
            "+3:17 the number 1000000 does not fit in f16 | convert the tile to a wider type with `.to::<..>()`; write `inf()` for infinity",
            "+4:17 the integer 4097 is not exact in f16; the nearest is 4096 | write `4097.0` if the nearest number will do",
            "+5:17 the number -1 does not fit in u32, which holds 0 to 4294967295 | convert the tile to a wider type with `.to::<..>()` first",
            "+6:17 the number 1099511627776 does not fit in i32, which holds -2147483648 to 2147483647 | convert the tile to a wider type with `.to::<..>()` first",
        ]
    );
}

#[test]
fn axes_out_of_range() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: In<f32, 2>) {
        let v = x.load([0, 0], [16, 16]);
        let _ = max(v, 2);
        let _ = argmax(v, 3);
        let _ = program_id(3);
        let _ = x.dim(2);
        let _ = x.stride(7);
        let _ = expand_dims(v, 4);
        let _ = squeeze(v, 0);
    }
    expect!(
        k::definition(),
        base,
        [
            "+3:17 axis 2 is out of range for a tile of type f32[16, 16], which has 2 dimensions | axes count from 0: the last is 1",
            "+4:17 axis 3 is out of range for a tile of type f32[16, 16], which has 2 dimensions | axes count from 0: the last is 1",
            "+5:17 axis 3 of the grid; a grid has axes 0, 1 and 2 | fold further dimensions into one axis, and take them apart with `/` and `%`",
            "+6:19 axis 2 is out of range for a view of 2 dimensions | axes count from 0",
            "+7:19 axis 7 is out of range for a view of 2 dimensions | axes count from 0",
            "+8:17 cannot insert dimension 4 in a tile of type f32[16, 16] | the new dimension stands before dimension `axis`, or last: `axis` is at most 2",
            "+9:17 cannot drop dimension 0 of a tile of type f32[16, 16]: its extent is not 1 | only dimensions of extent 1 can be dropped; reduce the dimension first",
        ]
    );
}

#[test]
fn dot_of_unlike_matrices() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k<T: Float>(a: In<T, 2>, b: In<T, 2>) {
        let (a, b) = (a.load([0, 0], [16, 32]), b.load([0, 0], [16, 32]));
        let acc = zeros::<f32>([16, 16]);
        let _ = dot(a, b, acc);
        let _ = dot(a, trans(b), zeros::<f32>([16, 32]));
        let _ = dot(a, trans(b), acc);
        let _ = dot(expand_dims(a, 0), b, acc);
    }
    expect!(
        k::definition::<f16>(),
        base,
        [
            "+4:17 `dot` of f16[16, 32] and f16[16, 32]: the inner extents are 32 and 16 | the columns of the first operand are as many as the rows of the second; transpose one with `trans`",
            "+5:17 `dot` of f16[16, 32] and f16[32, 16] accumulates in f32[16, 16], not f32[16, 32] | start from zeros::<f32>([16, 16])",
            "+7:17 `dot` multiplies two matrices, not f16[1, 16, 32] and f16[16, 32] | take one matrix of the batch at a time: drop dimensions of extent 1 with `squeeze` or `reshape`",
        ]
    );
    expect!(
        k::definition::<f64>(),
        base,
        [
            "+4:17 `dot` of f64[16, 32] and f64[16, 32]: the inner extents are 32 and 16 | the columns of the first operand are as many as the rows of the second; transpose one with `trans`",
            "+5:17 `dot` of f64[16, 32] and f64[32, 16] accumulates in f64[16, 16], not f32[16, 32] | start from zeros::<f64>([16, 16])",
            "+6:17 `dot` of f64[16, 32] and f64[32, 16] accumulates in f64[16, 16], not f32[16, 16] | start from zeros::<f64>([16, 16])",
            "+7:17 `dot` multiplies two matrices, not f64[1, 16, 32] and f64[16, 32] | take one matrix of the batch at a time: drop dimensions of extent 1 with `squeeze` or `reshape`",
        ]
    );
}

#[test]
fn a_branch_on_many_truth_values() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: Ptr<f32>, n: i32) {
        let mut v = x.load();
        if arange(0, 16) < n {
            v = v + 1.0;
        }
        while zeros::<bool>([4]) {
            v = v + 1.0;
        }
        x.store(v);
    }
    expect!(
        k::definition(),
        base,
        [
            "+3:12 the condition of `if` has type bool[16], but the whole program takes one way | use `where_(condition, a, b)` to choose per element, or make one truth value with `any` or `all`",
            "+6:15 the condition of `while` has type bool[4], but the whole program takes one way | use `where_(condition, a, b)` to choose per element, or make one truth value with `any` or `all`",
        ]
    );
}

#[test]
fn variables_keep_their_shapes() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: Ptr<f32>, n: i32) {
        let mut acc = 0.0;
        for _ in 0..n {
            acc += (x + arange(0, 16)).load();
        }
        let mut p = x;
        if n > 3 {
            p = x + arange(0, 16);
        }
        let v = if n > 3 { zeros::<f32>(4) } else { zeros::<f32>(8) };
        while n > 0 {
            acc = expand_dims(acc, 0);
        }
        p.store(acc + v);
    }
    expect!(
        k::definition(),
        base,
        [
            "+3:9 `acc` has type f32 before the loop but f32[16] at the end of its body | give the variable its final type and shape before, for example with `zeros` or `full`",
            "+7:12 `p` has type *f32[16] after the branch but *f32 where it is not taken | give the variable its final type and shape before, for example with `zeros` or `full`",
            "+10:20 the value of the `if` has type f32[4] after the first branch but f32[8] after the second | give the variable its final type and shape before, for example with `zeros` or `full`",
        ]
    );
}

#[test]
fn structures_keep_their_size() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: Ptr<f32>, n: i32) {
        let mut parts = vec![x.load()];
        for _ in 0..n {
            parts = vec![parts[0], parts[0] + 1.0];
        }
        x.store(parts[0]);
    }
    expect!(
        k::definition(),
        base,
        [
            "+3:9 `parts` consists of 1 tiles before the loop but of 2 at the end of its body | device state keeps its structure: a `Vec` or `Option` cannot grow or shrink where the device decides",
        ]
    );
}

#[test]
fn values_do_not_leave_their_region() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: Ptr<f32>, n: i32) {
        let mut seen = Vec::new();
        let hidden = std::cell::Cell::new(x.load());
        for i in 0..n {
            seen.push((x + i).load());
            hidden.set((x + i).load());
        }
        x.store(hidden.get());
    }
    expect!(
        k::definition(),
        base,
        [
            "+4:9 `hidden` is a host value and changes in a device loop, whose code runs once, while the kernel is built | keep what the device changes in tiles (`scalar::<i32>(0)` counts); if the kernel is to be built step by step, write `for i in unroll(0..n)` or `if comptime(..)`",
            "+4:9 `seen` consists of 0 tiles before the loop but of 1 at the end of its body | device state keeps its structure: a `Vec` or `Option` cannot grow or shrink where the device decides",
            "+8:11 a value of type f32 made inside a device loop or branch is used outside it | assign it to a variable that is declared before the loop or branch",
        ]
    );
}

#[test]
fn loops_need_a_step() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: Ptr<f32>, n: i32, #[comptime] step: usize) {
        for i in (0..n).step_by(step) {
            (x + i).store(0.0);
        }
        for i in 0..1usize << 40 {
            (x + i).store(0.0);
        }
        for i in 0..u64::MAX {
            (x + i).store(0.0);
        }
        for i in range(0, zeros::<i32>([2]), 1) {
            (x + i).store(0.0);
        }
    }
    expect!(
        k::definition(0),
        base,
        [
            "+2:9 the step of a loop is 0 | a step of 0 would never reach the end",
            "+5:9 the number 1099511627776 does not fit in i32, which holds -2147483648 to 2147483647 | convert the tile to a wider type with `.to::<..>()` first",
            "+8:21 a loop bound does not fit in i64 | loops count in i32, or in i64 if a bound is a tile of i64",
            "+11:18 a bound or step of the loop must be a scalar of type i32, but it has type i32[2] | -",
        ]
    );
}

#[test]
fn pointers_and_masks() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: Ptr<f32>, n: i32) {
        let p = x + arange(0, 16);
        let _ = p.load_if(arange(0, 8) < n);
        p.store(zeros::<f32>([32]));
        let _ = p + zeros::<i32>([16, 16]);
        x.store(p.load());
    }
    expect!(
        k::definition(),
        base,
        [
            "+3:19 bool[8] does not broadcast to bool[16] | only extents of 1, and scalars, are repeated",
            "+4:11 f32[32] does not broadcast to f32[16] | only extents of 1, and scalars, are repeated",
            "+5:17 shapes [16] and [16, 16] do not broadcast together: they have 1 and 2 dimensions | insert a dimension of extent 1 with `expand_dims` so that the ranks agree",
            "+6:11 f32[16] does not broadcast to f32 | only extents of 1, and scalars, are repeated",
        ]
    );
}

#[test]
fn views_want_scalars_as_offsets_and_tiles_of_their_rank() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: InOut<f32, 2>) {
        let v = x.load([arange(0, 16), 0], [16, 16]);
        x.store([0, 0], sum(v, 0));
        x.store([0, 0], squeeze(sum(x.load([0, 0], [4, 4]), 0), 0));
        let _ = x.load_or([0, 0], [4, 4], zeros::<f32>([4, 4]));
    }
    expect!(
        k::definition(),
        base,
        [
            "+2:19 an offset into the view must be a scalar of type i32, but it has type i32[16] | -",
            "+4:11 cannot store a tile of type f32[4] in a view of 2 dimensions | -",
            "+5:19 the pad value has type f32[4, 4], expected f32 | -",
        ]
    );
}

#[test]
fn shapes_of_other_sizes() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(_x: Ptr<f32>) {
        let v = zeros::<f32>([4, 8]);
        let _ = reshape(v, [16]);
        let _ = permute(v, [0, 0]);
        let _ = permute(v, [0]);
        let _ = trans(reshape(v, [32]));
        let _ = broadcast_to(v, [4, 16]);
        let _ = v.bitcast::<i16>();
    }
    expect!(
        k::definition(),
        base,
        [
            "+3:17 cannot reshape f32[4, 8] to f32[16]: 32 elements against 16 | a reshape keeps the elements: the products of the extents are equal; `broadcast_to` repeats elements",
            "+4:17 [0, 0] is not a permutation of the dimensions of f32[4, 8] | name each dimension of the operand once, in the order of the result",
            "+5:17 [0] is not a permutation of the dimensions of f32[4, 8] | name each dimension of the operand once, in the order of the result",
            "+6:17 cannot transpose a tile of type f32[32]: it has not two dimensions | use `permute` to reorder the dimensions of other tiles",
            "+7:17 shapes [4, 8] and [4, 16] do not broadcast together: dimension 1 is 8 in one and 16 in the other | -",
            "+8:19 cannot reinterpret the bits of f32 as i16: 32 and 16 bits | use a cast to convert the values",
        ]
    );
}

#[test]
fn panics_of_host_code_are_mistakes() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: Ptr<f32>, #[comptime] table: Vec<i32>, #[comptime] index: usize) {
        let missing = program_id(9);
        if index > 100 {
            panic!("index {index} is far too large");
        }
        x.store(1.0);
        let _ = table[index];
        let _ = missing;
    }
    expect!(
        k::definition(vec![1, 2], 5),
        base,
        [
            "+2:23 axis 9 of the grid; a grid has axes 0, 1 and 2 | fold further dimensions into one axis, and take them apart with `/` and `%`",
            "+1:8 the kernel's host code panicked: index out of bounds: the len is 2 but the index is 5 | code on host values runs while the kernel is built; check its indices and `#[comptime]` arguments",
        ]
    );
    expect!(
        k::definition(vec![], 500),
        base,
        [
            "+2:23 axis 9 of the grid; a grid has axes 0, 1 and 2 | fold further dimensions into one axis, and take them apart with `/` and `%`",
            "+1:8 the kernel's host code panicked: index 500 is far too large | code on host values runs while the kernel is built; check its indices and `#[comptime]` arguments",
        ]
    );
}

#[test]
fn values_of_another_kernel() {
    thread_local! {
        static KEPT: std::cell::Cell<Option<Tile<i32>>> = const { std::cell::Cell::new(None) };
    }
    // Outside every kernel there is nothing to build; the handle is good for nothing.
    KEPT.set(Some(program_id(0)));
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: Ptr<i32>) {
        x.store(KEPT.get().unwrap() + 1);
        KEPT.set(Some(program_id(0)));
    }
    expect!(
        k::definition(),
        base,
        [
            "+2:17 a value made outside this kernel is used in it | make tiles inside the kernel function, and pass numbers as parameters",
        ]
    );
    expect!(
        k::definition(),
        base,
        [
            "+2:17 a value made outside this kernel is used in it | make tiles inside the kernel function, and pass numbers as parameters",
        ]
    );
}

#[test]
fn a_mistake_in_a_device_function_is_told_there() {
    #[device_fn(crate = crate::tilewright)]
    fn outer(x: Tile<f32>, y: Tile<f32>) -> Tile<f32> {
        expand_dims(x, 1) * expand_dims(y, 5)
    }
    let base = line!() - 3;
    #[kernel(crate = crate::tilewright)]
    fn k(x: Ptr<f32>) {
        let lanes = zeros::<f32>(8);
        for _ in unroll(0..3) {
            let _ = outer(lanes, lanes);
        }
        x.store(1.0);
    }
    expect!(
        k::definition(),
        base,
        [
            "+1:29 cannot insert dimension 5 in a tile of type f32[8] | the new dimension stands before dimension `axis`, or last: `axis` is at most 1",
        ]
    );
}

#[test]
fn views_have_one_to_eight_dimensions() {
    let base = line!() + 1;
    #[kernel(crate = crate::tilewright)]
    fn k(x: In<f32, 0>, y: Out<f32, 300>) {
        let v = x.load([0; 0], []);
        y.store([0; 300], v);
        let _ = y.stride(1) + 1;
    }
    expect!(
        k::definition(),
        base,
        [
            "+1:13 the view `x` has 0 dimensions | views have 1 to 8 dimensions; a single number is a pointer",
            "+1:28 the view `y` has 300 dimensions | views have 1 to 8 dimensions; a single number is a pointer",
        ]
    );
}

#[test]
fn errors_display_place_and_help() {
    #[kernel(crate = crate::tilewright)]
    fn k(_x: Ptr<f32>) {
        let _ = trans(zeros::<f32>(8));
    }
    let line = line!() - 2;
    let error = k::definition().build(&Specialization::general()).unwrap_err().to_string();
    let expected = format!(
        "kernel `k` is not valid\nerror: cannot transpose a tile of type f32[8]: it has not two dimensions\n  \
         --> compiler/tests/dsl_errors.rs:{line}:17\n  \
         help: use `permute` to reorder the dimensions of other tiles"
    );
    assert_eq!(error, expected);
}
