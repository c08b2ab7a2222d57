//! The kernels, specialised as launches would specialise them.

use tilewright::dsl::{DotElement, Float, Num, bf16, f16};
use tilewright::{DType, Device, DeviceKind, Element, Launch, Options, View};
use tilewright_compiler::dsl::Specialization;
use tilewright_compiler::tile::{Function, ParamHint, parse::parse};
use tilewright_kernels::{
    Attention, AttentionConfig, AttentionKernel, AttentionPass, AttentionTiles, MatmulConfig, attention_with,
    layer_norm_long, layer_norm_row, matmul_with, row_config, softmax_long, softmax_row, vector_add_block,
};

/// A kernel to be compiled.
pub struct Case {
    pub name: String,
    pub func: Function,
    pub options: Options,
    /// What the driver said, if the arguments live on a device that compiles.
    pub built: Result<(), String>,
    /// Would registers spilled to memory on an NVIDIA chip be a fault?
    pub in_registers: bool,
    /// Does Hopper get another configuration?
    pub before_hopper: bool,
}

impl Case {
    fn new(name: String, launch: &Launch<'_>) -> Self {
        // The text of the IR is what a launch compiles, facts about its arguments included.
        let func = parse(&launch.ir().unwrap()).unwrap();
        let built = launch.compile().map(drop).map_err(|e| format!("{name}: {e}"));
        Self { name, func, options: launch.current_options(), built, in_registers: true, before_hopper: false }
    }
}

pub fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

pub fn vector_add<T: Num + Element>(dev: &Device, n: usize) -> Case {
    let b = dev.zeros::<T>(n).unwrap();
    let (c, d) = (dev.zeros::<T>(n).unwrap(), dev.zeros::<T>(n).unwrap());
    let (x, y, out) = (b.view([n]).unwrap(), c.view([n]).unwrap(), d.view([n]).unwrap());
    let launch = vector_add_block(x, y, out, 256 * 16 / T::DTYPE.bytes()).num_warps(8);
    Case::new(format!("vector_add of {n} {}", T::DTYPE), &launch)
}

/// Softmax of rows as the library runs it on a kind of device.
pub fn softmax<T: Float + Element>(dev: &Device, kind: DeviceKind, columns: usize) -> Case {
    let (a, b) = (dev.zeros::<T>(columns).unwrap(), dev.zeros::<T>(columns).unwrap());
    let (x, y) = (a.view([1, columns]).unwrap(), b.view([1, columns]).unwrap());
    let launch = match row_config(kind, T::DTYPE, columns) {
        Ok(c) => softmax_row(x, y, c.block).num_warps(c.num_warps),
        Err(c) => softmax_long(x, y, c.block, 16 / x.dtype().bytes()).num_warps(c.num_warps),
    };
    Case::new(format!("softmax of rows of {columns} {}", T::DTYPE), &launch)
}

/// Layer norm of rows as the library runs it on a kind of device.
pub fn layer_norm<T: Float + Element>(dev: &Device, kind: DeviceKind, columns: usize) -> Case {
    let buffers: [_; 4] = std::array::from_fn(|_| dev.zeros::<T>(columns).unwrap());
    let [x, y] = [0, 1].map(|i: usize| buffers[i].view([1, columns]).unwrap());
    let [w, b] = [2, 3].map(|i: usize| buffers[i].view([columns]).unwrap());
    let launch = match row_config(kind, T::DTYPE, columns) {
        Ok(c) => layer_norm_row(x, w, b, y, 1e-5, c.block).num_warps(c.num_warps),
        Err(c) => layer_norm_long(x, w, b, y, 1e-5, c.block, 16 / x.dtype().bytes()).num_warps(c.num_warps),
    };
    Case::new(format!("layer_norm of rows of {columns} {}", T::DTYPE), &launch)
}

