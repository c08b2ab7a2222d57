//! What the language promises whatever things are called: state is carried by type, comptime values are told apart by
//! value, host state that the device would change is refused, and `cdiv` rounds up for all signs.

use crate::common::{on_every_device, upload};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};
use tilewright::dsl::*;

/// State whose methods have the names of methods that read.
#[derive(Clone, Copy, Carry)]
struct Sum {
    t: Tile<f32>,
}

impl Sum {
    fn load(&mut self, v: Tile<f32>) {
        self.t += v;
    }
    fn to(&mut self, v: Tile<f32>) -> Tile<f32> {
        self.t += v;
        self.t
    }
    fn map(&mut self, f: impl Fn(Tile<f32>) -> Tile<f32>) {
        self.t = f(self.t);
    }
    fn rank(&mut self, v: Tile<f32>) {
        self.t += v;
    }
}

/// A name that another function of the language has.
fn add(s: &mut Sum, v: Tile<f32>) {
    s.t += v;
}

#[kernel]
fn by_method(x: In<f32, 1>, y: Out<f32, 1>, n: i32) {
    let mut s = Sum { t: zeros::<f32>([1]) };
    for k in 0..n {
        s.load(x.load([k], [1]));
        y.store([k], s.t);
    }
}

#[kernel]
fn by_reference(x: In<f32, 1>, y: Out<f32, 1>, n: i32) {
    let mut owner = Sum { t: zeros::<f32>([1]) };
    let s = &mut owner;
    for k in 0..n {
        y.store([k], s.to(x.load([k], [1])));
    }
}

#[kernel]
fn by_pattern(x: In<f32, 1>, y: Out<f32, 1>, n: i32) {
    let mut maybe = Some(Sum { t: zeros::<f32>([1]) });
    if let Some(s) = &mut maybe {
        for k in 0..n {
            let v = x.load([k], [1]);
            s.map(|t| t + v);
            y.store([k], s.t);
        }
    }
}

#[kernel]
fn by_loop_over_references(x: In<f32, 1>, y: Out<f32, 1>, n: i32) {
    let mut list = [Sum { t: zeros::<f32>([1]) }; 1];
    for s in &mut list {
        for k in 0..n {
            add(s, x.load([k], [1]));
            y.store([k], s.t);
        }
    }
}

/// A host value beside device state.
struct Both {
    sum: Sum,
    times: usize,
}

#[kernel]
fn by_field(x: In<f32, 1>, y: Out<f32, 1>, n: i32) {
    let mut both = Both { sum: Sum { t: zeros::<f32>([1]) }, times: 1 };
    for k in 0..n {
        both.sum.rank(both.times * x.load([k], [1]));
        y.store([k], both.sum.t);
    }
}

#[kernel]
fn by_index(x: In<f32, 1>, y: Out<f32, 1>, n: i32) {
    let mut list = vec![Sum { t: zeros::<f32>([1]) }; 2];
    for k in 0..n {
        list[1].load(x.load([k], [1]));
        y.store([k], list[1].t);
    }
}

#[device_fn]
fn over_slice(parts: &mut [Sum], x: In<f32, 1>, y: Out<f32, 1>, n: Tile<i32>) {
    for k in 0..n {
        for s in parts.iter_mut() {
            s.load(x.load([k], [1]));
        }
        y.store([k], parts[0].t);
    }
}

#[kernel]
fn by_slice(x: In<f32, 1>, y: Out<f32, 1>, n: i32) {
    let mut list = vec![Sum { t: zeros::<f32>([1]) }];
    over_slice(&mut list, x, y, n);
}

#[device_fn]
fn through(s: &mut Sum, x: In<f32, 1>, y: Out<f32, 1>, n: Tile<i32>) {
    let mut go = n > 0;
    let mut k = 0;
    while go {
        (*s).load(x.load([k], [1]));
        y.store([k], s.t);
        k += 1;
        go = k < n;
    }
}

#[kernel]
fn by_function(x: In<f32, 1>, y: Out<f32, 1>, n: i32) {
    let mut s = Sum { t: zeros::<f32>([1]) };
    through(&mut s, x, y, n);
}

macro_rules! absorb {
    ($s:ident, $v:expr) => {
        $s.load($v)
    };
}

