//! Random kernels of the shapes people write: reductions, views, updates in place, products in loops, carried tiles.

use crate::families::Typed;
use crate::maker::{Fill, Maker};
use tilewright_compiler::DType;
use tilewright_compiler::tile::{BinaryOp, Cmp, Constant, DotPrecision, Shape, TileType, UnaryOp, Value};

fn dtype_of(m: &mut Maker) -> DType {
    if m.chance(10) { DType::Bool } else { m.pick(DType::NUMBERS) }
}

/// Tiles of one to three dimensions, rearranged, converted and reduced along every axis, with NaN and ties.
pub fn reductions(seed: u64) -> Typed {
    let mut m = Maker::new(seed);
    let dtype = dtype_of(&mut m);
    let bits = m.pick(&[0, 1, 3, 5, 6, 7, 8, 9, 10, 11, 13, 14]);
    let sums = m.chance(50);
    let fill = if sums { Fill::Small } else { Fill::Special };
    let n = 1 << bits;
    let input = m.buffer(dtype, n, fill);
    let x = m.pointer("x", input, 0, 1);
    let rank = 1 + m.below(3);
    let dims = m.dims(rank, bits);
    let mut t = m.load(x, &dims);
    let count = 1 + m.below(3);
    let mut outputs = Vec::new();
    for i in 0..count {
        if m.chance(60) {
            t = m.rearrange(t);
        }
        if m.chance(40) && !m.b.ty(t).is_scalar() {
            // Meets its own rearrangement.
            let dims = m.b.ty(t).shape.dims().to_vec();
            let r = m.rearrange(t);
            let r = m.in_shape(r, &dims);
            t = m.combine(t, r);
        }
        let mut r = t;
        while m.b.ty(r).shape.rank() > 0 && (r == t || m.chance(40)) {
            let exact = sums && !(r != t && m.b.ty(r).dtype() == DType::BF16);
            r = m.reduce(r, exact);
        }
        if m.chance(40) && m.b.ty(r).shape.rank() + 1 == m.b.ty(t).shape.rank() {
            // Back over the tile: along the first axis whose extent fits.
            let dims = m.b.ty(t).shape.dims().to_vec();
            let kept = m.b.ty(r).shape.dims().to_vec();
            if let Some(axis) = (0..dims.len()).find(|&a| {
                let mut d = dims.clone();
                d.remove(a);
                d == kept
            }) {
                let e = m.b.expand_dims(r, axis).unwrap();
                let e = m.b.broadcast(e, Shape::new(dims)).unwrap();
                let e = m.b.cast(e, dtype).unwrap();
                r = m.combine(t, e);
            }
        }
        outputs.push((i, r));
    }
    // Parameters come first in a kernel, so that the buffers are all of one parameter each.
    store_all(m, outputs)
}

/// Stores each value to a buffer of its own: by kernel text, parameters may be added at any time.
fn store_all(mut m: Maker, outputs: Vec<(usize, Value)>) -> Typed {
    for (i, v) in outputs {
        let ty = m.b.ty(v).clone();
        let buffer = m.buffer(ty.dtype(), ty.shape.elements(), Fill::Output);
        let p = m.pointer(&format!("out{i}"), buffer, 0, 100 + i as u32);
        m.store(p, v);
    }
    m.finish()
}

/// Extents and strides of a view, the elements its buffer needs and the first one's place in it.
fn some_view(m: &mut Maker, rank: usize, distinct: bool) -> (Vec<usize>, Vec<i64>, usize, usize) {
    let dims: Vec<usize> = (0..rank).map(|_| if m.chance(40) { m.size(0, 5) } else { 1 + m.below(37) }).collect();
    let mut strides = vec![0i64; rank];
    let mut next = if m.chance(80) { 1 } else { 1 + m.below(3) as i64 };
    for axis in if m.chance(50) { (0..rank).rev().collect() } else { m.perm(rank) } {
        if !distinct && m.chance(10) {
            continue;
        }
        strides[axis] = next;
        next *= dims[axis] as i64;
        match m.below(4) {
            0 => next += m.below(5) as i64,
            1 => next = (next + 15) / 16 * 16,
            _ => {}
        }
    }
    let mut first = m.pick(&[0, 0, 1, 2, 3, 4, 8, 16]);
    let mut elements = first + 1;
    for axis in 0..rank {
        elements += (dims[axis] - 1) * strides[axis] as usize;
    }
    for axis in 0..rank {
        if m.chance(15) {
            // Backwards.
            first += (dims[axis] - 1) * strides[axis] as usize;
            strides[axis] = -strides[axis];
        }
    }
    let mut dims = dims;
    if m.chance(5) {
        // Nothing is inside.
        let axis = m.below(rank);
        dims[axis] = 0;
    }
    (dims, strides, elements + m.below(3), first)
}

