//! Devices: found by name, opened once per process.

use crate::backend::{Backend, RawStream};
use crate::buffer::Buffer;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::launch::KernelTable;
use crate::stats::{Counters, Stats};
use crate::stream::Stream;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};
use tilewright_compiler::target::Caps;

/// Which driver a device belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeviceKind {
    /// The built-in interpreter; always there.
    Cpu,
    /// An NVIDIA GPU through the CUDA driver.
    Cuda,
    /// A Vulkan device.
    Vulkan,
    /// An OpenCL device.
    OpenCl,
}

/// How much of everything that programs share a device has, as far as its driver says: what costs are reckoned with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Hardware {
    /// Processors (multiprocessors, compute units), each of which runs whole programs.
    pub processors: Option<u32>,
    /// Registers of 32 bits of one processor.
    pub registers: Option<u32>,
    /// Bytes of shared memory of one processor, for all programs on it.
    pub shared_bytes: Option<u32>,
    /// Threads that one processor holds at once.
    pub threads: Option<u32>,
    /// Bytes of the cache that all processors share.
    pub l2_bytes: Option<u64>,
}

/// What a device is.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The name [`Device::open`] takes: `cpu`, `cuda:0`, `vulkan:1`, `opencl:0`.
    pub name: String,
    /// Its driver.
    pub kind: DeviceKind,
    /// The model, as the driver calls it.
    pub model: String,
    /// The driver's version.
    pub driver: String,
    /// Bytes of memory, if known.
    pub memory_bytes: Option<u64>,
    /// Is it a GPU? Software devices are not.
    pub gpu: bool,
    /// Its size.
    pub hardware: Hardware,
    /// Why it cannot run Tilewright's kernels, if it cannot; opening it is an error.
    pub unusable: Option<String>,
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.model)?;
        match &self.unusable {
            Some(why) => write!(f, ", unusable: {why}"),
            None => Ok(()),
        }
    }
}

/// A device. Cheap to clone; all clones, and all devices opened by one name, share memory and loaded kernels.
#[derive(Clone)]
pub struct Device {
    pub(crate) inner: Arc<DeviceInner>,
}

pub(crate) struct DeviceInner {
    // Kernels go before the backend that loaded them.
    pub kernels: KernelTable,
    pub counters: Counters,
    pub backend: Arc<dyn Backend>,
    /// Set once a kernel did not end in its time and cannot be ended: any call of the driver may wait for it for ever.
    pub stuck: OnceLock<String>,
}

impl DeviceInner {
    /// The backend, unless the device is stuck.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn live(&self) -> Result<&dyn Backend> {
        match self.stuck.get() {
            None => Ok(self.backend.as_ref()),
            Some(cause) => Err(Error::DeviceLost { device: self.backend.info().name.clone(), cause: cause.clone() }),
        }
    }

    /// Gives the device up for good: nothing of it is given back to the driver any more.
    pub fn give_up(self: &Arc<Self>, cause: String) {
        if self.stuck.set(cause).is_ok() {
            // Its last owner would close it, and wait.
            std::mem::forget(self.clone());
        }
    }
}

impl Device {
    /// The best device present: a CUDA GPU, else a GPU through Vulkan, else one through OpenCL, else the CPU. Software
    /// implementations of Vulkan and OpenCL are never chosen; ask for them by name.
    ///
    /// # Errors
    /// None in practice: a GPU that cannot be opened is passed over, and the CPU device always opens.
    pub fn best() -> Result<Device> {
        for info in Self::list() {
            if info.gpu
                && info.unusable.is_none()
                && let Ok(device) = Self::open(&info.name)
            {
                return Ok(device);
            }
        }
        Self::open("cpu")
    }

    /// Every device of this machine, best first; the CPU device last. Absent libraries are no error: their devices are
    /// just not there.
    pub fn list() -> Vec<DeviceInfo> {
        let mut all = crate::cuda::list();
        all.extend(crate::vulkan::list());
        #[cfg(feature = "opencl")]
        all.extend(crate::opencl::list());
        all.sort_by_key(|d| !d.gpu);
        all.push(crate::cpu::info());
        all
    }

