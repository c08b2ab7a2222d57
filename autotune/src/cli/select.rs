//! From what the user names to problems and records.

use super::args::Which;
use super::{Exit, Stop};
use crate::key::Dims;
use crate::record::Record;
use crate::registry;
use crate::store::Store;
use crate::tunable::Tunable;
use std::io::Write;
use std::path::PathBuf;
use tilewright_runtime::DType;

/// The sizes of a kernel from text such as `rows=2048,cols=1000`.
pub fn dims(tunable: &Tunable, text: &str) -> Result<Dims, String> {
    let names = tunable.dims();
    let mut values = vec![None; names.len()];
    for part in text.split(',').filter(|p| !p.trim().is_empty()) {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| format!("`{part}` is not of the form name=size; the sizes are {}", names.join(", ")))?;
        let i = names.iter().position(|n| *n == name.trim()).ok_or_else(|| {
            format!("`{}` has no size `{}`; the sizes are {}", tunable.name(), name.trim(), names.join(", "))
        })?;
        let size: i64 = value.trim().replace('_', "").parse().map_err(|_| format!("`{value}` is no size"))?;
        if !(1..=i64::from(i32::MAX)).contains(&size) {
            return Err(format!("the size {name}={size} is not from 1 to {}", i32::MAX));
        }
        if values[i].replace(size).is_some() {
            return Err(format!("the size {} is given twice in `{text}`", name.trim()));
        }
    }
    let missing: Vec<_> = names.iter().zip(&values).filter(|(_, v)| v.is_none()).map(|(n, _)| *n).collect();
    if !missing.is_empty() {
        return Err(format!("sizes are missing: {}; give all as --shape {}", missing.join(", "), example(tunable)));
    }
    let values: Vec<i64> = values.into_iter().flatten().collect();
    Dims::new(names, &values).ok_or_else(|| "the sizes do not fit the kernel".into())
}

/// The example sizes, as they are written.
pub fn example(tunable: &Tunable) -> String {
    tunable.example_dims().map(|d| d.to_string()).unwrap_or_default()
}

/// The element type of that name, if the kernel has it; its first if none is named.
pub fn dtype(tunable: &Tunable, text: Option<&str>) -> Result<DType, String> {
    let listed = tunable.listed_dtypes();
    let names = || listed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match text {
        None => Ok(listed.first().copied().unwrap_or(DType::F32)),
        Some(text) => match text.parse::<DType>() {
            Ok(d) if listed.contains(&d) => Ok(d),
            _ if listed.is_empty() => Err(format!("`{}` has no choice of element types", tunable.name())),
            _ => Err(format!("`{}` has no element type `{text}`; it has {}", tunable.name(), names())),
        },
    }
}

/// The records that are meant, with their files.
pub fn records(store: &Store, which: &Which, err: &mut dyn Write) -> Result<Vec<(PathBuf, Record)>, Stop> {
    let (mut all, aside) = store.all();
    for a in aside {
        writeln!(err, "note: {a}")?;
    }
    if let Some(kernel) = &which.kernel {
        all.retain(|(_, r)| r.subject.kernel == *kernel);
        if all.is_empty() {
            let hint = registry::find(kernel).err().unwrap_or_default();
            return Err(Stop(Exit::Nothing, format!("nothing is stored of `{kernel}`. {hint}").trim_end().to_owned()));
        }
    }
    if let Some(shape) = &which.shape {
        let kernel = which.kernel.as_deref();
        let kernel = kernel.ok_or_else(|| Stop(Exit::Usage, "--shape needs the kernel's name".into()))?;
        let tunable = registry::find(kernel).map_err(|e| Stop(Exit::Usage, e))?;
        let dims = dims(tunable, shape).map_err(|e| Stop(Exit::Usage, e))?;
        let wanted = tunable.key(&dims, DType::F32).dims;
        all.retain(|(_, r)| r.subject.key.dims == wanted);
    }
    if let Some(dtype) = &which.dtype {
        all.retain(|(_, r)| r.subject.key.dtype.as_ref() == Some(dtype));
    }
    if let Some(device) = &which.device {
        // `opencl:0` names a device of this machine; records know drivers and models.
        let name = device.split(':').next().unwrap_or_default().to_lowercase();
        all.retain(|(_, r)| r.subject.device.contains(&name));
    }
    if all.is_empty() {
        return Err(Stop(Exit::Nothing, "nothing is stored for what was asked".into()));
    }
    Ok(all)
}
