"""Writes values.jsonl: what every function of `Tensor`, and its gradient, gives according to NumPy and PyTorch.

Run with Python 3 and `pip install numpy torch ml_dtypes`; the versions used are in the first line of the data:

    python make.py

Functions of floats are computed in double precision from the exact operands and rounded to the type of the result, so
that the expected value is right to half a unit in the last place whatever the type. Where NumPy has the function, too,
the two are compared here; so are the types of results with those that PyTorch gives.

Each line is a case: "f" the function, "p" its other arguments, "x" the operands, "y" the results, "g" the seeds if the
results are gradients of the float operands, "ulp" and "abs" the tolerance (the larger counts; units in the last place
of the result, and an absolute difference), "zero": false if signs of zeros do not count. Elements are hexadecimal,
little-endian. In cases with "differs" "y" is what Tilewright means, "theirs" what NumPy or PyTorch gives.
"""

import json
import math
import os
import warnings

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")
np.seterr(all="ignore")

NP = {
    "bool": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
TORCH = {
    "bool": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "u8": torch.uint8,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}
NAME = {np.dtype(v): k for k, v in NP.items()}
BACK = {v: k for k, v in TORCH.items()}
FLOATS = ["f16", "bf16", "f32", "f64"]
INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
NAN, INF = math.nan, math.inf
RNG = np.random.default_rng(1)
cases = []


def name(a):
    return NAME[a.dtype]


def finfo(t):
    return ml_dtypes.finfo(NP[t])


def to(a, t):
    """An array in a type, floats rounded once."""
    a = np.asarray(a)
    if t == "bf16" and a.dtype == np.float64:
        # ml_dtypes goes by way of f32; rounding that to odd first makes it one rounding.
        f = a.astype(np.float32)
        bits = f.view(np.uint32)
        inexact = np.isfinite(f) & (f.astype(np.float64) != a)
        away = np.abs(f.astype(np.float64)) > np.abs(a)
        bits = np.where(inexact, np.where(away, bits - 1, bits) | 1, bits).astype(np.uint32)
        return bits.view(np.float32).reshape(a.shape).astype(NP[t])
    return a.astype(NP[t])


def wide(a):
    """An operand as PyTorch sees it: floats in double precision."""
    if name(a) in FLOATS:
        return torch.tensor(a.astype(np.float64))
    return torch.tensor(a.astype(np.int64) if name(a) in ("u16", "u32", "u64") else a)


def pack(a):
    a = np.asarray(a)
    return {"t": name(a), "d": list(a.shape), "w": a.tobytes().hex()}


def number(v):
    return v if not isinstance(v, float) or math.isfinite(v) else repr(v)


def case(f, x, y, p=(), ulp=0, tol=0.0, zero=True, g=None, theirs=None, differs=None):
    entry = {"f": f, "p": [number(v) for v in p], "x": [pack(a) for a in x], "y": [pack(a) for a in y]}
    if ulp:
        entry["ulp"] = ulp
    if tol:
        entry["abs"] = tol
    if not zero:
        entry["zero"] = False
    if g is not None:
        entry["g"] = [pack(a) for a in g]
    if differs:
        entry["differs"] = differs
        entry["theirs"] = [pack(a) for a in theirs]
    cases.append(entry)


def result(v, t):
    return to(v.detach().numpy() if isinstance(v, torch.Tensor) else v, t)


def forward(f, fn, x, t, p=(), **how):
    """A case whose results are of type t (or types, for several)."""
    y = fn(*[wide(a) for a in x])
    case(f, x, [result(y, t)], p, **how)


def gradient(f, fn, x, p=(), seed=None, **how):
    """The gradients of all float operands."""
    ops = [wide(a) for a in x]
    for o in ops:
        if o.is_floating_point():
            o.requires_grad_()
    y = fn(*ops)
    t = next(name(a) for a in x if name(a) in FLOATS)
    if seed is None:
        seed = to(RNG.integers(1, 5, size=tuple(y.shape)) * 0.5, t)
    y.backward(torch.tensor(seed.astype(np.float64)))
    grads = [
        to(o.grad.numpy() if o.grad is not None else np.zeros(o.shape), name(a))
        for o, a in zip(ops, x)
        if o.requires_grad
    ]
    case(f, x, grads, p, g=[seed], zero=False, **how)


def specials(t):
    i = finfo(t)
    big, tiny, sub = float(i.max), float(i.smallest_normal), float(i.smallest_subnormal)
    v = [
        0.0,
        -0.0,
        1,
        -1,
        NAN,
        INF,
        -INF,
        big,
        -big,
        tiny,
        -tiny,
        sub,
        -sub,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        -2.5,
        3,
        -3,
        0.1,
        -0.1,
        0.7,
        -0.69,
        1.25,
        1e-4,
        -1e-4,
        10.3,
        -20,
        -15,
        60,
        -60,
        100.25,
        1000,
        4.2,
        -5.5,
    ]
    return to(np.array(v), t)


def smooth(t, n=23):
    """Numbers where functions have gradients, without ties."""
    return to(
        np.array(
            [
                0.3,
                -0.7,
                1.9,
                -2.3,
                5.1,
                0.05,
                -8.0,
                3.3,
                -0.01,
                12.0,
                -15.0,
                0.9,
                1.1,
                -1.3,
                2.7,
                7.3,
                -4.4,
                0.6,
                -0.2,
                1e-3,
                20.5,
                -25.0,
                0.11,
            ][:n]
        ),
        t,
    )


def ulps(t, f32, f64, half=1):
    return {"f32": f32, "f64": f64}.get(t, half)


# ---- functions of one operand --------------------

SQRT_HALF = math.sqrt(0.5)
# f: (PyTorch, NumPy or None, ulp of f32 and f64)
UNARY = {
    "neg": (torch.neg, np.negative, 0, 0),
    "abs": (torch.abs, np.abs, 0, 0),
    "exp": (torch.exp, np.exp, 2, 4),
    "exp2": (torch.exp2, np.exp2, 2, 4),
    "log": (torch.log, np.log, 2, 4),
    "log2": (torch.log2, np.log2, 2, 4),
    "sin": (torch.sin, np.sin, 2, 4),
    "cos": (torch.cos, np.cos, 2, 4),
    "tanh": (torch.tanh, np.tanh, 2, 4),
    "erf": (torch.erf, None, 2, 4),
    "sqrt": (torch.sqrt, np.sqrt, 0, 0),
    "rsqrt": (torch.rsqrt, None, 2, 4),
    "floor": (torch.floor, np.floor, 0, 0),
    "ceil": (torch.ceil, np.ceil, 0, 0),
    "trunc": (torch.trunc, np.trunc, 0, 0),
    "round": (torch.round, np.round, 0, 0),
    "log1p": (torch.log1p, np.log1p, 3, 5),
    "expm1": (torch.expm1, np.expm1, 3, 5),
    "erfc": (torch.special.erfc, None, 4, 8),
    "relu": (torch.relu, None, 0, 0),
    "sigmoid": (torch.sigmoid, None, 4, 6),
    "silu": (F.silu, None, 5, 8),
    "softplus": (
        lambda x: torch.logaddexp(x, torch.zeros_like(x)),
        lambda x: np.logaddexp(x, 0 * x.dtype.type(0)),
        4,
        6,
    ),
    "log_sigmoid": (F.logsigmoid, lambda x: -np.logaddexp(-x, x.dtype.type(0)), 4, 6),
    "gelu": (F.gelu, None, 6, 8),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), None, 6, 8),
    "sign": (torch.sign, None, 0, 0),
    "detach": (torch.detach, None, 0, 0),
    "as_float": (lambda x: x, None, 0, 0),
    "zeros_like": (torch.zeros_like, np.zeros_like, 0, 0),
}
# These cancel in the tail, as PyTorch's own do in the type's precision: error relative to 1.
TAILS = {"gelu": 4.0, "gelu_tanh": 4.0, "sigmoid": 0.0}