    /// The device of a name such as `cpu`, `cuda:0`, `vulkan:1`, `opencl:0`; a driver's name alone means its device 0.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`] with the devices there are; or what the driver says.
    pub fn open(name: &str) -> Result<Device> {
        let name = name.trim().to_ascii_lowercase();
        let (driver, index) = match name.split_once(':') {
            None => (name.as_str(), 0),
            Some((driver, index)) => {
                let index = index
                    .parse::<usize>()
                    .map_err(|_| unknown(&name, format!("`{index}` is not a number"), "write a device as `cuda:0`"))?;
                (driver, index)
            }
        };
        if driver == "cpu" && index != 0 {
            return Err(unknown(&name, "there is one CPU device".into(), "write `cpu`"));
        }
        let canonical = if driver == "cpu" { "cpu".to_owned() } else { format!("{driver}:{index}") };
        // Two openings of one device must give one device, so the table stays locked while the driver works.
        let mut table = open_devices().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(inner) = table.get(&canonical).and_then(Weak::upgrade) {
            return Ok(Device { inner });
        }
        let backend: Arc<dyn Backend> = match driver {
            "cpu" => crate::cpu::open(),
            "cuda" => crate::cuda::open(index)?,
            "vulkan" => crate::vulkan::open(index)?,
            #[cfg(feature = "opencl")]
            "opencl" => crate::opencl::open(index)?,
            #[cfg(not(feature = "opencl"))]
            "opencl" => {
                return Err(unknown(
                    &name,
                    "Tilewright was built without OpenCL".into(),
                    "build with `--features opencl`; that needs libOpenCL (package ocl-icd-opencl-dev)",
                ));
            }
            _ => {
                let why = match closest(driver) {
                    Some(guess) => format!("no driver is called `{driver}`; did you mean `{guess}`?"),
                    None => format!("no driver is called `{driver}`"),
                };
                return Err(unknown(&name, why, "the drivers are `cpu`, `cuda`, `vulkan` and `opencl`"));
            }
        };
        let device = Device::from_backend(backend);
        table.insert(canonical, Arc::downgrade(&device.inner));
        Ok(device)
    }

    pub(crate) fn from_backend(backend: Arc<dyn Backend>) -> Device {
        let (kernels, counters) = (KernelTable::default(), Counters::default());
        Device { inner: Arc::new(DeviceInner { kernels, counters, backend, stuck: OnceLock::new() }) }
    }

    /// What the device is.
    pub fn info(&self) -> &DeviceInfo {
        self.inner.backend.info()
    }

    /// The name [`Device::open`] takes.
    pub fn name(&self) -> &str {
        &self.info().name
    }

    /// What code generation may use; `None` for the CPU device, which interprets.
    pub fn caps(&self) -> Option<&Caps> {
        match self.inner.backend.target() {
            crate::backend::Target::Interpreter => None,
            crate::backend::Target::Code(caps) => Some(caps),
        }
    }

