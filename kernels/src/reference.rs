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

/// The greatest difference, relative to the greatest magnitude expected. NaN where only one of the two is NaN.
pub fn largest_error(got: &[f64], expected: &[f64]) -> f64 {
    let scale = expected.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
    got.iter().zip(expected).fold(0.0, |worst: f64, (g, e)| {
        let error = if g.is_nan() && e.is_nan() { 0.0 } else { (g - e).abs() / scale };
        // `max` would ignore a NaN.
        if error > worst || error.is_nan() { error } else { worst }
    })
}
