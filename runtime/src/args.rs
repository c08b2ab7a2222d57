//! Arguments of a launch.

use crate::backend::{Backend, Region};
use crate::buffer::Memory;
use crate::device::DeviceInner;
use crate::element::{Element, to_word};
use crate::error::{Error, Result};
use crate::small::Small;
use crate::view::{Slice, Strided, View};
use std::fmt;
use std::sync::Arc;
use tilewright_compiler::DType;
use tilewright_compiler::dsl::Access;
use tilewright_compiler::tile::{Constant, ParamKind};

/// One argument of a launch.
#[derive(Clone, Copy)]
pub struct KernelArg<'a>(pub(crate) Repr<'a>);

#[derive(Clone, Copy)]
pub(crate) enum Repr<'a> {
    View { memory: &'a Arc<Memory>, shape: Strided, access: Access, coarse: bool },
    Slice { memory: &'a Arc<Memory>, dtype: DType, lo: u64, hi: u64 },
    Scalar { dtype: DType, word: u64 },
}

impl<'a> KernelArg<'a> {
    /// A view.
    pub fn from_view<T, const R: usize>(view: View<'a, T, R>, access: Access) -> Self {
        Self(Repr::View { memory: view.memory, shape: view.shape, access, coarse: false })
    }

    /// A pointer. The kernel may read and write what lies in the slice.
    pub fn from_slice<T>(slice: Slice<'a, T>) -> Self {
        let (lo, hi) = slice.byte_range();
        Self(Repr::Slice { memory: slice.memory, dtype: slice.dtype, lo, hi })
    }

    /// A number.
    pub fn from_scalar<T: Element>(value: T) -> Self {
        Self(Repr::Scalar { dtype: T::DTYPE, word: to_word(value) })
    }

    /// A number of a type known only at run time.
    pub fn from_constant(dtype: DType, value: Constant) -> Self {
        Self(Repr::Scalar { dtype, word: value.as_i64(dtype).map_or(value.0, |i| i as u64) })
    }

    /// A view of untyped memory, for callers that know dtypes and ranks only at run time. Offset and strides in elements.
    ///
    /// # Errors
    /// [`Error::View`] as for [`crate::Buffer::view_strided`].
    pub fn from_memory(
        memory: &'a Arc<Memory>,
        dtype: DType,
        offset: usize,
        dims: &[usize],
        strides: &[isize],
        access: Access,
    ) -> Result<Self> {
        let shape = Strided::new(memory.bytes(), dtype, offset, dims, strides)?;
        Ok(Self(Repr::View { memory, shape, access, coarse: false }))
    }

    /// A pointer to elements of untyped memory, for callers that know dtypes only at run time. The kernel may read and write
    /// those of the range.
    ///
    /// # Errors
    /// [`Error::View`] if the range is not inside the memory.
    pub fn pointer(memory: &'a Arc<Memory>, dtype: DType, range: std::ops::Range<usize>) -> Result<Self> {
        let (size, elements) = (dtype.bytes() as u64, memory.bytes() / dtype.bytes() as u64);
        if range.start > range.end || range.end as u64 > elements {
            return Err(Error::View(format!(
                "elements {}..{} of {dtype} are not inside of memory of {elements} elements",
                range.start, range.end
            )));
        }
        Ok(Self(Repr::Slice { memory, dtype, lo: range.start as u64 * size, hi: range.end as u64 * size }))
    }

    /// The same argument, of whose strides and contiguous extents only multiples of 16 (and strides of 1) are told apart: fewer
    /// variants of the kernel where extents change from launch to launch. Anything but a view stays as it is.
    #[must_use]
    pub fn coarse(mut self) -> Self {
        if let Repr::View { coarse, .. } = &mut self.0 {
            *coarse = true;
        }
        self
    }

    pub(crate) fn memory(&self) -> Option<&'a Arc<Memory>> {
        match self.0 {
            Repr::View { memory, .. } | Repr::Slice { memory, .. } => Some(memory),
            Repr::Scalar { .. } => None,
        }
    }

    pub(crate) fn kind(&self) -> ParamKind {
        match self.0 {
            Repr::View { shape, .. } => ParamKind::View { dtype: shape.dtype, rank: shape.rank },
            Repr::Slice { dtype, .. } => ParamKind::Ptr { dtype },
            Repr::Scalar { dtype, .. } => ParamKind::Scalar(dtype),
        }
    }
}

impl fmt::Debug for KernelArg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&kind_text(&self.kind()))
    }
}

/// A parameter kind in words.
pub(crate) fn kind_text(kind: &ParamKind) -> String {
    match kind {
        ParamKind::Scalar(d) => format!("a number of type {d}"),
        ParamKind::Ptr { dtype } => format!("a pointer to {dtype}"),
        ParamKind::View { dtype, rank } => format!("a view of {dtype} with {rank} dimensions"),
    }
}

/// The words and regions of a launch, as [`crate::backend::PackedArgs`] wants them.
#[derive(Default)]
pub(crate) struct Words {
    pub words: Small<u64, 64>,
    pub regions: Small<Region, 16>,
}

