// n2: f32[7, 6] = gather(n0, n1)
// n4: f32[7, 6] = mul(n2, n3)
#[kernel]
pub fn generated(x0: In<i32, 1>, x1: In<f32, 1>, y2: Out<f32, 2>) {
    let v11 = scalar::<i32>(0);
    let v12 = x0.load([v11], [8]);
    let v13 = reshape(v12, [8, 1]);
    let v15 = scalar::<i32>(10);
    let v16 = broadcast_to(v11, [8, 1]);
    let v17 = v13 >= v16;
    let v18 = broadcast_to(v15, [8, 1]);
    let v19 = v13 < v18;
    let v20 = v17 & v19;
    let v21 = arange(0, 8);
    let v22 = reshape(v21, [1, 8]);
    let v23 = broadcast_to(v11, [1, 8]);
    let v24 = v22 + v23;
    let v25 = scalar::<i32>(6);
    let v26 = broadcast_to(v25, [1, 8]);
    let v27 = v24 < v26;
    let v28 = broadcast_to(v20, [8, 8]);
    let v29 = broadcast_to(v27, [8, 8]);
    let v30 = v28 & v29;
    let v32 = broadcast_to(v25, [8, 1]);
    let v33 = v13 * v32;
    let v34 = full::<i32>([1, 1], 0);
    let v35 = broadcast_to(v34, [1, 8]);
    let v36 = v35 + v24;
    let v37 = broadcast_to(v33, [8, 8]);
    let v38 = broadcast_to(v36, [8, 8]);
    let v39 = v37 + v38;
    let v41 = x1.ptr() + v39;
    let v42 = full::<f32>([1, 1], nan());
    let v43 = broadcast_to(v42, [8, 8]);
    let v44 = v41.load_or(v30, v43);
    let v45 = full::<f32>([1, 1], 2.0);
    let v46 = broadcast_to(v45, [8, 8]);
    let v47 = v44 * v46;
    y2.store([v11, v11], v47);
}
