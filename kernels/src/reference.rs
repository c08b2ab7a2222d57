//! What the kernels compute, on the host, in double precision: for tests and for the errors that the examples print.

/// Softmax of each row of `columns` elements.
pub fn softmax(x: &[f64], columns: usize) -> Vec<f64> {
    x.chunks(columns)
        .flat_map(|row| {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let e: Vec<f64> = row.iter().map(|v| (v - top).exp()).collect();
            let total: f64 = e.iter().sum();
            e.into_iter().map(move |v| v / total)
        })
        .collect()
}

/// Layer norm of each row, as long as `weight`.
pub fn layer_norm(x: &[f64], weight: &[f64], bias: &[f64], eps: f64) -> Vec<f64> {
    let n = weight.len();
    x.chunks(n)
        .flat_map(|row| {
            let mean = row.iter().sum::<f64>() / n as f64;
            let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n as f64;
            let scale = 1.0 / (variance + eps).sqrt();
            row.iter().zip(weight).zip(bias).map(move |((v, w), b)| (v - mean) * scale * w + b).collect::<Vec<_>>()
        })
        .collect()
}

/// `a[m, k] b[k, n]`, row-major.
pub fn matmul(a: &[f64], b: &[f64], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        let row = &mut c[i * n..(i + 1) * n];
        for (j, x) in a[i * k..(i + 1) * k].iter().enumerate() {
            for (out, y) in row.iter_mut().zip(&b[j * n..(j + 1) * n]) {
                *out += x * y;
            }
        }
    }
    c
}

/// The extents of attention's operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttentionDims {
    /// Sequences.
    pub batch: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values, of which heads are a multiple.
    pub kv_heads: usize,
    /// Queries of a sequence.
    pub queries: usize,
    /// Keys of a sequence.
    pub keys: usize,
    /// The width of queries and keys.
    pub width: usize,
    /// The width of values.
    pub value_width: usize,
}

/// `softmax(q kᵀ scale + mask) v`, all row-major, and the logarithms of the sums of exponentials. `mask` gives what is added to the
/// score of (batch, head, query, key); minus infinity hides the key. A query that sees nothing gives zeros.
pub fn attention(
    q: &[f64],
    k: &[f64],
    v: &[f64],
    d: AttentionDims,
    scale: f64,
    mask: impl Fn(usize, usize, usize, usize) -> f64,
) -> (Vec<f64>, Vec<f64>) {
    let (mut out, mut lse) = (Vec::new(), Vec::new());
    for (b, h, i) in (0..d.batch).flat_map(|b| (0..d.heads).flat_map(move |h| (0..d.queries).map(move |i| (b, h, i)))) {
        let kv = b * d.kv_heads + h * d.kv_heads / d.heads;
        let q_row = &q[((b * d.heads + h) * d.queries + i) * d.width..][..d.width];
        let scores: Vec<f64> = (0..d.keys)
            .map(|j| {
                let k_row = &k[(kv * d.keys + j) * d.width..][..d.width];
                q_row.iter().zip(k_row).map(|(x, y)| x * y).sum::<f64>() * scale + mask(b, h, i, j)
            })
            .collect();
        // A NaN stays: comparisons with it fail.
        let top = scores.iter().fold(f64::NEG_INFINITY, |m, &s| if s > m || s.is_nan() { s } else { m });
        let origin = if top == f64::NEG_INFINITY { 0.0 } else { top };
        let weights: Vec<f64> = scores.iter().map(|s| (s - origin).exp()).collect();
        let total: f64 = weights.iter().sum();
        lse.push(if total == 0.0 { f64::NEG_INFINITY } else { origin + total.ln() });
        let divisor = if total == 0.0 { 1.0 } else { total };
        for c in 0..d.value_width {
            let sum: f64 = (0..d.keys).map(|j| weights[j] * v[(kv * d.keys + j) * d.value_width + c]).sum();
            out.push(sum / divisor);
        }
    }
    (out, lse)
}

/// The greatest difference, relative to the greatest magnitude expected. NaN where only one of the two is NaN.
pub fn largest_error(got: &[f64], expected: &[f64]) -> f64 {
    let scale = expected.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
    got.iter().zip(expected).fold(0.0, |worst: f64, (g, e)| {
        let error = if g.is_nan() && e.is_nan() { 0.0 } else { (g - e).abs() / scale };
        // `max` would ignore a NaN.
        if error > worst || error.is_nan() { error } else { worst }
    })
}
