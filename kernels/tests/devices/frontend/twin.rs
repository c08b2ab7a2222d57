//! What a random program's plain-Rust twin runs on, and the comparison of the two.
//!
//! A twin is the text of a kernel over [`Wrap`] in place of `Tile<i32>`. Every program of a grid of 4 reads 8 numbers and
//! writes into 64 of its own.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ops::*;
use tilewright::{Device, Launch, Slice};

/// Programs of a launch.
const GRID: usize = 4;
/// Elements that each writes.
const OUTPUTS: usize = 64;

/// A random program, both ways.
pub struct Program {
    /// Its module.
    pub name: &'static str,
    /// The kernel.
    pub device: for<'a> fn(Slice<'a, i32>, Slice<'a, i32>, i32) -> Launch<'a>,
    /// The same in plain Rust.
    pub host: fn(Ptr<i32>, Ptr<i32>, Wrap),
}

/// Runs every program on a device, and gives those whose results are not those of its twin, with both.
pub fn differences(device: &Device, programs: &[Program]) -> Vec<String> {
    let input = [3, -7, 100, i32::MIN, 0, 12345, -1, i32::MAX];
    let x = device.buffer_from(&input).expect("the device takes 8 numbers");
    let mut found = Vec::new();
    for program in programs {
        for n in [0, 3] {
            let y = device.buffer_from(&[0i32; GRID * OUTPUTS]).expect("the device takes 256 numbers");
            let expected = twin(program, &input, n);
            let launched =
                (program.device)(x.slice(..).expect("all"), y.slice(..).expect("all"), n).grid([GRID]).launch();
            match launched.and_then(|()| y.to_vec()) {
                Err(error) => found.push(format!("{} with n = {n}: {error}", program.name)),
                Ok(got) if got != expected => {
                    let at = (0..got.len()).find(|&i| got[i] != expected[i]).unwrap_or(0);
                    found.push(format!(
                        "{} with n = {n}: element {at} is {}, but {} in plain Rust",
                        program.name, got[at], expected[at]
                    ));
                }
                Ok(_) => {}
            }
        }
    }
    found
}

fn twin(program: &Program, input: &[i32], n: i32) -> Vec<i32> {
    MEMORY.with_borrow_mut(|m| *m = [input.to_vec(), vec![0; GRID * OUTPUTS]]);
    for id in 0..GRID {
        ID.set(id as i32);
        (program.host)(Ptr::to(0), Ptr::to(1), Wrap(n));
    }
    MEMORY.with_borrow(|m| m[1].clone())
}