def unary():
    eps = {t: float(finfo(t).eps) for t in FLOATS}
    for f, (fn, other, of32, of64) in UNARY.items():
        for t in FLOATS:
            x = specials(t)
            if f == "gelu_tanh":
                # The cube of the greatest number overflows, in PyTorch as well.
                x = x[~(np.abs(x.astype(np.float64)) > 1e4) | np.isinf(x.astype(np.float64))]
            # PyTorch's root of a double is one unit off at times.
            y = to(np.sqrt(x.astype(np.float64)) if f == "sqrt" else fn(wide(x)).numpy(), t)
            if other is not None and t in ("f32", "f64"):
                z = other(x).astype(np.float64)
                w = y.astype(np.float64)
                near = (
                    (w == z)
                    | (np.isnan(w) & np.isnan(z))
                    | (np.abs(w - z) <= 1e-5 * np.abs(w) + float(finfo(t).smallest_normal))
                )
                assert near.all(), (f, t, x[~near], w[~near], z[~near])
            tol = TAILS.get(f, 0.0) * max(eps[t], eps["f32"] if t != "f64" else 0.0)
            case(f, [x], [y], ulp=ulps(t, of32, of64, 1 if of32 else 0), tol=tol, zero=f != "relu")
    for f in ["floor", "ceil", "trunc", "round"]:
        for t in INTS:
            x = np.array([0, 1, 7, np.iinfo(NP[t]).max, np.iinfo(NP[t]).min], NP[t])
            assert {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.round}[f](x).dtype == x.dtype
            case(f, [x], [x])
    for f, fn in [("neg", np.negative), ("abs", np.abs), ("sign", np.sign), ("not", np.invert)]:
        for t in INTS:
            x = ints(t)
            case(f, [x], [fn(x).astype(x.dtype)])
    x = np.array([True, False])
    case("not", [x], [~x])
    case("sign", [x], [np.array([True, False])])
    # Integers become f32.
    for f in ["exp", "sqrt", "sigmoid", "as_float"]:
        for t in ["bool", "u8", "i32", "i64"]:
            x = np.array([0, 1, 1], NP[t])
            assert f == "as_float" or getattr(torch, f)(torch.tensor(x)).dtype == torch.float32
            forward(f, lambda v: UNARY[f][0](v.double()), [x], "f32", ulp=2)
    # Extents: none, one, a prime; several dimensions.
    for dims in [(0,), (1,), (13,), (2, 0, 3), (3, 5)]:
        x = RNG.standard_normal(dims).astype(np.float32)
        forward("exp", torch.exp, [x], "f32", ulp=2)
    for f, (fn, _, of32, of64) in UNARY.items():
        if f in ("floor", "ceil", "trunc", "round", "sign", "detach", "as_float", "zeros_like"):
            continue
        for t in ["f32", "f64"]:
            x = smooth(t)
            if f in ("log", "log2", "sqrt", "rsqrt"):
                x = np.abs(x)
            if f == "log1p":
                x = x[x > -1]
            loose = 16 * (float(finfo(t).eps))
            # PyTorch's own loses the tail of the first; the second has the error of a rounded x^2.
            fn = {"expm1": torch.exp}.get(f, fn)
            ulp = {"erfc": 512, "erf": 512}.get(f, 16)
            gradient(f, fn, [x], ulp=ulp, tol=loose if f not in ("erfc", "expm1", "exp", "softplus") else 0.0)
    for f in ["floor", "ceil", "trunc", "round", "sign"]:
        gradient(f, UNARY[f][0], [smooth("f32")])
    for t in ["f16", "bf16"]:
        for f in ["relu", "sigmoid", "softplus", "log1p", "gelu"]:
            x = smooth(t)[:8]
            x = x[x.astype(np.float64) > -1] if f == "log1p" else x
            gradient(f, UNARY[f][0], [x], ulp=3, tol=0.02 if t == "bf16" else 0.002)


def ints(t):
    i = np.iinfo(NP[t])
    v = [0, 1, 2, 3, 7, 100, i.max, i.max - 1, i.min, i.min + 1]
    if i.min < 0:
        v += [-1, -2, -7, -100]
    return np.array(v, NP[t])


# ---- functions of two operands --------------------


def pairs(v):
    return [v.reshape(-1, 1), v.reshape(1, -1)]


def pair_specials(t):
    i = finfo(t)
    v = [
        0.0,
        -0.0,
        1,
        -1,
        NAN,
        INF,
        -INF,
        float(i.max),
        float(i.smallest_normal),
        float(i.smallest_subnormal),
        0.5,
        -2.5,
        3,
        -7,
        0.1,
    ]
    return to(np.array(v), t)


