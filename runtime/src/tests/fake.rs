//! A device that remembers launches instead of doing them: for what the runtime itself does.

use crate::backend::*;
use crate::device::{DeviceInfo, DeviceKind, Hardware};
use crate::error::Result;
use crate::metadata::Resources;
use crate::{Device, Error};
use std::any::Any;
use std::sync::{Arc, Mutex};

/// A launch as the device got it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    pub grid: [u32; 3],
    pub words: Vec<u64>,
}

#[derive(Default)]
pub(super) struct Log(pub Mutex<Vec<Seen>>);

struct Fake {
    info: DeviceInfo,
    log: Option<Arc<Log>>,
    /// Is no event ever reached?
    hangs: bool,
    /// Memory is that of the CPU device.
    memory: Arc<dyn Backend>,
}

/// A device whose launches do nothing at all.
pub(super) fn device() -> Device {
    make(None, false)
}

/// A device whose launches are written down.
pub(super) fn logging() -> (Device, Arc<Log>) {
    let log = Arc::new(Log::default());
    (make(Some(log.clone()), false), log)
}

/// A device whose launches never end.
pub(super) fn hanging() -> Device {
    make(None, true)
}

fn make(log: Option<Arc<Log>>, hangs: bool) -> Device {
    let info = DeviceInfo {
        name: "fake:0".into(),
        kind: DeviceKind::Cpu,
        model: "fake".into(),
        driver: "0".into(),
        memory_bytes: None,
        gpu: false,
        hardware: Hardware::default(),
        unusable: None,
    };
    Device::from_backend(Arc::new(Fake { info, log, hangs, memory: crate::cpu::open() }))
}

struct Kernel(Option<Arc<Log>>);

impl Loaded for Kernel {
    fn launch(&self, _stream: RawStream, grid: [u32; 3], args: &PackedArgs<'_>) -> Result<()> {
        if let Some(log) = &self.0 {
            log.0.lock().unwrap().push(Seen { grid, words: args.words.to_vec() });
        }
        Ok(())
    }
    fn resources(&self) -> Resources {
        Resources::default()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Point {
    reached: bool,
}

impl RawEvent for Point {
    fn wait(&self) -> Result<()> {
        assert!(self.reached, "this would wait for ever");
        Ok(())
    }
    fn is_done(&self) -> Result<bool> {
        Ok(self.reached)
    }
    fn elapsed_ms(&self, _later: &dyn RawEvent) -> Result<f64> {
        Ok(0.0)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Backend for Fake {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn target(&self) -> Target<'_> {
        Target::Interpreter
    }
    fn driver(&self) -> &str {
        "0"
    }
    fn grid_limits(&self) -> [u64; 3] {
        [i32::MAX as u64, 65_535, 65_535]
    }
    fn alloc(&self, bytes: u64) -> Result<RawMem> {
        self.memory.alloc(bytes)
    }
    fn free(&self, mem: RawMem) {
        assert!(!self.hangs, "this may wait for ever");
        self.memory.free(mem);
    }
    fn write(&self, mem: RawMem, offset: u64, data: &[u8]) -> Result<()> {
        self.memory.write(mem, offset, data)
    }
    fn read(&self, mem: RawMem, offset: u64, data: &mut [u8]) -> Result<()> {
        self.memory.read(mem, offset, data)
    }
    fn fill(&self, mem: RawMem, offset: u64, bytes: u64, value: u8) -> Result<()> {
        self.memory.fill(mem, offset, bytes, value)
    }
    fn copy(&self, _: RawMem, _: u64, _: RawMem, _: u64, _: u64) -> Result<()> {
        Err(Error::View("not needed by any test".into()))
    }
    fn memory(&self) -> (Option<u64>, Option<u64>) {
        (None, None)
    }
    fn load(&self, _image: &Image<'_>) -> Result<Box<dyn Loaded>> {
        Ok(Box::new(Kernel(self.log.clone())))
    }
    fn new_stream(&self) -> Result<RawStream> {
        Ok(RawStream::DEFAULT)
    }
    fn drop_stream(&self, _stream: RawStream) {}
    fn sync_stream(&self, _stream: RawStream) -> Result<()> {
        Ok(())
    }
    fn sync(&self) -> Result<()> {
        assert!(!self.hangs, "this would wait for ever");
        Ok(())
    }
    fn record(&self, _stream: RawStream) -> Result<Box<dyn RawEvent>> {
        Ok(Box::new(Point { reached: !self.hangs }))
    }
    fn wait_event(&self, _stream: RawStream, _event: &dyn RawEvent) -> Result<()> {
        Ok(())
    }
}
