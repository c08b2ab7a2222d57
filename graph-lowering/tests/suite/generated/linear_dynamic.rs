// n4: f32[20, 17] = dot(n0, n3)
// n6: f32[20, 17] = add(n4, n5)
// n8: bool[20, 17] = le(n6, n7)
// n9: f32[20, 17] = select(n8, n7, n6)
#[kernel]
pub fn generated(x0: In<f32, 2>, x1: In<f32, 2>, x2: In<f32, 1>, y3: Out<f32, 2>) {
    let v18 = scalar::<i32>(0);
    let v19 = program_id(0);
    let v20 = scalar::<i32>(1);
    let v21 = x0.dim(0) - v20;
    let v22 = scalar::<i32>(32);
    let v23 = v21 / v22;
    let v24 = v23 + v20;
    let v26 = x1.dim(1) - v20;
    let v28 = v26 / v22;
    let v29 = v28 + v20;
    let v30 = scalar::<i32>(8);
    let v31 = v30 * v29;
    let v32 = v19 / v31;
    let v33 = v32 * v30;
    let v34 = v24 - v33;
    let v35 = minimum(v34, v30);
    let v36 = v19 % v31;
    let v37 = v36 % v35;
    let v38 = v33 + v37;
    let v39 = v36 / v35;
    let v41 = v38 * v22;
    let v43 = v39 * v22;
    let v44 = full::<f32>([32, 32], 0.0);
    let mut acc48 = v44;
    for i47 in (v18..x0.dim(1)).step_by(64) {
        let v49 = x0.load([v41, i47], [32, 64]);
        let v51 = x1.load([i47, v43], [64, 32]);
        let v53 = dot(v49, v51, acc48);
        acc48 = v53;
    }
    let v55 = reshape(acc48, [32, 1, 32]);
    let v56 = x2.load([v43], [32]);
    let v57 = reshape(v56, [1, 1, 32]);
    let v58 = broadcast_to(v57, [32, 1, 32]);
    let v59 = v55 + v58;
    let v60 = full::<f32>([1, 1, 1], 0.0);
    let v61 = broadcast_to(v60, [32, 1, 32]);
    let v62 = v59 <= v61;
    let v64 = where_(v62, v61, v59);
    let v65 = reshape(v64, [32, 32]);
    y3.store([v41, v43], v65);
}