COMPARE = {
    "eq_": np.equal,
    "ne_": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def binary():
    table = {
        "add_": (torch.add, np.add),
        "sub_": (torch.sub, np.subtract),
        "mul_": (torch.mul, np.multiply),
        "div_": (torch.div, np.divide),
        "floor_div": (torch.floor_divide, np.floor_divide),
        "rem_": (torch.remainder, np.remainder),
        "fmod": (torch.fmod, np.fmod),
        "minimum": (torch.minimum, np.minimum),
        "maximum": (torch.maximum, np.maximum),
        "fmin": (torch.fmin, np.fmin),
        "fmax": (torch.fmax, np.fmax),
        "logaddexp": (torch.logaddexp, np.logaddexp),
        "xlogy": (torch.xlogy, None),
    }
    for f, (fn, other) in table.items():
        for t in FLOATS:
            x = pairs(pair_specials(t))
            y = to(fn(*[wide(a) for a in x]).numpy(), t)
            if other is not None:
                z = to(other(*[a.astype(np.float64) for a in x]), t).astype(np.float64)
                w = y.astype(np.float64)
                near = (w == z) | (np.isnan(w) & np.isnan(z)) | (np.abs(w - z) <= 1e-12 * np.abs(w))
                assert near.all(), (f, t, w[~near], z[~near])
                if f == "rem_":
                    # The two differ in the sign of a zero; NumPy's has the divisor's.
                    y = to(other(*[a.astype(np.float64) for a in x]), t)
            zero = f not in ("minimum", "maximum", "fmin", "fmax", "logaddexp")
            ulp = {"floor_div": 1, "logaddexp": ulps(t, 3, 6), "xlogy": ulps(t, 3, 5, 2)}.get(f, 0)
            case(f, x, [y], zero=zero, ulp=ulp)
    for f, fn in COMPARE.items():
        for t in FLOATS:
            x = pairs(pair_specials(t))
            case(f, x, [fn(*[a.astype(np.float64) for a in x])])
        for t in INTS + ["bool"]:
            v = np.array([True, False]) if t == "bool" else ints(t)
            if t != "bool" or f in ("eq_", "ne_"):
                case(f, pairs(v), [fn(*pairs(v))])
        for a, b in [("u64", "i64"), ("i32", "u64"), ("u8", "i8"), ("u32", "i32"), ("i64", "u32")]:
            x = [ints(a).reshape(-1, 1), ints(b).reshape(1, -1)]
            y = [[bool(fn(int(p), int(q))) for q in x[1].ravel()] for p in x[0].ravel()]
            case(f, x, [np.array(y)])
    for f, fn in [
        ("add_", np.add),
        ("sub_", np.subtract),
        ("mul_", np.multiply),
        ("minimum", np.minimum),
        ("maximum", np.maximum),
        ("and", np.bitwise_and),
        ("or", np.bitwise_or),
        ("xor", np.bitwise_xor),
        ("floor_div", np.floor_divide),
        ("rem_", np.remainder),
        ("fmod", np.fmod),
        ("shl", np.left_shift),
        ("shr", np.right_shift),
        ("mul_hi", None),
    ]:
        for t in INTS:
            x, y = pairs(ints(t))
            if f in ("rem_", "fmod"):
                y = y[y != 0].reshape(1, -1)
            if f in ("shl", "shr"):
                y = np.arange(8, dtype=NP[t]).reshape(1, -1)
            if f == "mul_hi":
                bits = np.iinfo(NP[t]).bits
                z = [[(int(p) * int(q)) >> bits for q in y.ravel()] for p in x.ravel()]
                z = np.array(z, dtype=object).astype(NP[t])
            else:
                z = fn(x, y)
            assert z.dtype == x.dtype
            case(f, [x, y], [z])
    truth = pairs(np.array([True, False]))
    for f, fn in [
        ("add_", np.add),
        ("mul_", np.multiply),
        ("and", np.bitwise_and),
        ("or", np.bitwise_or),
        ("xor", np.bitwise_xor),
        ("minimum", np.minimum),
        ("maximum", np.maximum),
    ]:
        case(f, truth, [fn(*truth)])
    for t in ["i8", "i32", "u8", "bool"]:
        x = [np.array([1, 0], NP[t]), np.array([0, 1], NP[t])]
        assert (torch.tensor(x[0]) / torch.tensor(x[1])).dtype == torch.float32
        forward("div_", lambda a, b: a.double() / b.double(), x, "f32")


def binary_gradients():
    table = {
        "add_": torch.add,
        "sub_": torch.sub,
        "mul_": torch.mul,
        "div_": torch.div,
        "rem_": torch.remainder,
        "fmod": torch.fmod,
        "minimum": torch.minimum,
        "maximum": torch.maximum,
        "fmin": torch.fmin,
        "fmax": torch.fmax,
        "logaddexp": torch.logaddexp,
        "xlogy": torch.xlogy,
        "mse_loss": F.mse_loss,
    }
    for f, fn in table.items():
        for t in ["f32", "f64"]:
            x, y = smooth(t, 11), smooth(t, 22)[11:]
            if f in ("xlogy",):
                x, y = np.abs(x), np.abs(y)
            gradient(f, fn, [x, y], ulp=16)
            if f != "mse_loss":
                # Broadcast operands: gradients are summed.
                gradient(f, fn, [x[:5].reshape(5, 1), y[:3]], ulp=16, tol=32 * float(finfo(t).eps))
    for f in ["minimum", "maximum"]:
        x = to(np.array([NAN, 1.0, NAN, 2.0]), "f32")
        y = to(np.array([1.0, NAN, NAN, 2.0]), "f32")
        gradient(f, table[f], [x, y])
    # Of NaN and a number the number has the gradient.
    for f in ["fmin", "fmax"]:
        gradient(f, table[f], [to(np.array([NAN, 1.0, NAN]), "f32"), to(np.array([1.0, NAN, NAN]), "f32")])
    gradient(
        "floor_div",
        lambda a, b: torch.floor_divide(a.detach(), b.detach()) + 0 * (a + b),
        [smooth("f32", 5), smooth("f32", 10)[5:]],
    )


def promoted(a, b):
    """The type of a sum as documented; PyTorch's where it has both types, NumPy's for other integers."""
    if a == b:
        return a
    if a in TORCH and b in TORCH:
        return BACK[torch.promote_types(TORCH[a], TORCH[b])]
    for p, q in [(a, b), (b, a)]:
        if p in FLOATS:
            return p
        if p == "bool":
            return q
    if "u64" in (a, b) and (a[0] == "i" or b[0] == "i"):
        return "i64"
    return NAME[np.promote_types(NP[a], NP[b])]


def promotion():
    x = [np.array([1, 0, 1], v) for v in NP.values()]
    y = [
        (
            to(a.astype(np.int64) + b.astype(np.int64), promoted(name(a), name(b)))
            if (name(a), name(b)) != ("bool", "bool")
            else a | b
        )
        for a in x
        for b in x
    ]
    case("sums of all pairs", x, y)
    y = []
    for a in x:
        t = name(a)
        y += [
            to(a.astype(np.int64) + 2, "i64" if t == "bool" else t),
            to(a.astype(np.float64) * 2.5, t if t in FLOATS else "f32"),
            to(a.astype(np.float64) * 2.0, t if t in FLOATS else "f32"),
        ]
        if t in TORCH:
            v = torch.tensor(a.astype(np.float64)).to(TORCH[t])
            assert [BACK[(v + 2).dtype], BACK[(v * 2.5).dtype], BACK[(v * 2.0).dtype]] == [name(b) for b in y[-3:]]
    case("numbers beside all types", x, y)
    x = np.array([0, 3, 255], np.uint8)
    case("numbers out of range", [x], [x < 300, x > -1, x == 256, np.clip(x, -1, 200)])
    # Every type to every other, where all agree: in range, or wrapping from integer to integer.
    values = np.array([0, 1, 3, 100])
    x = [to(values.astype(np.float64), t) if t in FLOATS else values.astype(NP[t]) for t in NP]
    case(
        "casts to all types",
        x,
        [to(a.astype(np.float64), b) if b in FLOATS else a.astype(NP[b]) for a in x for b in NP],
    )
    x = [ints("i64"), ints("u64"), ints("i32"), ints("u8")]
    t = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
    case("integers to integers", x, [a.astype(NP[b]) for a in x for b in t])
    x = np.array([0.0, -0.0, NAN, 0.5, INF, -1.0])
    for t in FLOATS:
        case("cast", [to(x, t)], [to(x, t).astype(np.float64) != 0], ["bool"])
        for b in FLOATS:
            case("cast", [specials(t)], [to(specials(t).astype(np.float64), b)], [b])


# ---- choices --------------------


def choices():
    c = np.array([True, False, True]).reshape(3, 1)
    for t in NP:
        x = np.array([1, 0, 1, 1, 0], NP[t])
        y = np.array([[0], [1], [1]], NP[t])
        case("where_", [c, x, y], [np.where(c, x, y)])
    x = specials("f32")[:35].reshape(5, 7)
    m = RNG.random((5, 7)) < 0.5
    case("masked_fill", [x, m], [np.where(m, np.float32(2.5), x)], [2.5])
    case("masked_fill", [x, m], [np.where(m, np.float32(-INF), x)], [-INF])
    case(
        "masked_fill",
        [np.arange(35).reshape(5, 7).astype(np.int32), m],
        [np.where(m, np.int32(2), np.arange(35).reshape(5, 7).astype(np.int32))],
        [2.5],
    )
    gradient("where_", torch.where, [c, smooth("f32", 5), smooth("f32", 8)[5:].reshape(3, 1)])
    gradient("masked_fill", lambda a, b: a.masked_fill(b, 2.5), [smooth("f32", 20).reshape(4, 5), m[:4, :5]], [2.5])
    v = pair_specials("f32")
    x, lo, hi = v.reshape(-1, 1, 1), v[2:9].reshape(1, -1, 1), v[6:].reshape(1, 1, -1)
    for t in ["f32", "f64", "f16", "bf16"]:
        ops = [to(a.astype(np.float64), t) for a in (x, lo, hi)]
        y = to(torch.clamp(wide(ops[0]), wide(ops[1]), wide(ops[2])).numpy(), t)
        z = np.clip(ops[0].astype(np.float64), ops[1].astype(np.float64), ops[2].astype(np.float64))
        assert ((y.astype(np.float64) == z) | (np.isnan(z) & np.isnan(y.astype(np.float64)))).all()
        case("clamp", ops, [y], zero=False)
    for t in INTS:
        x = ints(t)
        lo, hi = (2, 60) if t[0] == "u" else (-5, 60)
        case("clamp to integers", [x], [np.clip(x, NP[t](lo), NP[t](hi))], [lo, hi])
        case(
            "clamp to integers",
            [x],
            [
                np.clip(
                    x,
                    -(2**40) if t in ("i64", "u64") and t != "u64" else NP[t](np.iinfo(NP[t]).min),
                    NP[t](min(2**40, np.iinfo(NP[t]).max)),
                )
            ],
            [-(2**40), 2**40],
        )
    case(
        "clamp to floats",
        [ints("i32")],
        [np.clip(ints("i32").astype(np.float32), np.float32(0.5), np.float32(2.5))],
        [0.5, 2.5],
    )
    for p in [(5.0, 1.0), (NAN, 1.0), (0.0, NAN), (-INF, INF), (0.0, 6.0)]:
        forward("clamp to floats", lambda a: torch.clamp(a, *p), [specials("f32")], "f32", p, zero=False)
    gradient("clamp to floats", lambda a: torch.clamp(a, -1.0, 4.0), [smooth("f32")], [-1.0, 4.0])
    b = [
        smooth("f64", 6),
        to(np.array([-1.0, 0.0, 2.0, 3.0, 0.0, -1.0]), "f64"),
        to(np.array([1.0, 1.0, 3.0, 1.0, 4.0, 1.0]), "f64"),
    ]
    gradient("clamp", lambda a, l, h: torch.minimum(torch.maximum(a, l), h), b)


# ---- reductions and scans --------------------


def reductions():
    table = {
        "sum": (lambda a, d: a.sum(d), np.sum),
        "prod": (lambda a, d: torch.tensor(np.prod(a.numpy(), axis=tuple(d))), np.prod),
        "max": (lambda a, d: a.amax(d), np.max),
        "min": (lambda a, d: a.amin(d), np.min),
    }
    axes = [[0], [1], [2], [0, 2], [0, 1, 2]]
    for f, (fn, other) in table.items():
        for t in FLOATS:
            x = to(RNG.standard_normal((3, 5, 7)) * (1 if f != "prod" else 1.5), t)
            for d in axes:
                size = float(np.abs(x.astype(np.float64)).sum(tuple(d)).max()) if f == "sum" else 0.0
                tol = size * float(finfo("f32" if t != "f64" else t).eps) * 4
                forward(
                    f,
                    lambda a: fn(a, d),
                    [x],
                    t,
                    d,
                    ulp={"sum": 1, "prod": 64 if t in ("f32", "f64") else 1}.get(f, 0),
                    tol=tol,
                )
            s = specials(t)
            for v in [s[[2, 4, 7]], s[[5, 2, 3]], s[[6, 2]], s[[5, 6]], s[[0, 1]], s[[1, 1]], s[[11]]]:
                forward(
                    f,
                    lambda a: fn(a, [0]),
                    [v.reshape(-1, 1)],
                    t,
                    [0],
                    zero=f == "prod" or (v != 0).any(),
                    ulp=1 if f != "max" else 0,
                )
        for t in INTS + ["bool"]:
            x = np.array([True, False, True, True, False, True]) if t == "bool" else ints(t)[:10]
            x = x.reshape(2, -1)
            for d in [[0], [1], [0, 1]]:
                out = x.dtype if f in ("max", "min") else (np.uint64 if t[0] == "u" else np.int64)
                y = other(x, axis=tuple(d))
                assert y.dtype == out, (f, t, y.dtype)
                case(f, [x], [np.asarray(y)], d)
    for t in FLOATS:
        for f, y in [("sum", 0.0), ("prod", 1.0)]:
            case(f, [to(np.zeros((0, 3)), t)], [to(np.full(3, y), t)], [0])
            case(f, [to(np.zeros((2, 0)), t)], [to(np.full(2, y), t)], [1])
        case("mean", [to(np.zeros((2, 0)), t)], [to(np.full(2, NAN), t)], [1])
    for f, fn in [("any", np.any), ("all", np.all)]:
        for t in NP:
            x = np.array([[0, 1, 0], [0, 0, 0], [1, 1, 1]], NP[t])
            for d in [[0], [1], [0, 1]]:
                case(f, [x], [np.asarray(fn(x.astype(bool), axis=tuple(d)))], d)
        case(f, [np.zeros((2, 0), np.float32)], [fn(np.zeros((2, 0)), axis=1)], [1])
        case(f, [np.array([NAN, 0.0], np.float32)], [np.asarray(fn(np.array([NAN, 0.0])))], [0])
    for f, fn, gn in [("argmax", np.argmax, torch.argmax), ("argmin", np.argmin, torch.argmin)]:
        for t in FLOATS + INTS:
            x = (
                pair_specials(t)[[2, 7, 2, 7, 3, 6, 3, 6, 0, 1, 12, 13]]
                if t in FLOATS
                else np.tile(ints(t)[[1, 6, 1, 6, 8, 0]], 2)
            )
            x = x.reshape(3, 4)
            for d in [0, 1]:
                y = fn(x.astype(np.float64) if t in FLOATS else x, axis=d)
                case(f, [x], [y.astype(np.int32)], [d])
        x = np.array([1.0, NAN, 3.0, NAN], np.float32)
        assert fn(x) == int(gn(torch.tensor(x)))
        case(f, [x], [np.asarray(fn(x, axis=0)).astype(np.int32)], [0])
    for op, fn in [
        ("sum", np.add),
        ("prod", np.multiply),
        ("max", np.maximum),
        ("min", np.minimum),
        ("and", np.bitwise_and),
        ("or", np.bitwise_or),
        ("xor", np.bitwise_xor),
    ]:
        x = ints("i8")[:12].reshape(3, 4)
        case("reduce_strict", [x], [fn.reduce(x, axis=0, dtype=np.int8)], [op, 0])
    moments()
    scans()
    reduction_gradients()


def moments():
    for t in FLOATS:
        x = to(RNG.standard_normal((5, 7)) + 0.5, t)
        eps = float(finfo("f32" if t != "f64" else t).eps)
        for d in [[0], [1], [0, 1]]:
            forward("mean", lambda a: a.mean(d), [x], t, d, ulp=1, tol=8 * eps)
            forward("norm", lambda a: torch.linalg.vector_norm(a, dim=d), [x], t, d, ulp=ulps(t, 4, 4))
            for c in [0, 1]:
                forward("var", lambda a: a.var(d, correction=c), [x], t, [c] + d, ulp=ulps(t, 8, 8))
                forward("std", lambda a: a.std(d, correction=c), [x], t, [c] + d, ulp=ulps(t, 8, 8))
    for n, c in [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2), (2, 3)]:
        x = np.arange(1, n + 1).astype(np.float32)
        a, b = torch.tensor(x).double().var(0, correction=c), np.var(x.astype(np.float64), ddof=c)
        assert float(a) == float(b) or (math.isnan(a) and math.isnan(b)), (n, c, a, b)
        forward("var", lambda v: v.var(0, correction=c), [x], "f32", [c, 0])
        forward("std", lambda v: v.std(0, correction=c), [x], "f32", [c, 0])
    for v in [[1.0, NAN], [INF, 1.0]]:
        x = np.array(v, np.float32)
        forward("var", lambda a: a.var(0, correction=0), [x], "f32", [0, 0])
        forward("mean", lambda a: a.mean(0), [x], "f32", [0])
        forward("norm", lambda a: torch.linalg.vector_norm(a, dim=0), [x], "f32", [0])
    x = np.array([[1, 2, 4], [3, 3, 3]], np.int32)
    forward("mean", lambda a: a.double().mean(1), [x], "f32", [1], ulp=1)
    forward("var", lambda a: a.double().var(1, correction=1), [x], "f32", [1, 1], ulp=2)


