"""Writes values.jsonl: what every operation of the language gives according to NumPy.

Run with Python 3 and `pip install numpy ml_dtypes mpmath`; the versions used are in the first line of the data:

    python make.py

Sums, differences, products, quotients, orders, shapes and bits are NumPy's own. Where the language has an operation
that NumPy lacks (quotients towards zero, upper halves of products, `fma`, reciprocal roots), and where it means
something else, the value is computed in whole numbers or fractions, without rounding, and rounded once; elementary
functions are those of mpmath, and NumPy's are held against them here.

Lines with "array" name operands. Every other line is a case: "f" the operation as Tile IR names it, "p" its
attributes, "x" the operands, "y" the result. With "outer" the operands are all pairs (or triples) of elements, the
last operand's varying fastest. "ulp" and "abs" are the tolerance (the larger counts; units in the last place of the
result, and an absolute difference). In cases with "differs" "y" is what the language means, "theirs" what NumPy
gives for the elements "at". Cases with "ir" are whole kernels: "args" are the parameters in order, numbers "n" or
arrays "a", seen through "d", "strides" and "offset" (without, by their address); the last parameter is the result,
which holds "init" before. Elements are hexadecimal, little-endian.
"""

import json
import math
import os
import warnings
from fractions import Fraction

import ml_dtypes
import mpmath
import numpy as np

import programs

warnings.simplefilter("ignore")
np.seterr(all="ignore")
mpmath.mp.prec = 160

INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
ALL = ["bool"] + INTS + FLOATS
NP = {t: np.dtype({"i": "int", "u": "uint"}[t[0]] + t[1:]).type for t in INTS}
NP |= {"bool": np.bool_, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
NAME = {np.dtype(v): k for k, v in NP.items()}
# Bits of the significand with the hidden one, and the exponent of the least number.
FORM = {"f16": (11, -24), "bf16": (8, -133), "f32": (24, -149), "f64": (53, -1074)}
NAN, INF = math.nan, math.inf
RNG = np.random.default_rng(1)
arrays, cases = {}, []


def pack(a):
    a = np.asarray(a)
    return {"t": NAME[a.dtype], "d": list(a.shape), "w": a.tobytes().hex()}


def operand(name, a):
    """Names an operand of cases."""
    assert name not in arrays or arrays[name].tobytes() == a.tobytes(), name
    arrays[name] = a
    return name


def same(a, b):
    """Are the values the same, signs of zeros too?"""
    a, b = np.asarray(a), np.asarray(b)
    if NAME[a.dtype] in FLOATS:
        a, b = a.astype(np.float64), b.astype(np.float64)
        return a.shape == b.shape and bool(
            np.all((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b))))
        )
    return a.shape == b.shape and a.tolist() == b.tolist()


def case(f, x, y, p=(), outer=False, ulp=0, tol=0.0, theirs=None, differs=None, **more):
    """A case. What NumPy gives is the same, unless `differs` says why not; a difference must be seen."""
    if theirs is not None:
        agrees = same(y, theirs) and y.dtype == theirs.dtype
        assert differs or agrees, (f, x, p, y, theirs)
        if agrees:
            differs = None
    y = np.asarray(y)
    entry = {"f": f, "x": list(x), "y": pack(y)}
    entry |= {"p": list(p)} if p else {}
    entry |= {"outer": True} if outer else {}
    entry |= {"ulp": ulp} if ulp else {}
    entry |= {"abs": tol} if tol else {}
    if differs:
        theirs = np.asarray(theirs)
        at = [i for i in range(theirs.size) if y.dtype != theirs.dtype or not same(y.flat[i], theirs.flat[i])]
        entry |= {"differs": differs, "at": at, "theirs": pack(theirs.ravel()[at])}
    cases.append(entry | more)


def rounded(q, t, negative=False):
    """A fraction as the nearest number of a type, ties to even. `negative` is the sign of a zero."""
    bits, least = FORM[t]
    if q == 0:
        return -0.0 if negative else 0.0
    size = abs(q)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    step = max(exponent - bits + 1, least)
    units = round(size / Fraction(2) ** step)
    value = units * Fraction(2) ** step
    top = Fraction(float(ml_dtypes.finfo(NP[t]).max))
    value = INF if value > top else float(value)
    return -value if q < 0 else value


def floats(t, values):
    """Doubles that the type holds."""
    return np.array(values, np.float64).astype(NP[t])


# ---- operands -------------------------------------------------------------------------------------------------------


