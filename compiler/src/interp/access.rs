//! Loads and stores: through tiles of addresses and through views.
//!
//! Both are cut into runs of evenly spaced addresses, each checked and copied as a whole; an element's own check
//! decides only where a run as a whole is refused.

use super::elementwise::{cast_mut, cast_slice};
use super::exec::{Context, Worker};
use super::memory::Window;
use super::program::{Inst, Ref};
use super::races::{Access, Meeting, Races};
use super::value::{Affine, Repr, fill};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tile::Shape;

/// The element whose access is refused.
struct Fault {
    address: i128,
    lane: usize,
    /// The access it meets; `None`: memory does not allow it.
    race: Option<Meeting>,
}

/// Successive elements of a tile at evenly spaced addresses.
#[derive(Clone, Copy)]
struct Run {
    address: i128,
    /// The first element, counted row-major in the tile.
    first: usize,
    len: usize,
    /// Bytes from one element to the next: often the width of an element, so that the run is copied as a whole.
    step: i64,
}

/// Copies runs between memory and a tile.
struct Port<'a> {
    context: Context<'a>,
    /// Where the last access was: most of those that follow are there, too.
    window: Window,
    /// The address of the view, if one is accessed.
    base: Option<u64>,
    bytes: usize,
    write: bool,
    /// Who accesses, where races are looked for.
    access: Option<(&'a Races, Access)>,
}

impl<'a> Port<'a> {
    fn load_port(context: Context<'a>, inst: &Inst, dtype: DType, base: Option<u64>) -> Self {
        Self::new(context, inst, dtype, false, base, 0)
    }

    /// `store` tells this store of the program from others.
    fn new(context: Context<'a>, inst: &Inst, dtype: DType, write: bool, base: Option<u64>, store: u32) -> Self {
        let program = context.number;
        let access = context.races.map(|r| (r, Access { program, store, place: r.place(inst.loc) }));
        Self { context, window: Window::NONE, base, bytes: dtype.bytes(), write, access }
    }

    /// Moves the window to the `bytes` bytes from `address` on.
    #[inline(always)]
    fn seek(&mut self, address: i128, bytes: usize) -> Option<u64> {
        let address = u64::try_from(address).ok()?;
        // The width is a power of two.
        if address & (self.bytes as u64 - 1) != 0 {
            return None;
        }
        if !self.window.contains(address, bytes) {
            self.window = self.context.memory.window(address, bytes, self.write, self.base)?;
        }
        Some(address)
    }

    /// May the whole run be accessed? Then the window is there.
    #[inline(always)]
    fn covers(&mut self, run: Run) -> Option<u64> {
        if run.step == self.bytes as i64 {
            return self.seek(run.address, run.len * self.bytes);
        }
        let address = self.seek(run.address, self.bytes)?;
        let aligned = run.step & (self.bytes as i64 - 1) == 0;
        (aligned && self.window.contains_strided(address, run.step, run.len, self.bytes)).then_some(address)
    }

    /// Calls `copy` with one element after the other, as far as that is allowed.
    #[cold]
    fn each(&mut self, run: Run, mut copy: impl FnMut(&Window, u64, usize)) -> Result<(), Fault> {
        for i in 0..run.len {
            let (address, lane) = (run.address + i128::from(run.step) * i as i128, run.first + i);
            let Some(found) = self.seek(address, self.bytes) else { return Err(Fault { address, lane, race: None }) };
            copy(&self.window, found, lane);
        }
        Ok(())
    }

    /// The error of `inst` for an element of the tile at `tile`.
    fn error(&self, inst: &Inst, fault: Fault, tile: &Ref) -> Error {
        if let (Some(meeting), Some((races, access))) = (&fault.race, self.access) {
            let element = self.context.memory.element(fault.address as u64, tile.ty.elem.dtype());
            let (what, help) = races.explain(meeting, access, self.write, &element);
            return self.context.fault(inst, &what, fault.lane, &tile.ty.dims, help);
        }
        let (what, help) = self.context.memory.explain(fault.address, tile.ty.elem.dtype(), self.write, self.base);
        self.context.fault(inst, &what, fault.lane, &tile.ty.dims, help)
    }

