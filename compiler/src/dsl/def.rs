//! What a `#[kernel]` function becomes: a [`KernelDef`], from which Tile IR is built for each specialisation.

use super::comptime::{EqualValue, Identity};
use crate::dtype::DType;
use crate::error::Result;
use crate::tile::{Function, ParamHint};
use std::any::TypeId;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A `#[comptime]` argument: part of a kernel's identity.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ComptimeValue {
    /// An integer of any type.
    Int(i128),
    /// A truth value.
    Bool(bool),
    /// A float, by its bits as `f64`.
    Float(u64),
    /// A string.
    Text(String),
    /// The identity that [`super::comptime::Comptime`] writes out.
    Written(Identity),
    /// A value of another type, compared by its `Eq`.
    Equal(EqualValue),
}

/// What identifies one variant of a kernel, before specialisation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KernelId {
    /// Module path and name of the `#[kernel]` function.
    pub path: &'static str,
    /// The type the kernel declares beside its function. Paths alone do not tell kernels apart: those inside of functions
    /// have the path of the module, and two versions of a crate have the same paths.
    pub item: TypeId,
    /// Its element types, in the order of its generic parameters.
    pub dtypes: Vec<DType>,
    /// Its comptime arguments, in the order of its parameters.
    pub comptime: Vec<ComptimeValue>,
}

/// What is known of the arguments of a launch, and how the kernel is to be built for them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Specialization {
    /// The type of strides: `I32` if every offset into every view fits, else `I64`.
    pub index: DType,
    /// One hint for each flattened parameter (see [`crate::tile::ParamKind`]).
    pub hints: Vec<ParamHint>,
    /// May products and sums written apart be contracted?
    pub fp_fusion: bool,
}

impl Specialization {
    /// Nothing known: 64-bit strides and no hints.
    pub fn general() -> Self {
        Self { index: DType::I64, hints: Vec::new(), fp_fusion: false }
    }

    /// The hint of flattened parameter `index`; "nothing known" if there is none.
    pub fn hint(&self, index: usize) -> ParamHint {
        self.hints.get(index).copied().unwrap_or_default()
    }
}

type Build = dyn Fn(&Specialization) -> Result<Function> + Send + Sync;

/// One variant of a kernel: dtypes and comptime arguments chosen, ready to be specialised and compiled.
#[derive(Clone)]
pub struct KernelDef {
    /// The kernel's name.
    pub name: &'static str,
    /// Its identity.
    pub id: KernelId,
    build: Arc<Build>,
}

impl KernelDef {
    /// A definition whose IR is built by `build`.
    pub fn new(
        name: &'static str,
        id: KernelId,
        build: impl Fn(&Specialization) -> Result<Function> + Send + Sync + 'static,
    ) -> Self {
        Self { name, id, build: Arc::new(build) }
    }

    /// Builds the Tile IR for one specialisation.
    ///
    /// # Errors
    /// [`crate::Error::Kernel`] with every mistake found in the kernel.
    pub fn build(&self, spec: &Specialization) -> Result<Function> {
        (self.build)(spec)
    }
}

impl PartialEq for KernelDef {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for KernelDef {}

impl Hash for KernelDef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Debug for KernelDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KernelDef").field(&self.id).finish()
    }
}
