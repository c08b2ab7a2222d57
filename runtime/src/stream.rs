//! Streams and events.

use crate::backend::{RawEvent, RawStream};
use crate::device::{Device, DeviceInner};
use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// A queue of work that a device does in order.
pub struct Stream {
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) raw: RawStream,
}

impl Stream {
    pub(crate) fn new(device: &Device, raw: RawStream) -> Self {
        Self { device: device.inner.clone(), raw }
    }

    /// The device.
    pub fn device(&self) -> Device {
        Device { inner: self.device.clone() }
    }

    /// Marks the point reached so far.
    ///
    /// # Errors
    /// What the driver says.
    pub fn record(&self) -> Result<Event> {
        Ok(Event { raw: self.device.live()?.record(self.raw)?, device: self.device.clone() })
    }

    /// Makes work submitted from now on start after `event`, which may be of another stream of the same device.
    ///
    /// # Errors
    /// [`Error::DifferentDevices`], or what the driver says.
    pub fn wait(&self, event: &Event) -> Result<()> {
        same_device("the stream and the event", &self.device, &event.device)?;
        self.device.live()?.wait_event(self.raw, event.raw.as_ref())
    }

    /// Waits until the stream has done all its work; reports the faults of its launches since the last wait.
    ///
    /// # Errors
    /// What the driver says.
    pub fn synchronize(&self) -> Result<()> {
        self.device.live()?.sync_stream(self.raw)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.raw != RawStream::DEFAULT
            && let Ok(backend) = self.device.live()
        {
            backend.drop_stream(self.raw);
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({}, {:#x})", self.device.backend.info().name, self.raw.0)
    }
}

/// A point in a stream, for waiting and for timing.
pub struct Event {
    raw: Box<dyn RawEvent>,
    device: Arc<DeviceInner>,
}

impl Event {
    /// Blocks until the point is reached.
    ///
    /// # Errors
    /// What the driver says.
    pub fn synchronize(&self) -> Result<()> {
        self.device.live()?;
        self.raw.wait()
    }

    /// Is the point reached?
    ///
    /// # Errors
    /// What the driver says.
    pub fn is_done(&self) -> Result<bool> {
        self.device.live()?;
        self.raw.is_done()
    }

    /// Milliseconds from this point to the `later` one, by the device's clock; waits for both.
    ///
    /// # Errors
    /// [`Error::DifferentDevices`], or what the driver says.
    pub fn elapsed_ms(&self, later: &Event) -> Result<f64> {
        same_device("the two events", &self.device, &later.device)?;
        self.device.live()?;
        self.raw.elapsed_ms(later.raw.as_ref())
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({})", self.device.backend.info().name)
    }
}

pub(crate) fn same_device(what: &str, a: &Arc<DeviceInner>, b: &Arc<DeviceInner>) -> Result<()> {
    if Arc::ptr_eq(a, b) {
        return Ok(());
    }
    Err(Error::DifferentDevices {
        what: what.to_owned(),
        first: a.backend.info().name.clone(),
        second: b.backend.info().name.clone(),
    })
}
