// n2: f32[5, 6] = scatter_add[rows 5](n0, n1)
#[kernel]
pub fn generated(x0: In<f32, 2>, x1: In<i32, 1>, y2: Out<f32, 2>) {
    let v13 = scalar::<i32>(0);
    let v14 = program_id(0);
    let v15 = scalar::<i32>(1);
    let v16 = v14 * v15;
    let v17 = full::<i32>([1, 1, 1, 1], 0);
    let v18 = arange(0, 1);
    let v19 = reshape(v18, [1, 1, 1, 1]);
    let v20 = broadcast_to(v16, [1, 1, 1, 1]);
    let v21 = v19 + v20;
    let v22 = v17 + v21;
    let v23 = full::<f32>([1, 8, 1, 1], 0.0);
    let v26 = scalar::<i32>(-1);
    let v27 = scalar::<i32>(100);
    let mut acc30 = v23;
    for i29 in (v13..v27).step_by(128) {
        let v31 = x1.load([i29], [128]);
        let v32 = reshape(v31, [1, 1, 128, 1]);
        let v33 = broadcast_to(v22, [1, 1, 128, 1]);
        let v34 = v32 == v33;
        let v35 = arange(0, 128);
        let v36 = reshape(v35, [1, 1, 128, 1]);
        let v37 = broadcast_to(i29, [1, 1, 128, 1]);
        let v38 = v36 + v37;
        let v40 = broadcast_to(v27, [1, 1, 128, 1]);
        let v41 = v38 < v40;
        let v42 = v34 & v41;
        let v43 = v42.to::<i32>();
        let v44 = sum(v43, 2);
        let v45 = reshape(v44, []);
        let mut acc47 = v26;
        let mut acc48 = acc30;
        for _i46 in (v13..v45).step_by(1) {
            let v49 = broadcast_to(acc47, [1, 1, 128, 1]);
            let v50 = v38 > v49;
            let v51 = v42 & v50;
            let v52 = scalar::<i32>(2147483647);
            let v53 = broadcast_to(v52, [1, 1, 128, 1]);
            let v54 = where_(v51, v38, v53);
            let v55 = min(v54, 2);
            let v56 = reshape(v55, []);
            let v57 = x0.load([v13, v56], [8, 1]);
            let v58 = reshape(v57, [1, 8, 1, 1]);
            let v59 = acc48 + v58;
            acc47 = v56;
            acc48 = v59;
        }
        acc30 = acc48;
    }
    let v63 = reshape(acc30, [1, 8]);
    y2.store([v16, v13], v63);
}