/// Views of every stride and alignment, read and written at offsets inside and outside.
pub fn views(seed: u64) -> Typed {
    let mut m = Maker::new(seed);
    let dtype = dtype_of(&mut m);
    let rank = 1 + m.below(3);
    let rank_bits = m.below(10);
    let shape = m.dims(rank, rank_bits);
    let offset = |m: &mut Maker, i: usize, extent: usize| match m.below(6) {
        0 => m.i32(0),
        5 => {
            let near_the_ends = m.pick(&[i32::MIN, i32::MIN + 3, i32::MAX - 2, i32::MAX]);
            m.scalar(&format!("at{i}"), DType::I32, near_the_ends.into())
        }
        1 => {
            let c = (m.below(extent + 4) as i64) - 4;
            m.i32(c)
        }
        2 => {
            let c = (m.below(8) as i64 - 2) * 16;
            m.scalar(&format!("at{i}"), DType::I32, c)
        }
        3 => {
            let pid = m.b.program_id(0).unwrap();
            let c = m.pick(&[1, 4, 16, 32]);
            let c = m.i32(c);
            m.b.binary(BinaryOp::Mul, pid, c).unwrap()
        }
        _ => {
            let c = m.below(extent + 10) as i64 - 5;
            m.scalar(&format!("at{i}"), DType::I32, c)
        }
    };
    let mut tiles = Vec::new();
    for i in 0..1 + m.below(2) {
        let (dims, strides, elements, first) = some_view(&mut m, rank, false);
        let buffer = m.buffer(dtype, elements, Fill::Special);
        let v = m.view(&format!("in{i}"), buffer, first, 1 + i as u32, &dims, &strides);
        let offsets: Vec<Value> = (0..rank).map(|a| offset(&mut m, 10 * i + a, dims[a])).collect();
        let pad = if m.chance(40) {
            let c = Constant::from_i64(dtype, 1);
            Some(m.b.full(TileType::scalar(dtype), c).unwrap())
        } else {
            None
        };
        tiles.push(m.b.view_load(&v, &offsets, Shape::new(shape.clone()), pad).unwrap());
    }
    let mut x = tiles[0];
    if tiles.len() > 1 {
        x = m.combine(x, tiles[1]);
    }
    if m.chance(30) {
        let back = m.perm(rank);
        x = m.b.permute(x, &back).unwrap();
    }
    let (dims, strides, elements, first) = some_view(&mut m, rank, true);
    let out_type = if m.chance(20) { m.pick(DType::NUMBERS) } else { dtype };
    let x = m.b.cast(x, out_type).unwrap();
    let buffer = m.buffer(out_type, elements, Fill::Output);
    let v = m.view("out", buffer, first, 50, &dims, &strides);
    let offsets: Vec<Value> = (0..rank).map(|a| offset(&mut m, 30 + a, dims[a])).collect();
    m.b.view_store(&v, &offsets, x).unwrap();
    m.finish()
}

/// Loads and stores of the same buffers in loops and branches: the order of memory accesses is kept.
pub fn in_place(seed: u64) -> Typed {
    let mut m = Maker::new(seed);
    let dtype = dtype_of(&mut m);
    let bits = m.pick(&[0, 2, 4, 5, 7, 8, 9]);
    let n = 1usize << bits;
    let mut bases = Vec::new();
    for i in 0..1 + m.below(2) {
        let buffer = m.buffer(dtype, 2 * n, Fill::Small);
        let class = if m.chance(50) { 0 } else { i as u32 + 1 };
        bases.push(m.pointer(&format!("p{i}"), buffer, 0, class));
        if m.chance(40) {
            // The same memory by another way, shifted.
            let shift = m.below(n + 1);
            bases.push(m.pointer(&format!("q{i}"), buffer, shift, class));
        }
        if m.chance(30) {
            let dims = vec![n];
            let v = m.view(&format!("v{i}"), buffer, 0, class, &dims, &[1]);
            bases.push(v.base);
        }
    }
    let counter = m.buffer(DType::I32, 4, Fill::Small);
    let counter = m.pointer("counter", counter, 0, 0);
    let start = m.load(bases[0], &[n]);
    let mut pool = vec![start];
    let depth = 0;
    for _ in 0..2 + m.below(4) {
        in_place_step(&mut m, &bases, counter, n, &mut pool, depth);
    }
    m.finish()
}

