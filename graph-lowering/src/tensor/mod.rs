//! Tensors: usable at once, on the host, or while a function is being captured, as nodes of its graph.
//!
//! A tensor never changes. An expression that does not make sense gives a *failed* tensor that carries the mistake with the
//! place of the expression; whatever is computed from it fails alike, and the mistake is reported where values are needed.

mod attention;
mod composite;
mod loss;
mod operand;
mod ops;
pub mod random;
pub mod structure;
pub(crate) mod trace;

pub use loss::Reduction;
pub use operand::{Choice, Operand};
pub use structure::Structure;

use crate::error::{Error, Result};
use crate::exec::DeviceArray;
use crate::graph::{NodeId, TensorType, verify::check_size};
use crate::literal::{Literal, Number};
use crate::prim::{Full, Iota, Op};
use std::fmt;
use std::sync::Arc;
use tilewright_compiler::DType;
use tilewright_compiler::error::{Diagnostic, Loc};
use tilewright_compiler::tile::Constant;

/// A tensor. Cheap to clone.
#[derive(Clone)]
pub struct Tensor(pub(crate) Repr);

#[derive(Clone)]
pub(crate) enum Repr {
    Host(Arc<Literal>),
    Device(Arc<DeviceArray>),
    Traced { trace: u64, node: NodeId, ty: Arc<TensorType> },
    Failed(Arc<Error>, Arc<TensorType>),
}

impl Tensor {
    // ---- making tensors ---------------------------------------------------------------------------------------

    /// A tensor of these elements, row-major.
    #[track_caller]
    pub fn new<T: Number>(values: &[T], dims: &[usize]) -> Tensor {
        let ty = TensorType::new(T::DTYPE, dims);
        match check_size(&ty).map(|()| Literal::from_slice(values, dims)) {
            Ok(Some(l)) => l.into(),
            Ok(None) => fail(Loc::caller(), format!("{} elements do not fill {dims:?}", values.len())),
            Err(message) => fail(Loc::caller(), message),
        }
    }

    /// A vector.
    #[track_caller]
    pub fn vector<T: Number>(values: &[T]) -> Tensor {
        Self::new(values, &[values.len()])
    }

    /// One number.
    #[track_caller]
    pub fn scalar<T: Number>(value: T) -> Tensor {
        Self::new(&[value], &[])
    }

    /// One number repeated. Integer types take its whole part, which must be in their range.
    #[track_caller]
    pub fn full(dtype: DType, dims: &[usize], value: f64) -> Tensor {
        if let Err(message) = fits(dtype, value) {
            return fail(Loc::caller(), message);
        }
        let word = Constant::from_f64(dtype, value).0;
        trace::apply(Op::Full(Full { dtype, dims: dims.to_vec(), word }), &[])
    }

    /// One integer repeated, exactly also above 2^53. Types of less than 64 bits take its lowest bits.
    #[track_caller]
    pub fn full_int(dtype: DType, dims: &[usize], value: i64) -> Tensor {
        let word = Constant::from_i64(dtype, value).0;
        trace::apply(Op::Full(Full { dtype, dims: dims.to_vec(), word }), &[])
    }

    /// Zeros.
    #[track_caller]
    pub fn zeros(dtype: DType, dims: &[usize]) -> Tensor {
        Self::full(dtype, dims, 0.0)
    }

    /// Zeros of the same type and extents.
    #[track_caller]
    pub fn zeros_like(&self) -> Tensor {
        Self::zeros(self.dtype(), &self.dims())
    }

    /// Coordinates along `axis`.
    #[track_caller]
    pub fn iota(dtype: DType, dims: &[usize], axis: usize) -> Tensor {
        trace::apply(Op::Iota(Iota { dtype, dims: dims.to_vec(), axis }), &[])
    }

    /// `0, 1, .., n - 1`.
    #[track_caller]
    pub fn arange(dtype: DType, n: usize) -> Tensor {
        Self::iota(dtype, &[n], 0)
    }

    // ---- what it is ---------------------------------------------------------------------------------------------

    /// Its type. Of a failed tensor: a guess.
    pub fn ty(&self) -> &TensorType {
        match &self.0 {
            Repr::Host(l) => l.ty(),
            Repr::Device(d) => &d.ty,
            Repr::Traced { ty, .. } | Repr::Failed(_, ty) => ty,
        }
    }

