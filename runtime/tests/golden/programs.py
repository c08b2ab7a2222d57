"""Whole kernels in Tile IR, for the operations that touch memory, steer, or ask where they are; make.py writes them."""

import numpy as np

GRID = """kernel @grid(%out: *i32 = v0: *i32) {
  v1: i32 = program_id 0
  v2: i32 = program_id 1
  v3: i32 = program_id 2
  v4: i32 = num_programs 0
  v5: i32 = num_programs 1
  v6: i32 = num_programs 2
  v7: i32 = mul v3, v5
  v8: i32 = add v7, v2
  v9: i32 = mul v8, v4
  v10: i32 = add v9, v1
  v11: i32 = const 6
  v12: i32 = mul v10, v11
  v20: *i32 = ptr_add v0, v12
  v21: i32 = const 1
  v22: *i32 = ptr_add v20, v21
  v23: *i32 = ptr_add v22, v21
  v24: *i32 = ptr_add v23, v21
  v25: *i32 = ptr_add v24, v21
  v26: *i32 = ptr_add v25, v21
  store v20, v1
  store v22, v2
  store v23, v3
  store v24, v4
  store v25, v5
  store v26, v6
  yield
}
"""

# Reads at any offsets, some masked out; writes to a permutation of places, some masked out.
GATHER = """kernel @gather(
  %x: *{t} = v0: *{t}, %index: *{i} = v1: *{i}, %mask: *bool = v2: *bool, %other: *{t} = v3: *{t}, %to: *i32 = v4: *i32,
  %out: *{t} = v5: *{t} {{alias 1}},
) {{
  v10: i32[{n}] = arange 0
  v11: *{i}[{n}] = broadcast v1
  v12: *{i}[{n}] = ptr_add v11, v10
  v13: {i}[{n}] = load v12
  v14: *bool[{n}] = broadcast v2
  v15: *bool[{n}] = ptr_add v14, v10
  v16: bool[{n}] = load v15
  v17: *{t}[{n}] = broadcast v3
  v18: *{t}[{n}] = ptr_add v17, v10
  v19: {t}[{n}] = load v18
  v20: i32 = const {middle}
  v21: *{t} = ptr_add v0, v20
  v22: *{t}[{n}] = broadcast v21
  v23: *{t}[{n}] = ptr_add v22, v13
  v24: {t}[{n}] = load v23, v16, v19
  v25: {t}[{n}] = load v23, v16
  v26: *i32[{n}] = broadcast v4
  v27: *i32[{n}] = ptr_add v26, v10
  v28: i32[{n}] = load v27
  v29: *{t}[{n}] = broadcast v5
  v30: *{t}[{n}] = ptr_add v29, v28
  store v30, v24
  v31: i32[{n}] = const {n}
  v32: *{t}[{n}] = ptr_add v30, v31
  store v32, v25, v16
  yield
}}
"""

# A tile of a strided view, with what lies outside of it, stored into another view.
WINDOW = """kernel @window(
  %x: view {t} 2 = v0: *{t}, v1: i32, v2: i32, v3: i64, v4: i64, %i: i32 = v5: i32, %j: i32 = v6: i32,
  %k: i32 = v7: i32, %l: i32 = v8: i32, %pad: {t} = v9: {t},
  %out: view {t} 2 = v10: *{t} {{alias 1}}, v11: i32, v12: i32, v13: i64, v14: i64,
) {{
  v20: {t}[{m}, {n}] = view_load v0 dims [v1, v2] strides [v3, v4] at [v5, v6] {pad}
  view_store v10 dims [v11, v12] strides [v13, v14] at [v7, v8] value v20
  yield
}}
"""

# Partial sums forwards, then of every third element backwards.
LOOP = """kernel @loop(%x: *{t} = v0: *{t}, %n: {i} = v1: {i}, %out: *{t} = v2: *{t} {{alias 1}}) {{
  v3: {i} = const 0
  v4: {i} = const 1
  v5: {t} = const 0
  v6: {t} = for v7: {i} = v3 to v1 step v4 carry (v8: {t} = v5) {{
    v9: *{t} = ptr_add v0, v7
    v10: {t} = load v9
    v11: {t} = add v8, v10
    v12: *{t} = ptr_add v2, v7
    store v12, v11
    yield v11
  }}
  v20: {i} = const -3
  v21: {i} = sub v1, v4
  v22: {i} = const -1
  v23: {t} = for v24: {i} = v21 to v22 step v20 carry (v25: {t} = v6) {{
    v26: *{t} = ptr_add v0, v24
    v27: {t} = load v26
    v28: {t} = sub v25, v27
    yield v28
  }}
  v29: *{t} = ptr_add v2, v1
  store v29, v23
  yield
}}
"""

# The greatest common divisor, by remainders; even programs then take its square, odd ones its negative.
WHILE = """kernel @divisor(%x: *{t} = v0: *{t}, %y: *{t} = v1: *{t}, %out: *{t} = v2: *{t} {{alias 1}}) {{
  v3: i32 = program_id 0
  v4: *{t} = ptr_add v0, v3
  v5: *{t} = ptr_add v1, v3
  v6: {t} = load v4
  v7: {t} = load v5
  v8: {t} = const 0
  v9: {t}, v10: {t} = while carry (v11: {t} = v6, v12: {t} = v7) {{
    v13: bool = ne v12, v8
    condition v13
  }} do (v14: {t}, v15: {t}) {{
    v16: {t} = rem v14, v15
    yield v15, v16
  }}
  v20: i32 = const 1
  v21: i32 = and v3, v20
  v22: bool = eq v21, v20
  v23: {t} = if v22 {{
    v24: {t} = neg v9
    yield v24
  }} else {{
    v25: {t} = mul v9, v9
    yield v25
  }}
  v26: *{t} = ptr_add v2, v3
  store v26, v23
  yield
}}
"""


