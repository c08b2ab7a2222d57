//! The kernel being built on this thread: its builder, its mistakes, and which values may be used where.
//!
//! A mistake never stops the build: it is recorded with the place of the user's expression, and the expression gives a
//! *poison* value of the best-guess type. Mistakes that follow from poison alone are not reported again.

use super::def::Specialization;
use crate::dtype::DType;
use crate::entity::Entity;
use crate::error::{Diagnostic, Error, Loc, Result};
use crate::tile::verify::MAX_NESTING;
use crate::tile::{Builder, Built, Constant, Function, Shape, TileType, Value};
use std::cell::RefCell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

/// An untyped handle: a value of one particular build.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raw {
    value: Value,
    /// Number of the build it belongs to; 0 for a handle made outside every kernel.
    build: u32,
}

impl Raw {
    fn dangling() -> Self {
        Raw { value: Value::new(0), build: 0 }
    }
}

/// The state of one build.
pub(crate) struct Context {
    pub(crate) builder: Builder,
    build: u32,
    diagnostics: Vec<Diagnostic>,
    poison: HashSet<Value>,
    /// For each value, the number of the region it was made in.
    births: Vec<u32>,
    /// Numbers of the open regions, outermost first; the body is 0.
    open: Vec<u32>,
    next_region: u32,
}

thread_local! {
    static CONTEXTS: RefCell<Vec<Context>> = const { RefCell::new(Vec::new()) };
}

static NEXT_BUILD: AtomicU32 = AtomicU32::new(1);

/// Builds the IR of one kernel: `body` adds the parameters and runs the rewritten function.
///
/// # Errors
/// [`Error::Kernel`] with every mistake, also when the kernel's own host code panics.
pub fn build(
    name: &'static str,
    loc: Loc,
    spec: &Specialization,
    fp_fusion: bool,
    body: impl FnOnce(&mut Params<'_>),
) -> Result<Function> {
    let mut builder = Builder::new(name);
    builder.set_fp_fusion(fp_fusion || spec.fp_fusion);
    CONTEXTS.with_borrow_mut(|stack| {
        stack.push(Context {
            builder,
            build: NEXT_BUILD.fetch_add(1, Ordering::Relaxed).max(1),
            diagnostics: Vec::new(),
            poison: HashSet::new(),
            births: Vec::new(),
            open: vec![0],
            next_region: 1,
        });
    });
    let outcome = catch_unwind(AssertUnwindSafe(|| body(&mut Params { spec, flat: 0 })));
    let context = CONTEXTS.with_borrow_mut(Vec::pop).expect("the context pushed above is still there");
    let mut diagnostics = context.diagnostics;
    if let Err(payload) = outcome
        // The mistake is told already.
        && !payload.is::<TooDeep>()
    {
        let text = payload
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a value that is no text".into());
        diagnostics.push(
            Diagnostic::new(loc, format!("the kernel's host code panicked: {text}")).help(
                "code on host values runs while the kernel is built; check its indices and `#[comptime]` arguments",
            ),
        );
    }
    if !diagnostics.is_empty() {
        return Err(Error::Kernel { kernel: name.to_owned(), diagnostics });
    }
    if context.builder.depth() != 0 {
        return Err(Error::Internal(format!("a region of kernel `{name}` is still open at its end")));
    }
    Ok(context.builder.finish())
}

/// What unwinds a kernel's host code when its build is given up.
struct TooDeep;

/// Hands out the parameters of a kernel, in order.
#[derive(Debug)]
pub struct Params<'s> {
    spec: &'s Specialization,
    flat: usize,
}

impl Params<'_> {
    /// Adds a scalar parameter.
    pub(crate) fn scalar(&mut self, name: &str, dtype: DType) -> Raw {
        let hint = self.spec.hint(self.flat);
        self.flat += 1;
        in_kernel(|c| c.builder.param_scalar(name, dtype, hint))
    }

    /// Adds a pointer parameter.
    pub(crate) fn ptr(&mut self, name: &str, dtype: DType) -> Raw {
        let hint = self.spec.hint(self.flat);
        self.flat += 1;
        in_kernel(|c| c.builder.param_ptr(name, dtype, hint))
    }

    /// Adds a view parameter; gives base, extents and strides.
    pub(crate) fn view(&mut self, name: &str, dtype: DType, rank: u8) -> Vec<Raw> {
        let n = 1 + 2 * usize::from(rank);
        let hints: Vec<_> = (self.flat..self.flat + n).map(|i| self.spec.hint(i)).collect();
        self.flat += n;
        let index = self.spec.index;
        with(|c| {
            let view = c.builder.param_view(name, dtype, rank, index, &hints);
            c.note_births();
            let mut all = vec![view.base];
            all.extend(view.dims);
            all.extend(view.strides);
            all.into_iter().map(|v| c.raw(v)).collect()
        })
        .unwrap_or_else(|| vec![Raw::dangling(); n])
    }
}

fn in_kernel(f: impl FnOnce(&mut Context) -> Value) -> Raw {
    with(|c| {
        let value = f(c);
        c.note_births();
        c.raw(value)
    })
    .unwrap_or_else(Raw::dangling)
}

/// Runs `f` on the kernel being built on this thread, if there is one.
pub(crate) fn with<R>(f: impl FnOnce(&mut Context) -> R) -> Option<R> {
    CONTEXTS.with_borrow_mut(|stack| stack.last_mut().map(f))
}

/// Records a mistake at the caller's place.
#[track_caller]
pub(crate) fn mistake(message: impl Into<String>, help: impl Into<String>) {
    let diagnostic = Diagnostic::new(Loc::caller(), message).help(help);
    with(|c| c.report(diagnostic));
}