/// Packs the arguments for a device, without allocating in the common case.
pub(crate) fn pack(args: &[(&'static str, KernelArg<'_>)], backend: &dyn Backend) -> Words {
    let mut out = Words::default();
    let handles = backend.handles();
    let pointer = |out: &mut Words, memory: &Memory, base: u64, (lo, hi, writable): (u64, u64, bool)| {
        if handles {
            out.words.push(memory.handle());
            out.words.push(base);
        } else {
            out.words.push(memory.addr() + base);
        }
        out.regions.push(Region { addr: memory.addr() + lo, bytes: hi - lo, writable });
    };
    for (_, arg) in args {
        match &arg.0 {
            Repr::View { memory, shape, access, .. } => {
                pointer(&mut out, memory, shape.base, (shape.lo, shape.hi, access.writes()));
                let rank = usize::from(shape.rank);
                for &d in &shape.dims[..rank] {
                    out.words.push(i64::from(d) as u64);
                }
                for &s in &shape.strides[..rank] {
                    out.words.push(s as u64);
                }
            }
            Repr::Slice { memory, lo, hi, .. } => pointer(&mut out, memory, *lo, (*lo, *hi, true)),
            Repr::Scalar { word, .. } => out.words.push(*word),
        }
    }
    out
}

/// The value of each flattened parameter; `None` for addresses and floats.
pub(crate) fn numbers(args: &[(&'static str, KernelArg<'_>)]) -> Vec<Option<i64>> {
    let mut numbers = Vec::new();
    for (_, arg) in args {
        match &arg.0 {
            Repr::View { shape, .. } => {
                let rank = usize::from(shape.rank);
                numbers.push(None);
                numbers.extend(shape.dims[..rank].iter().map(|&d| Some(i64::from(d))));
                numbers.extend(shape.strides[..rank].iter().map(|&s| Some(s)));
            }
            Repr::Slice { .. } => numbers.push(None),
            Repr::Scalar { dtype, word } => numbers.push(dtype.is_int().then_some(*word as i64)),
        }
    }
    numbers
}

/// A pointer among packed arguments.
pub(crate) struct Pointer<'a> {
    pub memory: &'a Arc<Memory>,
    /// Its word: the address, or the handle before the offset.
    pub word: usize,
    pub written: bool,
}

/// Where [`pack`] puts the pointers, in the order of the regions.
pub(crate) fn pointers<'a>(args: &[(&'static str, KernelArg<'a>)], backend: &dyn Backend) -> Vec<Pointer<'a>> {
    let wide = if backend.handles() { 2 } else { 1 };
    let mut word = 0;
    let mut all = Vec::new();
    for (_, arg) in args {
        match arg.0 {
            Repr::View { memory, shape, access, .. } => {
                all.push(Pointer { memory, word, written: access.writes() });
                word += wide + 2 * usize::from(shape.rank);
            }
            Repr::Slice { memory, .. } => {
                all.push(Pointer { memory, word, written: true });
                word += wide;
            }
            Repr::Scalar { .. } => word += 1,
        }
    }
    all
}

/// The device the arguments live on; `preferred` if none has memory.
pub(crate) fn device_of(
    kernel: &str,
    args: &[(&'static str, KernelArg<'_>)],
    preferred: Option<&Arc<DeviceInner>>,
) -> Result<Arc<DeviceInner>> {
    let mut found: Option<(&str, &Arc<DeviceInner>)> = preferred.map(|d| ("the launch's device", d));
    for (name, arg) in args {
        let Some(memory) = arg.memory() else { continue };
        match found {
            None => found = Some((name, &memory.device)),
            Some((_, device)) if Arc::ptr_eq(device, &memory.device) => {}
            Some((first, device)) => {
                return Err(Error::DifferentDevices {
                    what: format!("`{first}` and `{name}` of kernel `{kernel}`"),
                    first: device.backend.info().name.clone(),
                    second: memory.device.backend.info().name.clone(),
                });
            }
        }
    }
    found.map(|(_, d)| d.clone()).ok_or_else(|| Error::Arguments {
        kernel: kernel.to_owned(),
        message: "no argument is in a device's memory, so the device is unknown; name it with `.on(&device)`".into(),
    })
}

/// Checks arguments against the parameters the kernel's IR has.
pub(crate) fn check(
    kernel: &str,
    args: &[(&'static str, KernelArg<'_>)],
    params: &[tilewright_compiler::tile::Param],
) -> Result<()> {
    let fail = |message: String| Err(Error::Arguments { kernel: kernel.to_owned(), message });
    if args.len() != params.len() {
        let names: Vec<_> = params.iter().map(|p| format!("`{}`", p.name)).collect();
        return fail(format!(
            "it has {} parameters ({}), but {} arguments were given",
            params.len(),
            names.join(", "),
            args.len()
        ));
    }
    for (i, ((name, arg), param)) in args.iter().zip(params).enumerate() {
        if *name != param.name {
            return fail(format!("parameter {i} is `{}`, but the argument there is named `{name}`", param.name));
        }
        if arg.kind() != param.kind {
            return fail(format!("`{name}` is {}, but {} was given", kind_text(&param.kind), kind_text(&arg.kind())));
        }
    }
    Ok(())
}