/// A product of square matrices: what is compiled depends on the divisors of their extent alone.
pub fn matmul<T: Float + DotElement + Element>(dev: &Device, extent: usize, config: MatmulConfig) -> Case {
    let n = extent;
    let buffers: [_; 3] = std::array::from_fn(|_| dev.zeros::<T>(n * n).unwrap());
    let [a, b, c] = [0, 1, 2].map(|i: usize| buffers[i].view([n, n]).unwrap());
    let launch = matmul_with(a, b, c, config).unwrap();
    Case::new(format!("matmul of {n} x {n} {}, {config:?}", T::DTYPE), &launch)
}

/// Attention of one head, as the library runs it on a kind of device unless a configuration is given.
pub fn attention<T: Float + DotElement + Element>(
    dev: &Device,
    kind: DeviceKind,
    [rows, width]: [usize; 2],
    causal: bool,
    config: Option<AttentionConfig>,
) -> Case {
    let dims = [1, 1, rows, width];
    let config = config.unwrap_or_else(|| AttentionConfig::of_kind(kind, T::DTYPE, rows, rows, width));
    let buffers: [_; 4] = std::array::from_fn(|_| dev.zeros::<T>(rows * width).unwrap());
    let [q, k, v, out] = [0, 1, 2, 3].map(|i: usize| buffers[i].view(dims).unwrap());
    let how = Attention { causal, scale: None };
    let launch = attention_with(q, k, v, None::<View<'_, f32, 4>>, out, None, how, config).unwrap();
    let what = if causal { "causal attention" } else { "attention" };
    Case::new(format!("{what} of {rows} x {width} {}, {config:?}", T::DTYPE), &launch)
}

/// What a graph's attention is compiled to, for well aligned tensors: with a mask, and what is kept of rows.
pub fn attention_forward<T: Element>(width: usize, mask: Option<DType>, config: AttentionConfig) -> Case {
    let names: &[&'static str] = match mask {
        Some(_) => &["q", "k", "v", "mask", "out", "most", "log_sum"],
        None => &["q", "k", "v", "out", "most", "log_sum"],
    };
    let hint = |divisor, known, alias_class| ParamHint { divisor, known, alias_class };
    let mut hints = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let rank = if matches!(*name, "most" | "log_sum") { 3 } else { 4 };
        hints.push(hint(16, None, i as u32));
        hints.extend(vec![hint(16, None, 0); 2 * rank - 1]);
        hints.push(hint(1, Some(1), 0));
    }
    let spec = Specialization { index: DType::I32, hints, fp_fusion: false };
    let tiles = AttentionTiles::new(config, Attention { causal: false, scale: None }, width, width);
    let pass = AttentionPass::Forward { outs: 1, most: 1, log_sums: 1 };
    let kernel = AttentionKernel { pass, dtype: T::DTYPE, mask, tiles };
    let func = kernel.build("attention_forward", names, &spec).unwrap();
    let name = format!("attention of width {width} {} with a mask of {mask:?}, {config:?}", T::DTYPE);
    Case { name, func, options: config.options, built: Ok(()), in_registers: true, before_hopper: false }
}

