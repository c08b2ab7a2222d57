//! What memory a launch reaches, and plain copies of it: for tools that run a launch many times and compare what it wrote.

use crate::args::{KernelArg, Repr};
use crate::backend::RawMem;
use crate::buffer::Memory;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::launch::Launch;
use crate::stream::same_device;
use crate::view::{Slice, View};
use std::ops::Range;
use std::sync::Arc;
use tilewright_compiler::DType;
use tilewright_compiler::dsl::Access;

/// The memory that one argument of a launch reaches.
#[derive(Clone, Debug)]
pub struct Reach<'a> {
    /// The parameter's name.
    pub name: &'static str,
    /// The memory.
    pub memory: &'a Arc<Memory>,
    /// The bytes of it that the elements lie in; with gaps between them if the view is strided.
    pub bytes: Range<u64>,
    /// The element type.
    pub dtype: DType,
    /// What the kernel may do with it. A pointer may do both.
    pub access: Access,
}

impl<'a> Launch<'a> {
    /// The memory that the arguments reach, in the order of the parameters.
    pub fn reach(&self) -> impl Iterator<Item = Reach<'a>> + '_ {
        self.arguments().iter().filter_map(|(name, arg)| reach(name, arg))
    }

    /// The same launch on other memory: for each argument in memory `place` gives the memory to use instead, and where in it
    /// the first byte of [`Reach::bytes`] is. What lies apart must stay apart, at addresses that are multiples of the same
    /// powers of two up to 256, for kernels are specialised for both.
    ///
    /// # Errors
    /// [`Error::View`] if an argument does not fit in where it is placed, [`Error::DifferentDevices`], or what `place` says.
    pub fn relocated<'b>(&self, place: impl Fn(&Reach<'_>) -> Result<(&'b Arc<Memory>, u64)>) -> Result<Launch<'b>> {
        let mut args = Vec::with_capacity(self.arguments().len());
        for (name, arg) in self.arguments() {
            let Some(reach) = reach(name, arg) else {
                if let Repr::Scalar { dtype, word } = arg.0 {
                    args.push((*name, KernelArg(Repr::Scalar { dtype, word })));
                }
                continue;
            };
            let (to, at) = place(&reach)?;
            same_device("the argument and its new memory", &reach.memory.device, &to.device)?;
            to.part(at, reach.bytes.end - reach.bytes.start)?;
            let moved = |old: u64| at + (old - reach.bytes.start);
            let repr = match arg.0 {
                Repr::View { mut shape, access, coarse, .. } => {
                    (shape.base, shape.lo, shape.hi) = (moved(shape.base), moved(shape.lo), moved(shape.hi));
                    Repr::View { memory: to, shape, access, coarse }
                }
                Repr::Slice { dtype, lo, hi, .. } => Repr::Slice { memory: to, dtype, lo: moved(lo), hi: moved(hi) },
                Repr::Scalar { dtype, word } => Repr::Scalar { dtype, word },
            };
            args.push((*name, KernelArg(repr)));
        }
        Ok(self.with_arguments(args))
    }

    /// The device it will run on.
    ///
    /// # Errors
    /// [`Error::DifferentDevices`], or [`Error::Arguments`] if nothing names a device.
    pub fn target(&self) -> Result<Device> {
        Ok(Device { inner: self.device()? })
    }
}

fn reach<'a>(name: &'static str, arg: &KernelArg<'a>) -> Option<Reach<'a>> {
    match arg.0 {
        Repr::View { memory, shape, access, .. } => {
            Some(Reach { name, memory, bytes: shape.lo..shape.hi, dtype: shape.dtype, access })
        }
        Repr::Slice { memory, dtype, lo, hi } => {
            Some(Reach { name, memory, bytes: lo..hi, dtype, access: Access::InOut })
        }
        Repr::Scalar { .. } => None,
    }
}

impl Memory {
    /// Copies bytes to the host, after the work submitted before.
    ///
    /// # Errors
    /// [`Error::View`] if the range is not inside, or what the driver says.
    pub fn read_bytes(&self, at: u64, host: &mut [u8]) -> Result<()> {
        match self.part(at, host.len() as u64)? {
            Some(raw) => self.device.live()?.read(raw, at, host),
            None => Ok(()),
        }
    }