def scans():
    for t in FLOATS:
        x = to(RNG.standard_normal((5, 7)), t)
        for d in [0, 1]:
            forward(
                "cumsum",
                lambda a: a.cumsum(d),
                [x],
                t,
                [d],
                ulp=1,
                tol=16 * float(finfo("f32" if t != "f64" else t).eps),
            )
    for t in INTS + ["bool"]:
        x = np.array([1, 0, 1, 1, 1, 1], NP[t]).reshape(2, 3) if t == "bool" else ints(t)[:6].reshape(2, 3)
        out = np.uint64 if t[0] == "u" else np.int64
        for d in [0, 1]:
            case("cumsum", [x], [np.cumsum(x, axis=d, dtype=out)], [d])
    case(
        "cumsum",
        [np.array([1, INF, 1, NAN, 2], np.float32)],
        [np.cumsum(np.array([1, INF, 1, NAN, 2], np.float32))],
        [0],
    )
    case("cumsum", [np.zeros((2, 0), np.float32)], [np.zeros((2, 0), np.float32)], [1])


def reduction_gradients():
    for t in ["f32", "f64"]:
        x = smooth(t, 20).reshape(4, 5)
        eps = float(finfo(t).eps)
        for f, fn in [
            ("sum", lambda a: a.sum([0])),
            ("max", lambda a: a.amax([0])),
            ("min", lambda a: a.amin([0])),
            ("prod", lambda a: a.prod(0)),
            ("mean", lambda a: a.mean([0])),
            ("norm", lambda a: torch.linalg.vector_norm(a, dim=[0])),
        ]:
            gradient(f, fn, [x], [0], ulp=16, tol=8 * eps)
        for c in [0, 1]:
            gradient("var", lambda a: a.var(0, correction=c), [x], [c, 0], ulp=32, tol=64 * eps)
            gradient("std", lambda a: a.std(0, correction=c), [x], [c, 0], ulp=32, tol=64 * eps)
        gradient("cumsum", lambda a: a.cumsum(1), [x], [1], ulp=4)
    # Ties share evenly; a zero takes the whole gradient of a product, two leave none.
    x = np.array([[2, 1, 2], [0, 0, 0], [-1, 3, 3]], np.float32)
    for f, fn in [("max", lambda a: a.amax(1)), ("min", lambda a: a.amin(1))]:
        gradient(f, fn, [x], [1])
    x = np.array([[2, 0, 3], [0, 0, 5], [1, 2, 4]], np.float32)
    gradient("prod", lambda a: a.prod(1), [x], [1])