fn in_place_step(m: &mut Maker, bases: &[Value], counter: Value, n: usize, pool: &mut Vec<Value>, depth: usize) {
    let bits = n.ilog2() as usize;
    let rank = 1 + m.below(3);
    let dims = m.dims(rank, bits);
    let base = m.pick(bases);
    let mark = pool.len();
    match m.below(if depth < 3 { 10 } else { 6 }) {
        0..=2 => {
            let x = m.load(base, &dims);
            pool.push(x);
        }
        3 | 4 => {
            let x = m.pick(pool);
            let x = m.in_shape(x, &dims);
            m.store(base, x);
        }
        5 => {
            let (x, y) = (m.pick(pool), m.pick(pool));
            let (x, y) = (m.in_shape(x, &dims), m.in_shape(y, &dims));
            let z = m.combine(x, y);
            pool.push(z);
        }
        6 => {
            // A counter in memory that decides.
            let c = m.b.load(counter, None, None).unwrap();
            let one = m.i32(1);
            let next = m.add(c, one);
            m.b.store(counter, next, None).unwrap();
            let odd = m.b.binary(BinaryOp::And, c, one).unwrap();
            let odd = m.b.compare(Cmp::Eq, odd, one).unwrap();
            m.b.begin_if(odd).unwrap();
            in_place_steps(m, bases, counter, n, pool, depth);
            let x = m.pick(pool);
            let x = m.b.reshape(x, [n]).unwrap();
            pool.truncate(mark);
            m.b.begin_else(&[x]);
            if m.chance(50) {
                in_place_steps(m, bases, counter, n, pool, depth);
            }
            let y = m.pick(pool);
            let y = m.in_shape(y, &[n]);
            pool.truncate(mark);
            pool.push(m.b.end_if(&[y]).unwrap()[0]);
        }
        7 => {
            let limit = m.below(4) as i64;
            let (zero, limit, one) = (m.i32(0), m.i32(limit), m.i32(1));
            let x = m.pick(pool);
            let inside = m.b.begin_while(&[zero, x]);
            let mut go_on = m.b.compare(Cmp::Lt, inside[0], limit).unwrap();
            if m.chance(50) {
                let c = m.b.load(counter, None, None).unwrap();
                let nine = m.i32(9);
                let few = m.b.compare(Cmp::Lt, c, nine).unwrap();
                go_on = m.b.binary(BinaryOp::And, go_on, few).unwrap();
            }
            let inside = m.b.while_body(go_on).unwrap();
            pool.push(inside[1]);
            in_place_steps(m, bases, counter, n, pool, depth);
            let dims = m.b.ty(x).shape.dims().to_vec();
            let y = m.pick(pool);
            let y = m.in_shape(y, &dims);
            let next = m.add(inside[0], one);
            let results = m.b.end_while(&[next, y]).unwrap();
            pool.truncate(mark);
            pool.push(results[1]);
        }
        _ => {
            let limit = m.below(4) as i64;
            let (zero, limit, one) = (m.i32(0), m.i32(limit), m.i32(1));
            let x = m.pick(pool);
            // A tile of addresses that moves with the rounds.
            let index = m.shuffled(&[n]);
            let p = m.b.ptr_add(base, index).unwrap();
            let (_, inside) = m.b.begin_for(zero, limit, one, &[x, p]).unwrap();
            pool.push(inside[0]);
            if m.chance(50) {
                let l = m.b.load(inside[1], None, None).unwrap();
                pool.push(l);
            }
            in_place_steps(m, bases, counter, n, pool, depth);
            if m.chance(50) {
                let y = m.pick(pool);
                let y = m.in_shape(y, &[n]);
                m.b.store(inside[1], y, None).unwrap();
            }
            let dims = m.b.ty(x).shape.dims().to_vec();
            let y = m.pick(pool);
            let y = m.in_shape(y, &dims);
            let next = if m.chance(30) { inside[1] } else { p };
            let results = m.b.end_for(&[y, next]).unwrap();
            pool.truncate(mark);
            pool.push(results[0]);
        }
    }
}

