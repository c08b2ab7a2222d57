// n1: f32[3] = reduce_sum[axes [0]](n0)
#[kernel]
pub fn generated(x0: In<f32, 2>, y1: Out<f32, 1>) {
    let v8 = scalar::<i32>(0);
    let v9 = full::<f32>([4, 64], 0.0);
    let v11 = scalar::<i32>(20011);
    let mut acc14 = v9;
    for i13 in (v8..v11).step_by(64) {
        let v15 = x0.load([v8, i13], [4, 64]);
        let v16 = arange(0, 64);
        let v17 = reshape(v16, [1, 64]);
        let v18 = broadcast_to(i13, [1, 64]);
        let v19 = v17 + v18;
        let v21 = broadcast_to(v11, [1, 64]);
        let v22 = v19 < v21;
        let v23 = full::<f32>([1, 1], 0.0);
        let v24 = broadcast_to(v23, [4, 64]);
        let v25 = broadcast_to(v22, [4, 64]);
        let v26 = where_(v25, v15, v24);
        let v27 = acc14 + v26;
        acc14 = v27;
    }
    let v29 = sum(acc14, 1);
    let v30 = reshape(v29, [4, 1]);
    let v31 = reshape(v30, [4]);
    y1.store([v8], v31);
}
