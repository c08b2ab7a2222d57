//! Random programs, as kernels and as plain Rust: `cargo xtask frontend --seed 1 --programs 40 --write FILE`.

use super::twin::Program;

pub const PROGRAMS: &[Program] = &[
    Program { name: "p0", device: device::p0::run, host: host::p0::run },
    Program { name: "p1", device: device::p1::run, host: host::p1::run },
    Program { name: "p2", device: device::p2::run, host: host::p2::run },
    Program { name: "p3", device: device::p3::run, host: host::p3::run },
    Program { name: "p4", device: device::p4::run, host: host::p4::run },
    Program { name: "p5", device: device::p5::run, host: host::p5::run },
    Program { name: "p6", device: device::p6::run, host: host::p6::run },
    Program { name: "p7", device: device::p7::run, host: host::p7::run },
    Program { name: "p8", device: device::p8::run, host: host::p8::run },
    Program { name: "p9", device: device::p9::run, host: host::p9::run },
    Program { name: "p10", device: device::p10::run, host: host::p10::run },
    Program { name: "p11", device: device::p11::run, host: host::p11::run },
    Program { name: "p12", device: device::p12::run, host: host::p12::run },
    Program { name: "p13", device: device::p13::run, host: host::p13::run },
    Program { name: "p14", device: device::p14::run, host: host::p14::run },
    Program { name: "p15", device: device::p15::run, host: host::p15::run },
    Program { name: "p16", device: device::p16::run, host: host::p16::run },
    Program { name: "p17", device: device::p17::run, host: host::p17::run },
    Program { name: "p18", device: device::p18::run, host: host::p18::run },
    Program { name: "p19", device: device::p19::run, host: host::p19::run },
    Program { name: "p20", device: device::p20::run, host: host::p20::run },
    Program { name: "p21", device: device::p21::run, host: host::p21::run },
    Program { name: "p22", device: device::p22::run, host: host::p22::run },
    Program { name: "p23", device: device::p23::run, host: host::p23::run },
    Program { name: "p24", device: device::p24::run, host: host::p24::run },
    Program { name: "p25", device: device::p25::run, host: host::p25::run },
    Program { name: "p26", device: device::p26::run, host: host::p26::run },
    Program { name: "p27", device: device::p27::run, host: host::p27::run },
    Program { name: "p28", device: device::p28::run, host: host::p28::run },
    Program { name: "p29", device: device::p29::run, host: host::p29::run },
    Program { name: "p30", device: device::p30::run, host: host::p30::run },
    Program { name: "p31", device: device::p31::run, host: host::p31::run },
    Program { name: "p32", device: device::p32::run, host: host::p32::run },
    Program { name: "p33", device: device::p33::run, host: host::p33::run },
    Program { name: "p34", device: device::p34::run, host: host::p34::run },
    Program { name: "p35", device: device::p35::run, host: host::p35::run },
    Program { name: "p36", device: device::p36::run, host: host::p36::run },
    Program { name: "p37", device: device::p37::run, host: host::p37::run },
    Program { name: "p38", device: device::p38::run, host: host::p38::run },
    Program { name: "p39", device: device::p39::run, host: host::p39::run },
];

pub mod device {
    use tilewright::dsl::*;
    type V = Tile<i32>;