/// The kernels of attention's gradients, for well aligned tensors; `config` for that of queries, and, if it is true, of keys.
pub fn attention_backward<T: Element>(
    [rows, width]: [usize; 2],
    causal: bool,
    config: impl Fn(bool) -> AttentionConfig,
) -> Vec<Case> {
    let hint = |divisor, known, alias_class| ParamHint { divisor, known, alias_class };
    let passes = [
        (AttentionPass::GradQuery { outs: 1 }, &["q", "k", "v", "g", "most", "log_sum", "delta", "dq"][..]),
        (
            AttentionPass::GradKeyValue { keys: 1, values: 1 },
            &["q", "k", "v", "g", "most", "log_sum", "delta", "dk", "dv"][..],
        ),
    ];
    let case = |(pass, names): (AttentionPass, &[&'static str])| {
        let rank = |i: usize| if (4..7).contains(&i) { 3 } else { 4 };
        let mut hints = Vec::new();
        for i in 0..names.len() {
            // Base, extents, strides, the last of which is 1.
            hints.push(hint(16, None, i as u32));
            hints.extend(vec![hint(16, None, 0); 2 * rank(i) - 1]);
            hints.push(hint(1, Some(1), 0));
        }
        let spec = Specialization { index: DType::I32, hints, fp_fusion: false };
        let of_keys = matches!(pass, AttentionPass::GradKeyValue { .. });
        let config = config(of_keys);
        let tiles = AttentionTiles::new(config, Attention { causal, scale: None }, width, width);
        let kernel = AttentionKernel { pass, dtype: T::DTYPE, mask: None, tiles };
        let func = kernel.build("attention_backward", names, &spec).unwrap();
        let name = format!("{pass:?} of {rows} x {width} {}, {config:?}", T::DTYPE);
        // The two sums of keys and values of width 128 leave some 100 bytes of addresses in local memory.
        let in_registers = !(of_keys && (65..=128).contains(&width));
        Case { name, func, options: config.options, built: Ok(()), in_registers, before_hopper: false }
    };
    passes.into_iter().map(case).collect()
}

/// The library's own configuration of large products.
pub fn default_config<T: Element>(kind: DeviceKind) -> MatmulConfig {
    MatmulConfig::of_kind(kind, T::DTYPE, [4096; 3])
}

fn rows<T: Float + DotElement + Element>(dev: &Device, kind: DeviceKind, all: &mut Vec<Case>) {
    for columns in [1, 100, 1000, 1024, 4096, 8192, 33_000] {
        all.push(softmax::<T>(dev, kind, columns));
        all.push(layer_norm::<T>(dev, kind, columns));
    }
    for (rows, width, causal) in
        [(256, 64, false), (256, 64, true), (256, 128, true), (200, 80, false), (256, 256, true)]
    {
        // Tiles of width 128 keep a few addresses in local memory: 6 loads in a loop of 1000 instructions.
        let in_registers = !(65..=128).contains(&width);
        let before_hopper = T::DTYPE.bytes() == 2;
        all.push(Case { in_registers, before_hopper, ..attention::<T>(dev, kind, [rows, width], causal, None) });
        let backward = |of_keys| AttentionConfig::backward_of_kind(kind, T::DTYPE, rows, rows, width, of_keys);
        let backward = attention_backward::<T>([rows, width], causal, backward);
        all.extend(backward.into_iter().map(|case| Case { before_hopper, ..case }));
    }
    let best = default_config::<T>(kind);
    for extent in [256, 200, 17] {
        all.push(matmul::<T>(dev, extent, best));
    }
    all.push(matmul::<T>(dev, 256, MatmulConfig::of_kind(kind, T::DTYPE, [256; 3])));
    for (bm, bn, bk, num_warps, num_stages) in
        [(16, 16, 16, 1, 1), (32, 64, 32, 2, 2), (64, 32, 16, 4, 3), (64, 64, 32, 8, 4), (128, 64, 32, 4, 2)]
    {
        let config = MatmulConfig { bm, bn, bk, group: 4, options: Options { num_warps, num_stages } };
        // Any configuration may be asked for; it is the caller's to find one that fits registers.
        all.push(Case { in_registers: false, ..matmul::<T>(dev, 256, config) });
    }
}

/// Every kernel in every type and several configurations, as run on a kind of device; arguments on `dev`.
pub fn all(dev: &Device, kind: DeviceKind) -> Vec<Case> {
    let mut all = vec![
        vector_add::<i8>(dev, 1000),
        vector_add::<i16>(dev, 1000),
        vector_add::<i32>(dev, 1000),
        vector_add::<i64>(dev, 1000),
        vector_add::<u8>(dev, 4096),
        vector_add::<u16>(dev, 4096),
        vector_add::<u32>(dev, 4096),
        vector_add::<u64>(dev, 4096),
        vector_add::<f16>(dev, 4096),
        vector_add::<bf16>(dev, 4096),
        vector_add::<f32>(dev, 4096),
        vector_add::<f64>(dev, 4096),
        vector_add::<f16>(dev, 1),
    ];
    rows::<f16>(dev, kind, &mut all);
    rows::<bf16>(dev, kind, &mut all);
    rows::<f32>(dev, kind, &mut all);
    all
}
