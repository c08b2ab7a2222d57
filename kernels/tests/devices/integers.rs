//! Integer arithmetic of every type, casts and bitcasts: as Rust's, with division by zero defined.

use crate::common::{assert_same, bits, garbage, on_every_device, upload};
use std::fmt::Debug;
use tilewright::dsl::*;
use tilewright::{Device, Element as HostElement};

const OPS: usize = 17;

#[kernel]
fn operations<T: Int + Bits>(x: In<T, 1>, y: In<T, 1>, out: Out<T, 2>, #[comptime] block: usize) {
    let start = program_id(0) * block;
    let (a, b) = (x.load([start], [block]), y.load([start], [block]));
    let results = [
        a + b,
        a - b,
        a * b,
        a / b,
        a % b,
        a & b,
        a | b,
        a ^ b,
        a << b,
        a >> b,
        minimum(a, b),
        maximum(a, b),
        floor_div(a, b),
        floor_mod(a, b),
        mul_hi(a, b),
        abs(a),
        where_(a < b, !a, -b),
    ];
    for i in unroll(0..17) {
        out.store([i, start], expand_dims(results[i], 0));
    }
}

trait Integer: HostElement + Int + Bits + PartialEq + Debug {
    fn edges() -> Vec<Self>;
    fn random(seed: u64) -> Self;
    fn operate(a: Self, b: Self) -> [Self; OPS];
}

macro_rules! integer {
    ($($ty:ty: $wide:ty, $abs:expr;)*) => { $(
        impl Integer for $ty {
            fn edges() -> Vec<Self> {
                vec![0, 1, 2, 7, (0 as $ty).wrapping_sub(1), (0 as $ty).wrapping_sub(7), <$ty>::MIN, <$ty>::MAX, <$ty>::MAX / 2]
            }
            fn random(seed: u64) -> Self {
                // Of any magnitude, so that quotients are not all 0.
                (bits(seed) >> (bits(seed ^ 0x5555) % 64)) as $ty
            }
            fn operate(a: Self, b: Self) -> [Self; OPS] {
                let (quotient, rest) = if b == 0 { (0, a) } else { (a.wrapping_div(b), a.wrapping_rem(b)) };
                let apart = b != 0 && rest != 0 && (rest < 0 as $ty) != (b < 0 as $ty);
                let (floor, modulo) = if apart { (quotient.wrapping_sub(1), rest.wrapping_add(b)) } else { (quotient, rest) };
                [
                    a.wrapping_add(b),
                    a.wrapping_sub(b),
                    a.wrapping_mul(b),
                    quotient,
                    rest,
                    a & b,
                    a | b,
                    a ^ b,
                    a.wrapping_shl(b as u32),
                    a.wrapping_shr(b as u32),
                    a.min(b),
                    a.max(b),
                    floor,
                    modulo,
                    ((a as $wide * b as $wide) >> <$ty>::BITS) as $ty,
                    ($abs)(a),
                    if a < b { !a } else { b.wrapping_neg() },
                ]
            }
        }
    )* };
}

integer! {
    i8: i128, i8::wrapping_abs;
    i16: i128, i16::wrapping_abs;
    i32: i128, i32::wrapping_abs;
    i64: i128, i64::wrapping_abs;
    u8: u128, |a| a;
    u16: u128, |a| a;
    u32: u128, |a| a;
    u64: u128, |a| a;
}

fn every_operation<T: Integer>(dev: &Device) {
    let edges = T::edges();
    let mut pairs: Vec<(T, T)> = edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b))).collect();
    pairs.extend((0..419).map(|i| (T::random(2 * i), T::random(2 * i + 1))));
    let n = pairs.len();
    let (a, b): (Vec<T>, Vec<T>) = pairs.iter().copied().unzip();
    let (x, y, out) = (upload(dev, &a), upload(dev, &b), garbage::<T>(dev, OPS * n));
    operations(x.view([n]).unwrap(), y.view([n]).unwrap(), out.view([OPS, n]).unwrap(), 256)
        .grid([n.div_ceil(256)])
        .launch()
        .unwrap();
    let got = out.to_vec().unwrap();
    for (i, &(a, b)) in pairs.iter().enumerate() {
        for (op, expected) in T::operate(a, b).into_iter().enumerate() {
            assert_eq!(got[op * n + i], expected, "operation {op} of {a:?} and {b:?}, {}", T::DTYPE);
        }
    }
}

#[test]
fn arithmetic_wraps_and_division_by_zero_is_defined() {
    on_every_device(|dev| {
        every_operation::<i8>(dev);
        every_operation::<i16>(dev);
        every_operation::<i32>(dev);
        every_operation::<i64>(dev);
        every_operation::<u8>(dev);
        every_operation::<u16>(dev);
        every_operation::<u32>(dev);
        every_operation::<u64>(dev);
    });
}