thread_local! {
    static ID: Cell<i32> = const { Cell::new(0) };
    static MEMORY: RefCell<[Vec<i32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// An integer with the rules of the language.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Wrap(pub i32);

/// What stands beside one.
pub trait Number: Copy {
    /// It.
    fn number(self) -> i32;
}
impl Number for Wrap {
    fn number(self) -> i32 {
        self.0
    }
}
impl Number for i32 {
    fn number(self) -> i32 {
        self
    }
}
impl Number for usize {
    fn number(self) -> i32 {
        self as i32
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident |$a:ident, $b:ident| $value:expr;)*) => { $(
        impl<N: Number> $trait<N> for Wrap {
            type Output = Wrap;
            fn $method(self, rhs: N) -> Wrap {
                let ($a, $b) = (self.0, rhs.number());
                Wrap($value)
            }
        }
        impl<N: Number> $assign<N> for Wrap {
            fn $assign_method(&mut self, rhs: N) {
                *self = $trait::$method(*self, rhs);
            }
        }
        impl $trait<Wrap> for i32 {
            type Output = Wrap;
            fn $method(self, rhs: Wrap) -> Wrap {
                $trait::$method(Wrap(self), rhs)
            }
        }
    )* };
}

operators! {
    Add add AddAssign add_assign |a, b| a.wrapping_add(b);
    Sub sub SubAssign sub_assign |a, b| a.wrapping_sub(b);
    Mul mul MulAssign mul_assign |a, b| a.wrapping_mul(b);
    Div div DivAssign div_assign |a, b| if b == 0 { 0 } else { a.wrapping_div(b) };
    Rem rem RemAssign rem_assign |a, b| if b == 0 { a } else { a.wrapping_rem(b) };
    BitAnd bitand BitAndAssign bitand_assign |a, b| a & b;
    BitOr bitor BitOrAssign bitor_assign |a, b| a | b;
    BitXor bitxor BitXorAssign bitxor_assign |a, b| a ^ b;
    Shl shl ShlAssign shl_assign |a, b| a.wrapping_shl(b as u32);
    Shr shr ShrAssign shr_assign |a, b| a.wrapping_shr(b as u32);
}

macro_rules! compared_with {
    ($($ty:ty),*) => { $(
        impl PartialEq<$ty> for Wrap {
            fn eq(&self, other: &$ty) -> bool {
                self.0 == other.number()
            }
        }
        impl PartialOrd<$ty> for Wrap {
            fn partial_cmp(&self, other: &$ty) -> Option<std::cmp::Ordering> {
                self.0.partial_cmp(&other.number())
            }
        }
        impl PartialEq<Wrap> for $ty {
            fn eq(&self, other: &Wrap) -> bool {
                self.number() == other.0
            }
        }
        impl PartialOrd<Wrap> for $ty {
            fn partial_cmp(&self, other: &Wrap) -> Option<std::cmp::Ordering> {
                self.number().partial_cmp(&other.0)
            }
        }
    )* };
}
compared_with!(i32, usize);

impl Neg for Wrap {
    type Output = Wrap;
    fn neg(self) -> Wrap {
        Wrap(self.0.wrapping_neg())
    }
}

impl Not for Wrap {
    type Output = Wrap;
    fn not(self) -> Wrap {
        Wrap(!self.0)
    }
}

/// An address: which memory, and where.
#[derive(Clone, Copy)]
pub struct Ptr<T>(usize, i32, PhantomData<T>);

impl<T> Ptr<T> {
    fn to(memory: usize) -> Self {
        Ptr(memory, 0, PhantomData)
    }
    /// Reads it.
    pub fn load(self) -> Wrap {
        MEMORY.with_borrow(|m| Wrap(m[self.0][self.1 as usize]))
    }
    /// Writes it.
    pub fn store(self, value: impl Number) {
        MEMORY.with_borrow_mut(|m| m[self.0][self.1 as usize] = value.number());
    }
}

impl<T, N: Number> Add<N> for Ptr<T> {
    type Output = Self;
    fn add(self, rhs: N) -> Self {
        Ptr(self.0, self.1 + rhs.number(), PhantomData)
    }
}

/// Which program of the grid runs.
pub fn program_id(_axis: u8) -> Wrap {
    Wrap(ID.get())
}

/// The number as a scalar.
pub fn scalar<T>(value: impl Number) -> Wrap {
    let _ = PhantomData::<T>;
    Wrap(value.number())
}

/// The smaller.
pub fn minimum(a: impl Number, b: impl Number) -> Wrap {
    Wrap(a.number().min(b.number()))
}

/// The greater.
pub fn maximum(a: impl Number, b: impl Number) -> Wrap {
    Wrap(a.number().max(b.number()))
}

/// `a` where it holds, else `b`.
pub fn where_(condition: bool, a: impl Number, b: impl Number) -> Wrap {
    Wrap(if condition { a.number() } else { b.number() })
}

/// The numbers from `lo` by `step` before `hi`.
pub fn range(lo: impl Number, hi: impl Number, step: i32) -> impl Iterator<Item = Wrap> {
    let (lo, hi) = (lo.number(), hi.number());
    std::iter::successors(Some(lo), move |i| Some(i + step))
        .take_while(move |&i| if step > 0 { i < hi } else { i > hi })
        .map(Wrap)
}

/// The items.
pub fn unroll<I: IntoIterator>(items: I) -> I {
    items
}
