//! Matrix product `c = a b`, for any extents.

use tilewright_runtime::dsl::*;
use tilewright_runtime::{DType, Device, DeviceKind, Element, Error, Launch, Options, Result, View};

/// A tile of `bm` x `bn` of the result a program. Programs are numbered along one axis so that those that run at
/// once share rows of `a` and columns of `b` in the cache: `group` rows of tiles, column by column.
#[kernel]
pub fn matmul_tiled<T: Float + DotElement>(
    a: In<T, 2>,
    b: In<T, 2>,
    c: Out<T, 2>,
    #[comptime] bm: usize,
    #[comptime] bn: usize,
    #[comptime] bk: usize,
    #[comptime] group: usize,
) {
    let pid = program_id(0);
    let (tiles_m, tiles_n) = (cdiv(c.dim(0), bm), cdiv(c.dim(1), bn));
    let in_group = tiles_n * group;
    let first = pid / in_group * group;
    let rows = minimum(tiles_m - first, group);
    let m0 = (first + pid % in_group % rows) * bm;
    let n0 = pid % in_group / rows * bn;
    let mut acc = zeros::<f32>([bm, bn]);
    for k0 in (0..a.dim(1)).step_by(bk) {
        acc = dot(a.load([m0, k0], [bm, bk]), b.load([k0, n0], [bk, bn]), acc);
    }
    c.store([m0, n0], acc.to::<T>());
}

/// Tile sizes and options of [`matmul_tiled()`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MatmulConfig {
    /// Rows of a tile of the result.
    pub bm: usize,
    /// Columns of a tile of the result.
    pub bn: usize,
    /// Columns of `a` taken at a time.
    pub bk: usize,
    /// Rows of tiles that programs next to each other share.
    pub group: usize,
    /// Warps and stages.
    pub options: Options,
}

/// Tiles for `wgmma`: two groups of warps at most, each with a result that its registers hold.
const WGMMA_TILES: [MatmulConfig; 7] = [
    MatmulConfig::new(128, 256, 64, 8, 4),
    MatmulConfig::new(256, 128, 64, 8, 4),
    MatmulConfig::new(128, 128, 64, 8, 5),
    MatmulConfig::new(64, 256, 64, 4, 4),
    MatmulConfig::new(128, 64, 64, 4, 4),
    MatmulConfig::new(64, 128, 64, 4, 4),
    MatmulConfig::new(64, 64, 64, 4, 4),
];

/// What bringing an element of `a` or `b` to a processor costs, in multiply-adds of half precision by `wgmma`. On an H200 the
/// times of all tiles (4096 x 4096 x 4096, all processors busy) are within 7 % of `bm bn + LOAD_COST (bm + bn)` a column of `a`.
const LOAD_COST: usize = 72;

/// Processors of a device that does not tell how many it has.
const SOME_PROCESSORS: u32 = 128;

impl MatmulConfig {
    const fn new(bm: usize, bn: usize, bk: usize, num_warps: u32, num_stages: u32) -> Self {
        Self { bm, bn, bk, group: 8, options: Options { num_warps, num_stages } }
    }

    /// What suits a device, a type and the extents `m`, `n`, `k` when nothing was tuned.
    pub fn heuristic(device: &Device, dtype: DType, dims: [usize; 3]) -> Self {
        let half = matches!(dtype, DType::F16 | DType::BF16);
        if half && dims[0] > 32 && dims[1] > 32 && device.caps().is_some_and(|caps| caps.wgmma) {
            return Self::of_wgmma(dims, device.info().hardware.processors.unwrap_or(SOME_PROCESSORS));
        }
        Self::of_kind(device.info().kind, dtype, dims)
    }

    /// For half-precision products by `wgmma`: the tile that keeps so many processors busy for the shortest time.
    pub fn of_wgmma([m, n, k]: [usize; 3], processors: u32) -> Self {
        let processors = processors.max(1) as usize;
        let time = |config: &Self| {
            let tiles = m.div_ceil(config.bm) * n.div_ceil(config.bn);
            tiles.div_ceil(processors) * (config.bm * config.bn + LOAD_COST * (config.bm + config.bn))
        };
        // Of equals the first, which is the largest.
        let best = WGMMA_TILES.into_iter().min_by_key(time).unwrap_or(WGMMA_TILES[0]);
        best.clamped(m, n, k)
    }

    /// [`MatmulConfig::heuristic`] of a kind of device that need not be there.
    pub fn of_kind(kind: DeviceKind, dtype: DType, [m, n, k]: [usize; 3]) -> Self {
        if kind == DeviceKind::Cpu {
            // The interpreter's products are as fast as they get at this size; more would spoil the caches.
            return Self::new(128, 128, 128, 1, 1).clamped(m, n, k);
        }
        let half = matches!(dtype, DType::F16 | DType::BF16);
        let best = match (kind, half) {
            // Found on an H200; see benches/results.
            (DeviceKind::Cuda, true) if m * n >= 1024 * 1024 => Self::new(128, 128, 32, 4, 4),
            (DeviceKind::Cuda, true) => Self::new(64, 64, 64, 4, 4),
            (DeviceKind::Cuda, false) => Self::new(64, 64, 16, 4, 1),
            _ => Self::new(32, 32, 16, 2, 1),
        };
        best.clamped(m, n, k)
    }

    /// No tile larger than the matrices need, and none smaller than 16.
    fn clamped(mut self, m: usize, n: usize, k: usize) -> Self {
        let fit = |tile: usize, extent: usize| tile.min(extent.next_power_of_two().max(16));
        (self.bm, self.bn, self.bk) = (fit(self.bm, m), fit(self.bn, n), fit(self.bk, k));
        self
    }
}

/// `c[m, n] = a[m, k] b[k, n]`, summed in `f32` and rounded once. Views may be strided: a transposed matrix costs nothing
/// extra to describe.
///
/// # Errors
/// [`Error::Arguments`] if the extents do not fit together.
pub fn matmul<'a, T: Float + DotElement + Element>(
    a: View<'a, T, 2>,
    b: View<'a, T, 2>,
    c: View<'a, T, 2>,
) -> Result<Launch<'a>> {
    let ([m, k], [_, n]) = (a.dims(), b.dims());
    matmul_with(a, b, c, MatmulConfig::heuristic(&c.device(), c.dtype(), [m, n, k]))
}

/// [`matmul`] in a configuration of the caller's choice.
///
/// # Errors
/// [`Error::Arguments`] if the extents do not fit together.
pub fn matmul_with<'a, T: Float + DotElement + Element>(
    a: View<'a, T, 2>,
    b: View<'a, T, 2>,
    c: View<'a, T, 2>,
    config: MatmulConfig,
) -> Result<Launch<'a>> {
    let ([m, k], [k2, n]) = (a.dims(), b.dims());
    if k != k2 || c.dims() != [m, n] {
        return Err(Error::Arguments {
            kernel: "matmul".into(),
            message: format!(
                "a is {:?}, b is {:?} and c is {:?}; they must be [m, k], [k, n] and [m, n]",
                a.dims(),
                b.dims(),
                c.dims()
            ),
        });
    }
    let MatmulConfig { bm, bn, bk, group, options } = config;
    let programs = m.div_ceil(bm) * n.div_ceil(bn);
    Ok(matmul_tiled(a, b, c, bm, bn, bk, group).grid([programs]).options(options))
}