# ---- rows --------------------


def rows():
    for t in FLOATS:
        x = to(RNG.standard_normal((5, 7)) * 3, t)
        eps = float(finfo("f32" if t != "f64" else t).eps)
        for d in [0, 1]:
            forward("softmax", lambda a: a.softmax(d), [x], t, [d], ulp=ulps(t, 8, 12))
            forward("log_softmax", lambda a: a.log_softmax(d), [x], t, [d], ulp=ulps(t, 4, 6), tol=8 * eps)
            forward("logsumexp", lambda a: a.logsumexp(d), [x], t, [d], ulp=ulps(t, 4, 6), tol=4 * eps)
        w, b = to(RNG.standard_normal(7), t), to(RNG.standard_normal(7), t)
        forward(
            "layer_norm", lambda a, p, q: F.layer_norm(a, [7], p, q, 1e-5), [x, w, b], t, [1e-5], ulp=2, tol=32 * eps
        )
        forward("layer_norm", lambda a: F.layer_norm(a, [7], eps=1e-5), [x], t, [1e-5], ulp=2, tol=32 * eps)
        forward("rms_norm", lambda a, p: F.rms_norm(a, [7], p, 1e-5), [x, w], t, [1e-5], ulp=2, tol=32 * eps)
    v = np.array([[INF, 1, 2], [-INF, 1, 2], [-INF, -INF, -INF], [NAN, 1, 2], [1000, 1, -1000], [0, 0, 0]], np.float32)
    for f in ["softmax", "log_softmax", "logsumexp"]:
        forward(f, lambda a: getattr(a, f)(1), [v], "f32", [1], ulp=4)
        forward(f, lambda a: getattr(a, f)(1), [np.zeros((2, 0), np.float32)], "f32", [1])
        forward(f, lambda a: getattr(a, f)(0), [np.zeros((0, 2), np.float32)], "f32", [0])
        forward(f, lambda a: getattr(a, f)(1), [np.zeros((3, 1), np.float32)], "f32", [1])
        for t in ["f32", "f64"]:
            x = smooth(t, 20).reshape(4, 5)
            gradient(f, lambda a: getattr(a, f)(1), [x], [1], ulp=64, tol=32 * float(finfo(t).eps))
    for t in ["f32", "f64"]:
        x, w, b = smooth(t, 20).reshape(4, 5), smooth(t, 5), smooth(t, 10)[5:]
        tol = 512 * float(finfo(t).eps)
        gradient("layer_norm", lambda a, p, q: F.layer_norm(a, [5], p, q, 1e-5), [x, w, b], [1e-5], ulp=64, tol=tol)
        gradient("rms_norm", lambda a, p: F.rms_norm(a, [5], p, 1e-5), [x, w], [1e-5], ulp=64, tol=tol)