    pub mod p0 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn min(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) * self.a; }
            pub fn last(&mut self, v: V) -> V { self.b *= v + self.a; self.a += 1; self.b }
            pub fn load(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn as_ref(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn store_if(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn store(&mut self, x: Ptr<i32>, n: V, v: V) {
                if 6 > self.a {
                    self.last(where_(v == 13, v, v));
                    self.a = (where_(v != 12, self.a, v) - 100);
                    let mut v1 = !!v;
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn get(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let mut c2 = scalar::<i32>(0);
            while c2 < 3 && v <= 2 {
                s.b = minimum(maximum(n, n), s.a);
                s.min((11 / n));
                if s.load(v) <= 2 {
                    *s = s.as_ref(s.load(c2));
                } else if c2 >= s.b {
                    s.min(maximum(s.a, v));
                }
                s.last(where_(10 != c2, v, c2));
                c2 += 1;
            }
        }
        pub fn exp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.min($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k4 in 0..n {
                let given = n; list[1].min(given);
                (y + id * 64 + 32 + (k4 & 31)).store(list[1].a - list[1].b);
                let given = (c ^ pair.1); add!(a, given);
                (y + id * 64 + 20).store((o.t.1 * m.k));
            }
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 13).store(pair.1);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p1 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn bitcast(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) ^ self.a; }
            pub fn ptr(&mut self, v: V) -> V { self.b ^= v + self.a; self.a += 1; self.b }
            pub fn dim(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn set(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn push(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn rank(&mut self, x: Ptr<i32>, n: V, v: V) {
                for k1 in range(4, -1, -1) {
                    (*self).a += n;
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn sum(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let mut v2 = s.dim(!v);
            v2 = if !((v2 * v2) == v) { (s.b >> 3) } else { s.dim(v2) };
        }
        pub fn reshape(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.bitcast($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            if let Some(r3) = opt.as_mut() {
                for k4 in (0..n).step_by(2) {
                    let given = o.t.0; list[1].bitcast(given);
                    (y + id * 64 + 32 + (k4 & 31)).store(list[1].a - list[1].b);
                    let given = (pair.0 ^ a); touch!(r3, given);
                    if !(pair.0 != o.s.b) {
                        s.bitcast(reshape(arr[0]));
                        for k5 in (0..4).step_by(2) {
                            let given = n; list[1].ptr(given);
                            (y + id * 64 + 32 + (k5 & 31)).store(list[1].a - list[1].b);
                            m.s.rank(x, n, (n << 4));
                            s.bitcast((pair.1 ^ 100));
                            b = if 10 <= (o.t.0 >> 1) { minimum(pair.0, id) } else { b };
                            (pair.0, b) = ((m.s.a ^ 3), n);
                            let held = s.a; r3.push(|t| t * 3 + held);
                            (y + id * 64 + 32 + ((k5 * 7 + 22) & 31)).store((c ^ 1));
                        }
                    } else {
                    }
                    (y + id * 64 + 28).store(o.s.dim(o.t.1));
                }
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 14).store(arr[0]);
        }
    }
    pub mod p2 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn dim(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) + self.a; }
            pub fn absorb(&mut self, v: V) -> V { self.b += v + self.a; self.a -= 1; self.b }
            pub fn len(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn expect(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn bitcast(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn max(&mut self, x: Ptr<i32>, n: V, v: V) {
                for k1 in 0..n {
                    for u2 in unroll(0..2usize) {
                        self.b = self.len(v);
                    }
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn helper(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.b = ((x + (v & 7)).load() * s.a);
        }
        pub fn exp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.dim($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            if let Some(r4) = list.get_mut(1) {
                for k5 in 0..2 {
                    let given = c; m.s.absorb(given);
                    (y + id * 64 + 32 + (k5 & 31)).store(m.s.a - m.s.b);
                    b *= ((pair.0 << 1) ^ 3);
                    (y + id * 64 + 31).store((x + (id & 7)).load());
                }
                for k6 in 0..(o.t.1 & 3) {
                    let given = a; m.s.dim(given);
                    (y + id * 64 + 32 + (k6 & 31)).store(m.s.a - m.s.b);
                    let given = m.s.len(b); touch!(o.s, given);
                    (y + id * 64 + 22).store((r4.b + n));
                }
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 11).store(list[1].b);
        }
    }
    pub mod p3 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn bitcast(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) * self.a; }
            pub fn get(&mut self, v: V) -> V { self.b *= v + self.a; self.a -= 1; self.b }
            pub fn map(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn set(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn store_if(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn cloned(&mut self, x: Ptr<i32>, n: V, v: V) {
                for u1 in unroll(0..1usize) {
                    self.a = ((v ^ v) - 100);
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn abs(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).a += v;
            s.bitcast((s.a >> 1));
            s.get((v % 11));
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.bitcast($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let given = (o.t.1 * list[1].b);
            let given = given; touch!(list[0], given);
            o.t.1 = if (o.t.1 * id) != 13 { (o.t.0 * m.k) } else { (pair.0 >> 3) };
            for k3 in 0..n {
                let given = a; s.bitcast(given);
                (y + id * 64 + 32 + (k3 & 31)).store(s.a - s.b);
                arr[1] *= where_(b <= arr[1], n, o.t.0);
                for r4 in list.iter_mut() {
                    for k5 in (0..n).step_by(2) {
                        let given = o.t.1; s.bitcast(given);
                        (y + id * 64 + 32 + (k5 & 31)).store(s.a - s.b);
                        pair.0 = if (n * 100) < k5 { r4.a } else { where_(k5 < id, o.t.0, o.t.1) };
                        for k6 in 0..1 {
                            let given = pair.1; s.get(given);
                            (y + id * 64 + 32 + (k6 & 31)).store(s.a - s.b);
                            let given = (arr[1] >> 1); add!(a, given);
                            let given = (x + (k6 & 7)).load(); add!(b, given);
                            (y + id * 64 + 22).store(o.s.map(arr[0]));
                        }
                        (y + id * 64 + 32 + ((k3 * 7 + 28) & 31)).store(where_(k5 == o.t.1, k3, arr[1]));
                    }
                }
                (y + id * 64 + 32 + ((k3 * 7 + 25) & 31)).store((arr[1] >> 2));
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p4 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn broadcast_to(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) ^ self.a; }
            pub fn is_none(&mut self, v: V) -> V { self.b ^= v + self.a; self.a ^= 1; self.b }
            pub fn load_or(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn stride(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn min(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn as_ref(&mut self, x: Ptr<i32>, n: V, v: V) {
                if (x + (v & 7)).load() >= v {
                    self.is_none(v);
                    let mut c1 = scalar::<i32>(0);
                    while c1 < 3 && v <= 19 {
                        self.is_none(v);
                        c1 += 1;
                    }
                } else {
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn get(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.is_none((v ^ v));
            s.broadcast_to((n ^ v));
            for k2 in 0..2 {
                s.a = ((k2 << 1) * 2);
            }
        }
        pub fn num_programs(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.broadcast_to($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k4 in 0..2 {
                let given = o.t.1; o.s.is_none(given);
                (y + id * 64 + 32 + (k4 & 31)).store(o.s.a - o.s.b);
                (pair.0, o.t.0) = ((11 * o.t.0), a);
                (y + id * 64 + 32 + ((k4 * 7 + 25) & 31)).store(a);
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 14).store(arr[0]);
        }
    }
    pub mod p5 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn push(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) * self.a; }
            pub fn is_some(&mut self, v: V) -> V { self.b *= v + self.a; self.a -= 1; self.b }
            pub fn bitcast(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn load(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn len(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn cloned(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.b = minimum((5 % n), self.b);
                self.a = ((v * v) ^ (self.b + n));
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn helper(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for k2 in (0..(v & 3)).step_by(2) {
                s.b = (3 + (s.b | v));
                s.push((n << 4));
                for k4 in 0..2 {
                }
            }
        }
        pub fn load(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.push($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            if f(pair.1) <= 17 {
                m.s.push((n - id));
                for k5 in range(4, -1, -1) {
                    let given = id; list[0].push(given);
                    (y + id * 64 + 32 + (k5 & 31)).store(list[0].a - list[0].b);
                    {
                        let r6 = &mut s;
                        for k7 in range(n, -1, -1) {
                            let given = pair.1; o.s.push(given);
                            (y + id * 64 + 32 + (k7 & 31)).store(o.s.a - o.s.b);
                            o.s = o.s.load((b ^ n));
                            pair.0 = if 18 != n { where_(pair.1 > arr[1], o.t.0, o.t.1) } else { (k7 * 2) };
                            (y + id * 64 + 27).store(b);
                        }
                        (y + id * 64 + 26).store((o.t.0 ^ 7));
                        (y + id * 64 + 22).store((n * m.k));
                        pair.1 = if (o.t.0 > k5) && c != o.t.0 { (pair.0 * pair.0) } else { r6.bitcast(id) };
                    }
                    (y + id * 64 + 32 + ((k5 * 7 + 31) & 31)).store(f(arr[1]));
                }
            }
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p6 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn map(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) ^ self.a; }
            pub fn load_if(&mut self, v: V) -> V { self.b ^= v + self.a; self.a -= 1; self.b }
            pub fn iter(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn load(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn broadcast_to(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn max(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.a = self.iter((self.a >> 1));
                self.a = !v;
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn reshape(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).a += (v % 100);
            s.map(v);
            s.a = !maximum(v, v);
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.map($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k3 in 0..(o.t.1 & 3) {
                let given = o.t.1; m.s.load_if(given);
                (y + id * 64 + 32 + (k3 & 31)).store(m.s.a - m.s.b);
                (y + id * 64 + 22).store((id | pair.1));
                (y + id * 64 + 32 + ((k3 * 7 + 31) & 31)).store(get(b));
            }
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 14).store(arr[0]);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p7 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn bitcast(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) * self.a; }
            pub fn copied(&mut self, v: V) -> V { self.b *= v + self.a; self.a ^= 1; self.b }
            pub fn store_if(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn shape(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn push(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn contains(&mut self, x: Ptr<i32>, n: V, v: V) {
                for k1 in (0..(v & 3)).step_by(2) {
                    self.bitcast(!k1);
                    let mut v2 = self.b;
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn clamp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).a += (v ^ v);
            for u3 in unroll(0..1usize) {
                (*s).bitcast(s.a);
            }
        }
        pub fn nan(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.bitcast($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            (pair.0, o.t.0) = ((arr[0] | pair.1), list[1].store_if(n));
            o.s = o.s.shape((a >> 3));
            for k4 in (0..(arr[0] & 3)).step_by(2) {
                let given = pair.1; s.copied(given);
                (y + id * 64 + 32 + (k4 & 31)).store(s.a - s.b);
                (a, pair.0) = (id, (c & k4));
                for r5 in &mut list {
                    for k6 in 0..(b & 3) {
                        let given = a; m.s.copied(given);
                        (y + id * 64 + 32 + (k6 & 31)).store(m.s.a - m.s.b);
                        (y + id * 64 + 32 + ((k6 * 7 + 21) & 31)).store((x + (o.t.0 & 7)).load());
                    }
                }
                (y + id * 64 + 20).store((x + (o.t.1 & 7)).load());
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 14).store(arr[0]);
        }
    }
    pub mod p8 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn get(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn unwrap(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn swap(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn contains(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn store(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn rank(&mut self, x: Ptr<i32>, n: V, v: V) {
                let held = v; self.store(|t| t * 3 + held);
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn helper(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).get((v | v));
            s.a = (2 % maximum(v, v));
            s.a = (where_(v > n, s.a, n) | n);
        }
        pub fn num_programs(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.get($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            a = if 19 < (s.b ^ a) { (pair.1 * m.k) } else { (c * pair.0) };
            s.get((x + (list[1].a & 7)).load());
            (arr[1], a) = (where_(arr[1] <= id, id, b), arr[1]);
            let given = (arr[0] & a);
            list[0].get(given);
            pair.1 = (pair.1 * m.k);
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 10).store(list[0].a);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p9 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn shape(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) * self.a; }
            pub fn take(&mut self, v: V) -> V { self.b *= v + self.a; self.a ^= 1; self.b }
            pub fn absorb(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn len(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn rank(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn iter(&mut self, x: Ptr<i32>, n: V, v: V) {
                let held = v; self.rank(|t| t * 3 + held);
                for k1 in 0..3 {
                    for k2 in 0..3 {
                    }
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn get(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.shape((x + (v & 7)).load());
            s.shape((v & v));
            for k3 in 0..n {
                s.a = !(v << 1);
            }
        }
        pub fn exp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.shape($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for r4 in list.iter_mut() {
                for k5 in 0..1 {
                    let given = a; s.shape(given);
                    (y + id * 64 + 32 + (k5 & 31)).store(s.a - s.b);
                    o.s.shape((k5 * o.t.0));
                    let held = a; s.rank(|t| t * 3 + held);
                    let mut c6 = scalar::<i32>(0);
                    while c6 < 3 {
                        *r4 = r4.len((pair.0 << 2));
                        o.s.shape((c * o.t.0));
                        c6 += 1;
                    }
                    (y + id * 64 + 25).store((k5 >> 3));
                }
            }
            (y + id * 64 + 8).store(m.s.a);
            (y + id * 64 + 11).store(list[1].b);
        }
    }
    pub mod p10 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn ptr(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) * self.a; }
            pub fn shape(&mut self, v: V) -> V { self.b *= v + self.a; self.a -= 1; self.b }
            pub fn as_ref(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn expect(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn get(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn last(&mut self, x: Ptr<i32>, n: V, v: V) {
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn helper(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.a = (v + minimum(v, v));
            (*s).ptr(where_(v == v, v, n));
            *s = s.expect((7 * v));
        }
        pub fn load(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.ptr($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k2 in 0..n {
                let given = n; s.ptr(given);
                (y + id * 64 + 32 + (k2 & 31)).store(s.a - s.b);
                (y + id * 64 + 29).store((pair.0 * c));
                (y + id * 64 + 28).store((3 * k2));
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 12).store(pair.0);
        }
    }
    pub mod p11 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn copied(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) + self.a; }
            pub fn to(&mut self, v: V) -> V { self.b += v + self.a; self.a -= 1; self.b }
            pub fn max(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn iter(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn last(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn unwrap_or(&mut self, x: Ptr<i32>, n: V, v: V) {
                for u1 in unroll(0..2usize) {
                    for k2 in 0..4 {
                    }
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn load(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.b = (v + (100 % v));
            s.copied((v * v));
            s.a = (v >> 3);
            s.a = ((v ^ v) - (s.b ^ v));
        }
        pub fn helper(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.copied($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            if 5 > minimum(pair.0, c) {
                o.s.unwrap_or(x, n, (pair.1 - pair.1));
                o.s.copied(c);
                m.s = m.s.iter(helper(arr[1]));
            }
            arr[0] *= f(minimum(arr[1], arr[0]));
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 13).store(pair.1);
            (y + id * 64 + 14).store(arr[0]);
        }
    }
    pub mod p12 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn absorb(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) * self.a; }
            pub fn max(&mut self, v: V) -> V { self.b *= v + self.a; self.a ^= 1; self.b }
            pub fn last(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn store_if(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn map(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn broadcast_to(&mut self, x: Ptr<i32>, n: V, v: V) {
                for k1 in (0..2).step_by(2) {
                    (*self).a += (7 + k1);
                    *self = self.store_if(minimum(k1, n));
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn exp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.b = (v >> 2);
            *s = s.store_if((v | n));
        }
        pub fn full(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.absorb($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            (arr[0], o.t.1) = ((n * 2), full(c));
            let given = (7 * arr[0]); touch!(s, given);
            for k3 in (0..(n & 3)).step_by(2) {
                let given = k3; list[1].absorb(given);
                (y + id * 64 + 32 + (k3 & 31)).store(list[1].a - list[1].b);
                for k4 in range(4, -1, -1) {
                    let given = pair.1; s.absorb(given);
                    (y + id * 64 + 32 + (k4 & 31)).store(s.a - s.b);
                    let mut t5 = list[1];
                    (y + id * 64 + 32 + ((k4 * 7 + 25) & 31)).store((m.s.a * m.s.a));
                }
                (y + id * 64 + 32 + ((k3 * 7 + 29) & 31)).store(where_(k3 > pair.0, n, pair.0));
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 11).store(list[1].b);
        }
    }
    pub mod p13 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn last(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) ^ self.a; }
            pub fn take(&mut self, v: V) -> V { self.b ^= v + self.a; self.a += 1; self.b }
            pub fn broadcast_to(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn get(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn load_or(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn load_if(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.a = self.broadcast_to((v - 100));
                if v >= 1 {
                    (*self).last(!v);
                    let w1 = ((v << 3) * 7);
                } else if v != v {
                    let held = v; self.load_or(|t| t * 3 + held);
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn clamp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let mut c2 = scalar::<i32>(0);
            while c2 < 3 && v <= s.a {
                if s.broadcast_to(c2) >= 16 {
                    *s = s.get((2 - n));
                    let held = c2; s.load_or(|t| t * 3 + held);
                    s.last(maximum(v, s.b));
                } else if c2 > c2 {
                    (*s).a += (x + (v & 7)).load();
                }
                (*s).a += (c2 >> 2);
                c2 += 1;
            }
        }
        pub fn sum(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.last($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            a = if !((7 % n) >= arr[1]) { list[0].broadcast_to(o.t.1) } else { (n * m.k) };
            let given = (b * m.k);
            list[1].last(given);
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 12).store(pair.0);
        }
    }
    pub mod p14 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn as_ref(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) ^ self.a; }
            pub fn absorb(&mut self, v: V) -> V { self.b ^= v + self.a; self.a += 1; self.b }
            pub fn contains(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn last(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn is_some(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn map(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.b = (self.a | v);
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn clamp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for k2 in 0..n {
                if k2 == 8 {
                    (*s).as_ref((k2 - v));
                    (*s).as_ref((v + s.a));
                    s.absorb(k2);
                } else if s.b != k2 {
                    (*s).a += v;
                }
            }
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.as_ref($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            (b, o.t.1) = ((pair.1 ^ o.t.0), (11 / c));
            pair.0 -= list[0].contains(f(n));
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p15 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn stride(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) * self.a; }
            pub fn rank(&mut self, v: V) -> V { self.b *= v + self.a; self.a += 1; self.b }
            pub fn iter(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn shape(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn last(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn load(&mut self, x: Ptr<i32>, n: V, v: V) {
                (*self).a += v;
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn clamp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let mut v1 = ((n * 3) | (v ^ v));
            let mut v2 = (x + (where_(12 <= n, v1, v1) & 7)).load();
            v1 -= where_(v2 > 6, (s.b - n), s.a);
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.stride($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            o.s.stride((n & n));
            if let Some(r3) = list.get_mut(1) {
                for k4 in 0..n {
                    let given = s.b; r3.stride(given);
                    (y + id * 64 + 32 + (k4 & 31)).store(r3.a - r3.b);
                    (*r3).stride(f(k4));
                    for k5 in (0..3).step_by(2) {
                        let given = k5; o.s.rank(given);
                        (y + id * 64 + 32 + (k5 & 31)).store(o.s.a - o.s.b);
                        (y + id * 64 + 32 + ((k4 * 7 + 23) & 31)).store((x + (arr[1] & 7)).load());
                    }
                    (y + id * 64 + 26).store((o.t.0 & b));
                }
            }
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p16 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn copied(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) ^ self.a; }
            pub fn set(&mut self, v: V) -> V { self.b ^= v + self.a; self.a += 1; self.b }
            pub fn iter(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn load(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn unwrap_or(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn bitcast(&mut self, x: Ptr<i32>, n: V, v: V) {
                (*self).a += v;
                self.copied(v);
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn full(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.b = where_(v != v, n, v);
            for u2 in unroll(0..1usize) {
                for u3 in unroll(0..1usize) {
                }
            }
        }
        pub fn reshape(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.copied($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k4 in 0..(id & 3) {
                let given = id; m.s.copied(given);
                (y + id * 64 + 32 + (k4 & 31)).store(m.s.a - m.s.b);
                (y + id * 64 + 32 + ((k4 * 7 + 24) & 31)).store((5 % o.t.0));
            }
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 12).store(pair.0);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p17 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn shape(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) ^ self.a; }
            pub fn cloned(&mut self, v: V) -> V { self.b ^= v + self.a; self.a -= 1; self.b }
            pub fn unwrap_or(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn load_or(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn bitcast(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn get(&mut self, x: Ptr<i32>, n: V, v: V) {
                for u1 in unroll(0..1usize) {
                    if (5 - v) < 7 {
                        (*self).shape((n * u1));
                    }
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn abs(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            *s = s.load_or(maximum(v, v));
            if (v ^ v) == v {
                s.cloned((v * s.b));
                let mut v2 = (7 / v);
                v2 = if (s.unwrap_or(v) <= n) || v == v { (v2 % 3) } else { where_(v2 == 12, v, v) };
            } else {
            }
        }
        pub fn clamp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.shape($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let mut v3 = (list[0].unwrap_or(pair.0) * (b & id));
            let held = b; o.s.bitcast(|t| t * 3 + held);
            let given = s.b;
            list[0].shape(given);
            let given = (x + (id & 7)).load();
            let held = arr[0]; list[1].bitcast(|t| t * 3 + held);
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 8).store(m.s.a);
            (y + id * 64 + 9).store(m.s.b);
        }
    }
    pub mod p18 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn load(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) * self.a; }
            pub fn contains(&mut self, v: V) -> V { self.b *= v + self.a; self.a += 1; self.b }
            pub fn stride(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn is_none(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn unwrap_or(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn push(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.load(where_(v <= 14, v, v));
                self.load((v * v));
                for k1 in range(n, -1, -1) {
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn load(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.load(v);
            s.b = ((v ^ s.b) << 1);
            (*s).load((v ^ v));
            let mut c3 = scalar::<i32>(0);
            while c3 < 3 {
                (*s).load(minimum(c3, v));
                c3 += 1;
            }
        }
        pub fn helper(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.load($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k4 in range(3, -1, -1) {
                let given = pair.1; list[0].load(given);
                (y + id * 64 + 32 + (k4 & 31)).store(list[0].a - list[0].b);
                b = ((o.t.0 + n) - 1);
                for k5 in 0..1 {
                    let given = n; s.contains(given);
                    (y + id * 64 + 32 + (k5 & 31)).store(s.a - s.b);
                    for r6 in &mut list {
                        for k7 in 0..1 {
                            let given = pair.0; r6.load(given);
                            (y + id * 64 + 32 + (k7 & 31)).store(r6.a - r6.b);
                            r6.load((1 + a));
                            (y + id * 64 + 32 + ((k5 * 7 + 24) & 31)).store((c ^ 100));
                        }
                    }
                    (y + id * 64 + 32 + ((k5 * 7 + 21) & 31)).store((o.t.0 | pair.0));
                }
                (y + id * 64 + 32 + ((k4 * 7 + 26) & 31)).store((o.t.1 + a));
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 11).store(list[1].b);
        }
    }
    pub mod p19 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn load(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) * self.a; }
            pub fn push(&mut self, v: V) -> V { self.b *= v + self.a; self.a += 1; self.b }
            pub fn store_if(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn is_none(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn absorb(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn get(&mut self, x: Ptr<i32>, n: V, v: V) {
                if 17 < self.store_if(v) {
                    self.push((v ^ v));
                    for k1 in (0..n).step_by(2) {
                        (*self).a += (1 - v);
                    }
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn num_programs(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for u2 in unroll(0..1usize) {
                s.b = v;
                let w4 = s.store_if((5 - s.a));
                s.b = s.store_if((s.a ^ v));
            }
        }
        pub fn exp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.load($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k5 in (0..n).step_by(2) {
                let given = a; o.s.load(given);
                (y + id * 64 + 32 + (k5 & 31)).store(o.s.a - o.s.b);
                let given = (pair.1 - o.t.0);
                arr[0] = list[0].push(given);
                o.s = o.s.is_none((arr[1] * m.k));
                let given = (11 % c); touch!(s, given);
                if exp(o.t.0) == 10 {
                    o.s = o.s.is_none(exp(o.s.a));
                    if (c + n) <= pair.0 {
                        let held = k5; o.s.absorb(|t| t * 3 + held);
                        m.s = m.s.is_none(f(o.s.b));
                        let given = (n - 100); num_programs(&mut m.s, x, n, given);
                    } else {
                        arr[0] = if (x + (k5 & 7)).load() != n { (k5 << 4) } else { (arr[0] + arr[1]) };
                    }
                } else if o.t.0 == o.t.0 {
                    let given = where_(id > n, b, c); num_programs(&mut o.s, x, n, given);
                }
                (y + id * 64 + 28).store((n ^ o.t.0));
            }
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 12).store(pair.0);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p20 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn absorb(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) ^ self.a; }
            pub fn as_ref(&mut self, v: V) -> V { self.b ^= v + self.a; self.a += 1; self.b }
            pub fn len(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn cloned(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn dim(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn to(&mut self, x: Ptr<i32>, n: V, v: V) {
                *self = self.cloned((v | v));
                self.b = maximum(!v, n);
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn sum(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            *s = s.cloned(!n);
            s.as_ref((v - v));
            if 1 > n {
                s.as_ref(s.len(v));
            }
        }
        pub fn clamp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.absorb($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k2 in (0..2).step_by(2) {
                let given = arr[1]; list[1].absorb(given);
                (y + id * 64 + 32 + (k2 & 31)).store(list[1].a - list[1].b);
                let mut t3 = m.s;
                (y + id * 64 + 30).store((id ^ pair.0));
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 13).store(pair.1);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p21 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn last(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn max(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn ptr(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn expect(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn bitcast(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn len(&mut self, x: Ptr<i32>, n: V, v: V) {
                if (1 - self.b) >= 18 {
                    self.last((v ^ v));
                    let held = v; self.bitcast(|t| t * 3 + held);
                    for k1 in 0..n {
                    }
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn full(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            if (x + (v & 7)).load() != 16 {
                s.last(s.a);
                (*s).last((v ^ 100));
                s.b = (n | v);
            } else {
                s.b = (v * s.b);
            }
        }
        pub fn nan(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.last($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            o.s.len(x, n, list[0].ptr(id));
            for k4 in 0..2 {
                let given = m.s.a; o.s.last(given);
                (y + id * 64 + 32 + (k4 & 31)).store(o.s.a - o.s.b);
                let mut c5 = scalar::<i32>(0);
                while c5 < 1 {
                    o.t.0 = m.s.max(s.b);
                    (y + id * 64 + 21).store(f(o.s.a));
                    s.last(nan(id));
                    o.t.1 = o.s.max(f(c5));
                    c5 += 1;
                }
                o.t.0 = if !((b << 4) != pair.1) { (x + (o.t.0 & 7)).load() } else { (pair.1 & c) };
                for k6 in 0..1 {
                    let given = pair.0; list[1].last(given);
                    (y + id * 64 + 32 + (k6 & 31)).store(list[1].a - list[1].b);
                    if list[0].ptr(o.t.0) > 12 {
                        o.s.last((pair.0 * m.k));
                    }
                    (y + id * 64 + 29).store(id);
                }
                (y + id * 64 + 24).store(a);
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 11).store(list[1].b);
        }
    }
    pub mod p22 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn bitcast(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) ^ self.a; }
            pub fn is_none(&mut self, v: V) -> V { self.b ^= v + self.a; self.a -= 1; self.b }
            pub fn is_some(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn load_if(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn push(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn last(&mut self, x: Ptr<i32>, n: V, v: V) {
                *self = self.load_if(!n);
                self.b = ((n - v) | self.is_some(v));
                (*self).a += (v - 3);
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn full(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.is_none(!v);
            for u2 in unroll(0..1usize) {
                let held = v; s.push(|t| t * 3 + held);
                for k3 in (0..(v & 3)).step_by(2) {
                }
            }
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.bitcast($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let given = where_(b > o.s.a, o.t.0, o.t.0);
            list[1].bitcast(given);
            a = (x + (arr[0] & 7)).load();
            let given = maximum(m.s.a, id);
            let given = given; full(&mut list[1], x, n, given);
            for k4 in (0..(c & 3)).step_by(2) {
                let given = list[0].b; list[1].bitcast(given);
                (y + id * 64 + 32 + (k4 & 31)).store(list[1].a - list[1].b);
                if let Some(r5) = opt.as_mut() {
                    for k6 in 0..n {
                        let given = n; list[0].is_none(given);
                        (y + id * 64 + 32 + (k6 & 31)).store(list[0].a - list[0].b);
                        (y + id * 64 + 32 + ((k6 * 7 + 24) & 31)).store(where_(pair.0 == a, k4, n));
                    }
                }
                (y + id * 64 + 22).store((1 - k4));
            }
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 12).store(pair.0);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p23 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn load_if(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) * self.a; }
            pub fn min(&mut self, v: V) -> V { self.b *= v + self.a; self.a ^= 1; self.b }
            pub fn unwrap_or(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn is_empty(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn get(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn set(&mut self, x: Ptr<i32>, n: V, v: V) {
                for k1 in (0..3).step_by(2) {
                    if (!self.a == n) && k1 < v {
                        self.min(!v);
                        self.load_if((self.b >> 2));
                    }
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn abs(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for u2 in unroll(0..2usize) {
                s.b = s.unwrap_or((x + (v & 7)).load());
            }
        }
        pub fn nan(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.load_if($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k4 in 0..(a & 3) {
                let given = arr[1]; list[0].min(given);
                (y + id * 64 + 32 + (k4 & 31)).store(list[0].a - list[0].b);
                arr[0] -= (minimum(k4, b) >> 4);
                (y + id * 64 + 24).store((n | o.s.b));
            }
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 13).store(pair.1);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p24 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn ptr(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) + self.a; }
            pub fn unwrap_or(&mut self, v: V) -> V { self.b += v + self.a; self.a -= 1; self.b }
            pub fn copied(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn len(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn swap(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn is_some(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.ptr((5 % v));
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn exp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let mut c1 = scalar::<i32>(0);
            while c1 < 1 {
                s.b = v;
                for k3 in (0..(c1 & 3)).step_by(2) {
                }
                let held = c1; s.swap(|t| t * 3 + held);
                c1 += 1;
            }
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.ptr($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            (y + id * 64 + 22).store((list[1].a * m.k));
            o.s = o.s.len((c % 1));
            for k4 in 0..n {
                let given = k4; list[0].unwrap_or(given);
                (y + id * 64 + 32 + (k4 & 31)).store(list[0].a - list[0].b);
                for u5 in unroll(0..1usize) {
                    b += ((3 % m.s.b) | list[0].copied(pair.0));
                    m.s.is_some(x, n, (arr[1] * list[0].a));
                    let given = (b + n);
                    list[1] = list[1].len(given);
                    m.s = m.s.len(where_(pair.1 == 12, b, a));
                    if 8 >= (100 + o.t.0) {
                        m.s.ptr((pair.0 + k4));
                    } else if b != arr[1] {
                        let given = (n >> 2);
                        list[1].is_some(x, n, given);
                    }
                }
                (y + id * 64 + 27).store(where_(arr[1] > c, b, o.t.0));
            }
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 12).store(pair.0);
        }
    }
    pub mod p25 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn shape(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) * self.a; }
            pub fn bitcast(&mut self, v: V) -> V { self.b *= v + self.a; self.a += 1; self.b }
            pub fn to(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn contains(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn max(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn min(&mut self, x: Ptr<i32>, n: V, v: V) {
                for u1 in unroll(0..1usize) {
                    for u2 in unroll(0..1usize) {
                        self.shape(v);
                    }
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn exp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.b = ((v | v) ^ s.a);
            s.b = (x + (where_(v != 18, v, v) & 7)).load();
            for u3 in unroll(0..2usize) {
            }
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.shape($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            pair.1 = s.bitcast((n << 2));
            for u4 in unroll(0..1usize) {
                for k5 in (0..(n & 3)).step_by(2) {
                    let given = k5; s.bitcast(given);
                    (y + id * 64 + 32 + (k5 & 31)).store(s.a - s.b);
                    for k6 in 0..4 {
                        let given = n; list[1].bitcast(given);
                        (y + id * 64 + 32 + (k6 & 31)).store(list[1].a - list[1].b);
                        arr[0] ^= ((o.t.1 * u4) - 3);
                        (y + id * 64 + 32 + ((k6 * 7 + 20) & 31)).store(f(b));
                    }
                    (y + id * 64 + 28).store((b + list[0].a));
                }
            }
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 12).store(pair.0);
            (y + id * 64 + 13).store(pair.1);
            (y + id * 64 + 15).store(arr[1]);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p26 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn bitcast(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn dim(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn expect(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn iter(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn last(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn broadcast_to(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.a = ((v | v) << 2);
                for u2 in unroll(0..1usize) {
                    if self.b >= 7 {
                        let held = v; self.last(|t| t * 3 + held);
                    } else if v >= self.b {
                        *self = self.iter((1 % v));
                    }
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn full(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let mut c3 = scalar::<i32>(0);
            while c3 < 3 && v <= v {
                (*s).a += maximum(c3, n);
                s.b = (11 + v);
                (*s).bitcast(where_(n == 16, v, c3));
                c3 += 1;
            }
        }
        pub fn inf(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.bitcast($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let held = pair.1; m.s.last(|t| t * 3 + held);
            arr[1] ^= (3 / (c ^ arr[1]));
            if (inf(arr[0]) == pair.0) || o.t.1 >= id {
                s.bitcast((5 % n));
                for k5 in range(4, -1, -1) {
                    let given = k5; o.s.bitcast(given);
                    (y + id * 64 + 32 + (k5 & 31)).store(o.s.a - o.s.b);
                    (y + id * 64 + 18).store(inf(o.t.1));
                }
            } else if 10 == c {
                let given = (n ^ list[0].a);
                list[1] = list[1].iter(given);
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p27 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn get(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn store(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn len(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn push(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn map(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn load_if(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.b = (v - (x + (v & 7)).load());
                self.store(v);
                for k2 in 0..n {
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn helper(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.store((v | v));
            s.b = (n * 7);
            (*s).a += where_(v != v, v, v);
            if (v + v) > v {
                (*s).get((v + s.a));
            } else if v != 15 {
                s.get((v | v));
            }
        }
        pub fn nan(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.get($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k4 in (0..n).step_by(2) {
                let given = c; o.s.store(given);
                (y + id * 64 + 32 + (k4 & 31)).store(o.s.a - o.s.b);
                m.s = m.s.push((c * m.k));
                (y + id * 64 + 27).store((arr[0] * m.k));
            }
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 12).store(pair.0);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p28 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn rank(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) + self.a; }
            pub fn stride(&mut self, v: V) -> V { self.b += v + self.a; self.a += 1; self.b }
            pub fn ptr(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn expect(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn dim(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn unwrap_or(&mut self, x: Ptr<i32>, n: V, v: V) {
                let held = v; self.dim(|t| t * 3 + held);
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn reshape(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let w1 = minimum((v - v), v);
            let mut c2 = scalar::<i32>(0);
            while c2 < 2 {
                s.dim(|t| t * 3 + n);
                s.stride((x + (s.a & 7)).load());
                c2 += 1;
            }
        }
        pub fn abs(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.rank($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k3 in 0..1 {
                let given = s.b; o.s.stride(given);
                (y + id * 64 + 32 + (k3 & 31)).store(o.s.a - o.s.b);
                let given = abs(o.t.1); touch!(s, given);
                (y + id * 64 + 18).store((id * m.k));
            }
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 12).store(pair.0);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p29 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn to(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) ^ self.a; }
            pub fn is_some(&mut self, v: V) -> V { self.b ^= v + self.a; self.a -= 1; self.b }
            pub fn load_if(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn swap(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn push(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn first(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.b = where_(5 > v, (100 - v), self.b);
                self.b = (11 + self.load_if(self.b));
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn inf(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for u3 in unroll(0..1usize) {
                if ((v * u3) == n) && v >= v {
                    (*s).a += where_(4 >= v, v, s.b);
                    (*s).a += (v * s.b);
                    (*s).a += v;
                } else if v <= 13 {
                    (*s).to(maximum(v, v));
                }
            }
        }
        pub fn sum(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.to($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            (arr[0], pair.0) = ((c - a), id);
            let mut c4 = scalar::<i32>(0);
            while c4 < 3 && id > 7 {
                if let Some(r5) = list.get_mut(1) {
                    for k6 in (0..n).step_by(2) {
                        let given = k6; s.to(given);
                        (y + id * 64 + 32 + (k6 & 31)).store(s.a - s.b);
                        b = if 14 >= (pair.0 ^ 7) { where_(o.s.b == b, pair.1, arr[1]) } else { (100 - o.t.1) };
                        let held = arr[1]; m.s.push(|t| t * 3 + held);
                        (y + id * 64 + 25).store(f(n));
                    }
                }
                let given = (o.t.0 & o.s.b);
                let given = given; inf(&mut list[1], x, n, given);
                c4 += 1;
            }
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 13).store(pair.1);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p30 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn max(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) + self.a; }
            pub fn load(&mut self, v: V) -> V { self.b += v + self.a; self.a -= 1; self.b }
            pub fn map(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn is_empty(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn expect(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn set(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.a = (v / 5);
                if v == 16 {
                    let held = v; self.expect(|t| t * 3 + held);
                    self.b = self.map((v | v));
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn helper(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for k2 in 0..n {
                (*s).max((k2 ^ v));
                s.b = (s.map(k2) ^ !v);
                s.b = (v + 5);
            }
        }
        pub fn load(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.max($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let given = f(o.t.0);
            list[1].set(x, n, given);
            s.set(x, n, f(pair.0));
            let held = arr[0]; m.s.expect(|t| t * 3 + held);
            let mut c3 = scalar::<i32>(0);
            while c3 < 3 && pair.1 > arr[0] {
                o.s.set(x, n, s.map(b));
                let given = o.s.b;
                list[0].max(given);
                c3 += 1;
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 9).store(m.s.b);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p31 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn store(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn copied(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn dim(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn iter(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn contains(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn first(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.store((v ^ n));
                for k1 in (0..3).step_by(2) {
                    (*self).store((v << 4));
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn full(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for u2 in unroll(0..2usize) {
                (*s).store(v);
            }
        }
        pub fn nan(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.store($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            o.s = o.s.iter(c);
            if m.s.dim(s.b) != 2 {
                s = s.iter(minimum(o.t.0, n));
                let given = (n << 3);
                list[1] = list[1].iter(given);
                if !((x + (arr[0] & 7)).load() != pair.0) {
                    s.store((o.t.0 << 2));
                    for r3 in list.iter_mut() {
                        for k4 in 0..n {
                            let given = r3.a; r3.store(given);
                            (y + id * 64 + 32 + (k4 & 31)).store(r3.a - r3.b);
                            let given = (x + (a & 7)).load(); add!(a, given);
                            m.s = m.s.iter((m.s.b * m.k));
                            o.t.0 *= nan(pair.1);
                            (y + id * 64 + 32 + ((k4 * 7 + 21) & 31)).store(where_(3 == s.b, o.t.0, pair.1));
                        }
                        let given = nan(pair.1); add!(a, given);
                    }
                }
            } else {
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 14).store(arr[0]);
        }
    }
    pub mod p32 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn load(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn load_or(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn stride(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn copied(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn store_if(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn last(&mut self, x: Ptr<i32>, n: V, v: V) {
                let held = v; self.store_if(|t| t * 3 + held);
                self.a = ((v | v) | minimum(v, v));
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn clamp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).load((11 - v));
            let (p1, mut q2) = ((maximum(v, v) >> 3), (x + (v & 7)).load());
        }
        pub fn reshape(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.load($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let held = b; o.s.store_if(|t| t * 3 + held);
            (o.t.0, b) = (where_(list[1].a == m.s.a, b, n), (n / 1));
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 8).store(m.s.a);
            (y + id * 64 + 12).store(pair.0);
        }
    }
    pub mod p33 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn as_ref(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn cloned(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn stride(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn len(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn take(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn store_if(&mut self, x: Ptr<i32>, n: V, v: V) {
                let mut c1 = scalar::<i32>(0);
                while c1 < 1 {
                    for k2 in range(4, -1, -1) {
                        (*self).a += (x + (v & 7)).load();
                    }
                    self.as_ref((c1 >> 2));
                    c1 += 1;
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn exp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).a += n;
            let mut c3 = scalar::<i32>(0);
            while c3 < 1 && v >= s.a {
                for k4 in (0..2).step_by(2) {
                    s.cloned(!n);
                }
                (*s).a += v;
                c3 += 1;
            }
        }
        pub fn sum(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.as_ref($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            arr[1] = if pair.1 == o.t.1 { m.s.stride(n) } else { (1 - pair.0) };
            let mut v5 = ((b * m.k) * m.k);
            o.s.store_if(x, n, (id - n));
            v5 -= (x + ((o.t.0 - o.t.0) & 7)).load();
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 13).store(pair.1);
            (y + id * 64 + 14).store(arr[0]);
            (y + id * 64 + 15).store(arr[1]);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p34 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn map(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) + self.a; }
            pub fn load_if(&mut self, v: V) -> V { self.b += v + self.a; self.a += 1; self.b }
            pub fn len(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn is_empty(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn get(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn unwrap_or(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.b = minimum(v, v);
                for u2 in unroll(0..1usize) {
                    (*self).a += (v | v);
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn num_programs(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.map((5 + n));
            for k3 in range(1, -1, -1) {
                for u4 in unroll(0..1usize) {
                }
            }
        }
        pub fn load(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.map($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k5 in range((arr[1] & 3), -1, -1) {
                let given = o.t.1; list[1].load_if(given);
                (y + id * 64 + 32 + (k5 & 31)).store(list[1].a - list[1].b);
                let held = pair.0; o.s.get(|t| t * 3 + held);
                (y + id * 64 + 20).store((arr[0] + arr[0]));
            }
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 12).store(pair.0);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p35 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn stride(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) ^ self.a; }
            pub fn first(&mut self, v: V) -> V { self.b ^= v + self.a; self.a ^= 1; self.b }
            pub fn copied(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn min(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn len(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn load_if(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.a = (x + ((x + (n & 7)).load() & 7)).load();
                if !((self.b | v) <= self.a) {
                    (*self).stride(where_(v >= 12, v, v));
                } else {
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn sum(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).a += v;
        }
        pub fn exp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.stride($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for u2 in unroll(0..1usize) {
                s.stride((o.t.0 - arr[1]));
                for r3 in list.iter_mut() {
                    for k4 in 0..1 {
                        let given = arr[1]; r3.first(given);
                        (y + id * 64 + 32 + (k4 & 31)).store(r3.a - r3.b);
                        {
                            let r5 = &mut m.s;
                            for k6 in (0..n).step_by(2) {
                                let given = c; o.s.first(given);
                                (y + id * 64 + 32 + (k6 & 31)).store(o.s.a - o.s.b);
                                (*r5).stride((11 / arr[1]));
                                (y + id * 64 + 32 + ((k4 * 7 + 25) & 31)).store((r3.a >> 3));
                                (y + id * 64 + 23).store((k4 - id));
                            }
                            arr[0] = if (n * 1) != 17 { (o.t.1 << 2) } else { (s.b * n) };
                            let given = (7 % pair.1); touch!(s, given);
                        }
                        o.t.1 = r3.first((1 % n));
                        (y + id * 64 + 26).store((100 - id));
                    }
                }
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p36 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn swap(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) ^ self.a; }
            pub fn push(&mut self, v: V) -> V { self.b ^= v + self.a; self.a ^= 1; self.b }
            pub fn max(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn shape(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn contains(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn absorb(&mut self, x: Ptr<i32>, n: V, v: V) {
                (*self).a += self.max(v);
                self.a = (x + ((v | v) & 7)).load();
                if !(v > self.a) {
                    (*self).swap((n >> 3));
                } else if self.b > v {
                    (*self).a += (7 % v);
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn inf(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for u2 in unroll(0..1usize) {
                s.b = where_(v <= v, s.a, s.b);
                s.swap((v << 3));
                let mut c4 = scalar::<i32>(0);
                while c4 < 1 && 16 <= v {
                    let held = c4; s.contains(|t| t * 3 + held);
                    c4 += 1;
                }
            }
        }
        pub fn abs(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.swap($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k5 in 0..3 {
                let given = arr[1]; s.push(given);
                (y + id * 64 + 32 + (k5 & 31)).store(s.a - s.b);
                for k6 in 0..2 {
                    let given = arr[1]; list[0].push(given);
                    (y + id * 64 + 32 + (k6 & 31)).store(list[0].a - list[0].b);
                    if 14 <= (k5 - 1) {
                        o.s = o.s.shape((100 - pair.0));
                        b *= maximum(f(arr[0]), id);
                        (y + id * 64 + 18).store((100 + arr[0]));
                    } else if list[1].a < 0 {
                        m.s.swap((x + (arr[1] & 7)).load());
                    }
                    (y + id * 64 + 18).store((o.t.0 * m.k));
                }
                (y + id * 64 + 19).store(maximum(o.t.0, k5));
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p37 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn iter(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) ^ self.a; }
            pub fn ptr(&mut self, v: V) -> V { self.b ^= v + self.a; self.a -= 1; self.b }
            pub fn store_if(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn last(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn unwrap_or(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn is_empty(&mut self, x: Ptr<i32>, n: V, v: V) {
                *self = self.last(v);
                (*self).iter(maximum(self.b, n));
                (*self).iter(maximum(v, v));
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn clamp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.b = (!n << 2);
            if minimum(s.a, n) <= 3 {
                s.ptr(s.store_if(v));
                s.unwrap_or(|t| t * 3 + n);
                if (x + (v & 7)).load() <= 2 {
                    let held = v; s.unwrap_or(|t| t * 3 + held);
                } else if n > s.b {
                    (*s).a += !v;
                }
            } else if v == v {
                s.iter(!v);
            }
        }
        pub fn full(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.iter($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let given = maximum(o.t.0, arr[1]);
            let given = given; touch!(list[1], given);
            if ((o.t.0 + b) <= m.s.b) && n == n {
                let held = n; m.s.unwrap_or(|t| t * 3 + held);
                let given = (pair.0 + n);
                list[0].iter(given);
                if let Some(r2) = list.get_mut(1) {
                    for k3 in (0..n).step_by(2) {
                        let given = r2.a; m.s.ptr(given);
                        (y + id * 64 + 32 + (k3 & 31)).store(m.s.a - m.s.b);
                        for k4 in range(3, -1, -1) {
                            let given = b; s.iter(given);
                            (y + id * 64 + 32 + (k4 & 31)).store(s.a - s.b);
                            r2.iter((pair.1 * o.t.1));
                            arr[0] = if ((o.t.0 * m.k) < c) && m.s.b >= 10 { maximum(n, o.t.1) } else { where_(0 <= arr[1], r2.b, b) };
                            o.s.iter((2 * id));
                            (y + id * 64 + 32 + ((k4 * 7 + 18) & 31)).store(full(b));
                        }
                        (y + id * 64 + 26).store(m.s.store_if(id));
                    }
                }
            } else if arr[0] < o.s.a {
                m.s.iter((c * m.k));
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 7).store(o.t.1);
        }
    }
    pub mod p38 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn push(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) * self.a; }
            pub fn store_if(&mut self, v: V) -> V { self.b *= v + self.a; self.a ^= 1; self.b }
            pub fn bitcast(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn swap(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn last(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn unwrap_or(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.b = self.bitcast((v << 2));
                for k2 in (0..2).step_by(2) {
                    (*self).push(k2);
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn abs(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for u3 in unroll(0..1usize) {
                s.b = (where_(v != 18, v, s.b) & (v - v));
                s.a = ((v + 11) * (v & v));
            }
        }
        pub fn exp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.push($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k6 in range((arr[0] & 3), -1, -1) {
                let given = pair.0; list[0].push(given);
                (y + id * 64 + 32 + (k6 & 31)).store(list[0].a - list[0].b);
                o.t.1 = arr[0];
                (y + id * 64 + 25).store((a - k6));
            }
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p39 {
        use super::*;
        #[derive(Clone, Copy, Carry)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn take(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) ^ self.a; }
            pub fn absorb(&mut self, v: V) -> V { self.b ^= v + self.a; self.a -= 1; self.b }
            pub fn is_empty(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn last(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn shape(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        #[device_fn] pub fn is_some(&mut self, x: Ptr<i32>, n: V, v: V) {
                if !((v * v) == v) {
                    (*self).take(v);
                    self.absorb(where_(v != v, n, v));
                    self.b = (!v - (v / 11));
                }
            }
        }
        #[derive(Clone, Copy, Carry)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        #[device_fn] pub fn sum(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.take((v << 2));
            s.a = where_(v > 16, s.is_empty(s.a), v);
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.take($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        #[kernel] pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: i32) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let (p3, mut q4) = ((1 * (arr[0] + o.s.b)), (x + (n & 7)).load());
            for u5 in unroll(0..2usize) {
                let mut c6 = scalar::<i32>(0);
                while c6 < 3 {
                    for u7 in unroll(0..2usize) {
                        (pair.0, o.t.1) = ((b ^ p3), (o.t.0 + 100));
                        (y + id * 64 + 29).store(f(id));
                        (y + id * 64 + 18).store(m.s.is_empty(pair.1));
                    }
                    let given = (5 - arr[0]);
                    list[0].take(given);
                    o.s.take(where_(o.s.a < p3, o.t.1, c6));
                    c6 += 1;
                }
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 12).store(pair.0);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
}

pub mod host {
    use super::super::twin::{Wrap, Ptr, maximum, minimum, program_id, range, scalar, unroll, where_};
    type V = Wrap;

    pub mod p0 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn min(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) * self.a; }
            pub fn last(&mut self, v: V) -> V { self.b *= v + self.a; self.a += 1; self.b }
            pub fn load(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn as_ref(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn store_if(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn store(&mut self, x: Ptr<i32>, n: V, v: V) {
                if 6 > self.a {
                    self.last(where_(v == 13, v, v));
                    self.a = (where_(v != 12, self.a, v) - 100);
                    let mut v1 = !!v;
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn get(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let mut c2 = scalar::<i32>(0);
            while c2 < 3 && v <= 2 {
                s.b = minimum(maximum(n, n), s.a);
                s.min((11 / n));
                if s.load(v) <= 2 {
                    *s = s.as_ref(s.load(c2));
                } else if c2 >= s.b {
                    s.min(maximum(s.a, v));
                }
                s.last(where_(10 != c2, v, c2));
                c2 += 1;
            }
        }
        pub fn exp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.min($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k4 in range(0, n, 1) {
                let given = n; list[1].min(given);
                (y + id * 64 + 32 + (k4 & 31)).store(list[1].a - list[1].b);
                let given = (c ^ pair.1); add!(a, given);
                (y + id * 64 + 20).store((o.t.1 * m.k));
            }
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 13).store(pair.1);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p1 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn bitcast(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) ^ self.a; }
            pub fn ptr(&mut self, v: V) -> V { self.b ^= v + self.a; self.a += 1; self.b }
            pub fn dim(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn set(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn push(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn rank(&mut self, x: Ptr<i32>, n: V, v: V) {
                for k1 in range(4, -1, -1) {
                    (*self).a += n;
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn sum(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let mut v2 = s.dim(!v);
            v2 = if !((v2 * v2) == v) { (s.b >> 3) } else { s.dim(v2) };
        }
        pub fn reshape(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.bitcast($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            if let Some(r3) = opt.as_mut() {
                for k4 in (range(0, n, 1)).step_by(2) {
                    let given = o.t.0; list[1].bitcast(given);
                    (y + id * 64 + 32 + (k4 & 31)).store(list[1].a - list[1].b);
                    let given = (pair.0 ^ a); touch!(r3, given);
                    if !(pair.0 != o.s.b) {
                        s.bitcast(reshape(arr[0]));
                        for k5 in (range(0, 4, 1)).step_by(2) {
                            let given = n; list[1].ptr(given);
                            (y + id * 64 + 32 + (k5 & 31)).store(list[1].a - list[1].b);
                            m.s.rank(x, n, (n << 4));
                            s.bitcast((pair.1 ^ 100));
                            b = if 10 <= (o.t.0 >> 1) { minimum(pair.0, id) } else { b };
                            (pair.0, b) = ((m.s.a ^ 3), n);
                            let held = s.a; r3.push(|t| t * 3 + held);
                            (y + id * 64 + 32 + ((k5 * 7 + 22) & 31)).store((c ^ 1));
                        }
                    } else {
                    }
                    (y + id * 64 + 28).store(o.s.dim(o.t.1));
                }
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 14).store(arr[0]);
        }
    }
    pub mod p2 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn dim(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) + self.a; }
            pub fn absorb(&mut self, v: V) -> V { self.b += v + self.a; self.a -= 1; self.b }
            pub fn len(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn expect(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn bitcast(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn max(&mut self, x: Ptr<i32>, n: V, v: V) {
                for k1 in range(0, n, 1) {
                    for u2 in unroll(0..2usize) {
                        self.b = self.len(v);
                    }
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn helper(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.b = ((x + (v & 7)).load() * s.a);
        }
        pub fn exp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.dim($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            if let Some(r4) = list.get_mut(1) {
                for k5 in range(0, 2, 1) {
                    let given = c; m.s.absorb(given);
                    (y + id * 64 + 32 + (k5 & 31)).store(m.s.a - m.s.b);
                    b *= ((pair.0 << 1) ^ 3);
                    (y + id * 64 + 31).store((x + (id & 7)).load());
                }
                for k6 in range(0, (o.t.1 & 3), 1) {
                    let given = a; m.s.dim(given);
                    (y + id * 64 + 32 + (k6 & 31)).store(m.s.a - m.s.b);
                    let given = m.s.len(b); touch!(o.s, given);
                    (y + id * 64 + 22).store((r4.b + n));
                }
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 11).store(list[1].b);
        }
    }
    pub mod p3 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn bitcast(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) * self.a; }
            pub fn get(&mut self, v: V) -> V { self.b *= v + self.a; self.a -= 1; self.b }
            pub fn map(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn set(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn store_if(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn cloned(&mut self, x: Ptr<i32>, n: V, v: V) {
                for u1 in unroll(0..1usize) {
                    self.a = ((v ^ v) - 100);
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn abs(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).a += v;
            s.bitcast((s.a >> 1));
            s.get((v % 11));
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.bitcast($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let given = (o.t.1 * list[1].b);
            let given = given; touch!(list[0], given);
            o.t.1 = if (o.t.1 * id) != 13 { (o.t.0 * m.k) } else { (pair.0 >> 3) };
            for k3 in range(0, n, 1) {
                let given = a; s.bitcast(given);
                (y + id * 64 + 32 + (k3 & 31)).store(s.a - s.b);
                arr[1] *= where_(b <= arr[1], n, o.t.0);
                for r4 in list.iter_mut() {
                    for k5 in (range(0, n, 1)).step_by(2) {
                        let given = o.t.1; s.bitcast(given);
                        (y + id * 64 + 32 + (k5 & 31)).store(s.a - s.b);
                        pair.0 = if (n * 100) < k5 { r4.a } else { where_(k5 < id, o.t.0, o.t.1) };
                        for k6 in range(0, 1, 1) {
                            let given = pair.1; s.get(given);
                            (y + id * 64 + 32 + (k6 & 31)).store(s.a - s.b);
                            let given = (arr[1] >> 1); add!(a, given);
                            let given = (x + (k6 & 7)).load(); add!(b, given);
                            (y + id * 64 + 22).store(o.s.map(arr[0]));
                        }
                        (y + id * 64 + 32 + ((k3 * 7 + 28) & 31)).store(where_(k5 == o.t.1, k3, arr[1]));
                    }
                }
                (y + id * 64 + 32 + ((k3 * 7 + 25) & 31)).store((arr[1] >> 2));
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p4 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn broadcast_to(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) ^ self.a; }
            pub fn is_none(&mut self, v: V) -> V { self.b ^= v + self.a; self.a ^= 1; self.b }
            pub fn load_or(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn stride(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn min(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn as_ref(&mut self, x: Ptr<i32>, n: V, v: V) {
                if (x + (v & 7)).load() >= v {
                    self.is_none(v);
                    let mut c1 = scalar::<i32>(0);
                    while c1 < 3 && v <= 19 {
                        self.is_none(v);
                        c1 += 1;
                    }
                } else {
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn get(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.is_none((v ^ v));
            s.broadcast_to((n ^ v));
            for k2 in range(0, 2, 1) {
                s.a = ((k2 << 1) * 2);
            }
        }
        pub fn num_programs(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.broadcast_to($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k4 in range(0, 2, 1) {
                let given = o.t.1; o.s.is_none(given);
                (y + id * 64 + 32 + (k4 & 31)).store(o.s.a - o.s.b);
                (pair.0, o.t.0) = ((11 * o.t.0), a);
                (y + id * 64 + 32 + ((k4 * 7 + 25) & 31)).store(a);
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 14).store(arr[0]);
        }
    }
    pub mod p5 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn push(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) * self.a; }
            pub fn is_some(&mut self, v: V) -> V { self.b *= v + self.a; self.a -= 1; self.b }
            pub fn bitcast(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn load(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn len(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn cloned(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.b = minimum((5 % n), self.b);
                self.a = ((v * v) ^ (self.b + n));
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn helper(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for k2 in (range(0, (v & 3), 1)).step_by(2) {
                s.b = (3 + (s.b | v));
                s.push((n << 4));
                for k4 in range(0, 2, 1) {
                }
            }
        }
        pub fn load(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.push($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            if f(pair.1) <= 17 {
                m.s.push((n - id));
                for k5 in range(4, -1, -1) {
                    let given = id; list[0].push(given);
                    (y + id * 64 + 32 + (k5 & 31)).store(list[0].a - list[0].b);
                    {
                        let r6 = &mut s;
                        for k7 in range(n, -1, -1) {
                            let given = pair.1; o.s.push(given);
                            (y + id * 64 + 32 + (k7 & 31)).store(o.s.a - o.s.b);
                            o.s = o.s.load((b ^ n));
                            pair.0 = if 18 != n { where_(pair.1 > arr[1], o.t.0, o.t.1) } else { (k7 * 2) };
                            (y + id * 64 + 27).store(b);
                        }
                        (y + id * 64 + 26).store((o.t.0 ^ 7));
                        (y + id * 64 + 22).store((n * m.k));
                        pair.1 = if (o.t.0 > k5) && c != o.t.0 { (pair.0 * pair.0) } else { r6.bitcast(id) };
                    }
                    (y + id * 64 + 32 + ((k5 * 7 + 31) & 31)).store(f(arr[1]));
                }
            }
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p6 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn map(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) ^ self.a; }
            pub fn load_if(&mut self, v: V) -> V { self.b ^= v + self.a; self.a -= 1; self.b }
            pub fn iter(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn load(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn broadcast_to(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn max(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.a = self.iter((self.a >> 1));
                self.a = !v;
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn reshape(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).a += (v % 100);
            s.map(v);
            s.a = !maximum(v, v);
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.map($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k3 in range(0, (o.t.1 & 3), 1) {
                let given = o.t.1; m.s.load_if(given);
                (y + id * 64 + 32 + (k3 & 31)).store(m.s.a - m.s.b);
                (y + id * 64 + 22).store((id | pair.1));
                (y + id * 64 + 32 + ((k3 * 7 + 31) & 31)).store(get(b));
            }
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 14).store(arr[0]);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p7 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn bitcast(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) * self.a; }
            pub fn copied(&mut self, v: V) -> V { self.b *= v + self.a; self.a ^= 1; self.b }
            pub fn store_if(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn shape(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn push(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn contains(&mut self, x: Ptr<i32>, n: V, v: V) {
                for k1 in (range(0, (v & 3), 1)).step_by(2) {
                    self.bitcast(!k1);
                    let mut v2 = self.b;
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn clamp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).a += (v ^ v);
            for u3 in unroll(0..1usize) {
                (*s).bitcast(s.a);
            }
        }
        pub fn nan(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.bitcast($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            (pair.0, o.t.0) = ((arr[0] | pair.1), list[1].store_if(n));
            o.s = o.s.shape((a >> 3));
            for k4 in (range(0, (arr[0] & 3), 1)).step_by(2) {
                let given = pair.1; s.copied(given);
                (y + id * 64 + 32 + (k4 & 31)).store(s.a - s.b);
                (a, pair.0) = (id, (c & k4));
                for r5 in &mut list {
                    for k6 in range(0, (b & 3), 1) {
                        let given = a; m.s.copied(given);
                        (y + id * 64 + 32 + (k6 & 31)).store(m.s.a - m.s.b);
                        (y + id * 64 + 32 + ((k6 * 7 + 21) & 31)).store((x + (o.t.0 & 7)).load());
                    }
                }
                (y + id * 64 + 20).store((x + (o.t.1 & 7)).load());
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 14).store(arr[0]);
        }
    }
    pub mod p8 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn get(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn unwrap(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn swap(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn contains(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn store(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn rank(&mut self, x: Ptr<i32>, n: V, v: V) {
                let held = v; self.store(|t| t * 3 + held);
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn helper(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).get((v | v));
            s.a = (2 % maximum(v, v));
            s.a = (where_(v > n, s.a, n) | n);
        }
        pub fn num_programs(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.get($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            a = if 19 < (s.b ^ a) { (pair.1 * m.k) } else { (c * pair.0) };
            s.get((x + (list[1].a & 7)).load());
            (arr[1], a) = (where_(arr[1] <= id, id, b), arr[1]);
            let given = (arr[0] & a);
            list[0].get(given);
            pair.1 = (pair.1 * m.k);
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 10).store(list[0].a);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p9 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn shape(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) * self.a; }
            pub fn take(&mut self, v: V) -> V { self.b *= v + self.a; self.a ^= 1; self.b }
            pub fn absorb(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn len(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn rank(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn iter(&mut self, x: Ptr<i32>, n: V, v: V) {
                let held = v; self.rank(|t| t * 3 + held);
                for k1 in range(0, 3, 1) {
                    for k2 in range(0, 3, 1) {
                    }
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn get(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.shape((x + (v & 7)).load());
            s.shape((v & v));
            for k3 in range(0, n, 1) {
                s.a = !(v << 1);
            }
        }
        pub fn exp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.shape($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for r4 in list.iter_mut() {
                for k5 in range(0, 1, 1) {
                    let given = a; s.shape(given);
                    (y + id * 64 + 32 + (k5 & 31)).store(s.a - s.b);
                    o.s.shape((k5 * o.t.0));
                    let held = a; s.rank(|t| t * 3 + held);
                    let mut c6 = scalar::<i32>(0);
                    while c6 < 3 {
                        *r4 = r4.len((pair.0 << 2));
                        o.s.shape((c * o.t.0));
                        c6 += 1;
                    }
                    (y + id * 64 + 25).store((k5 >> 3));
                }
            }
            (y + id * 64 + 8).store(m.s.a);
            (y + id * 64 + 11).store(list[1].b);
        }
    }
    pub mod p10 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn ptr(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) * self.a; }
            pub fn shape(&mut self, v: V) -> V { self.b *= v + self.a; self.a -= 1; self.b }
            pub fn as_ref(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn expect(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn get(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn last(&mut self, x: Ptr<i32>, n: V, v: V) {
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn helper(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.a = (v + minimum(v, v));
            (*s).ptr(where_(v == v, v, n));
            *s = s.expect((7 * v));
        }
        pub fn load(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.ptr($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k2 in range(0, n, 1) {
                let given = n; s.ptr(given);
                (y + id * 64 + 32 + (k2 & 31)).store(s.a - s.b);
                (y + id * 64 + 29).store((pair.0 * c));
                (y + id * 64 + 28).store((3 * k2));
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 12).store(pair.0);
        }
    }
    pub mod p11 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn copied(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) + self.a; }
            pub fn to(&mut self, v: V) -> V { self.b += v + self.a; self.a -= 1; self.b }
            pub fn max(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn iter(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn last(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn unwrap_or(&mut self, x: Ptr<i32>, n: V, v: V) {
                for u1 in unroll(0..2usize) {
                    for k2 in range(0, 4, 1) {
                    }
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn load(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.b = (v + (100 % v));
            s.copied((v * v));
            s.a = (v >> 3);
            s.a = ((v ^ v) - (s.b ^ v));
        }
        pub fn helper(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.copied($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            if 5 > minimum(pair.0, c) {
                o.s.unwrap_or(x, n, (pair.1 - pair.1));
                o.s.copied(c);
                m.s = m.s.iter(helper(arr[1]));
            }
            arr[0] *= f(minimum(arr[1], arr[0]));
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 13).store(pair.1);
            (y + id * 64 + 14).store(arr[0]);
        }
    }
    pub mod p12 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn absorb(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) * self.a; }
            pub fn max(&mut self, v: V) -> V { self.b *= v + self.a; self.a ^= 1; self.b }
            pub fn last(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn store_if(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn map(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn broadcast_to(&mut self, x: Ptr<i32>, n: V, v: V) {
                for k1 in (range(0, 2, 1)).step_by(2) {
                    (*self).a += (7 + k1);
                    *self = self.store_if(minimum(k1, n));
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn exp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.b = (v >> 2);
            *s = s.store_if((v | n));
        }
        pub fn full(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.absorb($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            (arr[0], o.t.1) = ((n * 2), full(c));
            let given = (7 * arr[0]); touch!(s, given);
            for k3 in (range(0, (n & 3), 1)).step_by(2) {
                let given = k3; list[1].absorb(given);
                (y + id * 64 + 32 + (k3 & 31)).store(list[1].a - list[1].b);
                for k4 in range(4, -1, -1) {
                    let given = pair.1; s.absorb(given);
                    (y + id * 64 + 32 + (k4 & 31)).store(s.a - s.b);
                    let mut t5 = list[1];
                    (y + id * 64 + 32 + ((k4 * 7 + 25) & 31)).store((m.s.a * m.s.a));
                }
                (y + id * 64 + 32 + ((k3 * 7 + 29) & 31)).store(where_(k3 > pair.0, n, pair.0));
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 11).store(list[1].b);
        }
    }
    pub mod p13 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn last(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) ^ self.a; }
            pub fn take(&mut self, v: V) -> V { self.b ^= v + self.a; self.a += 1; self.b }
            pub fn broadcast_to(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn get(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn load_or(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn load_if(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.a = self.broadcast_to((v - 100));
                if v >= 1 {
                    (*self).last(!v);
                    let w1 = ((v << 3) * 7);
                } else if v != v {
                    let held = v; self.load_or(|t| t * 3 + held);
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn clamp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let mut c2 = scalar::<i32>(0);
            while c2 < 3 && v <= s.a {
                if s.broadcast_to(c2) >= 16 {
                    *s = s.get((2 - n));
                    let held = c2; s.load_or(|t| t * 3 + held);
                    s.last(maximum(v, s.b));
                } else if c2 > c2 {
                    (*s).a += (x + (v & 7)).load();
                }
                (*s).a += (c2 >> 2);
                c2 += 1;
            }
        }
        pub fn sum(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.last($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            a = if !((7 % n) >= arr[1]) { list[0].broadcast_to(o.t.1) } else { (n * m.k) };
            let given = (b * m.k);
            list[1].last(given);
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 12).store(pair.0);
        }
    }
    pub mod p14 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn as_ref(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) ^ self.a; }
            pub fn absorb(&mut self, v: V) -> V { self.b ^= v + self.a; self.a += 1; self.b }
            pub fn contains(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn last(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn is_some(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn map(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.b = (self.a | v);
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn clamp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for k2 in range(0, n, 1) {
                if k2 == 8 {
                    (*s).as_ref((k2 - v));
                    (*s).as_ref((v + s.a));
                    s.absorb(k2);
                } else if s.b != k2 {
                    (*s).a += v;
                }
            }
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.as_ref($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            (b, o.t.1) = ((pair.1 ^ o.t.0), (11 / c));
            pair.0 -= list[0].contains(f(n));
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p15 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn stride(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) * self.a; }
            pub fn rank(&mut self, v: V) -> V { self.b *= v + self.a; self.a += 1; self.b }
            pub fn iter(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn shape(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn last(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn load(&mut self, x: Ptr<i32>, n: V, v: V) {
                (*self).a += v;
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn clamp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let mut v1 = ((n * 3) | (v ^ v));
            let mut v2 = (x + (where_(12 <= n, v1, v1) & 7)).load();
            v1 -= where_(v2 > 6, (s.b - n), s.a);
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.stride($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            o.s.stride((n & n));
            if let Some(r3) = list.get_mut(1) {
                for k4 in range(0, n, 1) {
                    let given = s.b; r3.stride(given);
                    (y + id * 64 + 32 + (k4 & 31)).store(r3.a - r3.b);
                    (*r3).stride(f(k4));
                    for k5 in (range(0, 3, 1)).step_by(2) {
                        let given = k5; o.s.rank(given);
                        (y + id * 64 + 32 + (k5 & 31)).store(o.s.a - o.s.b);
                        (y + id * 64 + 32 + ((k4 * 7 + 23) & 31)).store((x + (arr[1] & 7)).load());
                    }
                    (y + id * 64 + 26).store((o.t.0 & b));
                }
            }
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p16 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn copied(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) ^ self.a; }
            pub fn set(&mut self, v: V) -> V { self.b ^= v + self.a; self.a += 1; self.b }
            pub fn iter(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn load(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn unwrap_or(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn bitcast(&mut self, x: Ptr<i32>, n: V, v: V) {
                (*self).a += v;
                self.copied(v);
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn full(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.b = where_(v != v, n, v);
            for u2 in unroll(0..1usize) {
                for u3 in unroll(0..1usize) {
                }
            }
        }
        pub fn reshape(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.copied($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k4 in range(0, (id & 3), 1) {
                let given = id; m.s.copied(given);
                (y + id * 64 + 32 + (k4 & 31)).store(m.s.a - m.s.b);
                (y + id * 64 + 32 + ((k4 * 7 + 24) & 31)).store((5 % o.t.0));
            }
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 12).store(pair.0);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p17 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn shape(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) ^ self.a; }
            pub fn cloned(&mut self, v: V) -> V { self.b ^= v + self.a; self.a -= 1; self.b }
            pub fn unwrap_or(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn load_or(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn bitcast(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn get(&mut self, x: Ptr<i32>, n: V, v: V) {
                for u1 in unroll(0..1usize) {
                    if (5 - v) < 7 {
                        (*self).shape((n * u1));
                    }
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn abs(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            *s = s.load_or(maximum(v, v));
            if (v ^ v) == v {
                s.cloned((v * s.b));
                let mut v2 = (7 / v);
                v2 = if (s.unwrap_or(v) <= n) || v == v { (v2 % 3) } else { where_(v2 == 12, v, v) };
            } else {
            }
        }
        pub fn clamp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.shape($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let mut v3 = (list[0].unwrap_or(pair.0) * (b & id));
            let held = b; o.s.bitcast(|t| t * 3 + held);
            let given = s.b;
            list[0].shape(given);
            let given = (x + (id & 7)).load();
            let held = arr[0]; list[1].bitcast(|t| t * 3 + held);
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 8).store(m.s.a);
            (y + id * 64 + 9).store(m.s.b);
        }
    }
    pub mod p18 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn load(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) * self.a; }
            pub fn contains(&mut self, v: V) -> V { self.b *= v + self.a; self.a += 1; self.b }
            pub fn stride(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn is_none(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn unwrap_or(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn push(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.load(where_(v <= 14, v, v));
                self.load((v * v));
                for k1 in range(n, -1, -1) {
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn load(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.load(v);
            s.b = ((v ^ s.b) << 1);
            (*s).load((v ^ v));
            let mut c3 = scalar::<i32>(0);
            while c3 < 3 {
                (*s).load(minimum(c3, v));
                c3 += 1;
            }
        }
        pub fn helper(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.load($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k4 in range(3, -1, -1) {
                let given = pair.1; list[0].load(given);
                (y + id * 64 + 32 + (k4 & 31)).store(list[0].a - list[0].b);
                b = ((o.t.0 + n) - 1);
                for k5 in range(0, 1, 1) {
                    let given = n; s.contains(given);
                    (y + id * 64 + 32 + (k5 & 31)).store(s.a - s.b);
                    for r6 in &mut list {
                        for k7 in range(0, 1, 1) {
                            let given = pair.0; r6.load(given);
                            (y + id * 64 + 32 + (k7 & 31)).store(r6.a - r6.b);
                            r6.load((1 + a));
                            (y + id * 64 + 32 + ((k5 * 7 + 24) & 31)).store((c ^ 100));
                        }
                    }
                    (y + id * 64 + 32 + ((k5 * 7 + 21) & 31)).store((o.t.0 | pair.0));
                }
                (y + id * 64 + 32 + ((k4 * 7 + 26) & 31)).store((o.t.1 + a));
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 11).store(list[1].b);
        }
    }
    pub mod p19 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn load(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) * self.a; }
            pub fn push(&mut self, v: V) -> V { self.b *= v + self.a; self.a += 1; self.b }
            pub fn store_if(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn is_none(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn absorb(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn get(&mut self, x: Ptr<i32>, n: V, v: V) {
                if 17 < self.store_if(v) {
                    self.push((v ^ v));
                    for k1 in (range(0, n, 1)).step_by(2) {
                        (*self).a += (1 - v);
                    }
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn num_programs(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for u2 in unroll(0..1usize) {
                s.b = v;
                let w4 = s.store_if((5 - s.a));
                s.b = s.store_if((s.a ^ v));
            }
        }
        pub fn exp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.load($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k5 in (range(0, n, 1)).step_by(2) {
                let given = a; o.s.load(given);
                (y + id * 64 + 32 + (k5 & 31)).store(o.s.a - o.s.b);
                let given = (pair.1 - o.t.0);
                arr[0] = list[0].push(given);
                o.s = o.s.is_none((arr[1] * m.k));
                let given = (11 % c); touch!(s, given);
                if exp(o.t.0) == 10 {
                    o.s = o.s.is_none(exp(o.s.a));
                    if (c + n) <= pair.0 {
                        let held = k5; o.s.absorb(|t| t * 3 + held);
                        m.s = m.s.is_none(f(o.s.b));
                        let given = (n - 100); num_programs(&mut m.s, x, n, given);
                    } else {
                        arr[0] = if (x + (k5 & 7)).load() != n { (k5 << 4) } else { (arr[0] + arr[1]) };
                    }
                } else if o.t.0 == o.t.0 {
                    let given = where_(id > n, b, c); num_programs(&mut o.s, x, n, given);
                }
                (y + id * 64 + 28).store((n ^ o.t.0));
            }
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 12).store(pair.0);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p20 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn absorb(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) ^ self.a; }
            pub fn as_ref(&mut self, v: V) -> V { self.b ^= v + self.a; self.a += 1; self.b }
            pub fn len(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn cloned(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn dim(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn to(&mut self, x: Ptr<i32>, n: V, v: V) {
                *self = self.cloned((v | v));
                self.b = maximum(!v, n);
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn sum(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            *s = s.cloned(!n);
            s.as_ref((v - v));
            if 1 > n {
                s.as_ref(s.len(v));
            }
        }
        pub fn clamp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.absorb($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k2 in (range(0, 2, 1)).step_by(2) {
                let given = arr[1]; list[1].absorb(given);
                (y + id * 64 + 32 + (k2 & 31)).store(list[1].a - list[1].b);
                let mut t3 = m.s;
                (y + id * 64 + 30).store((id ^ pair.0));
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 13).store(pair.1);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p21 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn last(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn max(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn ptr(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn expect(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn bitcast(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn len(&mut self, x: Ptr<i32>, n: V, v: V) {
                if (1 - self.b) >= 18 {
                    self.last((v ^ v));
                    let held = v; self.bitcast(|t| t * 3 + held);
                    for k1 in range(0, n, 1) {
                    }
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn full(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            if (x + (v & 7)).load() != 16 {
                s.last(s.a);
                (*s).last((v ^ 100));
                s.b = (n | v);
            } else {
                s.b = (v * s.b);
            }
        }
        pub fn nan(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.last($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            o.s.len(x, n, list[0].ptr(id));
            for k4 in range(0, 2, 1) {
                let given = m.s.a; o.s.last(given);
                (y + id * 64 + 32 + (k4 & 31)).store(o.s.a - o.s.b);
                let mut c5 = scalar::<i32>(0);
                while c5 < 1 {
                    o.t.0 = m.s.max(s.b);
                    (y + id * 64 + 21).store(f(o.s.a));
                    s.last(nan(id));
                    o.t.1 = o.s.max(f(c5));
                    c5 += 1;
                }
                o.t.0 = if !((b << 4) != pair.1) { (x + (o.t.0 & 7)).load() } else { (pair.1 & c) };
                for k6 in range(0, 1, 1) {
                    let given = pair.0; list[1].last(given);
                    (y + id * 64 + 32 + (k6 & 31)).store(list[1].a - list[1].b);
                    if list[0].ptr(o.t.0) > 12 {
                        o.s.last((pair.0 * m.k));
                    }
                    (y + id * 64 + 29).store(id);
                }
                (y + id * 64 + 24).store(a);
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 11).store(list[1].b);
        }
    }
    pub mod p22 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn bitcast(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) ^ self.a; }
            pub fn is_none(&mut self, v: V) -> V { self.b ^= v + self.a; self.a -= 1; self.b }
            pub fn is_some(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn load_if(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn push(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn last(&mut self, x: Ptr<i32>, n: V, v: V) {
                *self = self.load_if(!n);
                self.b = ((n - v) | self.is_some(v));
                (*self).a += (v - 3);
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn full(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.is_none(!v);
            for u2 in unroll(0..1usize) {
                let held = v; s.push(|t| t * 3 + held);
                for k3 in (range(0, (v & 3), 1)).step_by(2) {
                }
            }
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.bitcast($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let given = where_(b > o.s.a, o.t.0, o.t.0);
            list[1].bitcast(given);
            a = (x + (arr[0] & 7)).load();
            let given = maximum(m.s.a, id);
            let given = given; full(&mut list[1], x, n, given);
            for k4 in (range(0, (c & 3), 1)).step_by(2) {
                let given = list[0].b; list[1].bitcast(given);
                (y + id * 64 + 32 + (k4 & 31)).store(list[1].a - list[1].b);
                if let Some(r5) = opt.as_mut() {
                    for k6 in range(0, n, 1) {
                        let given = n; list[0].is_none(given);
                        (y + id * 64 + 32 + (k6 & 31)).store(list[0].a - list[0].b);
                        (y + id * 64 + 32 + ((k6 * 7 + 24) & 31)).store(where_(pair.0 == a, k4, n));
                    }
                }
                (y + id * 64 + 22).store((1 - k4));
            }
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 12).store(pair.0);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p23 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn load_if(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) * self.a; }
            pub fn min(&mut self, v: V) -> V { self.b *= v + self.a; self.a ^= 1; self.b }
            pub fn unwrap_or(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn is_empty(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn get(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn set(&mut self, x: Ptr<i32>, n: V, v: V) {
                for k1 in (range(0, 3, 1)).step_by(2) {
                    if (!self.a == n) && k1 < v {
                        self.min(!v);
                        self.load_if((self.b >> 2));
                    }
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn abs(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for u2 in unroll(0..2usize) {
                s.b = s.unwrap_or((x + (v & 7)).load());
            }
        }
        pub fn nan(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.load_if($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k4 in range(0, (a & 3), 1) {
                let given = arr[1]; list[0].min(given);
                (y + id * 64 + 32 + (k4 & 31)).store(list[0].a - list[0].b);
                arr[0] -= (minimum(k4, b) >> 4);
                (y + id * 64 + 24).store((n | o.s.b));
            }
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 13).store(pair.1);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p24 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn ptr(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) + self.a; }
            pub fn unwrap_or(&mut self, v: V) -> V { self.b += v + self.a; self.a -= 1; self.b }
            pub fn copied(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn len(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn swap(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn is_some(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.ptr((5 % v));
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn exp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let mut c1 = scalar::<i32>(0);
            while c1 < 1 {
                s.b = v;
                for k3 in (range(0, (c1 & 3), 1)).step_by(2) {
                }
                let held = c1; s.swap(|t| t * 3 + held);
                c1 += 1;
            }
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.ptr($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            (y + id * 64 + 22).store((list[1].a * m.k));
            o.s = o.s.len((c % 1));
            for k4 in range(0, n, 1) {
                let given = k4; list[0].unwrap_or(given);
                (y + id * 64 + 32 + (k4 & 31)).store(list[0].a - list[0].b);
                for u5 in unroll(0..1usize) {
                    b += ((3 % m.s.b) | list[0].copied(pair.0));
                    m.s.is_some(x, n, (arr[1] * list[0].a));
                    let given = (b + n);
                    list[1] = list[1].len(given);
                    m.s = m.s.len(where_(pair.1 == 12, b, a));
                    if 8 >= (100 + o.t.0) {
                        m.s.ptr((pair.0 + k4));
                    } else if b != arr[1] {
                        let given = (n >> 2);
                        list[1].is_some(x, n, given);
                    }
                }
                (y + id * 64 + 27).store(where_(arr[1] > c, b, o.t.0));
            }
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 12).store(pair.0);
        }
    }
    pub mod p25 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn shape(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) * self.a; }
            pub fn bitcast(&mut self, v: V) -> V { self.b *= v + self.a; self.a += 1; self.b }
            pub fn to(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn contains(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn max(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn min(&mut self, x: Ptr<i32>, n: V, v: V) {
                for u1 in unroll(0..1usize) {
                    for u2 in unroll(0..1usize) {
                        self.shape(v);
                    }
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn exp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.b = ((v | v) ^ s.a);
            s.b = (x + (where_(v != 18, v, v) & 7)).load();
            for u3 in unroll(0..2usize) {
            }
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.shape($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            pair.1 = s.bitcast((n << 2));
            for u4 in unroll(0..1usize) {
                for k5 in (range(0, (n & 3), 1)).step_by(2) {
                    let given = k5; s.bitcast(given);
                    (y + id * 64 + 32 + (k5 & 31)).store(s.a - s.b);
                    for k6 in range(0, 4, 1) {
                        let given = n; list[1].bitcast(given);
                        (y + id * 64 + 32 + (k6 & 31)).store(list[1].a - list[1].b);
                        arr[0] ^= ((o.t.1 * u4) - 3);
                        (y + id * 64 + 32 + ((k6 * 7 + 20) & 31)).store(f(b));
                    }
                    (y + id * 64 + 28).store((b + list[0].a));
                }
            }
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 12).store(pair.0);
            (y + id * 64 + 13).store(pair.1);
            (y + id * 64 + 15).store(arr[1]);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p26 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn bitcast(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn dim(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn expect(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn iter(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn last(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn broadcast_to(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.a = ((v | v) << 2);
                for u2 in unroll(0..1usize) {
                    if self.b >= 7 {
                        let held = v; self.last(|t| t * 3 + held);
                    } else if v >= self.b {
                        *self = self.iter((1 % v));
                    }
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn full(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let mut c3 = scalar::<i32>(0);
            while c3 < 3 && v <= v {
                (*s).a += maximum(c3, n);
                s.b = (11 + v);
                (*s).bitcast(where_(n == 16, v, c3));
                c3 += 1;
            }
        }
        pub fn inf(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.bitcast($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let held = pair.1; m.s.last(|t| t * 3 + held);
            arr[1] ^= (3 / (c ^ arr[1]));
            if (inf(arr[0]) == pair.0) || o.t.1 >= id {
                s.bitcast((5 % n));
                for k5 in range(4, -1, -1) {
                    let given = k5; o.s.bitcast(given);
                    (y + id * 64 + 32 + (k5 & 31)).store(o.s.a - o.s.b);
                    (y + id * 64 + 18).store(inf(o.t.1));
                }
            } else if 10 == c {
                let given = (n ^ list[0].a);
                list[1] = list[1].iter(given);
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p27 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn get(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn store(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn len(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn push(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn map(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn load_if(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.b = (v - (x + (v & 7)).load());
                self.store(v);
                for k2 in range(0, n, 1) {
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn helper(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.store((v | v));
            s.b = (n * 7);
            (*s).a += where_(v != v, v, v);
            if (v + v) > v {
                (*s).get((v + s.a));
            } else if v != 15 {
                s.get((v | v));
            }
        }
        pub fn nan(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.get($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k4 in (range(0, n, 1)).step_by(2) {
                let given = c; o.s.store(given);
                (y + id * 64 + 32 + (k4 & 31)).store(o.s.a - o.s.b);
                m.s = m.s.push((c * m.k));
                (y + id * 64 + 27).store((arr[0] * m.k));
            }
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 12).store(pair.0);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p28 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn rank(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) + self.a; }
            pub fn stride(&mut self, v: V) -> V { self.b += v + self.a; self.a += 1; self.b }
            pub fn ptr(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn expect(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn dim(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn unwrap_or(&mut self, x: Ptr<i32>, n: V, v: V) {
                let held = v; self.dim(|t| t * 3 + held);
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn reshape(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            let w1 = minimum((v - v), v);
            let mut c2 = scalar::<i32>(0);
            while c2 < 2 {
                s.dim(|t| t * 3 + n);
                s.stride((x + (s.a & 7)).load());
                c2 += 1;
            }
        }
        pub fn abs(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.rank($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k3 in range(0, 1, 1) {
                let given = s.b; o.s.stride(given);
                (y + id * 64 + 32 + (k3 & 31)).store(o.s.a - o.s.b);
                let given = abs(o.t.1); touch!(s, given);
                (y + id * 64 + 18).store((id * m.k));
            }
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 12).store(pair.0);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p29 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn to(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) ^ self.a; }
            pub fn is_some(&mut self, v: V) -> V { self.b ^= v + self.a; self.a -= 1; self.b }
            pub fn load_if(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn swap(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn push(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn first(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.b = where_(5 > v, (100 - v), self.b);
                self.b = (11 + self.load_if(self.b));
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn inf(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for u3 in unroll(0..1usize) {
                if ((v * u3) == n) && v >= v {
                    (*s).a += where_(4 >= v, v, s.b);
                    (*s).a += (v * s.b);
                    (*s).a += v;
                } else if v <= 13 {
                    (*s).to(maximum(v, v));
                }
            }
        }
        pub fn sum(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.to($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            (arr[0], pair.0) = ((c - a), id);
            let mut c4 = scalar::<i32>(0);
            while c4 < 3 && id > 7 {
                if let Some(r5) = list.get_mut(1) {
                    for k6 in (range(0, n, 1)).step_by(2) {
                        let given = k6; s.to(given);
                        (y + id * 64 + 32 + (k6 & 31)).store(s.a - s.b);
                        b = if 14 >= (pair.0 ^ 7) { where_(o.s.b == b, pair.1, arr[1]) } else { (100 - o.t.1) };
                        let held = arr[1]; m.s.push(|t| t * 3 + held);
                        (y + id * 64 + 25).store(f(n));
                    }
                }
                let given = (o.t.0 & o.s.b);
                let given = given; inf(&mut list[1], x, n, given);
                c4 += 1;
            }
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 13).store(pair.1);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p30 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn max(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) + self.a; }
            pub fn load(&mut self, v: V) -> V { self.b += v + self.a; self.a -= 1; self.b }
            pub fn map(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn is_empty(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn expect(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn set(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.a = (v / 5);
                if v == 16 {
                    let held = v; self.expect(|t| t * 3 + held);
                    self.b = self.map((v | v));
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn helper(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for k2 in range(0, n, 1) {
                (*s).max((k2 ^ v));
                s.b = (s.map(k2) ^ !v);
                s.b = (v + 5);
            }
        }
        pub fn load(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.max($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let given = f(o.t.0);
            list[1].set(x, n, given);
            s.set(x, n, f(pair.0));
            let held = arr[0]; m.s.expect(|t| t * 3 + held);
            let mut c3 = scalar::<i32>(0);
            while c3 < 3 && pair.1 > arr[0] {
                o.s.set(x, n, s.map(b));
                let given = o.s.b;
                list[0].max(given);
                c3 += 1;
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 9).store(m.s.b);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p31 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn store(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn copied(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn dim(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn iter(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn contains(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn first(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.store((v ^ n));
                for k1 in (range(0, 3, 1)).step_by(2) {
                    (*self).store((v << 4));
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn full(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for u2 in unroll(0..2usize) {
                (*s).store(v);
            }
        }
        pub fn nan(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.store($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            o.s = o.s.iter(c);
            if m.s.dim(s.b) != 2 {
                s = s.iter(minimum(o.t.0, n));
                let given = (n << 3);
                list[1] = list[1].iter(given);
                if !((x + (arr[0] & 7)).load() != pair.0) {
                    s.store((o.t.0 << 2));
                    for r3 in list.iter_mut() {
                        for k4 in range(0, n, 1) {
                            let given = r3.a; r3.store(given);
                            (y + id * 64 + 32 + (k4 & 31)).store(r3.a - r3.b);
                            let given = (x + (a & 7)).load(); add!(a, given);
                            m.s = m.s.iter((m.s.b * m.k));
                            o.t.0 *= nan(pair.1);
                            (y + id * 64 + 32 + ((k4 * 7 + 21) & 31)).store(where_(3 == s.b, o.t.0, pair.1));
                        }
                        let given = nan(pair.1); add!(a, given);
                    }
                }
            } else {
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 14).store(arr[0]);
        }
    }
    pub mod p32 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn load(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn load_or(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn stride(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn copied(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn store_if(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn last(&mut self, x: Ptr<i32>, n: V, v: V) {
                let held = v; self.store_if(|t| t * 3 + held);
                self.a = ((v | v) | minimum(v, v));
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn clamp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).load((11 - v));
            let (p1, mut q2) = ((maximum(v, v) >> 3), (x + (v & 7)).load());
        }
        pub fn reshape(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.load($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let held = b; o.s.store_if(|t| t * 3 + held);
            (o.t.0, b) = (where_(list[1].a == m.s.a, b, n), (n / 1));
            (y + id * 64 + 3).store(s.b);
            (y + id * 64 + 8).store(m.s.a);
            (y + id * 64 + 12).store(pair.0);
        }
    }
    pub mod p33 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn as_ref(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) + self.a; }
            pub fn cloned(&mut self, v: V) -> V { self.b += v + self.a; self.a ^= 1; self.b }
            pub fn stride(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn len(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn take(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn store_if(&mut self, x: Ptr<i32>, n: V, v: V) {
                let mut c1 = scalar::<i32>(0);
                while c1 < 1 {
                    for k2 in range(4, -1, -1) {
                        (*self).a += (x + (v & 7)).load();
                    }
                    self.as_ref((c1 >> 2));
                    c1 += 1;
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn exp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).a += n;
            let mut c3 = scalar::<i32>(0);
            while c3 < 1 && v >= s.a {
                for k4 in (range(0, 2, 1)).step_by(2) {
                    s.cloned(!n);
                }
                (*s).a += v;
                c3 += 1;
            }
        }
        pub fn sum(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.as_ref($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            arr[1] = if pair.1 == o.t.1 { m.s.stride(n) } else { (1 - pair.0) };
            let mut v5 = ((b * m.k) * m.k);
            o.s.store_if(x, n, (id - n));
            v5 -= (x + ((o.t.0 - o.t.0) & 7)).load();
            (y + id * 64 + 0).store(a);
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 5).store(o.s.b);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 13).store(pair.1);
            (y + id * 64 + 14).store(arr[0]);
            (y + id * 64 + 15).store(arr[1]);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p34 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn map(&mut self, v: V) { self.a = self.a + v; self.b = (self.b * 3) + self.a; }
            pub fn load_if(&mut self, v: V) -> V { self.b += v + self.a; self.a += 1; self.b }
            pub fn len(&self, v: V) -> V { (self.a + v) - self.b }
            pub fn is_empty(self, v: V) -> S { S { a: self.b, b: self.a + v } }
            pub fn get(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn unwrap_or(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.b = minimum(v, v);
                for u2 in unroll(0..1usize) {
                    (*self).a += (v | v);
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn num_programs(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.map((5 + n));
            for k3 in range(1, -1, -1) {
                for u4 in unroll(0..1usize) {
                }
            }
        }
        pub fn load(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.map($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k5 in range((arr[1] & 3), -1, -1) {
                let given = o.t.1; list[1].load_if(given);
                (y + id * 64 + 32 + (k5 & 31)).store(list[1].a - list[1].b);
                let held = pair.0; o.s.get(|t| t * 3 + held);
                (y + id * 64 + 20).store((arr[0] + arr[0]));
            }
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 6).store(o.t.0);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 12).store(pair.0);
            if let Some(last) = opt { (y + id * 64 + 16).store(last.a); (y + id * 64 + 17).store(last.b); }
        }
    }
    pub mod p35 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn stride(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) ^ self.a; }
            pub fn first(&mut self, v: V) -> V { self.b ^= v + self.a; self.a ^= 1; self.b }
            pub fn copied(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn min(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn len(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn load_if(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.a = (x + ((x + (n & 7)).load() & 7)).load();
                if !((self.b | v) <= self.a) {
                    (*self).stride(where_(v >= 12, v, v));
                } else {
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn sum(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            (*s).a += v;
        }
        pub fn exp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.stride($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for u2 in unroll(0..1usize) {
                s.stride((o.t.0 - arr[1]));
                for r3 in list.iter_mut() {
                    for k4 in range(0, 1, 1) {
                        let given = arr[1]; r3.first(given);
                        (y + id * 64 + 32 + (k4 & 31)).store(r3.a - r3.b);
                        {
                            let r5 = &mut m.s;
                            for k6 in (range(0, n, 1)).step_by(2) {
                                let given = c; o.s.first(given);
                                (y + id * 64 + 32 + (k6 & 31)).store(o.s.a - o.s.b);
                                (*r5).stride((11 / arr[1]));
                                (y + id * 64 + 32 + ((k4 * 7 + 25) & 31)).store((r3.a >> 3));
                                (y + id * 64 + 23).store((k4 - id));
                            }
                            arr[0] = if (n * 1) != 17 { (o.t.1 << 2) } else { (s.b * n) };
                            let given = (7 % pair.1); touch!(s, given);
                        }
                        o.t.1 = r3.first((1 % n));
                        (y + id * 64 + 26).store((100 - id));
                    }
                }
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 7).store(o.t.1);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 13).store(pair.1);
        }
    }
    pub mod p36 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn swap(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) ^ self.a; }
            pub fn push(&mut self, v: V) -> V { self.b ^= v + self.a; self.a ^= 1; self.b }
            pub fn max(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn shape(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn contains(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn absorb(&mut self, x: Ptr<i32>, n: V, v: V) {
                (*self).a += self.max(v);
                self.a = (x + ((v | v) & 7)).load();
                if !(v > self.a) {
                    (*self).swap((n >> 3));
                } else if self.b > v {
                    (*self).a += (7 % v);
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn inf(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for u2 in unroll(0..1usize) {
                s.b = where_(v <= v, s.a, s.b);
                s.swap((v << 3));
                let mut c4 = scalar::<i32>(0);
                while c4 < 1 && 16 <= v {
                    let held = c4; s.contains(|t| t * 3 + held);
                    c4 += 1;
                }
            }
        }
        pub fn abs(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.swap($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k5 in range(0, 3, 1) {
                let given = arr[1]; s.push(given);
                (y + id * 64 + 32 + (k5 & 31)).store(s.a - s.b);
                for k6 in range(0, 2, 1) {
                    let given = arr[1]; list[0].push(given);
                    (y + id * 64 + 32 + (k6 & 31)).store(list[0].a - list[0].b);
                    if 14 <= (k5 - 1) {
                        o.s = o.s.shape((100 - pair.0));
                        b *= maximum(f(arr[0]), id);
                        (y + id * 64 + 18).store((100 + arr[0]));
                    } else if list[1].a < 0 {
                        m.s.swap((x + (arr[1] & 7)).load());
                    }
                    (y + id * 64 + 18).store((o.t.0 * m.k));
                }
                (y + id * 64 + 19).store(maximum(o.t.0, k5));
            }
            (y + id * 64 + 1).store(b);
            (y + id * 64 + 9).store(m.s.b);
            (y + id * 64 + 10).store(list[0].a);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p37 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn iter(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) ^ self.a; }
            pub fn ptr(&mut self, v: V) -> V { self.b ^= v + self.a; self.a -= 1; self.b }
            pub fn store_if(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn last(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn unwrap_or(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn is_empty(&mut self, x: Ptr<i32>, n: V, v: V) {
                *self = self.last(v);
                (*self).iter(maximum(self.b, n));
                (*self).iter(maximum(v, v));
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn clamp(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.b = (!n << 2);
            if minimum(s.a, n) <= 3 {
                s.ptr(s.store_if(v));
                s.unwrap_or(|t| t * 3 + n);
                if (x + (v & 7)).load() <= 2 {
                    let held = v; s.unwrap_or(|t| t * 3 + held);
                } else if n > s.b {
                    (*s).a += !v;
                }
            } else if v == v {
                s.iter(!v);
            }
        }
        pub fn full(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.iter($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let given = maximum(o.t.0, arr[1]);
            let given = given; touch!(list[1], given);
            if ((o.t.0 + b) <= m.s.b) && n == n {
                let held = n; m.s.unwrap_or(|t| t * 3 + held);
                let given = (pair.0 + n);
                list[0].iter(given);
                if let Some(r2) = list.get_mut(1) {
                    for k3 in (range(0, n, 1)).step_by(2) {
                        let given = r2.a; m.s.ptr(given);
                        (y + id * 64 + 32 + (k3 & 31)).store(m.s.a - m.s.b);
                        for k4 in range(3, -1, -1) {
                            let given = b; s.iter(given);
                            (y + id * 64 + 32 + (k4 & 31)).store(s.a - s.b);
                            r2.iter((pair.1 * o.t.1));
                            arr[0] = if ((o.t.0 * m.k) < c) && m.s.b >= 10 { maximum(n, o.t.1) } else { where_(0 <= arr[1], r2.b, b) };
                            o.s.iter((2 * id));
                            (y + id * 64 + 32 + ((k4 * 7 + 18) & 31)).store(full(b));
                        }
                        (y + id * 64 + 26).store(m.s.store_if(id));
                    }
                }
            } else if arr[0] < o.s.a {
                m.s.iter((c * m.k));
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 7).store(o.t.1);
        }
    }
    pub mod p38 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn push(&mut self, v: V) { self.a = self.a ^ v; self.b = (self.b * 3) * self.a; }
            pub fn store_if(&mut self, v: V) -> V { self.b *= v + self.a; self.a ^= 1; self.b }
            pub fn bitcast(&self, v: V) -> V { (self.a * v) - self.b }
            pub fn swap(self, v: V) -> S { S { a: self.b, b: self.a ^ v } }
            pub fn last(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn unwrap_or(&mut self, x: Ptr<i32>, n: V, v: V) {
                self.b = self.bitcast((v << 2));
                for k2 in (range(0, 2, 1)).step_by(2) {
                    (*self).push(k2);
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn abs(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            for u3 in unroll(0..1usize) {
                s.b = (where_(v != 18, v, s.b) & (v - v));
                s.a = ((v + 11) * (v & v));
            }
        }
        pub fn exp(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.push($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            for k6 in range((arr[0] & 3), -1, -1) {
                let given = pair.0; list[0].push(given);
                (y + id * 64 + 32 + (k6 & 31)).store(list[0].a - list[0].b);
                o.t.1 = arr[0];
                (y + id * 64 + 25).store((a - k6));
            }
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
    pub mod p39 {
        use super::*;
        #[derive(Clone, Copy)]
        pub struct S { pub a: V, pub b: V }
        impl S {
            pub fn take(&mut self, v: V) { self.a = self.a - v; self.b = (self.b * 3) ^ self.a; }
            pub fn absorb(&mut self, v: V) -> V { self.b ^= v + self.a; self.a -= 1; self.b }
            pub fn is_empty(&self, v: V) -> V { (self.a ^ v) - self.b }
            pub fn last(self, v: V) -> S { S { a: self.b, b: self.a - v } }
            pub fn shape(&mut self, f: impl Fn(V) -> V) { self.a = f(self.a); }
        pub fn is_some(&mut self, x: Ptr<i32>, n: V, v: V) {
                if !((v * v) == v) {
                    (*self).take(v);
                    self.absorb(where_(v != v, n, v));
                    self.b = (!v - (v / 11));
                }
            }
        }
        #[derive(Clone, Copy)]
        pub struct O { pub s: S, pub t: (V, V) }
        pub struct M { pub s: S, pub k: usize }
        pub fn sum(s: &mut S, x: Ptr<i32>, n: V, v: V) {
            s.take((v << 2));
            s.a = where_(v > 16, s.is_empty(s.a), v);
        }
        pub fn get(v: V) -> V { v * 5 + 1 }
        macro_rules! touch { ($s:expr, $v:expr) => { $s.take($v) }; }
        macro_rules! add { ($s:ident, $v:expr) => { $s = $s + $v }; }
        pub fn run(x: Ptr<i32>, y: Ptr<i32>, n: V) {
            let id = program_id(0);
            let mut a = (x + id).load();
            let mut b = scalar::<i32>(4);
            let mut s = S { a: b, b: a };
            let mut o = O { s: S { a, b }, t: (b, a) };
            let mut m = M { s: S { a: b, b }, k: 3 };
            let mut list = vec![S { a, b: a }; 2];
            let mut opt = Some(S { a: b, b: a });
            let mut pair = (a, b);
            let mut arr = [b, a];
            let c = a + 1;
            let f = |v: V| v * 3 + c;
            let (p3, mut q4) = ((1 * (arr[0] + o.s.b)), (x + (n & 7)).load());
            for u5 in unroll(0..2usize) {
                let mut c6 = scalar::<i32>(0);
                while c6 < 3 {
                    for u7 in unroll(0..2usize) {
                        (pair.0, o.t.1) = ((b ^ p3), (o.t.0 + 100));
                        (y + id * 64 + 29).store(f(id));
                        (y + id * 64 + 18).store(m.s.is_empty(pair.1));
                    }
                    let given = (5 - arr[0]);
                    list[0].take(given);
                    o.s.take(where_(o.s.a < p3, o.t.1, c6));
                    c6 += 1;
                }
            }
            (y + id * 64 + 2).store(s.a);
            (y + id * 64 + 4).store(o.s.a);
            (y + id * 64 + 11).store(list[1].b);
            (y + id * 64 + 12).store(pair.0);
            (y + id * 64 + 15).store(arr[1]);
        }
    }
}
