//! What tells one kernel from another.

use super::*;

fn write_one(dev: &Device) -> i32 {
    #[kernel]
    fn constant(y: Out<i32, 1>) {
        y.store([0], full([1], 1));
    }
    let y = dev.zeros::<i32>(1).unwrap();
    constant(y.view([1]).unwrap()).grid([1]).launch().unwrap();
    y.to_vec().unwrap()[0]
}

fn write_two(dev: &Device) -> i32 {
    #[kernel]
    fn constant(y: Out<i32, 1>) {
        y.store([0], full([1], 2));
    }
    let y = dev.zeros::<i32>(1).unwrap();
    constant(y.view([1]).unwrap()).grid([1]).launch().unwrap();
    y.to_vec().unwrap()[0]
}

#[test]
fn kernels_of_one_name_in_two_functions_are_two_kernels() {
    on_every_device(|dev| {
        assert_eq!((write_one(dev), write_two(dev), write_one(dev)), (1, 2, 1));
    });
}

#[kernel]
fn signed_zero(y: Out<f32, 1>, #[comptime] z: f64, #[comptime] s: Vec<f32>) {
    y.store([0], full([1], 1.0) / (zeros::<f32>([1]) + z) + full([1], s[0]));
}

#[test]
fn comptime_zeros_of_both_signs_differ() {
    on_every_device(|dev| {
        for z in [0.0, -0.0f64, 0.0] {
            let y = dev.zeros::<f32>(1).unwrap();
            signed_zero(y.view([1]).unwrap(), z, vec![z as f32]).grid([1]).launch().unwrap();
            // 0 + -0 is 0.
            assert_eq!(y.to_vec().unwrap(), [f32::INFINITY], "{z}");
        }
    });
}

#[kernel]
fn größe(r#type: In<f32, 1>, длина: Out<f32, 1>, arg_длина: f32, #[comptime] r#loop: usize) {
    длина.store([0], r#type.load([0], [r#loop]) * arg_длина);
}

#[kernel]
fn r#match(x: InOut<i32, 1>, x_dim0: i32, x_stride0: i32) {
    x.store([0], x.load([0], [4]) + x_dim0 + x.dim(0) * x_stride0);
}

#[test]
fn names_that_are_no_names_elsewhere() {
    on_every_device(|dev| {
        let x = dev.buffer_from(&[1.0f32, 2.0]).unwrap();
        let y = dev.zeros::<f32>(2).unwrap();
        größe(x.view([2]).unwrap(), y.view([2]).unwrap(), 3.0, 2).grid([1]).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [3.0, 6.0], "{}", dev.name());
        let x = dev.buffer_from(&[1, 2]).unwrap();
        r#match(x.view([2]).unwrap(), 10, 100).grid([1]).launch().unwrap();
        assert_eq!(x.to_vec().unwrap(), [211, 212], "{}", dev.name());
    });
}

#[kernel]
fn bits<T: Int>(x: In<T, 1>, y: Out<T, 1>) {
    let v = x.load([0], [8]);
    y.store([0], ((v & 12) | 1) ^ !(v << 1));
}

#[test]
fn integers_have_the_bitwise_operators() {
    on_every_device(|dev| {
        let host = [0i64, 1, 5, 12, -1, i64::MAX, i64::MIN, 77];
        let (x, y) = (dev.buffer_from(&host).unwrap(), dev.zeros::<i64>(8).unwrap());
        bits(x.view([8]).unwrap(), y.view([8]).unwrap()).grid([1]).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), host.map(|v| ((v & 12) | 1) ^ !(v << 1)));
    });
}

/// Each program writes the sum of what its neighbours' rows hold, through three views of one buffer.
#[kernel]
fn same_buffer<T: Num>(a: In<T, 2>, b: In<T, 2>, c: InOut<T, 2>, #[comptime] n: usize, #[comptime] twice: bool) {
    for i in 0..a.dim(0) {
        let mut v = a.load([i, 0], [1, n]) + trans(b.load([0, i], [n, 1]));
        if twice {
            v = v + v;
        }
        c.store([i, 0], v + c.load([i, 0], [1, n]));
    }
}

fn same_buffer_case<T: HostElement + Num + PartialEq + std::fmt::Debug>(
    dev: &Device,
    of: impl Fn(i64) -> T,
    add: impl Fn(T, T) -> T,
) {
    for (ao, bo, co, twice) in
        [(0usize, 64usize, 128usize, false), (0, 3, 5, true), (8, 0, 0, false), (0, 0, 8, true), (1, 2, 64, false)]
    {
        let mut host: Vec<T> = (0..300).map(|i| of(i % 5)).collect();
        let x = dev.buffer_from(&host).unwrap();
        let (rows, n) = (6usize, 8usize);
        let a = x.view_strided(ao, [rows, n], [8, 1]).unwrap();
        let b = x.view_strided(bo, [n, rows], [1, 8]).unwrap();
        let c = x.view_strided(co, [rows, n], [8, 1]).unwrap();
        same_buffer(a, b, c, n, twice).grid([1]).launch().unwrap();
        for i in 0..rows {
            let v: Vec<T> = (0..n)
                .map(|j| {
                    let v = add(host[ao + i * 8 + j], host[bo + i * 8 + j]);
                    add(if twice { add(v, v) } else { v }, host[co + i * 8 + j])
                })
                .collect();
            host[co + i * 8..co + i * 8 + n].copy_from_slice(&v);
        }
        assert_eq!(x.to_vec().unwrap(), host, "{} {ao} {bo} {co} {twice}", dev.name());
    }
}

#[test]
fn one_kernel_with_types_and_values_interleaved() {
    on_every_device(|dev| {
        for _ in 0..2 {
            same_buffer_case::<i32>(dev, |i| i as i32, i32::wrapping_add);
            same_buffer_case::<u8>(dev, |i| i as u8, u8::wrapping_add);
            same_buffer_case::<f32>(dev, |i| i as f32, |a, b| a + b);
            same_buffer_case::<i64>(dev, |i| i << 40, i64::wrapping_add);
            same_buffer_case::<f16>(dev, |i| f16::from_f32(i as f32), |a, b| a + b);
            same_buffer_case::<f64>(dev, |i| i as f64, |a, b| a + b);
        }
    });
}