# ---- products, look-ups, losses --------------------


def products():
    shapes = [
        ((3, 5), (5, 2)),
        ((5,), (5, 2)),
        ((3, 5), (5,)),
        ((5,), (5,)),
        ((2, 3, 5), (5, 2)),
        ((2, 1, 3, 5), (4, 5, 2)),
        ((3, 0), (0, 2)),
        ((1, 1), (1, 1)),
    ]
    for t in FLOATS:
        for a, b in shapes if t == "f32" else shapes[:2]:
            x, y = to(RNG.standard_normal(a), t), to(RNG.standard_normal(b), t)
            forward("matmul", torch.matmul, [x, y], t, ulp=1, tol=32 * float(finfo("f32" if t != "f64" else t).eps))
    for t in INTS:
        x, y = RNG.integers(0, 120, (3, 5)).astype(NP[t]), RNG.integers(0, 120, (5, 2)).astype(NP[t])
        case("matmul", [x, y], [x @ y])
    x, w, b = [RNG.standard_normal(d).astype(np.float32) for d in [(3, 5), (2, 5), (2,)]]
    tol = 32 * float(finfo("f32").eps)
    forward("linear", F.linear, [x, w, b], "f32", ulp=4, tol=tol)
    forward("linear", F.linear, [x, w], "f32", ulp=4, tol=tol)
    gradient("linear", F.linear, [x, w, b], ulp=8, tol=tol)
    gradient("matmul", torch.matmul, [x, w.T.copy()], ulp=8, tol=tol)
    q, k, v = [RNG.standard_normal(d).astype(np.float32) for d in [(2, 3, 4), (2, 5, 4), (2, 5, 4)]]
    m = RNG.random((3, 5)) < 0.7
    m[:, 0] = True
    add = RNG.standard_normal((3, 5)).astype(np.float32)
    attention = F.scaled_dot_product_attention
    forward("attention", attention, [q, k, v], "f32", [False], ulp=8, tol=4 * tol)
    forward("attention", attention, [q, k, v, m], "f32", [False], ulp=8, tol=4 * tol)
    forward("attention", attention, [q, k, v, add], "f32", [False], ulp=8, tol=4 * tol)
    forward(
        "attention",
        lambda a, b, c: attention(a, b, c, is_causal=True),
        [q, k[:, :3].copy(), v[:, :3].copy()],
        "f32",
        [True],
        ulp=8,
        tol=4 * tol,
    )
    gradient("attention", attention, [q, k, v], [False], ulp=16, tol=8 * tol)