    /// A buffer of `len` elements, all bits 0.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or what the driver says.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let buffer = Buffer::alloc(self, len)?;
        buffer.fill_bytes(0)?;
        Ok(buffer)
    }

    /// A buffer of `len` elements of no particular value. With debug assertions it is filled with bytes `0xA5`, so that
    /// reading what nobody wrote is seen.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or what the driver says.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let buffer = Buffer::alloc(self, len)?;
        if cfg!(debug_assertions) {
            buffer.fill_bytes(0xA5)?;
        }
        Ok(buffer)
    }

    /// A buffer with the elements of `host`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or what the driver says.
    pub fn buffer_from<T: Element>(&self, host: &[T]) -> Result<Buffer<T>> {
        let buffer = Buffer::alloc(self, host.len())?;
        buffer.copy_from(host)?;
        Ok(buffer)
    }

    /// A new stream. On CUDA its work may overlap that of other streams; on the other devices all streams share one
    /// queue and run in order of submission.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new_stream(&self) -> Result<Stream> {
        Ok(Stream::new(self, self.inner.live()?.new_stream()?))
    }

    /// The stream that launches use when none is named.
    pub fn default_stream(&self) -> Stream {
        Stream::new(self, RawStream::DEFAULT)
    }

    /// Waits until all streams have done all their work; reports the faults of launches since the last wait.
    ///
    /// # Errors
    /// What the driver says.
    pub fn synchronize(&self) -> Result<()> {
        self.inner.live()?.sync()
    }

    /// Bytes of memory free and in all, where the driver tells.
    pub fn memory(&self) -> (Option<u64>, Option<u64>) {
        self.inner.backend.memory()
    }

    /// The device's counters.
    pub fn stats(&self) -> Stats {
        self.inner.counters.snapshot()
    }

    /// How many variants of the kernel at this module path are loaded on the device.
    pub fn variants_of(&self, path: &str) -> usize {
        self.inner.kernels.variants_of(path)
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.name()).finish()
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.info())
    }
}

/// Devices open in this process, so that opening one twice shares memory and kernels. Weak, so that dropping the last
/// handle gives the driver's objects back.
fn open_devices() -> &'static Mutex<HashMap<String, Weak<DeviceInner>>> {
    static OPEN: LazyLock<Mutex<HashMap<String, Weak<DeviceInner>>>> = LazyLock::new(Mutex::default);
    &OPEN
}

/// The error for a name that names no device.
pub(crate) fn unknown(name: &str, why: String, help: &'static str) -> Error {
    let available: Vec<String> = Device::list().iter().map(ToString::to_string).collect();
    Error::UnknownDevice { name: name.to_owned(), why, available: available.join(", "), help }
}

/// The driver whose name is nearest to a mistyped one.
fn closest(name: &str) -> Option<&'static str> {
    match name {
        "gpu" | "nvidia" | "nv" | "ptx" => return Some("cuda"),
        "cl" | "ocl" => return Some("opencl"),
        "vk" | "spirv" => return Some("vulkan"),
        "host" => return Some("cpu"),
        _ => {}
    }
    // Of two equally near, the one of the same length: letters swapped are the commonest slip.
    let all = ["cpu", "cuda", "vulkan", "opencl"];
    let near = all.map(|d| (edits(name, d), name.len().abs_diff(d.len()), d)).into_iter().min();
    near.filter(|(edits, _, _)| *edits <= 2).map(|(_, _, d)| d)
}

/// How many letters must be inserted, removed or replaced to turn `a` into `b` (Levenshtein).
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != y)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_always_listed_last_and_opens() {
        let all = Device::list();
        assert_eq!(all.last().map(|d| d.name.as_str()), Some("cpu"));
        assert_eq!(Device::open("CPU").unwrap().info().kind, DeviceKind::Cpu);
        assert_eq!(Device::open("cpu:0").unwrap(), Device::open("cpu").unwrap());
    }

    #[test]
    fn best_is_never_a_software_device() {
        let best = Device::best().unwrap();
        assert!(best.info().gpu || best.info().kind == DeviceKind::Cpu, "{best}");
    }

    #[test]
    fn unknown_names_list_what_there_is_and_suggest() {
        let e = Device::open("cdua:0").unwrap_err().to_string();
        assert!(e.contains("did you mean `cuda`?") && e.contains("cpu ("), "{e}");
        let e = Device::open("cuda:x").unwrap_err().to_string();
        assert!(e.contains("`x` is not a number"), "{e}");
        let e = Device::open("cpu:3").unwrap_err().to_string();
        assert!(e.contains("there is one CPU device"), "{e}");
        for name in ["", ":", "::", "cuda:-1", "vulkan:99", "cuda:99", "opencl:99", "cuda:18446744073709551616"] {
            assert!(matches!(Device::open(name), Err(Error::UnknownDevice { .. })), "{name}: {:?}", Device::open(name));
        }
    }
}