#[kernel]
fn by_macro(x: In<f32, 1>, y: Out<f32, 1>, n: i32) {
    let mut s = Sum { t: zeros::<f32>([1]) };
    for k in 0..n {
        absorb!(s, x.load([k], [1]));
        y.store([k], s.t);
    }
}

/// State in `self`.
#[derive(Clone, Copy, Carry)]
struct Runner {
    sum: Sum,
}

impl Runner {
    fn dim(&mut self, v: Tile<f32>) {
        self.sum.load(v);
    }

    #[device_fn]
    fn run(&mut self, x: In<f32, 1>, y: Out<f32, 1>, n: Tile<i32>) {
        for k in 0..n {
            if x.dim(0) > k {
                self.dim(x.load([k], [1]));
            }
            y.store([k], self.sum.t);
        }
    }
}

#[kernel]
fn by_self(x: In<f32, 1>, y: Out<f32, 1>, n: i32) {
    Runner { sum: Sum { t: zeros::<f32>([1]) } }.run(x, y, n);
}

#[test]
fn found_l1() {
    on_every_device(|dev| {
        let x = upload(dev, &[1.0f32, 2.0, 3.0, 4.0]);
        macro_rules! check {
            ($($kernel:ident)*) => { $(
                let y = dev.zeros::<f32>(4).unwrap();
                $kernel(x.view([4]).unwrap(), y.view([4]).unwrap(), 4).grid([1]).launch().unwrap();
                assert_eq!(y.to_vec().unwrap(), [1.0, 3.0, 6.0, 10.0], stringify!($kernel));
            )* };
        }
        check!(by_method by_reference by_pattern by_loop_over_references by_field by_index by_slice by_function);
        check!(by_macro by_self);
    });
}

// ---- what `for` runs over -------------------------------------------------------------------------------------------

/// Functions of the user with the names of the language's.
mod own {
    /// Every other number, backwards.
    pub fn range(n: usize, by: usize) -> impl Iterator<Item = usize> {
        (0..n).rev().step_by(by)
    }

    /// All but the first.
    pub fn unroll<T>(items: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        items.into_iter().skip(1)
    }
}

#[kernel]
fn over_own_functions(y: Out<i32, 1>, n: i32) {
    use own::{range, unroll};
    let mut sum = scalar::<i32>(0);
    let mut rounds = 0;
    // 4, 2, 0; a loop of the host, in which values of the host may change.
    let mut seen: Vec<usize> = Vec::new();
    for i in range(5, 2) {
        sum = sum * 10 + i;
        rounds += 1;
        seen.push(i);
    }
    y.store([0], expand_dims(sum, 0));
    // 2, 3.
    for i in unroll([1, 2, 3]) {
        sum = sum + i;
    }
    y.store([1], expand_dims(sum, 0));
    // The language's own, by its whole path.
    for k in tilewright::dsl::range(n, 0, -2) {
        sum = sum * 2 + k;
    }
    y.store([2], expand_dims(sum, 0));
    for k in tilewright::dsl::unroll(seen) {
        rounds += k;
    }
    y.store([3], expand_dims(scalar::<i32>(0) + rounds, 0));
}

#[test]
fn found_l9_functions_called_range_and_unroll_are_called() {
    on_every_device(|dev| {
        let y = dev.zeros::<i32>(4).unwrap();
        over_own_functions(y.view([4]).unwrap(), 5).grid([1]).launch().unwrap();
        let third = [5, 3, 1].iter().fold(425, |sum, k| sum * 2 + k);
        assert_eq!(y.to_vec().unwrap(), [420, 425, third, 3 + 6]);
    });
}

/// Literals that no `i32` holds, beside scalars and tiles of wide types.
#[kernel]
fn wide_literals(y: Out<u64, 1>, z: Out<i64, 1>, big: u64, wide: i64) {
    let low = big & 0xffffffff;
    let top = 0xff00000000000000 & big;
    y.store([0], expand_dims(low, 0));
    y.store([1], expand_dims(top | 0x8000_0000, 0));
    let tile = full::<u64>([1], 3) + 5_000_000_000i64;
    y.store([2], tile);
    z.store([0], expand_dims(wide + -3_000_000_000, 0));
    z.store([1], expand_dims(wide - (4294967296), 0));
    if wide < 4_000_000_000 {
        z.store([2], expand_dims(wide * 2147483648, 0));
    }
}

