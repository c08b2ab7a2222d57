//! Vector addition: every type of number, every kind of view.

use crate::common::{Real, assert_same, bits, garbage, on_every_device, uniform, upload};
use std::fmt::Debug;
use tilewright::dsl::{Num, bf16, f16};
use tilewright::{Device, Element};
use tilewright_kernels::vector_add;

trait Number: Element + Num + PartialEq + Debug {
    fn number(seed: u64) -> Self;
    /// The sum, wrapping or rounded once. Doubles hold the sums of narrower floats so exactly that rounding them again
    /// does no harm.
    fn plus(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($ty:ty),*) => { $(
        impl Number for $ty {
            fn number(seed: u64) -> Self {
                bits(seed) as $ty
            }
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    )* };
}

macro_rules! floats {
    ($($ty:ty),*) => { $(
        impl Number for $ty {
            fn number(seed: u64) -> Self {
                <$ty as Real>::of(uniform(seed) * 1000.0)
            }
            fn plus(self, other: Self) -> Self {
                <$ty as Real>::of(self.double() + other.double())
            }
        }
    )* };
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);
floats!(f16, bf16, f32);

impl Number for f64 {
    fn number(seed: u64) -> Self {
        uniform(seed) * 1000.0
    }
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

fn numbers<T: Number>(n: usize, seed: u64) -> Vec<T> {
    (0..n as u64).map(|i| T::number(seed + i)).collect()
}

fn sums<T: Number>(x: &[T], y: &[T]) -> Vec<T> {
    x.iter().zip(y).map(|(x, y)| x.plus(*y)).collect()
}

fn lengths<T: Number>(dev: &Device) {
    for n in [0usize, 1, 3, 1000, 4096, 100_003] {
        let what = format!("{} elements of {}", n, T::DTYPE);
        let (x, y) = (numbers::<T>(n, 1), numbers::<T>(n, 1 << 32));
        let (dx, dy, out) = (upload(dev, &x), upload(dev, &y), garbage::<T>(dev, n));
        let (vx, vy, vo) = (dx.view([n]).unwrap(), dy.view([n]).unwrap(), out.view([n]).unwrap());
        vector_add(vx, vy, vo).unwrap().launch().unwrap();
        assert_same(&what, &out.to_vec().unwrap(), &sums(&x, &y));
    }
}

#[test]
fn every_type_and_length() {
    on_every_device(|dev| {
        lengths::<i8>(dev);
        lengths::<i16>(dev);
        lengths::<i32>(dev);
        lengths::<i64>(dev);
        lengths::<u8>(dev);
        lengths::<u16>(dev);
        lengths::<u32>(dev);
        lengths::<u64>(dev);
        lengths::<f16>(dev);
        lengths::<bf16>(dev);
        lengths::<f32>(dev);
        if dev.caps().is_none_or(|c| c.f64) {
            lengths::<f64>(dev);
        }
    });
}

/// Views with offsets and strides, of either sign: nothing outside of them is touched.
fn strides<T: Number>(dev: &Device) {
    let (n, room) = (1000, 4096);
    let host = numbers::<T>(room, 7);
    let dx = upload(dev, &host);
    for (ox, sx, oo, so) in
        [(1, 1, 0, 1), (0, 1, 3, 1), (5, 3, 1, 2), (3999, -2, 0, 1), (0, 1, 4000, -4), (9, 0, 0, 1), (8, 1, 16, 1)]
    {
        let what = format!("{}: from {ox} by {sx} to {oo} by {so}", T::DTYPE);
        let out = upload(dev, &host);
        let (vx, vo) = (dx.view_strided(ox, [n], [sx]).unwrap(), out.view_strided(oo, [n], [so]).unwrap());
        vector_add(vx, vx, vo).unwrap().launch().unwrap();
        let mut expected = host.clone();
        for i in 0..n as isize {
            let x = host[(ox as isize + i * sx) as usize];
            expected[(oo as isize + i * so) as usize] = x.plus(x);
        }
        assert_same(&what, &out.to_vec().unwrap(), &expected);
    }
}

#[test]
fn strided_and_shifted_views() {
    on_every_device(|dev| {
        strides::<f32>(dev);
        strides::<f16>(dev);
        strides::<u8>(dev);
        strides::<i64>(dev);
    });
}

#[test]
fn the_result_may_replace_an_operand() {
    on_every_device(|dev| {
        for n in [17usize, 5000] {
            let (x, y) = (numbers::<f32>(n, 3), numbers::<f32>(n, 4));
            let (dx, dy) = (upload(dev, &x), upload(dev, &y));
            let (vx, vy) = (dx.view([n]).unwrap(), dy.view([n]).unwrap());
            vector_add(vx, vy, vx).unwrap().launch().unwrap();
            assert_same("out is x", &dx.to_vec().unwrap(), &sums(&x, &y));
            vector_add(vy, vy, vy).unwrap().launch().unwrap();
            assert_same("all three are one", &dy.to_vec().unwrap(), &sums(&y, &y));
        }
    });
}

#[test]
fn lengths_that_differ_are_refused() {
    on_every_device(|dev| {
        let x = upload(dev, &[0.0f32; 10]);
        let message = vector_add(x.view([10]).unwrap(), x.view([9]).unwrap(), x.view([10]).unwrap()).unwrap_err();
        assert!(message.to_string().contains("[10]") && message.to_string().contains("[9]"), "{message}");
    });
}
