"""Softmax and matrix product in Triton, tuned by its own autotuner, for comparison."""

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, stride, columns, block: tl.constexpr):
    """One row a program, in one tile."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, block)
    inside = at < columns
    v = tl.load(x + row * stride + at, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * stride + at, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty), mask=inside)


softmax_tuned = triton.autotune(
    configs=[triton.Config({}, num_warps=w) for w in (1, 2, 4, 8, 16, 32)], key=["columns", "block"]
)(softmax_kernel)


def softmax(x, y):
    """Writes the softmax of the rows of `x` to `y`."""
    rows, columns = x.shape
    softmax_tuned[(rows,)](x, y, x.stride(0), columns, block=triton.next_power_of_2(columns))


def product_config(bm, bn, bk, num_warps, num_stages):
    return triton.Config({"bm": bm, "bn": bn, "bk": bk}, num_warps=num_warps, num_stages=num_stages)


def _products():
    for sizes in [
        (128, 256, 64, 8, 3),
        (128, 256, 64, 8, 4),
        (256, 128, 64, 8, 3),
        (128, 128, 64, 4, 4),
        (128, 128, 32, 4, 4),
        (128, 64, 64, 4, 4),
        (64, 64, 64, 4, 5),
        (16, 64, 128, 4, 5),
    ]:
        yield product_config(*sizes)


@triton.jit
def matmul_kernel(
    a, b, c, m, n, k, stride_a, stride_b, stride_c, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr
):
    """A tile of `c` a program; eight rows of tiles are walked column by column, so that they share what is cached."""
    group: tl.constexpr = 8
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, bm), tl.cdiv(n, bn)
    in_group = tiles_n * group
    first = pid // in_group * group
    rows = min(tiles_m - first, group)
    m0 = (first + pid % in_group % rows) * bm
    n0 = pid % in_group // rows * bn
    # Rows and columns beyond the end are computed from others and not stored.
    at_m, at_n = m0 + tl.arange(0, bm), n0 + tl.arange(0, bn)
    at_k = tl.arange(0, bk)
    pa = a + (at_m % m)[:, None] * stride_a + at_k[None, :]
    pb = b + at_k[:, None] * stride_b + (at_n % n)[None, :]
    acc = tl.zeros((bm, bn), dtype=tl.float32)
    for done in range(0, k, bk):
        left = k - done
        x = tl.load(pa, mask=at_k[None, :] < left, other=0.0)
        y = tl.load(pb, mask=at_k[:, None] < left, other=0.0)
        acc = tl.dot(x, y, acc)
        pa += bk
        pb += bk * stride_b
    pc = c + at_m.to(tl.int64)[:, None] * stride_c + at_n[None, :]
    tl.store(pc, acc.to(c.dtype.element_ty), mask=(at_m < m)[:, None] & (at_n < n)[None, :])


def matmul_tuned(configs):
    """The kernel with an autotuner of its own over these configurations, which knows nothing yet."""
    return triton.autotune(configs=configs, key=["m", "n", "k"])(matmul_kernel)


matmul_default = matmul_tuned(list(_products()))


def matmul(a, b, c, kernel=matmul_default):
    """Writes the product of `a` and `b`, row-major, to `c`."""
    (m, k), (_, n) = a.shape, b.shape
    kernel[lambda meta: (triton.cdiv(m, meta["bm"]) * triton.cdiv(n, meta["bn"]),)](
        a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0)
    )