def specials(t):
    if t == "bool":
        return np.array([False, True])
    if t in INTS:
        i = np.iinfo(NP[t])
        v = [0, 1, 2, 3, 7, i.bits - 1, i.bits, i.bits + 1, 100, i.max, i.max - 1, i.min + 1]
        v += [-1, -2, -7, -i.bits, i.min] if t[0] == "i" else [i.max // 2, i.max // 2 + 1]
        return np.array(v, NP[t])
    i = ml_dtypes.finfo(NP[t])
    big, tiny, sub = float(i.max), float(i.smallest_normal), float(i.smallest_subnormal)
    v = [0.0, -0.0, 1, -1, NAN, INF, -INF, big, -big, tiny, -tiny, sub, -sub, tiny - sub]
    v += [0.5, -0.5, 1.5, 2.5, -2.5, 3, -7, 0.1, 1 / 3, 1 + float(i.eps)]
    return floats(t, v)


def random(t, n):
    """Numbers of all magnitudes."""
    if t == "bool":
        return RNG.integers(0, 2, n).astype(bool)
    if t in INTS:
        i = np.iinfo(NP[t])
        whole = RNG.integers(i.min, i.max, n, NP[t], endpoint=True)
        return whole >> RNG.integers(0, i.bits, n).astype(NP[t])
    i = ml_dtypes.finfo(NP[t])
    low, high = math.log2(float(i.smallest_normal)), math.log2(float(i.max))
    return floats(t, RNG.choice([-1, 1], n) * 2.0 ** RNG.uniform(low, high, n))


def moderate(t, n):
    """Numbers of few magnitudes, which meet in sums."""
    return random(t, n) if t not in FLOATS else floats(t, RNG.uniform(-1, 1, n) * 2.0 ** RNG.integers(-4, 5, n))


def wide(t):
    """What casts are given: the bounds of every other type, and what lies beside them."""
    v = [0, 1, -1, 2]
    for b in (7, 8, 15, 16, 31, 32, 63, 64):
        v += [2**b, 2**b - 1, -(2**b), -(2**b) - 1]
    # Half-way between neighbours, and one beyond, of narrow floats.
    v += [2049, 2051, 257, 259, 2**24 + 1, 2**53 + 1, 65504, 65519, 65520]
    v += [0x0101000000000001, 0x0103000000000001, 0x4008000000000001, -0x0101000000000001, 0x0101000001]
    if t in INTS:
        i = np.iinfo(NP[t])
        kept = sorted({n for n in v if i.min <= n <= i.max})
        return np.concatenate([np.array(kept, NP[t]), random(t, 8)])
    if t == "bool":
        return specials(t)
    more = [0.5, -0.5, 0.9, -0.9, 1.5, 2.5, -1.5, 255.5, -128.5, 127.5, 2147483647.5, 1e-8, 6e-8, 1e-40, 65519.99]
    more += [2**-25, 2**-25 * 1.5, 2**-134, 1 + 2**-8 + 2**-30, 1 + 2**-11 + 2**-40, 3.4028235677973366e38]
    with_nan = np.concatenate([specials(t), floats(t, v + more)])
    return np.concatenate([with_nan, random(t, 8)])


def pairs(n):
    """The elements of two operands of which every pair is taken."""
    return np.repeat(n, len(n)), np.tile(n, len(n))


# ---- elementwise ----------------------------------------------------------------------------------------------------


def elementary(f, x, t):
    """A function of mpmath, rounded once. Where it has none: NumPy's of doubles, which is exact there."""
    exact = {
        "exp": mpmath.exp,
        "exp2": lambda v: mpmath.mpf(2) ** v,
        "log": mpmath.log,
        "log2": lambda v: mpmath.log(v, 2),
        "sin": mpmath.sin,
        "cos": mpmath.cos,
        "tanh": mpmath.tanh,
        "erf": mpmath.erf,
        "rsqrt": lambda v: 1 / mpmath.sqrt(v),
    }
    numpy = {"rsqrt": lambda v: 1 / np.sqrt(v), "erf": lambda v: v if v == 0 or np.isnan(v) else np.sign(v)}
    out = []
    for v in x.astype(np.float64):
        size = abs(v)
        edge = v == 0 or not np.isfinite(v) or (v < 0 and f in ("log", "log2", "rsqrt"))
        if edge or (f in ("exp", "exp2") and size > 1e5) or (f in ("tanh", "erf") and size > 1e4):
            out.append(numpy.get(f, getattr(np, f, None))(np.float64(v)))
            continue
        y = exact[f](mpmath.mpf(float(v)))
        man, exp = y.man_exp
        q = int(mpmath.sign(y)) * Fraction(int(man)) * Fraction(2) ** int(exp)
        out.append(rounded(q, t, v < 0 and f in ("sin", "tanh", "erf")))
    return floats(t, out)


def ulps(f, t):
    """The bounds that the guide states."""
    if f in ("sqrt",):
        return 0
    if f == "exp2_approx":
        return {"f32": 4, "f64": 4}.get(t, 1)
    return {"f32": 2, "f64": 4}.get(t, 1)


def unary():
    exact = {"neg": np.negative, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint}
    for t in FLOATS:
        more = [2, -2, 10, -10, 30, 88, -87, -100, -149.5, 700, -740, 1e4, 0.7853981633974483, 2.0**-13, 0.99]
        more = floats(t, more)
        x = np.concatenate([specials(t), more, moderate(t, 16), random(t, 8)])
        name = operand(f"{t}.unary", x)
        for f, fn in exact.items():
            case(f, [name], fn(x).astype(x.dtype), theirs=fn(x))
        case("sqrt", [name], floats(t, np.sqrt(x.astype(np.float64))), theirs=np.sqrt(x))
        for f in ["exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "rsqrt"]:
            y = elementary(f, x, t)
            if t in ("f32", "f64") and hasattr(np, f):
                z, w = getattr(np, f)(x).astype(np.float64), y.astype(np.float64)
                i = ml_dtypes.finfo(NP[t])
                near = np.abs(w - z) <= 4 * float(i.eps) * np.abs(w) + float(i.smallest_normal)
                near |= (w == z) | (np.isnan(w) & np.isnan(z))
                assert near.all(), (f, t, x[~near], w[~near], z[~near])
            case(f, [name], y, ulp=ulps(f, t))
            if f == "exp2":
                case("exp2_approx", [name], y, ulp=ulps("exp2_approx", t), tol=2.0**-126 if t != "f64" else 0.0)
    for t in INTS:
        x = np.concatenate([specials(t), random(t, 16)])
        name = operand(f"{t}.unary", x)
        for f, fn in [("neg", np.negative), ("abs", np.abs), ("not", np.invert)]:
            case(f, [name], fn(x), theirs=fn(x))
    x = specials("bool")
    case("not", [operand("bool", x)], np.logical_not(x), theirs=np.invert(x))


def whole(t, fn):
    """A function of two integers, computed without bounds, wrapped."""
    mask = (1 << np.iinfo(NP[t]).bits) - 1
    unsigned = NP["u" + t[1:]]

    def both(x, y):
        return np.array([fn(int(a), int(b)) & mask for a, b in zip(x, y)], unsigned).view(NP[t])

    return both


def towards_zero(a, b):
    q = abs(a) // abs(b) if b else 0
    return q if (a < 0) == (b < 0) else -q


MODULO = "shifts are by the amount modulo the width"
ORDERED = "`minimum`, `maximum`, `fmin`, `fmax`, `min` and `max` take -0 as less than +0"


def integer_functions(t):
    """Name: what the language means, NumPy's function, why they differ."""
    bits = np.iinfo(NP[t]).bits
    remainder = "`x % 0` and `floor_mod(x, 0)` are x"
    return {
        "add": (np.add, np.add, None),
        "sub": (np.subtract, np.subtract, None),
        "mul": (np.multiply, np.multiply, None),
        "div": (whole(t, towards_zero), None, None),
        "rem": (whole(t, lambda a, b: a - b * towards_zero(a, b)), np.fmod, remainder),
        "floor_div": (whole(t, lambda a, b: a // b if b else 0), np.floor_divide, None),
        "floor_mod": (whole(t, lambda a, b: a % b if b else a), np.remainder, remainder),
        "mul_hi": (whole(t, lambda a, b: (a * b) >> bits), None, None),
        "and": (np.bitwise_and, np.bitwise_and, None),
        "or": (np.bitwise_or, np.bitwise_or, None),
        "xor": (np.bitwise_xor, np.bitwise_xor, None),
        "shl": (whole(t, lambda a, b: a << (b % bits)), np.left_shift, MODULO),
        "shr": (whole(t, lambda a, b: a >> (b % bits)), np.right_shift, MODULO),
        "min": (np.minimum, np.minimum, None),
        "max": (np.maximum, np.maximum, None),
    }


def ordered(less, keep_nan):
    """The lesser or greater of floats: -0 is below +0, NaN is kept or ignored."""

    def choose(x, y):
        def one(a, b):
            if np.isnan(a) or np.isnan(b):
                return (a if np.isnan(a) else b) if keep_nan else (b if np.isnan(a) else a)
            first = (float(a), not np.signbit(a)) <= (float(b), not np.signbit(b))
            return a if first == less else b

        return np.array([one(a, b) for a, b in zip(x, y)], x.dtype)

    return choose


FLOAT_FUNCTIONS = {
    "add": (np.add, np.add, None),
    "sub": (np.subtract, np.subtract, None),
    "mul": (np.multiply, np.multiply, None),
    "div": (np.divide, np.divide, None),
    "rem": (lambda x, y: np.fmod(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype), np.fmod, None),
    "min": (ordered(True, True), np.minimum, ORDERED),
    "max": (ordered(False, True), np.maximum, ORDERED),
    "fmin": (ordered(True, False), np.fmin, ORDERED),
    "fmax": (ordered(False, False), np.fmax, ORDERED),
}
COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def binary():
    bits = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    for t in ALL:
        if t == "bool":
            functions = {f: (fn, fn, None) for f, fn in bits.items()}
        else:
            functions = integer_functions(t) if t in INTS else FLOAT_FUNCTIONS
        s = specials(t)
        operand(t, s)
        all_pairs = pairs(s)
        other = moderate(t, 16), moderate(t, 16)
        names = [operand(f"{t}.some{i}", np.concatenate([a, random(t, 16)])) for i, a in enumerate(other)]
        some = [arrays[n] for n in names]
        for x, y, args, outer in [(*all_pairs, [t, t], True), (*some, names, False)]:
            for f, (fn, numpy, differs) in functions.items():
                case(f, args, fn(x, y), outer=outer, theirs=numpy and numpy(x, y), differs=differs)
            for f, fn in COMPARISONS.items():
                case(f, args, fn(x, y), outer=outer, theirs=fn(x, y))
        backwards = operand(f"{t}.back", s[::-1].copy())
        condition = operand(f"bool.{len(s)}", np.arange(len(s)) % 3 == 0)
        y = np.where(arrays[condition], s, s[::-1])
        case("select", [condition, t, backwards], y, theirs=y)


def fma():
    for t in FLOATS:
        v = [0.0, -0.0, 1, -1.5, NAN, INF, -INF, float(ml_dtypes.finfo(NP[t]).max), 3, 1 / 3]
        v += [float(ml_dtypes.finfo(NP[t]).smallest_subnormal), 1 + float(ml_dtypes.finfo(NP[t]).eps)]
        x = operand(f"{t}.fma", floats(t, v))
        a = [c.ravel() for c in np.meshgrid(*[arrays[x]] * 3, indexing="ij")]
        case("fma", [x] * 3, fused(*a, t), outer=True)
        triple = [operand(f"{t}.fma{i}", moderate(t, 64)) for i in range(2)]
        x, y = arrays[triple[0]], arrays[triple[1]]
        # So that the sum cancels: what is left is the error of the product.
        z = -(x * y)
        triple.append(operand(f"{t}.fma2", z))
        case("fma", triple, fused(x, y, z, t))


def fused(x, y, z, t):
    out = []
    for a, b, c in zip(*[v.astype(np.float64) for v in (x, y, z)]):
        if not all(map(math.isfinite, (a, b, c))):
            # Products of finite numbers do not overflow here.
            infinite = not (math.isfinite(a) and math.isfinite(b))
            out.append((a * b if infinite else math.copysign(1, a) * math.copysign(1, b)) + c)
            continue
        q = Fraction(a) * Fraction(b) + Fraction(c)
        product_negative = math.copysign(1, a) * math.copysign(1, b) < 0
        # A sum of two zeros is -0 if both are.
        zero_negative = a * b == 0 and c == 0 and product_negative and math.copysign(1, c) < 0
        # Halves are computed as f32, like everything else, and then rounded.
        out.append(rounded(q, "f64" if t == "f64" else "f32", zero_negative))
    return floats(t, out)


def casts():
    why = "floats become integers as by Rust's `as`: truncated, saturated, NaN gives 0"
    for t in ALL:
        x = wide(t)
        name = operand(f"{t}.wide", x)
        exact = x.astype(np.float64) if t in FLOATS else x
        for u in ALL:
            if t == u:
                continue
            theirs = x.astype(NP[u])
            if u in FLOATS and t != "bool":
                y = floats(u, [once(v, t, u) if np.isfinite(v) else v for v in exact])
                case("cast", [name], y, theirs=theirs, differs="numbers become narrower floats by one rounding")
            elif u in INTS and t in FLOATS:
                i = np.iinfo(NP[u])
                bounded = [min(max(v, float(i.min)), float(i.max)) for v in exact]
                y = [0 if np.isnan(v) else min(max(int(v), i.min), i.max) for v in bounded]
                case("cast", [name], np.array(y, NP[u]), theirs=theirs, differs=why)
            else:
                case("cast", [name], theirs, theirs=theirs)
            if "bool" not in (t, u) and NP[t](0).itemsize == NP[u](0).itemsize:
                case("bitcast", [name], x.view(NP[u]))


def once(v, t, u):
    q = Fraction(float(v)) if t in FLOATS else Fraction(int(v))
    return rounded(q, u, t in FLOATS and bool(np.signbit(v)))


# ---- whole tiles ----------------------------------------------------------------------------------------------------


def constants():
    for t in ALL:
        for v in specials(t):
            y = np.full(4, v)
            case("const", [], y, [np.array([v]).tobytes()[::-1].hex()])
    for start, n in [(0, 1), (0, 64), (-5, 8), (2**31 - 2, 2), (-(2**31), 4)]:
        y = np.arange(start, start + n).astype(np.int32)
        case("arange", [], y, [start])


def shapes():
    for t in ["bool", "u8", "f16", "i32", "f64"]:
        for dims in [(), (1,), (2, 4), (4, 1, 8), (2, 2, 2, 4)]:
            x = np.resize(np.concatenate([specials(t), random(t, 16)]), dims)
            name = operand(f"{t}.shape{list(dims)}", x)
            n = x.size
            for to in {(n,), (1, n), (n, 1)} | ({(2, n // 2), (n // 2, 1, 2)} if n > 1 else {()}):
                if to != dims:
                    case("reshape", [name], x.reshape(to))
            for perm in {tuple(range(len(dims)))[::-1], tuple(np.roll(range(len(dims)), 1))}:
                if len(dims) > 1:
                    case("permute", [name], x.transpose(perm), [int(a) for a in perm])
        repeats = [((), (4,)), ((), (2, 2)), ((1,), (8,)), ((4, 1), (4, 4)), ((1, 4), (2, 4)), ((1, 2, 1), (4, 2, 2))]
        for dims, to in repeats:
            x = np.resize(specials(t)[1:], dims)
            case("broadcast", [operand(f"{t}.narrow{list(dims)}", x)], np.broadcast_to(x, to).copy())


SUMS = {"bool": "i32", "i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}
NARROW = "sums and products of integers are of 32 bits, of 64 only if the operand is"
ZEROS = "the sum of nothing but -0 is -0"
INDEX = "`argmax` and `argmin` are `i32`"


def reductions():
    for t in ALL:
        for dims in [(1,), (2,), (16,), (2, 4, 2), (8, 32)]:
            kinds = {"bits": np.resize(random(t, math.prod(dims)), dims), "special": special_rows(t, dims)}
            if t in FLOATS:
                kinds["zeros"] = floats(t, np.full(dims, -0.0))
            for kind, x in kinds.items():
                name = operand(f"{t}.{kind}{list(dims)}", x)
                for axis in range(len(dims)):
                    reduce(t, name, x, axis, kind)


def special_rows(t, dims):
    """Elements that repeat, with few special ones: in some rows none."""
    n = math.prod(dims)
    if t not in FLOATS:
        return np.resize(np.concatenate([specials(t), specials(t)[::-1]]), dims)
    x = RNG.integers(-3, 4, n).astype(np.float64)
    chosen = RNG.integers(0, n, max(1, n // 12))
    x[chosen] = RNG.choice([NAN, INF, -INF, -0.0, 0.0], len(chosen))
    if n >= 16:
        x[: n // 8] = RNG.choice([-0.0, 0.0], n // 8)
    return floats(t, x).reshape(dims)


def reduce(t, name, x, axis, kind):
    p = [axis]
    if t != "bool":
        for f, less in [("min", True), ("max", False)]:
            y = x.take(0, axis)
            for i in range(1, x.shape[axis]):
                z = x.take(i, axis)
                choose = ordered(less, True) if t in FLOATS else (np.minimum if less else np.maximum)
                y = choose(np.atleast_1d(y).ravel(), np.atleast_1d(z).ravel()).reshape(y.shape)
            theirs = np.asarray((np.min if less else np.max)(x, axis))
            case("reduce_" + f, [name], y, p, theirs=theirs, differs=ORDERED)
            values = x.astype(np.float64) if t in FLOATS else x
            at = np.asarray((np.argmin if less else np.argmax)(values, axis))
            # The difference of types is shown once a type.
            seen = {"theirs": at, "differs": INDEX} if x.shape == (2,) else {}
            case("arg" + f, [name], at.astype(np.int32), p, **seen)
    if t not in FLOATS:
        for f, fn in [("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)]:
            y = np.asarray(fn.reduce(x, axis))
            case("reduce_" + f, [name], y, p, theirs=y)
        for f, fn in [("sum", np.sum), ("prod", np.prod)]:
            y = np.asarray(fn(x, axis, dtype=NP[SUMS.get(t, t)]))
            case("reduce_" + f, [name], y, p, theirs=np.asarray(fn(x, axis)), differs=NARROW)
        return
    if kind == "bits":
        x = x.astype(np.float64) if t != "f64" else x
        # Fractions of few magnitudes: the order of the sum shows in the last places.
        x = floats(t, np.sin(np.arange(x.size)).reshape(x.shape))
        name = operand(f"{t}.sin{list(x.shape)}", x)
    exact = x.astype(np.float64)
    n = x.shape[axis]
    eps = float(ml_dtypes.finfo(np.float64 if t == "f64" else np.float32).eps)
    half = 0 if t in ("f32", "f64") else 1
    for f, fn in [("sum", np.sum), ("prod", np.prod)]:
        theirs = floats(t, fn(exact, axis))
        y = np.where(np.all((exact == 0) & np.signbit(exact), axis), NP[t](-0.0), theirs) if f == "sum" else theirs
        size = np.nanmax(np.where(np.isfinite(exact), np.abs(exact), 0)) * n
        tol = n * eps * float(size) if kind == "bits" and f == "sum" else 0.0
        how = {"ulp": half + 2 * n, "tol": tol} if kind == "bits" else {"theirs": theirs, "differs": ZEROS}
        case("reduce_" + f, [name], y, p, **how)


def products():
    for t, u in [("f16", "f32"), ("bf16", "f32"), ("f32", "f32"), ("f64", "f64"), ("i8", "i32"), ("u8", "i32")]:
        for m, n, k in [(1, 1, 1), (2, 4, 2), (1, 16, 8), (16, 8, 16), (32, 16, 32)]:
            low, high = (-128, 128) if t == "i8" else (0, 256) if t == "u8" else (-8, 9)
            a, b = (RNG.integers(low, high, s).astype(np.float64) for s in [(m, k), (k, n)])
            acc = RNG.integers(-9, 10, (m, n)).astype(NP[u])
            kinds = {"": (a, b)}
            if t in FLOATS and k > 1:
                c = a.copy()
                c[0, 0], c[-1, 1] = INF, NAN
                d = b.copy()
                d[0, 0], d[1, -1] = 0.0, -INF
                kinds[".special"] = (c, d)
            for kind, (c, d) in kinds.items():
                at = f"{t}.dot{[m, n, k]}{kind}"
                x = [operand(f"{at}.a", c.astype(NP[t])), operand(f"{at}.b", d.astype(NP[t]))]
                x.append(operand(f"{u}.acc{[m, n, k]}.{t}", acc))
                y = (acc.astype(np.float64) + c @ d).astype(np.int64 if u == "i32" else NP[u]).astype(NP[u])
                for precision in ["ieee", "tf32"] if t == "f32" else ["ieee"]:
                    case("dot", x, y, [precision])


def main():
    unary()
    binary()
    fma()
    casts()
    constants()
    shapes()
    reductions()
    products()
    programs.write(case, pack, NP)
    values = sum(math.prod(c["y"]["d"]) for c in cases)
    versions = {m.__name__: m.__version__ for m in (np, ml_dtypes, mpmath)}
    head = versions | {"cases": len(cases), "values": values}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "values.jsonl")
    used = {x for c in cases for x in c["x"] if isinstance(x, str)}
    with open(path, "w") as out:
        named = [{"array": n} | pack(a) for n, a in arrays.items() if n in used]
        for entry in [head] + named + cases:
            out.write(json.dumps(entry, separators=(",", ":")) + "\n")
    print(len(cases), "cases,", values, "values,", os.path.getsize(path), "bytes")


main()