fn in_place_steps(m: &mut Maker, bases: &[Value], counter: Value, n: usize, pool: &mut Vec<Value>, depth: usize) {
    for _ in 0..1 + m.below(3) {
        in_place_step(m, bases, counter, n, pool, depth + 1);
    }
}

/// How an operand of a product comes about.
struct Operand {
    /// The matrix in memory: `[rows, columns]` of the operand, or transposed.
    base: Value,
    transposed: bool,
    dims: [usize; 2],
    kind: usize,
    view: Option<tilewright_compiler::tile::ViewValue>,
}

/// Products in and out of loops, with operands from views, pointers, carried pointers, and computed ones; chained products.
pub fn products(seed: u64) -> Typed {
    let mut m = Maker::new(seed);
    let dtype =
        m.pick(&[DType::F16, DType::F16, DType::BF16, DType::F32, DType::F32, DType::F64, DType::I8, DType::U8]);
    let high = if m.chance(15) { 7 } else { 6 };
    let [rows, columns, depth] = [0; 3].map(|_| if m.chance(70) { m.size(3, high) } else { m.size(0, 5) });
    let rounds = 1 + m.below(4);
    let k = if m.chance(60) { depth * rounds } else { depth * rounds - m.below(depth) };
    let precision = m.pick(&[DotPrecision::Ieee, DotPrecision::Tf32]);
    let operands: Vec<Operand> = [(rows, k), (k, columns)]
        .into_iter()
        .enumerate()
        .map(|(i, (r, c))| {
            let transposed = m.chance(40);
            let stored = if transposed { [c, r] } else { [r, c] };
            let buffer = m.buffer(dtype, stored[0] * stored[1], Fill::Small);
            let kind = m.below(4);
            let name = ["a", "b"][i];
            let class = if m.chance(80) { i as u32 + 1 } else { 0 };
            let view = (kind == 0).then(|| m.view(name, buffer, 0, class, &stored, &[stored[1] as i64, 1]));
            let base = view.as_ref().map_or_else(|| m.pointer(name, buffer, 0, class), |v| v.base);
            Operand { base, transposed, dims: stored, kind, view }
        })
        .collect();
    let wide = match dtype {
        DType::F64 => DType::F64,
        d if d.is_float() => DType::F32,
        _ => DType::I32,
    };
    let out = m.buffer(wide, rows * columns, Fill::Output);
    let out = m.pointer("c", out, 0, 9);
    let acc = TileType::new(wide, [rows, columns]);
    let acc = if m.chance(60) {
        m.b.full(acc, Constant(0)).unwrap()
    } else {
        let x = m.numbered(&[rows, columns]);
        let seven = m.i32(7);
        let x = m.b.binary(BinaryOp::And, x, seven).unwrap();
        m.b.cast(x, wide).unwrap()
    };
    let limit = m.scalar("k", DType::I32, k as i64);
    let outer = m.chance(20);
    let mut inits = vec![acc];
    if outer {
        let (zero, one, two) = (m.i32(0), m.i32(1), m.i32(2));
        inits = m.b.begin_for(zero, two, one, &inits).unwrap().1;
    }
    // Pointers that advance from round to round.
    for (i, o) in operands.iter().enumerate().filter(|(_, o)| o.kind == 1) {
        let zero = m.i32(0);
        let p = addresses(&mut m, o, i, zero, [rows, columns, depth]);
        inits.push(p);
    }
    let (zero, step) = (m.i32(0), m.i32(depth as i64));
    let (k0, inside) = m.b.begin_for(zero, limit, step, &inits).unwrap();
    let mut next = vec![inside[0]];
    let mut tiles = Vec::new();
    for (i, o) in operands.iter().enumerate() {
        let along = if i == 0 { 1 } else { 0 };
        let stored_along = along ^ usize::from(o.transposed);
        let tile = if i == 0 { [rows, depth] } else { [depth, columns] };
        let stored = if o.transposed { [tile[1], tile[0]] } else { tile };
        let x = match &o.view {
            Some(v) => {
                let zero = m.i32(0);
                let mut offsets = [zero; 2];
                offsets[stored_along] = k0;
                m.b.view_load(v, &offsets, stored, None).unwrap()
            }
            None => {
                let p = if o.kind == 1 {
                    let p = inside[next.len()];
                    let far = if stored_along == 1 { 1 } else { o.dims[1] } * depth;
                    let far = m.i32(far as i64);
                    let moved = m.b.ptr_add(p, far).unwrap();
                    next.push(moved);
                    p
                } else {
                    addresses(&mut m, o, i, k0, [rows, columns, depth])
                };
                let lane = m.b.arange(0, depth).unwrap();
                let at = m.add(lane, k0);
                let inside = m.b.compare(Cmp::Lt, at, limit).unwrap();
                let mask = m.b.expand_dims(inside, 1 - stored_along).unwrap();
                m.b.load(p, Some(mask), None).unwrap()
            }
        };
        let mut x = if o.transposed { m.b.transpose(x).unwrap() } else { x };
        if o.kind == 3 && dtype.is_float() {
            x = m.b.unary(UnaryOp::Neg, x).unwrap();
        } else if m.chance(10) {
            x = m.b.binary(BinaryOp::Add, x, x).unwrap();
        }
        tiles.push(x);
    }
    next[0] = m.b.dot(tiles[0], tiles[1], inside[0], precision).unwrap();
    if m.chance(15) {
        // An operand is used for something else as well.
        let r = m.b.reduce(tilewright_compiler::tile::ReduceOp::Max, tiles[0], 1).unwrap();
        let r = m.b.expand_dims(r, 1).unwrap();
        let r = m.b.cast(r, wide).unwrap();
        next[0] = m.add(next[0], r);
    }
    if m.chance(15) && columns == depth && dtype.is_float() && rounds == 1 {
        let narrow = m.b.cast(next[0], dtype).unwrap();
        next[0] = m.b.dot(narrow, tiles[1], next[0], precision).unwrap();
    }
    if m.chance(20) {
        m.store(out, next[0]);
    }
    let mut results = m.b.end_for(&next).unwrap();
    if outer {
        results = m.b.end_for(&results[..1]).unwrap();
    }
    let mut c = results[0];
    let mut outputs = Vec::new();
    if m.chance(40) && dtype.is_float() {
        // Chained: the result, narrowed, is an operand of another product.
        let narrow = m.b.cast(c, dtype).unwrap();
        let width = m.size(0, 5);
        let other = m.buffer(dtype, columns * width, Fill::Small);
        let other = m.pointer("d", other, 0, 5);
        let other = m.load(other, &[columns, width]);
        let zero = m.b.full(TileType::new(wide, [rows, width]), Constant(0)).unwrap();
        let chained = m.b.dot(narrow, other, zero, precision).unwrap();
        outputs.push((0, chained));
        if m.chance(50) {
            let t = m.b.transpose(narrow).unwrap();
            let zero = m.b.full(TileType::new(wide, [rows, rows]), Constant(0)).unwrap();
            let square = m.b.dot(narrow, t, zero, precision).unwrap();
            let r = m.reduce(square, false);
            outputs.push((1, r));
        }
    }
    if m.chance(40) {
        let r = m.reduce(c, true);
        outputs.push((2, r));
    }
    if m.chance(30) {
        let dims = m.b.ty(c).shape.dims().to_vec();
        let r = m.rearrange(c);
        let r = m.in_shape(r, &dims);
        c = m.combine(c, r);
    }
    m.store(out, c);
    store_all(m, outputs)
}

