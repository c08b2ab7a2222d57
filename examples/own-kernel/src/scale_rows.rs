//! The kernel: `y = x * weight` for each row of a matrix, `block` columns of `rows_at_once` rows a program.

use tilewright::dsl::*;

#[autotune(
    space = space! { block: [128, 256, 512, 1024], rows_at_once: [1, 2, 4, 8], num_warps: [1, 2, 4, 8] },
    key = [rows = x.dims()[0], cols = x.dims()[1]],
    grid = [rows.div_ceil(rows_at_once), cols.div_ceil(block)],
    prune = block * rows_at_once < 32 * num_warps || block > cols.next_power_of_two().max(128),
    dtypes = [f32, f16],
    args = { x: [rows, cols], weight: [cols], y: [rows, cols] },
    example = [512, 1000],
)]
#[kernel]
fn scale_rows<T: Float>(
    x: In<T, 2>,
    weight: In<T, 1>,
    y: Out<T, 2>,
    #[comptime] block: usize,
    #[comptime] rows_at_once: usize,
) {
    let (row, col) = (program_id(0) * rows_at_once, program_id(1) * block);
    let w = expand_dims(weight.load([col], [block]), 0);
    y.store([row, col], x.load([row, col], [rows_at_once, block]) * w);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright::Device;

    #[test]
    fn the_tuned_launch_scales_rows() {
        let dev = Device::open("cpu").unwrap();
        let x = dev.buffer_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let w = dev.buffer_from(&[1.0f32, 10.0, 100.0]).unwrap();
        let y = dev.zeros::<f32>(6).unwrap();
        let launch = scale_rows::tuned(x.view([2, 3]).unwrap(), w.view([3]).unwrap(), y.view([2, 3]).unwrap());
        launch.unwrap().launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [1.0, 20.0, 300.0, 4.0, 50.0, 600.0]);
    }

    #[test]
    fn the_command_lists_and_tunes_it() {
        let dir = std::env::temp_dir().join(format!("own-kernel-{}", std::process::id()));
        let run = |args: &str| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let all = ["own-kernel", "--store", dir.to_str().unwrap()].into_iter().chain(args.split(' '));
            let exit = tilewright::autotune::cli::run(all, &mut out, &mut err);
            (exit, String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap())
        };
        let (_, text) = run("list");
        assert!(text.contains("scale_rows"), "{text}");
        let tune = "run scale_rows --shape rows=64,cols=300 --dtype f16 --device cpu --budget 3s";
        let (exit, text) = run(tune);
        assert!(exit == tilewright::autotune::cli::Exit::Done && text.contains("winner"), "{text}");
        let (_, text) = run(tune);
        assert!(text.contains("nothing was measured"), "{text}");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