def look_ups():
    for t in NP:
        table = to(RNG.integers(0, 2 if t == "bool" else 50, (4, 3)), t)
        for i in INTS if t == "f32" else ["i32", "i64"]:
            at = np.array([[0, 3], [2, 2]], NP[i])
            case("gather_rows", [table, at], [table[at.astype(np.int64)]])
            case("embedding", [table, at], [table[at.astype(np.int64)]])
            if t != "bool":
                u, at = to(RNG.integers(0, 9, (5, 2)), t), np.array([0, 3, 3, 1, 0], NP[i])
                y = np.zeros((4, 2))
                np.add.at(y, at.astype(np.int64), u.astype(np.float64))
                case("scatter_add", [u, at], [to(y, t) if t in FLOATS else y.astype(np.int64).astype(NP[t])], [4])
    at = np.array([0, 2, 2], np.int32)
    gradient("embedding", lambda a, i: F.embedding(i, a), [smooth("f32", 12).reshape(4, 3), at])
    gradient("gather_rows", lambda a, i: a[i.long()], [smooth("f32", 12).reshape(4, 3), at])
    gradient(
        "scatter_add",
        lambda u, i: torch.zeros(4, 2, dtype=u.dtype).index_add(0, i.long(), u),
        [smooth("f32", 6).reshape(3, 2), at],
        [4],
    )
    for t in INTS:
        x = np.array([[0, 1], [4, 100]], NP[t])
        (
            case("one_hot", [x], [F.one_hot(torch.tensor(x.astype(np.int64)), 300).numpy()[..., :]], [300])
            if t in ("u8", "i8")
            else case("one_hot", [x % 5], [F.one_hot(torch.tensor((x % 5).astype(np.int64)), 5).numpy()], [5])
        )


def losses():
    for t in FLOATS:
        x = to(RNG.standard_normal((4, 7)) * 2, t)
        out = "f64" if t == "f64" else "f32"
        eps = float(finfo(out).eps)
        for i in INTS if t == "f32" else ["i64"]:
            targets = [np.array([0, 6, 3, 3], NP[i])] + ([np.array([0, -100, 3, -100], NP[i])] if i[0] == "i" else [])
            for y in targets:
                for r in ["mean", "sum", "none"]:
                    forward(
                        "cross_entropy",
                        lambda a, b: F.cross_entropy(a, b.long(), reduction=r),
                        [x, y],
                        out,
                        [r, -100],
                        ulp=8,
                        tol=8 * eps,
                    )
        y = np.array([0, 6, 3, 3], np.int64)
        forward(
            "cross_entropy",
            lambda a, b: F.cross_entropy(a, b, ignore_index=3),
            [x, y],
            out,
            ["mean", 3],
            ulp=8,
            tol=8 * eps,
        )
    x, y = smooth("f32", 20).reshape(4, 5), np.array([0, -100, 3, 4], np.int64)
    for r in ["mean", "sum", "none"]:
        gradient(
            "cross_entropy",
            lambda a, b: F.cross_entropy(a, b, reduction=r),
            [x, y],
            [r, -100],
            ulp=32,
            tol=16 * float(finfo("f32").eps),
        )
    forward(
        "cross_entropy",
        lambda a, b: F.cross_entropy(a, b),
        [np.zeros((2, 3), np.float32), np.array([-100, -100])],
        "f32",
        ["mean", -100],
    )
    for t in ["f32", "f64"]:
        forward("mse_loss", F.mse_loss, [smooth(t, 10), smooth(t, 20)[10:]], t, ulp=8)
    case("mse_loss", [np.zeros((0, 2), np.float32)] * 2, [np.asarray(np.float32(NAN))])


# ---- shapes, making --------------------


def shapes():
    for t in NP:
        x = to(RNG.integers(0, 2 if t == "bool" else 100, (2, 3, 5)), t)
        case("reshape", [x], [x.reshape(5, 6)], [5, 6])
        case("permute", [x], [x.transpose(2, 0, 1)], [2, 0, 1])
        case("transpose", [x], [x.swapaxes(1, 2)])
        case("unsqueeze", [x], [x[:, None]], [1])
        case("narrow", [x], [torch.tensor(x.astype(np.float64)).narrow(2, 1, 3).numpy().astype(x.dtype)], [2, 1, 3])
        case("slice_axis", [x], [x[:, 1:3]], [1, 1, 3])
        case("slice", [x], [x[0:2, 1:3, 0:5:2]], [0, 1, 0, 2, 3, 5, 1, 1, 2])
        case("pad", [x], [np.pad(x, [(0, 1), (2, 0), (1, 1)], constant_values=to(1, t))], [0, 2, 1, 1, 0, 1, 1.0])
        case("cat", [x, x[:, :1]], [np.concatenate([x, x[:, :1]], 1)], [1])
        case("broadcast_to", [x[:, :1]], [np.broadcast_to(x[:, :1], (4, 2, 3, 5))], [4, 2, 3, 5])
        case("broadcast_in_dim", [x[:, :, 0]], [np.broadcast_to(x[:, None, :, 0], (2, 4, 3))], [3, 2, 4, 3, 0, 2])
        case("full", [], [np.full((2, 3), to(1, t))], [t, 1.0, 2, 3])
        case("zeros", [], [np.zeros((2, 3), NP[t])], [t, 2, 3])
        if t != "bool":
            case("full_int", [], [np.full((2,), to(100, t))], [t, 100, 2])
            case("arange", [], [to(np.arange(11), t)], [t, 11])
            case("iota", [], [to(np.broadcast_to(np.arange(3)[:, None], (2, 3, 4)), t)], [t, 1, 2, 3, 4])
    x = smooth("f32", 12).reshape(3, 4)
    for f, fn, p in [
        ("reshape", lambda a: a.reshape(2, 6), [2, 6]),
        ("permute", lambda a: a.permute(1, 0), [1, 0]),
        ("transpose", lambda a: a.mT, []),
        ("unsqueeze", lambda a: a.unsqueeze(1), [1]),
        ("narrow", lambda a: a.narrow(1, 1, 2), [1, 1, 2]),
        ("slice_axis", lambda a: a[:, 1:3], [1, 1, 3]),
        ("slice", lambda a: a[0:3:2, 1:4], [0, 1, 3, 4, 2, 1]),
        ("pad", lambda a: F.pad(a, (1, 0, 2, 1), value=1.0), [2, 1, 1, 0, 1.0]),
        ("broadcast_to", lambda a: a.broadcast_to(2, 3, 4), [2, 3, 4]),
        ("broadcast_in_dim", lambda a: a[:, None].broadcast_to(3, 2, 4), [3, 3, 2, 4, 0, 2]),
        ("cast", lambda a: a, ["f64"]),
    ]:
        if f == "cast":
            gradient(f, fn, [x], p, seed=to(RNG.integers(1, 5, size=(3, 4)) * 0.5, "f64"))
        else:
            gradient(f, fn, [x], p)
    gradient("cat", lambda a, b: torch.cat([a, b], 1), [x, smooth("f32", 3).reshape(3, 1)], [1])


