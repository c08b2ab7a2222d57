//! Values carried through nested loops and branches, and values of another kernel.

use super::*;

/// Blocks of different kinds of values in one struct, `Option`s and branches that change them.
#[kernel]
fn carried(y: Out<i32, 1>, n: i32, #[comptime] depth: usize) {
    let mut a = (zeros::<i32>([8]), scalar::<i32>(1));
    let mut swap = [arange(0, 8), arange(8, 16)];
    for i in 0..n {
        let t = swap[0];
        swap[0] = swap[1];
        swap[1] = t;
        if i % 3 == 0 {
            a.0 = a.0 + swap[0];
        } else if i % 3 == 1 {
            a.1 = a.1 + 1;
            let mut k = a.1;
            while k > 3 {
                k -= 2;
                a.0 = a.0 + k;
            }
        }
        for _ in unroll(0..depth) {
            a = (a.0 + a.1, a.1);
        }
    }
    y.store([0], a.0 * 2 + swap[1]);
}

#[test]
fn swapped_and_nested_state() {
    on_every_device(|dev| {
        for (n, depth) in [(0, 1usize), (1, 0), (7, 2), (20, 1)] {
            let y = dev.zeros::<i32>(8).unwrap();
            carried(y.view([8]).unwrap(), n, depth).grid([1]).launch().unwrap();
            let (mut a, mut count) = ([0i32; 8], 1i32);
            let mut swap: [[i32; 8]; 2] = [std::array::from_fn(|i| i as i32), std::array::from_fn(|i| 8 + i as i32)];
            for i in 0..n {
                swap.swap(0, 1);
                if i % 3 == 0 {
                    (0..8).for_each(|j| a[j] += swap[0][j]);
                } else if i % 3 == 1 {
                    count += 1;
                    let mut k = count;
                    while k > 3 {
                        k -= 2;
                        a.iter_mut().for_each(|v| *v += k);
                    }
                }
                for _ in 0..depth {
                    a.iter_mut().for_each(|v| *v += count);
                }
            }
            let want: Vec<i32> = (0..8).map(|j| a[j] * 2 + swap[1][j]).collect();
            assert_eq!(y.to_vec().unwrap(), want, "{} {n} {depth}", dev.name());
        }
    });
}

thread_local! { static KEPT: std::cell::Cell<Option<Tile<i32>>> = const { std::cell::Cell::new(None) }; }

#[kernel]
fn keeps(y: Out<i32, 1>) {
    let v = arange(0, 4);
    KEPT.set(Some(v));
    y.store([0], v);
}

#[kernel]
fn takes(y: Out<i32, 1>) {
    let v = KEPT.get().unwrap_or(arange(0, 4));
    y.store([0], v + 1);
}

#[test]
fn tiles_of_another_kernel_are_refused() {
    let dev = Device::open("cpu").unwrap();
    let y = dev.zeros::<i32>(4).unwrap();
    keeps(y.view([4]).unwrap()).grid([1]).launch().unwrap();
    let e = takes(y.view([4]).unwrap()).grid([1]).launch().unwrap_err().to_string();
    assert!(e.contains("a value made outside this kernel is used in it"), "{e}");
}