#[test]
fn found_l9_literals_take_the_type_of_the_other_side() {
    on_every_device(|dev| {
        let (y, z) = (dev.zeros::<u64>(3).unwrap(), dev.zeros::<i64>(3).unwrap());
        let big = 0xfedc_ba98_7654_3210;
        wide_literals(y.view([3]).unwrap(), z.view([3]).unwrap(), big, 7).grid([1]).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [0x7654_3210, 0xfe00_0000_8000_0000, 5_000_000_003]);
        assert_eq!(z.to_vec().unwrap(), [7 - 3_000_000_000, 7 - 4_294_967_296, 7 << 31]);
    });
}

// ---- comptime values ------------------------------------------------------------------------------------------------

/// Prints alike whatever it holds.
#[derive(Clone, Comptime)]
struct Quiet(f32);

impl fmt::Debug for Quiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Quiet")
    }
}

/// Has no `Debug`, and says by `Eq` and `Hash` which values are the same.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Pick {
    First,
    Other { times: i32 },
}

#[kernel]
fn scaled(y: Out<f32, 1>, #[comptime] by: Quiet, #[comptime] pick: Option<Pick>, #[comptime] pair: (f64, [i8; 2])) {
    let picked = match pick {
        None => 1.0,
        Some(Pick::First) => 10.0,
        Some(Pick::Other { times }) => f64::from(times),
    };
    y.store([0], full::<f32>([1], f64::from(by.0) * picked / pair.0 + f64::from(pair.1[1])));
}

#[test]
fn found_l5() {
    on_every_device(|dev| {
        let y = dev.zeros::<f32>(1).unwrap();
        let run = |by: f32, pick: Option<Pick>, pair: (f64, [i8; 2])| {
            scaled(y.view([1]).unwrap(), Quiet(by), pick, pair).grid([1]).launch().unwrap();
            y.to_vec().unwrap()[0]
        };
        assert_eq!(run(2.0, None, (1.0, [0, 0])), 2.0);
        assert_eq!(run(5.0, None, (1.0, [0, 0])), 5.0);
        assert_eq!(run(5.0, Some(Pick::First), (1.0, [0, 0])), 50.0);
        assert_eq!(run(5.0, Some(Pick::Other { times: 3 }), (1.0, [0, 0])), 15.0);
        assert_eq!(run(5.0, Some(Pick::Other { times: 4 }), (1.0, [0, 0])), 20.0);
        assert_eq!(run(5.0, None, (1.0, [0, 7])), 12.0);
        // Zeros differ by their sign, bit by bit.
        assert_eq!(run(5.0, None, (0.0, [0, 0])), f32::INFINITY);
        assert_eq!(run(5.0, None, (-0.0, [0, 0])), f32::NEG_INFINITY);
        let before = dev.stats().variants;
        assert_eq!(run(5.0, None, (-0.0, [0, 0])), f32::NEG_INFINITY);
        assert_eq!(dev.stats().variants, before, "the same values are compiled once");
    });
}

// ---- host state -----------------------------------------------------------------------------------------------------

static CALLS: AtomicI32 = AtomicI32::new(0);

/// Counts in something that `which` says.
#[kernel]
fn counting(y: Out<i32, 1>, n: i32, #[comptime] which: usize) {
    let cell = Cell::new(0);
    let shared = Rc::new(RefCell::new(0));
    let lock = Mutex::new(0);
    let bump = || cell.set(cell.get() + 1);
    let mut list: Vec<i32> = Vec::new();
    if comptime(which == 0) {
        for _ in 0..n {
            cell.set(cell.get() + 1);
        }
    }
    if comptime(which == 1) {
        let mut k = scalar::<i32>(0);
        while k < n {
            *shared.borrow_mut() += 1;
            k += 1;
        }
    }
    if comptime(which == 2) {
        if n > 3 {
            *lock.lock().expect("nobody panicked with it") += 1;
        }
    }
    if comptime(which == 3) {
        for _ in 0..n {
            bump();
        }
    }
    if comptime(which == 4) {
        for _ in 0..n {
            list.push(1);
        }
    }
    if comptime(which == 5) {
        for _ in 0..n {
            CALLS.fetch_add(1, Ordering::Relaxed);
        }
    }
    // What is only read may be named.
    let mut total = scalar::<i32>(0);
    for _ in 0..n {
        total += cell.get() + list.len() as i32 + *shared.borrow() + 1;
    }
    y.store([0], reshape(total, [1]));
}

