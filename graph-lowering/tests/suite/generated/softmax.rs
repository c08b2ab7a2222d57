// n1: f32[5] = reduce_max[axes [1]](n0)
// n4: f32[5, 37] = sub(n0, n3)
// n5: f32[5, 37] = exp(n4)
// n6: f32[5] = reduce_sum[axes [1]](n5)
// n9: f32[5, 37] = div(n5, n8)
#[kernel]
pub fn generated(x0: In<f32, 2>, y1: Out<f32, 2>) {
    let v10 = scalar::<i32>(0);
    let v11 = x0.load([v10, v10], [8, 64]);
    let v12 = arange(0, 64);
    let v13 = reshape(v12, [1, 64]);
    let v14 = broadcast_to(v10, [1, 64]);
    let v15 = v13 + v14;
    let v16 = scalar::<i32>(37);
    let v17 = broadcast_to(v16, [1, 64]);
    let v18 = v15 < v17;
    let v19 = full::<f32>([1, 1], -inf());
    let v20 = broadcast_to(v19, [8, 64]);
    let v21 = broadcast_to(v18, [8, 64]);
    let v22 = where_(v21, v11, v20);
    let v23 = max(v22, 1);
    let v24 = reshape(v23, [8, 1]);
    let v25 = broadcast_to(v24, [8, 64]);
    let v26 = v11 - v25;
    let v27 = exp(v26);
    let v31 = full::<f32>([1, 1], 0.0);
    let v32 = broadcast_to(v31, [8, 64]);
    let v34 = where_(v21, v27, v32);
    let v35 = sum(v34, 1);
    let v36 = reshape(v35, [8, 1]);
    let v37 = broadcast_to(v36, [8, 64]);
    let v38 = v27 / v37;
    y1.store([v10, v10], v38);
}
