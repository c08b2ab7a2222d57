//! What the runtime asks of a device: one object-safe trait, so that nothing above it is generic over devices.

use crate::device::DeviceInfo;
use crate::error::Result;
use crate::metadata::Resources;
use std::any::Any;
use std::time::Instant;
use tilewright_compiler::target::{Caps, Compiled};
use tilewright_compiler::tile::Function;

/// A piece of device memory. A plain handle: [`crate::buffer::Memory`] owns it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawMem {
    /// Address of the first byte as kernels see it; 0 where kernels take handles (OpenCL).
    pub addr: u64,
    /// The driver's handle, where there is one beside the address.
    pub handle: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A stream's handle; 0 is the device's own stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawStream(pub u64);

impl RawStream {
    /// The stream every device has.
    pub const DEFAULT: RawStream = RawStream(0);
}

/// What a device executes.
pub(crate) enum Target<'a> {
    /// Tile IR itself.
    Interpreter,
    /// Code compiled for these capabilities.
    Code(&'a Caps),
}

/// What is loaded onto a device.
pub(crate) enum Image<'a> {
    /// For [`Target::Interpreter`].
    Tile(&'a Function),
    /// For [`Target::Code`].
    Code {
        /// The compiler's output.
        compiled: &'a Compiled,
        /// What [`Backend::assemble`] made of it.
        binary: Option<&'a [u8]>,
    },
}

/// What an assembler outside the driver's loader made of code.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Assembled {
    /// The binary, if the device takes one.
    pub binary: Option<Vec<u8>>,
    /// What the assembler printed.
    pub log: String,
    /// What the log says of the kernel.
    pub resources: Resources,
}

/// Memory that a pointer parameter may reach.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Region {
    pub addr: u64,
    pub bytes: u64,
    pub writable: bool,
}

/// The arguments of one launch, packed.
pub(crate) struct PackedArgs<'a> {
    /// One word for each flattened parameter in launch order, its low bytes first. Where kernels take memory handles
    /// ([`Backend::handles`]) a pointer is two words: handle and byte offset.
    pub words: &'a [u64],
    /// The memory each pointer parameter may reach, in parameter order.
    pub regions: &'a [Region],
}

/// One launch of a graph.
pub(crate) struct RawLaunch<'a> {
    pub kernel: &'a dyn Loaded,
    /// No extent is 0.
    pub grid: [u32; 3],
    /// As in [`PackedArgs`].
    pub words: &'a [u64],
}

/// Launches that the driver knows, to be submitted together in order. Kernels outlive the graphs they are in.
pub(crate) trait RawGraph: Send + Sync {
    /// Replaces the arguments of the launch of this number from the next submission on.
    fn update(&mut self, index: usize, launch: &RawLaunch<'_>) -> Result<()>;
    /// Submits all, after everything submitted to `stream` before.
    fn launch(&mut self, stream: RawStream) -> Result<()>;
}

/// A kernel on a device, ready to run.
pub(crate) trait Loaded: Send + Sync {
    /// Starts `grid` programs, after everything submitted to `stream` before. No extent is 0.
    fn launch(&self, stream: RawStream, grid: [u32; 3], args: &PackedArgs<'_>) -> Result<()>;
    /// The same, but where the work is done before the call returns it ends with
    /// [`tilewright_compiler::Error::TimedOut`] soon after `until`.
    fn launch_until(&self, stream: RawStream, grid: [u32; 3], args: &PackedArgs<'_>, _until: Instant) -> Result<()> {
        self.launch(stream, grid, args)
    }
    /// What the driver says of the kernel.
    fn resources(&self) -> Resources;
    /// Programs that one processor of the device runs at once, where the driver says so.
    fn programs_per_processor(&self) -> Option<u32> {
        None
    }
    /// For the backend to know its own kernels again.
    fn as_any(&self) -> &dyn Any;
}

/// A point in a stream.
pub(crate) trait RawEvent: Send + Sync {
    /// Blocks until the point is reached.
    fn wait(&self) -> Result<()>;
    /// Is the point reached?
    fn is_done(&self) -> Result<bool>;
    /// Milliseconds of device time from this point to `later`, waiting for both.
    fn elapsed_ms(&self, later: &dyn RawEvent) -> Result<f64>;
    /// For the backend to know its own events again.
    fn as_any(&self) -> &dyn Any;
}

impl dyn RawEvent + '_ {
    /// The backend's own event. Events of different devices are never mixed: the runtime checks that.
    pub fn own<E: RawEvent + 'static>(&self) -> &E {
        self.as_any().downcast_ref().expect("events of one device are of one kind")
    }
}

/// A device's driver.
///
/// Memory functions are ordered after all work submitted before, on any stream; `read` and `write` have finished with
/// the host memory when they return.
pub(crate) trait Backend: Send + Sync {
    /// Name and properties.
    fn info(&self) -> &DeviceInfo;
    /// What the device executes.
    fn target(&self) -> Target<'_>;
    /// Identifies driver and device model in the code cache.
    fn driver(&self) -> &str;
    /// Do kernels take memory by handle and offset, not by address?
    fn handles(&self) -> bool {
        false
    }
    /// Most programs along each axis.
    fn grid_limits(&self) -> [u64; 3] {
        // Program ids are `i32`.
        [i32::MAX as u64; 3]
    }
    /// New memory; `bytes` is not 0. Aligned to at least 16 bytes.
    fn alloc(&self, bytes: u64) -> Result<RawMem>;
    /// Gives memory back once the work submitted so far is done.
    fn free(&self, mem: RawMem);
    /// Copies to the device.
    fn write(&self, mem: RawMem, offset: u64, data: &[u8]) -> Result<()>;
    /// Copies from the device.
    fn read(&self, mem: RawMem, offset: u64, data: &mut [u8]) -> Result<()>;
    /// Sets bytes.
    fn fill(&self, mem: RawMem, offset: u64, bytes: u64, value: u8) -> Result<()>;
    /// Copies on the device. The two ranges do not overlap.
    fn copy(&self, from: RawMem, from_offset: u64, to: RawMem, to_offset: u64, bytes: u64) -> Result<()>;
    /// Bytes free and in all, if the driver tells.
    fn memory(&self) -> (Option<u64>, Option<u64>);
    /// Turns code into what [`Backend::load`] loads fastest; nothing where the driver takes the code as it is.
    fn assemble(&self, _compiled: &Compiled) -> Result<Assembled> {
        Ok(Assembled::default())
    }
    /// Puts a kernel on the device.
    fn load(&self, image: &Image<'_>) -> Result<Box<dyn Loaded>>;
    /// Makes one submission of many launches; `None` where launching one after the other is as good.
    fn graph(&self, _launches: &[RawLaunch<'_>]) -> Result<Option<Box<dyn RawGraph>>> {
        Ok(None)
    }
    /// A stream beside the device's own.
    fn new_stream(&self) -> Result<RawStream>;
    /// Gives a stream back once its work is done.
    fn drop_stream(&self, stream: RawStream);
    /// Waits until a stream has done all its work.
    fn sync_stream(&self, stream: RawStream) -> Result<()>;
    /// Waits until all streams have done all their work.
    fn sync(&self) -> Result<()>;
    /// Marks the point in `stream` reached so far.
    fn record(&self, stream: RawStream) -> Result<Box<dyn RawEvent>>;
    /// Work submitted to `stream` from now on starts after `event`.
    fn wait_event(&self, stream: RawStream, event: &dyn RawEvent) -> Result<()>;
}
