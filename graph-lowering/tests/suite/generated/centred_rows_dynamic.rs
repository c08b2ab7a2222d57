// n1: f32[5] = reduce_sum[axes [1]](n0)
// n3: f32[5] = div(n1, n2)
// n6: f32[5, 37] = sub(n0, n5)
#[kernel]
pub fn generated(x0: In<f32, 2>, y1: Out<f32, 2>, n2: f32) {
    let v10 = scalar::<i32>(0);
    let v11 = program_id(0);
    let v12 = scalar::<i32>(16);
    let v13 = v11 * v12;
    let v14 = x0.load([v13, v10], [16, 64]);
    let v15 = arange(0, 64);
    let v16 = reshape(v15, [1, 64]);
    let v17 = broadcast_to(v10, [1, 64]);
    let v18 = v16 + v17;
    let v19 = broadcast_to(x0.dim(1), [1, 64]);
    let v20 = v18 < v19;
    let v21 = full::<f32>([1, 1], 0.0);
    let v22 = broadcast_to(v21, [16, 64]);
    let v23 = broadcast_to(v20, [16, 64]);
    let v24 = where_(v23, v14, v22);
    let v25 = sum(v24, 1);
    let v26 = reshape(v25, [16, 1]);
    let v28 = reshape(n2, [1, 1]);
    let v29 = broadcast_to(v28, [16, 1]);
    let v30 = v26 / v29;
    let v31 = broadcast_to(v30, [16, 64]);
    let v32 = v14 - v31;
    y1.store([v13, v10], v32);
}
