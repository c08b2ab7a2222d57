// n4: f32[20, 17] = dot(n0, n3)
// n6: f32[20, 17] = add(n4, n5)
// n8: f32[20, 17] = mul(n6, n7)
// n9: f32[20, 17] = erf(n8)
// n11: f32[20, 17] = add(n9, n10)
// n13: f32[20, 17] = mul(n11, n12)
// n14: f32[20, 17] = mul(n6, n13)
#[kernel]
pub fn generated(x0: In<f32, 2>, x1: In<f32, 2>, x2: In<f32, 1>, y3: Out<f32, 2>) {
    let v18 = scalar::<i32>(0);
    let v19 = full::<f32>([32, 32], 0.0);
    let v20 = x0.load([v18, v18], [32, 64]);
    let v22 = x1.load([v18, v18], [64, 32]);
    let v24 = dot(v20, v22, v19);
    let v25 = reshape(v24, [32, 1, 32]);
    let v26 = x2.load([v18], [32]);
    let v27 = reshape(v26, [1, 1, 32]);
    let v28 = broadcast_to(v27, [32, 1, 32]);
    let v29 = v25 + v28;
    let v30 = full::<f32>([1, 1, 1], 0.7071067690849304);
    let v31 = broadcast_to(v30, [32, 1, 32]);
    let v32 = v29 * v31;
    let v33 = erf(v32);
    let v34 = full::<f32>([1, 1, 1], 1.0);
    let v35 = broadcast_to(v34, [32, 1, 32]);
    let v36 = v33 + v35;
    let v37 = full::<f32>([1, 1, 1], 0.5);
    let v38 = broadcast_to(v37, [32, 1, 32]);
    let v39 = v36 * v38;
    let v40 = v29 * v39;
    let v41 = reshape(v40, [32, 32]);
    y3.store([v18, v18], v41);
}