/// Addresses of the operand's tile whose part along k starts at `k0`.
fn addresses(m: &mut Maker, o: &Operand, i: usize, k0: Value, [rows, columns, depth]: [usize; 3]) -> Value {
    let tile = if i == 0 { [rows, depth] } else { [depth, columns] };
    let along = usize::from(i == 0) ^ usize::from(o.transposed);
    let stored = if o.transposed { [tile[1], tile[0]] } else { tile };
    let mut index = [0, 1].map(|axis| {
        let lane = m.b.arange(0, stored[axis]).unwrap();
        let lane = if axis == along { m.add(lane, k0) } else { lane };
        m.b.expand_dims(lane, 1 - axis).unwrap()
    });
    let pitch = m.i32(o.dims[1] as i64);
    index[0] = m.b.binary(BinaryOp::Mul, index[0], pitch).unwrap();
    let sum = m.add(index[0], index[1]);
    m.b.ptr_add(o.base, sum).unwrap()
}

/// Loops and branches that carry tiles of several shapes and types, which change places.
pub fn carried(seed: u64) -> Typed {
    let mut m = Maker::new(seed);
    let bits = m.pick(&[0, 1, 3, 5, 6, 7, 8, 8, 9, 10, 10, 12, 14]);
    let n = 1usize << bits;
    let mut pool = Vec::new();
    for i in 0..1 + m.below(3) {
        let dtype = dtype_of(&mut m);
        let buffer = m.buffer(dtype, n, Fill::Small);
        let base = m.pointer(&format!("x{i}"), buffer, 0, i as u32 + 1);
        let rank = 1 + m.below(3);
        let dims = m.dims(rank, bits);
        let t = m.load(base, &dims);
        pool.push(t);
        if m.chance(50) {
            let t = m.numbered(&dims);
            let t = m.b.cast(t, dtype).unwrap();
            pool.push(t);
        }
    }
    carried_steps(&mut m, &mut pool, 0);
    let count = 1 + m.below(3);
    let outputs = (0..count).map(|i| (i, m.pick(&pool))).collect();
    store_all(m, outputs)
}