def philox(counter, key):
    """Philox4x32-10: the first word of the block."""
    c, k = [counter, 0, 0, 0], list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0]


def random_numbers():
    # The known answer of Random123 for zeros.
    assert philox(0, (0, 0)) == 0x6627E8D5
    for key, stream in [(0, 0), (12345, 7), (0xFFFFFFFF, 3)]:
        bits = np.array([philox(i, (key, stream)) for i in range(15)], np.uint32).reshape(3, 5)
        k = np.asarray(np.uint32(key))
        case("bits", [k], [bits], [stream, 3, 5])
        uniform = (bits >> 8).astype(np.float64) / 2**24
        case("uniform", [k], [to(uniform, "f32")], [stream, 3, 5])
        x = np.arange(1, 16).reshape(3, 5).astype(np.float32)
        case("dropout", [x, k], [to(np.where(uniform >= np.float32(0.25), x / 0.75, 0), "f32")], [0.25, stream], ulp=1)


# ---- where Tilewright differs on purpose --------------------


def difference(text, f, x, ours, theirs, p=(), g=None):
    case(f, x, [ours], p, g=g, differs=text, theirs=[theirs])


def differences():
    f32 = lambda *v: np.array(v, np.float32)
    i32 = lambda *v: np.array(v, np.int32)
    x = i32(5, -5)
    difference("integer `% 0` is x", "rem_", [x, i32(0, 0)], x, np.remainder(x, i32(0, 0)))
    difference("`sign(NaN)` is 0", "sign", [f32(NAN)], f32(0), np.sign(f32(NAN)))
    difference(
        "`argmax` and `argmin` are `i32`",
        "argmax",
        [f32(1, 3, 2)],
        np.asarray(np.int32(1)),
        torch.argmax(torch.tensor(f32(1, 3, 2))).numpy(),
        [0],
    )
    difference(
        "`u64` with signed integers is `i64`",
        "add_",
        [np.array([1], np.uint64), np.array([-1], np.int64)],
        np.array([0]),
        np.array([1], np.uint64) + np.array([-1], np.int64),
    )
    difference(
        "floats become integers as by Rust's `as`",
        "cast",
        [f32(300, -1, NAN)],
        np.array([255, 0, 0], np.uint8),
        torch.tensor(f32(300, -1, NAN)).to(torch.uint8).numpy(),
        ["u8"],
    )
    difference("shifts are modulo the width", "shl", [i32(1), i32(32)], i32(1), np.left_shift(i32(1), i32(32)))
    difference(
        "`clamp` has the gradient 0 at its bounds",
        "clamp to floats",
        [f32(0, 1)],
        f32(0, 0),
        f32(1, 1),
        [0.0, 1.0],
        g=[f32(1, 1)],
    )
    a = torch.tensor(f32(2), requires_grad=True)
    torch.fmax(a, torch.tensor(f32(2))).backward(torch.tensor(f32(1)))
    entry = [f32(2), f32(2)]
    case(
        "fmax",
        entry,
        [f32(0.5), f32(0.5)],
        g=[f32(1)],
        differs="equal operands of `fmax` and `fmin` share the gradient",
        theirs=[a.grad.numpy(), f32(0)],
    )
    difference(
        "a row number outside reads NaN or 0",
        "gather_rows",
        [f32(1, 2, 3), i32(-1, 1)],
        f32(NAN, 2),
        f32(1, 2, 3)[i32(-1, 1)],
    )
    m = np.array([[False, False]])
    q, k = f32(1, 1).reshape(1, 2), f32(1, 2, 3, 4).reshape(2, 2)
    y = F.scaled_dot_product_attention(torch.tensor(q), torch.tensor(k), torch.tensor(k), torch.tensor(m))
    theirs = y.numpy()
    if (theirs == 0).all():
        theirs = np.full(
            (1, 2), NAN, np.float32
        )  # Softmax of a row of minus infinity, as written out in its documentation.
    difference("a query that sees no key gives 0", "attention", [q, k, k, m], f32(0, 0).reshape(1, 2), theirs, [False])
    difference(
        "a norm has the gradient 0 at 0",
        "std",
        [f32(1, 1)],
        f32(0, 0),
        f32(NAN, NAN),
        [0, 0],
        g=[np.asarray(np.float32(1))],
    )
    # Of bool tensors NumPy's sign is not defined; both PyTorch and Tilewright leave them.


def main():
    unary()
    binary()
    binary_gradients()
    promotion()
    choices()
    reductions()
    rows()
    products()
    look_ups()
    losses()
    shapes()
    random_numbers()
    differences()
    values = sum(math.prod(y["d"]) for c in cases for y in c["y"])
    head = {
        "numpy": np.__version__,
        "torch": torch.__version__.split("+")[0],
        "ml_dtypes": ml_dtypes.__version__,
        "values": values,
    }
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "values.jsonl")
    with open(path, "w") as f:
        for entry in [head] + cases:
            f.write(json.dumps(entry, separators=(",", ":")) + "\n")
    print(len(cases), "cases,", values, "values,", os.path.getsize(path), "bytes")


main()