#[kernel]
fn cast<T: Element, U: Element>(x: In<T, 1>, y: Out<U, 1>) {
    y.store([0], x.load([0], [64]).to::<U>());
}

fn casts<T: HostElement, U: HostElement + PartialEq + Debug>(dev: &Device, host: &[T], to: impl Fn(T) -> U) {
    let n = host.len();
    let (x, y) = (upload(dev, host), garbage::<U>(dev, n));
    cast(x.view([n]).unwrap(), y.view([n]).unwrap()).grid([1]).num_warps(1).launch().unwrap();
    let expected: Vec<U> = host.iter().map(|&v| to(v)).collect();
    assert_same(&format!("{} to {}", T::DTYPE, U::DTYPE), &y.to_vec().unwrap(), &expected);
}

#[test]
fn casts_from_floats_saturate() {
    on_every_device(|dev| {
        let edges = [
            0.0f32,
            -0.0,
            0.5,
            -0.99,
            1.5,
            -1.5,
            127.9,
            -128.9,
            255.5,
            256.0,
            65535.9,
            -32769.0,
            2147483648.0,
            -2147483648.0,
            4294967296.0,
            9.3e18,
            1.9e19,
            -1e20,
            f32::MAX,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            1e-40,
        ];
        casts(dev, &edges, |v| v as i8);
        casts(dev, &edges, |v| v as i16);
        casts(dev, &edges, |v| v as i32);
        casts(dev, &edges, |v| v as i64);
        casts(dev, &edges, |v| v as u8);
        casts(dev, &edges, |v| v as u16);
        casts(dev, &edges, |v| v as u32);
        casts(dev, &edges, |v| v as u64);
        let wide = edges.map(|v| f64::from(v) * 1.000_000_01);
        casts(dev, &wide, |v| v as i64);
        casts(dev, &wide, |v| v as u32);
        let narrow = edges.map(f16::from_f32);
        casts(dev, &narrow, |v| v.to_f32() as i8);
        casts(dev, &narrow, |v| v.to_f32() as u64);
    });
}

#[test]
fn casts_between_integers_wrap_and_to_floats_round_to_even() {
    on_every_device(|dev| {
        let wide: Vec<i64> = (0..50)
            .map(|i| bits(i) as i64 >> (i % 60))
            .chain([i64::MIN, i64::MAX, -1, (1 << 53) + 1, (1 << 24) + 1, (1 << 25) + 6])
            .collect();
        casts(dev, &wide, |v| v as i8);
        casts(dev, &wide, |v| v as u16);
        casts(dev, &wide, |v| v as i32);
        casts(dev, &wide, |v| v as f32);
        casts(dev, &wide, |v| v as f64);
        casts(dev, &wide, |v| v != 0);
        let unsigned: Vec<u64> = wide.iter().map(|v| *v as u64).collect();
        casts(dev, &unsigned, |v| v as f32);
        casts(dev, &unsigned, |v| v as f64);
        casts(dev, &unsigned, |v| v as u8);
        let small: Vec<i8> = wide.iter().map(|v| *v as i8).collect();
        casts(dev, &small, |v| v as i64);
        casts(dev, &small, |v| v as u32);
    });
}

#[kernel]
fn same_bits<T: Element, U: Element>(x: In<T, 1>, y: Out<U, 1>) {
    y.store([0], bitcast::<U>(x.load([0], [64])));
}

fn bitcasts<T: HostElement, U: HostElement + PartialEq + Debug>(
    dev: &Device,
    to: impl Fn(U) -> T,
    all: impl Fn(u64) -> U,
) {
    // Integers to anything and back: NaN payloads survive.
    let host: Vec<U> = (0..64).map(|i| all(bits(i))).collect();
    let values: Vec<T> = host.iter().map(|&v| to(v)).collect();
    let (x, y) = (upload(dev, &values), garbage::<U>(dev, 64));
    same_bits(x.view([64]).unwrap(), y.view([64]).unwrap()).grid([1]).num_warps(2).launch().unwrap();
    assert_same(&format!("bits of {}", T::DTYPE), &y.to_vec().unwrap(), &host);
}

#[test]
fn bitcasts_keep_every_bit() {
    on_every_device(|dev| {
        bitcasts::<f32, u32>(dev, f32::from_bits, |b| b as u32);
        bitcasts::<f16, u16>(dev, f16::from_bits, |b| b as u16);
        bitcasts::<bf16, u16>(dev, bf16::from_bits, |b| b as u16);
        bitcasts::<i8, u8>(dev, |v| v as i8, |b| b as u8);
        bitcasts::<i64, u64>(dev, |v| v as i64, |b| b);
        if dev.caps().is_none_or(|c| c.f64) {
            bitcasts::<f64, u64>(dev, f64::from_bits, |b| b);
        }
    });
}