def write(case, pack, types):
    rng = np.random.default_rng(2)

    def program(f, ir, x, y, grid=(1, 1, 1), init=None, out=None):
        args = [a if isinstance(a, dict) else {"a": pack(a)} for a in x]
        more = {"ir": ir, "args": args, "grid": list(grid), "init": pack(np.zeros_like(y) if init is None else init)}
        case(f, [], y, **more, **({"out": out} if out else {}))

    def numbers(t, n):
        return (rng.integers(0, 2, n) if t == "bool" else rng.integers(0, 100, n)).astype(types[t])

    nx, ny, nz = 3, 2, 4
    z, y, x = np.meshgrid(np.arange(nz), np.arange(ny), np.arange(nx), indexing="ij")
    places = np.stack([x, y, z, *[np.full_like(x, n) for n in (nx, ny, nz)]], -1).astype(np.int32)
    for f in ["program_id", "num_programs"]:
        program(f, GRID, [], places.ravel(), (nx, ny, nz))

    kinds = [("f32", "i32", 16), ("u8", "i64", 64), ("f64", "i8", 1)]
    kinds += [("bool", "u32", 2), ("bf16", "i16", 128), ("i64", "u8", 8)]
    for k, (t, i, n) in enumerate(kinds):
        middle = 32 if i[0] == "i" else 0
        x, other, mask = numbers(t, 64), numbers(t, n), rng.integers(0, 3, n) > 0
        index = (rng.integers(0, 64, n) - middle).astype(types[i])
        # What is masked out may be anywhere.
        index[~mask] = np.iinfo(types[i]).max
        to = rng.permutation(n).astype(np.int32)
        y = numbers(t, 2 * n)
        init = y.copy()
        at = np.where(mask, index.astype(np.int64) + middle, 0)
        np.put(y, to, np.where(mask, np.take(x, at), other))
        np.put(y, to[mask] + n, np.take(x, at[mask]))
        ir = GATHER.format(t=t, i=i, n=n, middle=middle)
        program(["load", "store", "ptr_add"][k % 3], ir, [x, index, mask, other, to], y, init=init)

    for k, t in enumerate(["f32", "i8", "f16", "u64", "bool", "f64"]):
        m, n = [(4, 8), (1, 1), (8, 2), (2, 2), (16, 16), (2, 32)][k]
        flat = numbers(t, 96)
        size = types[t](0).itemsize
        # Rows that overlap, a transposed matrix, columns backwards, one row again and again.
        views = [(3, (5, 7), (4, 1)), (0, (6, 8), (1, 11)), (20, (3, 5), (20, -2)), (7, (4, 6), (0, 1))]
        for offset, dims, strides in views:
            for at in [(0, 0), (2, 3), (-1, 1), (1, -2)][k % 2 :: 2] + [(9, 0)][k:]:
                view = np.lib.stride_tricks.as_strided(flat[offset:], dims, [s * size for s in strides])
                pad = types[t](1 if t == "bool" else 77) if at[0] != 1 else None
                # The tile is cut out of the view with room on all sides.
                room = 40
                padded = np.pad(view, room, constant_values=types[t](0) if pad is None else pad)
                tile = padded[room + at[0] : room + at[0] + m, room + at[1] : room + at[1] + n]
                init = numbers(t, 96)
                y = init.copy()
                i, j = [(0, 0), (-1, 2), (3, -1)][(k + at[0]) % 3]
                target = np.lib.stride_tricks.as_strided(y[5:], (7, 10), [s * size for s in (1, 9)])
                for r in range(m):
                    for c in range(n):
                        if 0 <= r + i < 7 and 0 <= c + j < 10:
                            target[r + i, c + j] = tile[r, c]
                # Elements of the target that overlap would make the order count.
                out = {"d": [7, 10], "strides": [1, 9], "offset": 5}
                args = [{"a": pack(flat), "d": list(dims), "strides": list(strides), "offset": offset}]
                args += [{"n": pack(np.int32(v))} for v in (*at, i, j)]
                args.append({"n": pack(types[t](0) if pad is None else pad)})
                ir = WINDOW.format(t=t, m=m, n=n, pad="" if pad is None else "pad v9")
                program(["view_load", "view_store"][k % 2], ir, args, y, init=init, out=out)

    for t, i, n in [("i32", "i32", 17), ("f32", "i64", 8), ("u8", "i32", 1), ("f64", "i64", 0), ("i64", "i64", 40)]:
        x = numbers(t, max(n, 1))
        sums = np.cumsum(x[:n], dtype=x.dtype)
        last = (sums[-1] if n else x.dtype.type(0)) - np.sum(x[:n][::-3], dtype=x.dtype)
        y = np.append(sums, last).astype(x.dtype)
        program("for", LOOP.format(t=t, i=i), [x, {"n": pack(types[i](n))}], y)

    for t in ["i32", "u8", "i64", "u64", "i16"]:
        a, b = numbers(t, 24), numbers(t, 24)
        a[:4], b[:4] = [0, 0, 5, 84], [0, 7, 0, 36]
        d = np.gcd(a, b)
        y = np.where(np.arange(24) % 2 == 1, -d, d * d).astype(a.dtype)
        for f in ["while", "if", "condition", "yield"]:
            if t == "i32" or f in ("while", "if"):
                program(f, WHILE.format(t=t), [a, b], y, (24, 1, 1))