    /// Sets every byte of a range, after the work submitted before.
    ///
    /// # Errors
    /// [`Error::View`] if the range is not inside, or what the driver says.
    pub fn fill_range(&self, at: u64, bytes: u64, value: u8) -> Result<()> {
        match self.part(at, bytes)? {
            Some(raw) => self.device.live()?.fill(raw, at, bytes, value),
            None => Ok(()),
        }
    }

    /// Copies bytes on the device, after the work submitted before. `from` is other memory of the same device.
    ///
    /// # Errors
    /// [`Error::View`] if a range is not inside or both memories are one, [`Error::DifferentDevices`], or what the driver
    /// says.
    pub fn copy_range(&self, at: u64, from: &Memory, from_at: u64, bytes: u64) -> Result<()> {
        same_device("the two memories", &self.device, &from.device)?;
        if std::ptr::eq(self, from) {
            return Err(Error::View("a copy within one memory".into()));
        }
        match (self.part(at, bytes)?, from.part(from_at, bytes)?) {
            (Some(to), Some(from)) => self.device.live()?.copy(from, from_at, to, at, bytes),
            _ => Ok(()),
        }
    }

    /// The whole memory, if `at..at + bytes` lies inside and is not empty.
    fn part(&self, at: u64, bytes: u64) -> Result<Option<RawMem>> {
        if at.checked_add(bytes).is_none_or(|end| end > self.bytes()) {
            return Err(Error::View(format!(
                "{bytes} bytes from byte {at} are not inside a memory of {} bytes",
                self.bytes()
            )));
        }
        let raw = RawMem { addr: self.addr(), handle: self.handle(), bytes: self.bytes() };
        Ok((bytes > 0).then_some(raw))
    }
}

impl<T> Slice<'_, T> {
    /// The device whose memory this is.
    pub fn device(&self) -> Device {
        self.memory.device()
    }
}

impl<T, const R: usize> View<'_, T, R> {
    /// The device whose memory this is, by its name, without taking a share of it.
    pub fn device_name(&self) -> &str {
        &self.memory.device.backend.info().name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_compiler::dsl::{KernelDef, KernelId};

    #[test]
    fn a_launch_says_what_it_reaches() {
        let dev = Device::open("cpu").unwrap();
        let (x, y) = (dev.zeros::<f32>(8).unwrap(), dev.zeros::<u8>(8).unwrap());
        let id = KernelId { path: "k", item: std::any::TypeId::of::<()>(), dtypes: vec![], comptime: vec![] };
        let def = KernelDef::new("k", id, |_| Err(tilewright_compiler::Error::Internal("not built".into())));
        let args = vec![
            ("x", KernelArg::from_view(x.view_strided(2, [3], [2]).unwrap(), Access::Out)),
            ("n", KernelArg::from_scalar(1i32)),
            ("y", KernelArg::from_slice(y.slice(1..3).unwrap())),
        ];
        let launch = Launch::new(def, args);
        let all: Vec<_> = launch.reach().map(|r| (r.name, r.bytes, r.dtype, r.access)).collect();
        assert_eq!(all, [("x", 8..28, DType::F32, Access::Out), ("y", 1..3, DType::U8, Access::InOut)]);
        assert_eq!(launch.target().unwrap(), dev);
    }

    #[test]
    fn copies_stay_inside() {
        let dev = Device::open("cpu").unwrap();
        let (x, y) = (dev.zeros::<u8>(4).unwrap(), dev.zeros::<u8>(4).unwrap());
        x.memory().fill_range(1, 2, 7).unwrap();
        y.memory().copy_range(2, x.memory(), 1, 2).unwrap();
        let mut host = [9; 3];
        y.memory().read_bytes(1, &mut host).unwrap();
        assert_eq!(host, [0, 7, 7]);
        assert!(x.memory().fill_range(3, 2, 0).is_err());
        assert!(x.memory().fill_range(u64::MAX, 2, 0).is_err());
        assert!(x.memory().copy_range(0, x.memory(), 2, 2).is_err());
    }
}