#[test]
fn found_l6() {
    on_every_device(|dev| {
        let y = dev.zeros::<i32>(1).unwrap();
        for (which, name) in ["cell", "shared", "lock", "cell", "list", "CALLS"].into_iter().enumerate() {
            let launch = counting(y.view([1]).unwrap(), 5, which).grid([1]);
            let error = launch.launch().unwrap_err().to_string();
            assert!(error.contains(&format!("`{name}` is a host value and changes in a device")), "{which}: {error}");
            assert!(error.contains("help: keep what the device changes in tiles"), "{error}");
        }
        counting(y.view([1]).unwrap(), 5, 9).grid([1]).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [5]);
    });
}

// ---- cdiv -----------------------------------------------------------------------------------------------------------

#[kernel]
fn ceilings<T: Int>(x: In<T, 1>, y: In<T, 1>, out: Out<T, 1>, third: Out<T, 1>, #[comptime] n: usize) {
    let (x, y) = (x.load([0], [n]), y.load([0], [n]));
    out.store([0], cdiv(x, y));
    third.store([0], cdiv(x, 3));
}

#[kernel]
fn ceilings_by_less(x: In<i32, 1>, out: Out<i32, 1>, #[comptime] n: usize) {
    out.store([0], cdiv(x.load([0], [n]), -3));
}

fn ceiling(x: i64, y: i64) -> i64 {
    if y == 0 { 0 } else { x.wrapping_div(y) + i64::from(x.wrapping_rem(y) != 0 && (x < 0) == (y < 0)) }
}

#[test]
fn found_l7() {
    on_every_device(|dev| {
        let values = [7, -7, 6, -6, 1, -1, 0, i32::MIN, i32::MAX];
        let pairs = values.iter().flat_map(|&x| [2, -2, 3, -3, 7, -7, 0, i32::MIN, i32::MAX].map(|y| (x, y)));
        let (mut x, mut y): (Vec<i32>, Vec<i32>) = pairs.unzip();
        x.resize(128, 5);
        y.resize(128, -2);
        let expected: Vec<i32> = x.iter().zip(&y).map(|(&x, &y)| ceiling(x.into(), y.into()) as i32).collect();
        let (dx, dy) = (upload(dev, &x), upload(dev, &y));
        let (out, third) = (dev.zeros::<i32>(128).unwrap(), dev.zeros::<i32>(128).unwrap());
        ceilings(
            dx.view([128]).unwrap(),
            dy.view([128]).unwrap(),
            out.view([128]).unwrap(),
            third.view([128]).unwrap(),
            128,
        )
        .grid([1])
        .launch()
        .unwrap();
        assert_eq!(out.to_vec().unwrap(), expected);
        let thirds: Vec<i32> = x.iter().map(|&x| ceiling(x.into(), 3) as i32).collect();
        assert_eq!(third.to_vec().unwrap(), thirds);
        ceilings_by_less(dx.view([128]).unwrap(), out.view([128]).unwrap(), 128).grid([1]).launch().unwrap();
        let less: Vec<i32> = x.iter().map(|&x| ceiling(x.into(), -3) as i32).collect();
        assert_eq!(out.to_vec().unwrap(), less);

        let unsigned: Vec<u32> = x.iter().map(|&x| x as u32).collect();
        let divisors: Vec<u32> = y.iter().map(|&y| y as u32).collect();
        let expected: Vec<u32> =
            unsigned.iter().zip(&divisors).map(|(&x, &y)| if y == 0 { 0 } else { x.div_ceil(y) }).collect();
        let (dx, dy) = (upload(dev, &unsigned), upload(dev, &divisors));
        let (out, third) = (dev.zeros::<u32>(128).unwrap(), dev.zeros::<u32>(128).unwrap());
        ceilings(
            dx.view([128]).unwrap(),
            dy.view([128]).unwrap(),
            out.view([128]).unwrap(),
            third.view([128]).unwrap(),
            128,
        )
        .grid([1])
        .launch()
        .unwrap();
        assert_eq!(out.to_vec().unwrap(), expected);
    });
}