/// A poison scalar, for what was reported before.
pub(crate) fn poison() -> Raw {
    with(|c| c.poison(&TileType::scalar(DType::I32))).unwrap_or_else(Raw::dangling)
}

/// Makes an op: checks the handles, calls `f`, and gives poison of type `guess` if `f` refuses.
/// Outside every kernel it gives a handle that no kernel accepts.
#[track_caller]
pub(crate) fn emit(
    operands: &[Raw],
    guess: impl FnOnce(&[TileType]) -> TileType,
    f: impl FnOnce(&mut Builder, &[Value]) -> Built,
) -> Raw {
    let loc = Loc::caller();
    with(|c| {
        c.builder.set_loc(loc);
        let (values, poisoned) = c.resolve(operands);
        let types: Vec<TileType> = values.iter().map(|&v| c.builder.ty(v).clone()).collect();
        let built = f(&mut c.builder, &values);
        c.note_births();
        match built {
            Ok(value) => {
                if poisoned {
                    c.poison.insert(value);
                }
                c.raw(value)
            }
            Err(diagnostic) => {
                if !poisoned {
                    c.report(diagnostic);
                }
                let ty = guess(&types);
                c.poison(&ty)
            }
        }
    })
    .unwrap_or_else(Raw::dangling)
}

/// Makes an op without a result.
#[track_caller]
pub(crate) fn emit_unit(operands: &[Raw], f: impl FnOnce(&mut Builder, &[Value]) -> Built<()>) {
    let loc = Loc::caller();
    with(|c| {
        c.builder.set_loc(loc);
        let (values, poisoned) = c.resolve(operands);
        let built = f(&mut c.builder, &values);
        c.note_births();
        if let (Err(diagnostic), false) = (built, poisoned) {
            c.report(diagnostic);
        }
    });
}

impl Context {
    /// Records a mistake, once.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        if !self.diagnostics.contains(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// The handle of a value of this build.
    pub(crate) fn raw(&self, value: Value) -> Raw {
        Raw { value, build: self.build }
    }

    /// Values made since the last call were made in the innermost open region.
    pub(crate) fn note_births(&mut self) {
        let region = self.open.last().copied().unwrap_or(0);
        self.births.resize(self.builder.func().values.len(), region);
    }

    /// A region was opened; its parameters are born in it. Ends the build if it is nested too deep, for a device function that
    /// calls itself in a device branch would go on until the stack is full.
    pub(crate) fn enter(&mut self) {
        if self.open.len() > MAX_NESTING {
            let what = format!("device loops and branches are nested more than {MAX_NESTING} deep");
            self.report(Diagnostic::new(self.builder.loc(), what).help(
                "a device function may call itself only while a host value says so: a device condition cannot end the recursion",
            ));
            resume_unwind(Box::new(TooDeep));
        }
        self.open.push(self.next_region);
        self.next_region += 1;
        self.note_births();
    }

    /// The innermost region was closed. Births are not noted here: the results of the op that closed it, made by now,
    /// are born outside.
    pub(crate) fn leave(&mut self) {
        self.open.pop();
    }

    /// Is the value poison?
    pub(crate) fn is_poison(&self, raw: Raw) -> bool {
        raw.build != self.build || self.poison.contains(&raw.value)
    }

    /// Marks a value as poison.
    pub(crate) fn taint(&mut self, raw: Raw) {
        if raw.build == self.build {
            self.poison.insert(raw.value);
        }
    }

    /// A poison value of a type. It stands in no valid function: something was reported before.
    pub(crate) fn poison(&mut self, ty: &TileType) -> Raw {
        let shape = if ty.shape.check().is_ok() { ty.shape.clone() } else { Shape::SCALAR };
        // A poison address is a number too: whatever uses it is quiet.
        let stand_in = TileType::new(ty.dtype(), shape);
        let value = self.builder.full(stand_in, Constant(0)).expect("a zero of a checked shape is valid");
        self.note_births();
        self.poison.insert(value);
        self.raw(value)
    }

    /// The values behind handles, and whether one of them is poison. Handles that must not be used here are reported.
    pub(crate) fn resolve(&mut self, handles: &[Raw]) -> (Vec<Value>, bool) {
        let mut poisoned = false;
        let values = handles
            .iter()
            .map(|&raw| {
                if raw.build != self.build {
                    let loc = self.builder.loc();
                    self.report(
                        Diagnostic::new(loc, "a value made outside this kernel is used in it")
                            .help("make tiles inside the kernel function, and pass numbers as parameters"),
                    );
                    poisoned = true;
                    return self.poison(&TileType::scalar(DType::I32)).value;
                }
                if self.poison.contains(&raw.value) {
                    poisoned = true;
                } else if !self.visible(raw.value) {
                    let ty = self.builder.ty(raw.value).clone();
                    let loc = self.builder.loc();
                    self.report(
                        Diagnostic::new(
                            loc,
                            format!("a value of type {ty} made inside a device loop or branch is used outside it"),
                        )
                        .help("assign it to a variable that is declared before the loop or branch"),
                    );
                    poisoned = true;
                }
                raw.value
            })
            .collect();
        (values, poisoned)
    }

    /// The values behind handles of this build that were resolved before.
    pub(crate) fn values(&self, handles: &[Raw]) -> Vec<Value> {
        handles.iter().map(|r| r.value).collect()
    }

    fn visible(&self, value: Value) -> bool {
        self.births.get(value.index()).is_none_or(|born| self.open.contains(born))
    }
}