    fn load(&mut self, run: Run, out: &mut [u8]) -> Result<(), Fault> {
        let bytes = self.bytes;
        let Some(address) = self.covers(run) else {
            return self.each(run, |w, address, lane| w.read(address, &mut out[lane * bytes..][..bytes]));
        };
        if let Some((races, access)) = self.access {
            for i in 0..run.len {
                let address = address.wrapping_add_signed(run.step * i as i64);
                if let Some(meeting) = races.load(address, bytes, access) {
                    return Err(Fault { address: address.into(), lane: run.first + i, race: Some(meeting) });
                }
            }
        }
        let out = &mut out[run.first * bytes..][..run.len * bytes];
        match bytes {
            _ if run.step == bytes as i64 => self.window.read(address, out),
            1 => self.window.read_strided::<u8>(address, run.step, out),
            2 => self.window.read_strided::<u16>(address, run.step, cast_mut(out)),
            4 => self.window.read_strided::<u32>(address, run.step, cast_mut(out)),
            _ => self.window.read_strided::<u64>(address, run.step, cast_mut(out)),
        }
        Ok(())
    }

    fn store(&mut self, run: Run, x: &[u8]) -> Result<(), Fault> {
        let bytes = self.bytes;
        let Some(address) = self.covers(run) else {
            return self.each(run, |w, address, lane| w.write(address, &x[lane * bytes..][..bytes]));
        };
        if let Some((races, access)) = self.access {
            return self.store_checked(run, address, x, races, access);
        }
        let x = &x[run.first * bytes..][..run.len * bytes];
        match bytes {
            _ if run.step == bytes as i64 => self.window.write(address, x),
            1 => self.window.write_strided::<u8>(address, run.step, x),
            2 => self.window.write_strided::<u16>(address, run.step, cast_slice(x)),
            4 => self.window.write_strided::<u32>(address, run.step, cast_slice(x)),
            _ => self.window.write_strided::<u64>(address, run.step, cast_slice(x)),
        }
        Ok(())
    }
}

impl Port<'_> {
    /// Stores one element after the other, and looks at what each meets.
    fn store_checked(&self, run: Run, start: u64, x: &[u8], races: &Races, access: Access) -> Result<(), Fault> {
        let mut there = [0u8; 8];
        for i in 0..run.len {
            let (address, lane) = (start.wrapping_add_signed(run.step * i as i64), run.first + i);
            let (new, there) = (&x[lane * self.bytes..][..self.bytes], &mut there[..self.bytes]);
            self.window.read(address, there);
            if let Some(meeting) = races.store(address, self.bytes, new != there, access) {
                return Err(Fault { address: address.into(), lane, race: Some(meeting) });
            }
            self.window.write(address, new);
        }
        Ok(())
    }
}

/// Any byte but 0 is true; tiles hold 1.
fn normalise(out: &mut [u8], dtype: DType) {
    if dtype == DType::Bool {
        out.iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
}

/// Which lanes of an access take part.
#[derive(Clone, Copy)]
enum Lanes<'a> {
    All,
    Where(&'a Ref),
}

/// The mask's meaning; `None` if no lane takes part.
fn lanes<'a>(worker: &Worker, mask: Option<&'a Ref>) -> Option<Lanes<'a>> {
    let Some(mask) = mask else { return Some(Lanes::All) };
    match worker.slots[mask.slot].repr {
        Repr::Uniform(0) => None,
        Repr::Uniform(_) => Some(Lanes::All),
        _ => Some(Lanes::Where(mask)),
    }
}

/// Calls `f` with each run of the addresses `p` whose lanes take part.
fn runs(
    worker: &Worker,
    p: &Ref,
    lanes: Lanes<'_>,
    bytes: usize,
    mut f: impl FnMut(Run) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mask = match lanes {
        Lanes::All => None,
        Lanes::Where(mask) => Some(worker.slots[mask.slot].bytes(&mask.ty)),
    };
    let slot = &worker.slots[p.slot];
    match slot.repr {
        Repr::Dense => {
            let addresses: &[u64] = bytemuck::cast_slice(slot.bytes(&p.ty));
            let mut i = 0;
            while i < addresses.len() {
                if mask.is_some_and(|m| m[i] == 0) {
                    i += 1;
                    continue;
                }
                let first = i;
                i += 1;
                while i < addresses.len()
                    && addresses[i] == addresses[i - 1].wrapping_add(bytes as u64)
                    && mask.is_none_or(|m| m[i] != 0)
                {
                    i += 1;
                }
                f(Run { address: addresses[first].into(), first, len: i - first, step: bytes as i64 })?;
            }
            Ok(())
        }
        Repr::Affine(affine) => strided(&affine, &p.ty.dims, mask, bytes, f),
        Repr::Uniform(address) => strided(
            &Affine { start: address as i64, steps: [0; Shape::MAX_RANK] },
            &p.ty.dims,
            mask,
            bytes,
            // The address as it is, also above the range of i64.
            |run| f(Run { address: address.into(), ..run }),
        ),
    }
}