/// A tile of the type and shape of `like`, from the pool.
fn fitting(m: &mut Maker, pool: &[Value], like: Value) -> Value {
    let ty = m.b.ty(like).clone();
    let x = m.pick(pool);
    let x = m.in_shape(x, ty.shape.dims());
    m.b.cast(x, ty.dtype()).unwrap()
}

fn carried_steps(m: &mut Maker, pool: &mut Vec<Value>, depth: usize) {
    for _ in 0..1 + m.below(4) {
        let mark = pool.len();
        match m.below(if depth < 3 { 7 } else { 4 }) {
            0 | 1 => {
                let x = m.pick(pool);
                let y = fitting(m, pool, x);
                let z = m.combine(x, y);
                pool.push(z);
            }
            2 => {
                let x = m.pick(pool);
                let x = m.rearrange(x);
                pool.push(x);
            }
            3 => {
                let x = m.pick(pool);
                let y = fitting(m, pool, x);
                let c = m.b.compare(Cmp::Ge, x, y).unwrap();
                pool.push(c);
            }
            4 => {
                let x = m.pick(pool);
                let dims = m.b.ty(x).shape.dims().to_vec();
                let x = m.b.cast(x, DType::I32).unwrap();
                let any = m.b.reshape(x, [dims.iter().product()]).unwrap();
                let at = m.b.arg_reduce(true, any, 0).unwrap();
                let one = m.i32(1);
                let odd = m.b.binary(BinaryOp::And, at, one).unwrap();
                let odd = m.b.compare(Cmp::Eq, odd, one).unwrap();
                let like: Vec<Value> = (0..1 + m.below(3)).map(|_| m.pick(pool)).collect();
                m.b.begin_if(odd).unwrap();
                carried_steps(m, pool, depth + 1);
                let first: Vec<Value> = like.iter().map(|&l| fitting(m, pool, l)).collect();
                pool.truncate(mark);
                m.b.begin_else(&first);
                if m.chance(50) {
                    carried_steps(m, pool, depth + 1);
                }
                let second: Vec<Value> = like.iter().map(|&l| fitting(m, pool, l)).collect();
                pool.truncate(mark);
                pool.extend(m.b.end_if(&second).unwrap());
            }
            _ => {
                let inits: Vec<Value> = (0..1 + m.below(4)).map(|_| m.pick(pool)).collect();
                let limit = m.below(4) as i64;
                let (zero, limit, one) = (m.i32(0), m.i32(limit), m.i32(1));
                let (_, inside) = m.b.begin_for(zero, limit, one, &inits).unwrap();
                pool.extend(&inside);
                carried_steps(m, pool, depth + 1);
                // Some change places, some stay, some are new.
                let next: Vec<Value> = inside
                    .iter()
                    .map(|&v| match m.below(3) {
                        0 => v,
                        1 => fitting(m, &inside, v),
                        _ => fitting(m, pool, v),
                    })
                    .collect();
                pool.truncate(mark);
                pool.extend(m.b.end_for(&next).unwrap());
            }
        }
    }
}