    /// Its element type.
    pub fn dtype(&self) -> DType {
        self.ty().dtype
    }

    /// Its extents.
    pub fn dims(&self) -> Vec<usize> {
        self.ty().dims.clone()
    }

    /// How many dimensions it has.
    pub fn rank(&self) -> usize {
        self.ty().rank()
    }

    /// How many elements it has.
    pub fn elements(&self) -> usize {
        self.ty().elements()
    }

    /// The mistake in the expression that gave it, if there was one.
    ///
    /// # Errors
    /// The mistake.
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            Repr::Failed(e, _) => Err((**e).clone()),
            _ => Ok(()),
        }
    }

    // ---- values -------------------------------------------------------------------------------------------------

    /// The tensor on the host. While a function is being captured: as it is for the arguments of the call that captures; the function
    /// then runs eagerly, and `explain()` says where it reads.
    ///
    /// # Errors
    /// The mistake of a failed tensor; what the device says.
    #[track_caller]
    pub fn to_literal(&self) -> Result<Arc<Literal>> {
        match &self.0 {
            Repr::Host(l) => Ok(l.clone()),
            Repr::Device(d) => d.read(),
            Repr::Failed(e, _) => Err((**e).clone()),
            Repr::Traced { trace, node, .. } => trace::read_back(*trace, *node, Loc::caller()),
        }
    }

    /// The elements, row-major.
    ///
    /// # Errors
    /// As [`Tensor::to_literal`], and if `T` is not the element type.
    #[track_caller]
    pub fn to_vec<T: Number>(&self) -> Result<Vec<T>> {
        let literal = self.to_literal()?;
        // No closure: it would lose the caller's place.
        match literal.to_vec() {
            Some(elements) => Ok(elements),
            None => {
                let (ty, asked) = (self.ty(), T::DTYPE);
                let message = format!("the elements of a tensor of type {ty} were asked for as {asked}");
                let help = format!(
                    "write `to_vec::<{}>()`, convert the tensor with `cast` first, or read numbers of any type with `to_f64s()`",
                    ty.dtype
                );
                Err(Error::Tensor(Diagnostic::new(Loc::caller(), message).help(help)))
            }
        }
    }

    /// The elements as doubles, whatever their type.
    ///
    /// # Errors
    /// As [`Tensor::to_literal`].
    #[track_caller]
    pub fn to_f64s(&self) -> Result<Vec<f64>> {
        let literal = self.to_literal()?;
        Ok((0..literal.ty().elements()).map(|i| literal.f64(i)).collect())
    }
}

impl From<Literal> for Tensor {
    fn from(literal: Literal) -> Self {
        Tensor(Repr::Host(Arc::new(literal)))
    }
}

impl From<Arc<Literal>> for Tensor {
    fn from(literal: Arc<Literal>) -> Self {
        Tensor(Repr::Host(literal))
    }
}

/// Is the whole part of a number in the range of an integer type?
fn fits(dtype: DType, value: f64) -> std::result::Result<(), String> {
    let Some((least, greatest)) = operand::range(dtype) else { return Ok(()) };
    // The greatest of 64 bits are no doubles; the next number is.
    if value.trunc() >= least as f64 && value.trunc() < (greatest + 1) as f64 {
        return Ok(());
    }
    Err(format!("{value} as {dtype}, which goes from {least} to {greatest}"))
}

/// A failed tensor.
pub(crate) fn fail(loc: Loc, message: impl Into<String>) -> Tensor {
    failed(Arc::new(Error::tensor(loc, message)), TensorType::new(DType::F32, []))
}

/// The first failed one of these tensors: its mistake is the one to report.
pub(crate) fn first_failed(all: &[&Tensor]) -> Option<Tensor> {
    all.iter().find(|t| t.check().is_err()).map(|&t| t.clone())
}

pub(crate) fn failed(error: Arc<Error>, guess: TensorType) -> Tensor {
    Tensor(Repr::Failed(error, Arc::new(guess)))
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Host(_) => write!(f, "Tensor({} on the host)", self.ty()),
            Repr::Device(d) => write!(f, "Tensor({} on {})", self.ty(), d.device().name()),
            Repr::Traced { node, .. } => write!(f, "Tensor({} as {node})", self.ty()),
            Repr::Failed(e, _) => write!(f, "Tensor(failed: {e})"),
        }
    }
}