/// The runs of a formula of addresses.
fn strided(
    affine: &Affine,
    dims: &[usize],
    mask: Option<&[u8]>,
    bytes: usize,
    mut f: impl FnMut(Run) -> Result<(), Fault>,
) -> Result<(), Fault> {
    // The innermost dimensions whose elements lie without gaps make one block.
    let (mut block, mut outer) = (1, dims.len());
    while outer > 0 && (dims[outer - 1] == 1 || affine.steps[outer - 1] == (block * bytes) as i64) {
        outer -= 1;
        block *= dims[outer];
    }
    // If there are none, the innermost one makes a block with gaps.
    let mut step = bytes as i64;
    if block == 1 && outer > 0 {
        outer -= 1;
        (block, step) = (dims[outer], affine.steps[outer]);
    }
    let mut index = [0usize; Shape::MAX_RANK];
    let mut address = i128::from(affine.start);
    let blocks: usize = dims[..outer].iter().product();
    for b in 0..blocks {
        let first = b * block;
        match mask {
            None => f(Run { address, first, len: block, step })?,
            Some(mask) => {
                let mask = &mask[first..first + block];
                let mut i = 0;
                while i < block {
                    let Some(skip) = mask[i..].iter().position(|&m| m != 0) else { break };
                    let from = i + skip;
                    let len = mask[from..].iter().position(|&m| m == 0).unwrap_or(block - from);
                    let address = address + i128::from(step) * from as i128;
                    f(Run { address, first: first + from, len, step })?;
                    i = from + len;
                }
            }
        }
        // The next block, as an odometer turns.
        for d in (0..outer).rev() {
            index[d] += 1;
            address += i128::from(affine.steps[d]);
            if index[d] < dims[d] {
                break;
            }
            address -= i128::from(affine.steps[d]) * dims[d] as i128;
            index[d] = 0;
        }
    }
    Ok(())
}

pub(super) fn load(worker: &mut Worker, inst: &Inst, context: Context<'_>) -> Result<()> {
    let (p, mask, other) = (&inst.operands[0], inst.operands.get(1), inst.operands.get(2));
    let out = &inst.results[0];
    let dtype = out.ty.elem.dtype();
    let Some(lanes) = lanes(worker, mask) else {
        match other {
            Some(other) => worker.copy(other, out),
            None => worker.set(out, Repr::Uniform(0)),
        }
        return Ok(());
    };
    let mut port = Port::load_port(context, inst, dtype, None);
    let done = match (lanes, worker.slots[p.slot].repr) {
        // One address for all lanes: one load.
        (Lanes::All, Repr::Uniform(address)) => {
            let mut word = [0u64];
            let element = &mut bytemuck::cast_slice_mut(&mut word)[..dtype.bytes()];
            let done =
                port.load(Run { address: address.into(), first: 0, len: 1, step: dtype.bytes() as i64 }, element);
            normalise(element, dtype);
            worker.set(out, Repr::Uniform(word[0]));
            done
        }
        _ => {
            if let (Lanes::Where(_), Some(other)) = (lanes, other) {
                worker.densify(other);
            }
            worker.write(out, |worker, buffer| {
                match (lanes, other) {
                    (Lanes::All, _) => {}
                    (Lanes::Where(_), Some(other)) => {
                        buffer.copy_from_slice(worker.slots[other.slot].bytes(&other.ty));
                    }
                    (Lanes::Where(_), None) => buffer.fill(0),
                }
                let done = runs(worker, p, lanes, dtype.bytes(), |run| port.load(run, buffer));
                normalise(buffer, dtype);
                done
            })
        }
    };
    done.map_err(|fault| port.error(inst, fault, out))
}

pub(super) fn store(worker: &mut Worker, inst: &Inst, context: Context<'_>) -> Result<()> {
    let (p, x, mask) = (&inst.operands[0], &inst.operands[1], inst.operands.get(2));
    let Some(lanes) = lanes(worker, mask) else { return Ok(()) };
    worker.densify(x);
    worker.stores = worker.stores.wrapping_add(1);
    let worker = &*worker;
    let dtype = x.ty.elem.dtype();
    let mut port = Port::new(context, inst, dtype, true, None, worker.stores);
    let data = worker.slots[x.slot].bytes(&x.ty);
    runs(worker, p, lanes, dtype.bytes(), |run| port.store(run, data)).map_err(|fault| port.error(inst, fault, x))
}

// ---- views ------------------------------------------------------------------------------------------------------

/// The part of a tile that lies inside a view.
struct Inside {
    rank: usize,
    /// Of each dimension: the first index inside and the one after the last.
    ranges: [(usize, usize); Shape::MAX_RANK],
    /// Address of the tile's element 0, inside or not, and the bytes from element to element.
    origin: i128,
    steps: [i128; Shape::MAX_RANK],
}

impl Inside {
    /// From the operands of a view op for a tile with these extents. Nothing here wraps: offsets and extents are
    /// `i32`, strides at most `i64`, and their products are taken in 128 bits.
    fn new(worker: &Worker, operands: &[Ref], rank: usize, dims: &[usize], bytes: usize) -> Self {
        let mut inside = Self {
            rank,
            ranges: [(0, 0); Shape::MAX_RANK],
            origin: i128::from(worker.scalar(&operands[0])),
            steps: [0; Shape::MAX_RANK],
        };
        for d in 0..rank {
            let [extent, stride, offset] = [0, 1, 2].map(|k| worker.index(&operands[1 + k * rank + d]));
            let first = (-offset).max(0);
            let end = (extent - offset).min(dims[d] as i64);
            if first < end {
                inside.ranges[d] = (first as usize, end as usize);
            }
            inside.steps[d] = i128::from(stride) * bytes as i128;
            inside.origin += i128::from(offset) * inside.steps[d];
        }
        inside
    }

    fn is_empty(&self) -> bool {
        self.ranges[..self.rank].iter().any(|(first, end)| first >= end)
    }

    fn is_whole(&self, dims: &[usize]) -> bool {
        self.ranges.iter().zip(dims).all(|(&range, &d)| range == (0, d))
    }

    /// Calls `f` with each run, in order of the tile's elements.
    fn runs(&self, dims: &[usize], bytes: usize, mut f: impl FnMut(Run) -> Result<(), Fault>) -> Result<(), Fault> {
        if self.is_empty() {
            return Ok(());
        }
        let last = self.rank - 1;
        let (from, to) = self.ranges[last];
        let step = self.steps[last];
        let mut index: [usize; Shape::MAX_RANK] = self.ranges.map(|(first, _)| first);
        loop {
            let (mut address, mut first) = (self.origin + step * from as i128, 0);
            for d in 0..last {
                address += self.steps[d] * index[d] as i128;
                first = (first + index[d]) * dims[d + 1];
            }
            first += from;
            match i64::try_from(step) {
                Ok(step) => f(Run { address, first, len: to - from, step })?,
                // So far apart that a second element is in no memory: it is refused at its exact address.
                Err(_) => {
                    for i in 0..to - from {
                        let address = address + step * i as i128;
                        f(Run { address, first: first + i, len: 1, step: bytes as i64 })?;
                    }
                }
            }
            let mut d = last;
            loop {
                if d == 0 {
                    return Ok(());
                }
                d -= 1;
                index[d] += 1;
                if index[d] < self.ranges[d].1 {
                    break;
                }
                index[d] = self.ranges[d].0;
            }
        }
    }
}

pub(super) fn view_load(worker: &mut Worker, inst: &Inst, rank: usize, context: Context<'_>) -> Result<()> {
    let out = &inst.results[0];
    let (dims, dtype) = (&out.ty.dims, out.ty.elem.dtype());
    let inside = Inside::new(worker, &inst.operands, rank, dims, dtype.bytes());
    let pad = inst.operands.get(1 + 3 * rank).map_or(0, |pad| worker.scalar(pad));
    if inside.is_empty() {
        worker.set(out, Repr::Uniform(pad));
        return Ok(());
    }
    let mut port = Port::load_port(context, inst, dtype, Some(worker.scalar(&inst.operands[0])));
    let done = worker.write(out, |_, buffer| {
        if !inside.is_whole(dims) {
            fill(buffer, dtype.bytes(), pad);
        }
        let done = inside.runs(dims, dtype.bytes(), |run| port.load(run, buffer));
        normalise(buffer, dtype);
        done
    });
    done.map_err(|fault| port.error(inst, fault, out))
}

pub(super) fn view_store(worker: &mut Worker, inst: &Inst, rank: usize, context: Context<'_>) -> Result<()> {
    let x = &inst.operands[1 + 3 * rank];
    let (dims, dtype) = (&x.ty.dims, x.ty.elem.dtype());
    let inside = Inside::new(worker, &inst.operands, rank, dims, dtype.bytes());
    worker.densify(x);
    worker.stores = worker.stores.wrapping_add(1);
    let base = Some(worker.scalar(&inst.operands[0]));
    let mut port = Port::new(context, inst, dtype, true, base, worker.stores);
    let data = worker.slots[x.slot].bytes(&x.ty);
    inside.runs(dims, dtype.bytes(), |run| port.store(run, data)).map_err(|fault| port.error(inst, fault, x))
}
