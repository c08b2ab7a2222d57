//! Device loops and branches, as the macros write them.
//!
//! A region is opened, the variables it changes are set to the region's own values, the user's code runs once (it builds
//! the region), and the variables are set to the results. `branch` serves host conditions too: the type of the condition
//! chooses between [`HostBranch`], which is plain Rust, and [`DeviceBranch`].

use super::carry::{Carry, Leaves, Rebuild, Sight, Variables};
use super::context::{Context, Raw, mistake, with};
use super::element::Element;
use super::ops::constant;
use super::tile::Tile;
use crate::dtype::DType;
use crate::error::{Diagnostic, Loc};
use crate::tile::{TileType, Value};
use std::marker::PhantomData;

/// The number of the "variable" that stands for the value of an `if`.
const RESULT: usize = usize::MAX;

fn leaves_of(vars: &impl Variables) -> Vec<(usize, Raw)> {
    let mut leaves = Leaves::default();
    vars.leaves(&mut leaves);
    leaves.raws
}

fn raws(leaves: &[(usize, Raw)]) -> Vec<Raw> {
    leaves.iter().map(|l| l.1).collect()
}

fn handles(c: &Context, values: Vec<Value>) -> Vec<Raw> {
    values.into_iter().map(|v| c.raw(v)).collect()
}

/// Which of the variables' values are poison.
fn poisoned(c: &Context, leaves: &[(usize, Raw)]) -> Vec<bool> {
    leaves.iter().map(|l| c.is_poison(l.1)).collect()
}

/// Handles of a region's own values; those that stand for poison are poison too.
fn inside(c: &mut Context, params: Vec<Value>, poisoned: &[bool]) -> Vec<Raw> {
    let all = handles(c, params);
    for (raw, _) in all.iter().zip(poisoned).filter(|(_, bad)| **bad) {
        c.taint(*raw);
    }
    all
}

/// Handles of the results of a loop that `closed` closed; where it could not, the values inside stand in.
fn after_loop(
    c: &mut Context,
    closed: Result<Vec<Value>, Diagnostic>,
    ends: &[(Value, bool)],
    params: &[(usize, Raw)],
) -> Vec<Raw> {
    match closed {
        Ok(values) => results(c, values, ends),
        Err(diagnostic) => {
            c.report(diagnostic);
            raws(params)
        }
    }
}

/// What a region changes, by name.
fn variable_name(names: &[&str], index: usize) -> String {
    match names.get(index) {
        Some(name) => format!("`{name}`"),
        None => "the value of the `if`".into(),
    }
}

/// The values a region ends with, which must have the types of `expected`: where they have not, that is reported and
/// `expected` itself stands in. Gives for each whether it is sound.
fn end_values(
    c: &mut Context,
    names: &[&str],
    (when, then): (&str, &str),
    expected: &[(usize, Raw)],
    got: &[(usize, Raw)],
) -> Vec<(Value, bool)> {
    let loc = c.builder.loc();
    let help = "give the variable its final type and shape before, for example with `zeros` or `full`";
    if expected.len() != got.len() {
        let changed = (0..names.len())
            .find(|&n| expected.iter().filter(|l| l.0 == n).count() != got.iter().filter(|l| l.0 == n).count())
            .unwrap_or(RESULT);
        let count = |list: &[(usize, Raw)]| list.iter().filter(|l| l.0 == changed).count();
        c.report(
            Diagnostic::new(
                loc,
                format!(
                    "{} consists of {} tiles {when} but of {} {then}",
                    variable_name(names, changed),
                    count(expected),
                    count(got)
                ),
            )
            .help(
                "device state keeps its structure: a `Vec` or `Option` cannot grow or shrink where the device decides",
            ),
        );
    }
    let expected_values = c.values(&raws(expected));
    let mut list = Vec::with_capacity(expected.len());
    for (i, &(variable, raw)) in expected.iter().enumerate() {
        let stand_in = expected_values[i];
        let Some(&(_, next)) = got.get(i) else {
            list.push((stand_in, false));
            continue;
        };
        let (values, poisoned) = c.resolve(&[next]);
        let (want, have) = (c.builder.ty(stand_in).clone(), c.builder.ty(values[0]).clone());
        if poisoned || c.is_poison(raw) {
            list.push((if want == have { values[0] } else { stand_in }, false));
        } else if want != have {
            let name = variable_name(names, variable);
            c.report(Diagnostic::new(loc, format!("{name} has type {want} {when} but {have} {then}")).help(help));
            list.push((stand_in, false));
        } else {
            list.push((values[0], true));
        }
    }
    list
}

/// Reports variables that a region changed though it cannot carry them.
fn report_watched<V: Variables>(names: &[&str], loc: Loc, what: &str, vars: &V, saved: &V::Saved) {
    let mut found = Vec::new();
    vars.watched(saved, 0, &mut found);
    for (index, sight) in found {
        let name = names.get(index).copied().unwrap_or("a variable");
        let (message, help) = match sight {
            Sight::Changed => (
                format!(
                    "`{name}` is a host value and changes in a device {what}, whose code runs once, while the kernel is built"
                ),
                "keep what the device changes in tiles (`scalar::<i32>(0)` counts); if the kernel is to be built step by step, \
                 write `for i in unroll(0..n)` or `if comptime(..)`",
            ),
            Sight::ChangedState => (
                format!("`{name}` changes in a device {what} in a way that cannot be followed"),
                "declare it with `let mut`, outside of macros and closures, and change it there",
            ),
            Sight::Unknown => (
                format!(
                    "nothing tells whether `{name}` changes in a device {what}: its type is neither `Carry` nor `Debug`"
                ),
                "derive `Carry` for state of the device (a type parameter needs the bound), `Debug` for host values; a closure \
                 returns the new value instead; what does not change needs no `mut`",
            ),
        };
        with(|c| c.report(Diagnostic::new(loc, message).help(help)));
    }
}

/// Handles of the results of a region op; unsound ones are poison, and those of unchanged variables what they were.
fn results(c: &mut Context, values: Vec<Value>, sound: &[(Value, bool)]) -> Vec<Raw> {
    c.note_births();
    let values = c.builder.drop_unchanged(&values);
    let all = handles(c, values);
    for (raw, (_, sound)) in all.iter().zip(sound) {
        if !sound {
            c.taint(*raw);
        }
    }
    all
}

// ---- for ----------------------------------------------------------------------------------------------------------

/// A bound whose type the host chooses.
#[derive(Debug)]
#[doc(hidden)]
pub struct HostKind;
/// A bound of type `T` on the device.
#[derive(Debug)]
#[doc(hidden)]
pub struct DeviceKind<T>(PhantomData<T>);

/// A bound or the step of a device loop: a host integer, or a scalar tile of `i32` or `i64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a bound or step of a device loop",
    label = "expected a host integer, `Tile<i32>` or `Tile<i64>`",
    note = "convert a tile with `.to::<i32>()` or `.to::<i64>()`"
)]
pub trait Bound: Copy {
    /// Host or device, and which type.
    #[doc(hidden)]
    type Kind;
    /// The bound as a value of type `I`.
    #[doc(hidden)]
    #[track_caller]
    fn bound<I: Element>(self) -> Tile<I>;
}

macro_rules! host_bounds {
    ($($ty:ty),*) => { $(
        impl Bound for $ty {
            type Kind = HostKind;
            fn bound<I: Element>(self) -> Tile<I> {
                constant(self)
            }
        }
    )* };
}
host_bounds!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

macro_rules! device_bounds {
    ($($ty:ty),*) => { $(
        impl Bound for Tile<$ty> {
            type Kind = DeviceKind<$ty>;
            fn bound<I: Element>(self) -> Tile<I> {
                self.to::<I>()
            }
        }
    )* };
}
device_bounds!(i32, i64);

/// A bound that is surely a host integer. Taken as `i64`, so that the type of a literal is not left open.
#[doc(hidden)]
#[track_caller]
pub fn host_bound<H: TryInto<i64>>(value: H) -> i64 {
    match value.try_into() {
        Ok(value) => value,
        Err(_) => {
            mistake("a loop bound does not fit in i64", "loops count in i32, or in i64 if a bound is a tile of i64");
            0
        }
    }
}

/// The common type of two bounds.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the bounds and the step of a device loop have different types",
    label = "some are `i32` and some `i64`",
    note = "convert one of them with `.to::<i64>()`"
)]
pub trait Join<Other> {
    /// It.
    type Kind;
}
impl Join<HostKind> for HostKind {
    type Kind = HostKind;
}
impl<T> Join<DeviceKind<T>> for HostKind {
    type Kind = DeviceKind<T>;
}
impl<T> Join<HostKind> for DeviceKind<T> {
    type Kind = DeviceKind<T>;
}
impl<T> Join<DeviceKind<T>> for DeviceKind<T> {
    type Kind = DeviceKind<T>;
}

/// The index type of a loop whose bounds are of this kind.
#[doc(hidden)]
pub trait IndexKind {
    /// `i32` unless a bound says `i64`.
    type Index: Element;
}
impl IndexKind for HostKind {
    type Index = i32;
}
impl IndexKind for DeviceKind<i32> {
    type Index = i32;
}
impl IndexKind for DeviceKind<i64> {
    type Index = i64;
}

type Joined<A, B> = <A as Join<B>>::Kind;
type IndexOf<L, H, S> = <Joined<Joined<L, H>, S> as IndexKind>::Index;

/// The parts of a device loop known before its variables.
#[derive(Debug)]
#[doc(hidden)]
pub struct ForLoop<I> {
    bounds: [Raw; 3],
    names: &'static [&'static str],
    loc: Loc,
    index: Option<Raw>,
    params: Vec<(usize, Raw)>,
    /// Did the loop open? If not, a mistake was reported, and its body is built only to find more of them.
    alive: bool,
    /// Was the body begun?
    built: bool,
    element: PhantomData<fn() -> I>,
}

/// Starts `for .. in lo..hi` with a step.
#[doc(hidden)]
#[track_caller]
pub fn for_loop<L: Bound, H: Bound, S: Bound>(
    lo: L,
    hi: H,
    step: S,
    names: &'static [&'static str],
) -> ForLoop<IndexOf<L::Kind, H::Kind, S::Kind>>
where
    L::Kind: Join<H::Kind>,
    Joined<L::Kind, H::Kind>: Join<S::Kind>,
    Joined<Joined<L::Kind, H::Kind>, S::Kind>: IndexKind,
{
    type I<L, H, S> = IndexOf<L, H, S>;
    let bounds = [
        lo.bound::<I<L::Kind, H::Kind, S::Kind>>().raw,
        hi.bound::<I<L::Kind, H::Kind, S::Kind>>().raw,
        step.bound::<I<L::Kind, H::Kind, S::Kind>>().raw,
    ];
    ForLoop {
        bounds,
        names,
        loc: Loc::caller(),
        index: None,
        params: Vec::new(),
        alive: false,
        built: false,
        element: PhantomData,
    }
}

impl<I: Element> ForLoop<I> {
    /// Opens the body: the variables are now those inside.
    pub fn open<V: Variables>(&mut self, mut vars: V) -> V::Saved {
        let saved = vars.save();
        let inits = leaves_of(&vars);
        let inner = with(|c| {
            c.builder.set_loc(self.loc);
            let (b, bad_bounds) = c.resolve(&self.bounds);
            let (values, _) = c.resolve(&raws(&inits));
            let tainted = poisoned(c, &inits);
            let opened = c.builder.begin_for(b[0], b[1], b[2], &values);
            c.enter();
            match opened {
                Ok((index, params)) => {
                    self.alive = true;
                    self.index = Some(c.raw(index));
                    inside(c, params, &tainted)
                }
                Err(diagnostic) => {
                    if !bad_bounds {
                        c.report(diagnostic);
                    }
                    self.index = Some(c.poison(&TileType::scalar(I::DTYPE)));
                    handles(c, values)
                }
            }
        });
        if let Some(inner) = inner {
            self.params = inits.iter().map(|l| l.0).zip(inner.iter().copied()).collect();
            vars.rebuild(&saved, &mut Rebuild(inner.iter()));
        }
        saved
    }

    /// The loop variable.
    pub fn index(&self) -> Tile<I> {
        match self.index {
            Some(raw) => Tile::new(raw),
            // Only outside every kernel: the handle is of no build, and no kernel accepts it.
            None => constant(0i32),
        }
    }

    /// The loop variable, once: the body is built once.
    #[allow(clippy::should_implement_trait, reason = "what macros call on either loop")]
    pub fn next(&mut self) -> Option<Tile<I>> {
        (!std::mem::replace(&mut self.built, true)).then(|| self.index())
    }

    /// Closes the body: the variables are now those after the loop.
    pub fn close<V: Variables>(self, saved: V::Saved, mut vars: V) {
        report_watched(self.names, self.loc, "loop", &vars, &saved);
        let next = leaves_of(&vars);
        let after = with(|c| {
            c.builder.set_loc(self.loc);
            let ends = end_values(c, self.names, ("before the loop", "at the end of its body"), &self.params, &next);
            if !self.alive {
                c.leave();
                return raws(&self.params);
            }
            let values: Vec<Value> = ends.iter().map(|e| e.0).collect();
            c.note_births();
            let closed = c.builder.end_for(&values);
            c.leave();
            after_loop(c, closed, &ends, &self.params)
        });
        if let Some(after) = after {
            vars.rebuild(&saved, &mut Rebuild(after.iter()));
        }
    }
}

// ---- while --------------------------------------------------------------------------------------------------------

/// A condition that the device decides.
#[diagnostic::on_unimplemented(
    message = "the condition of a device loop is a `Tile<bool>`, not `{Self}`",
    label = "not decided by the device",
    note = "if the condition is known while the kernel is built, write `while comptime(..)`: the loop is then plain Rust"
)]
pub trait DeviceCondition {
    /// The condition as a tile.
    #[doc(hidden)]
    fn device(self) -> Tile<bool>;
}
impl DeviceCondition for Tile<bool> {
    fn device(self) -> Tile<bool> {
        self
    }
}

/// A device `while`.
#[derive(Debug)]
#[doc(hidden)]
pub struct WhileLoop<S> {
    names: &'static [&'static str],
    loc: Loc,
    saved: S,
    params: Vec<(usize, Raw)>,
}

/// A scalar condition; anything else is a mistake, and poison stands in.
fn scalar_condition(c: &mut Context, condition: Raw, what: &str) -> (Value, bool) {
    let (values, poisoned) = c.resolve(&[condition]);
    let ty = c.builder.ty(values[0]).clone();
    if ty == TileType::scalar(DType::Bool) {
        return (values[0], poisoned);
    }
    if !poisoned {
        let loc = c.builder.loc();
        c.report(
            Diagnostic::new(loc, format!("the condition of {what} has type {ty}, but the whole program takes one way"))
                .help(
                    "use `where_(condition, a, b)` to choose per element, or make one truth value with `any` or `all`",
                ),
        );
    }
    let stand_in = c.poison(&TileType::scalar(DType::Bool));
    let (values, _) = c.resolve(&[stand_in]);
    (values[0], true)
}

/// Opens the condition of a device `while`.
#[doc(hidden)]
#[track_caller]
pub fn while_loop<V: Variables>(mut vars: V, names: &'static [&'static str]) -> WhileLoop<V::Saved> {
    let loc = Loc::caller();
    let saved = vars.save();
    let inits = leaves_of(&vars);
    let inner = with(|c| {
        c.builder.set_loc(loc);
        let (values, _) = c.resolve(&raws(&inits));
        let tainted = poisoned(c, &inits);
        let params = c.builder.begin_while(&values);
        c.enter();
        inside(c, params, &tainted)
    })
    .unwrap_or_default();
    vars.rebuild(&saved, &mut Rebuild(inner.iter()));
    WhileLoop { names, loc, saved, params: inits.iter().map(|l| l.0).zip(inner).collect() }
}

impl<S> WhileLoop<S> {
    /// Ends the condition and opens the body.
    #[track_caller]
    pub fn body<V: Variables<Saved = S>>(&mut self, condition: impl DeviceCondition, mut vars: V) {
        let condition = condition.device();
        let loc = Loc::caller();
        let inner = with(|c| {
            c.builder.set_loc(loc);
            let (condition, _) = scalar_condition(c, condition.raw, "`while`");
            let tainted = poisoned(c, &self.params);
            c.note_births();
            let opened = c.builder.while_body(condition);
            c.leave();
            c.enter();
            match opened {
                Ok(params) => inside(c, params, &tainted),
                Err(diagnostic) => {
                    c.report(diagnostic);
                    raws(&self.params)
                }
            }
        });
        if let Some(inner) = inner {
            self.params = self.params.iter().map(|l| l.0).zip(inner.iter().copied()).collect();
            vars.rebuild(&self.saved, &mut Rebuild(inner.iter()));
        }
    }

    /// Closes the body.
    pub fn end<V: Variables<Saved = S>>(self, mut vars: V) {
        report_watched(self.names, self.loc, "loop", &vars, &self.saved);
        let next = leaves_of(&vars);
        let after = with(|c| {
            c.builder.set_loc(self.loc);
            let ends = end_values(c, self.names, ("before the loop", "at the end of its body"), &self.params, &next);
            let values: Vec<Value> = ends.iter().map(|e| e.0).collect();
            c.note_births();
            let closed = c.builder.end_while(&values);
            c.leave();
            after_loop(c, closed, &ends, &self.params)
        });
        if let Some(after) = after {
            vars.rebuild(&self.saved, &mut Rebuild(after.iter()));
        }
    }
}

// ---- if -----------------------------------------------------------------------------------------------------------

/// A condition of `if`: a host `bool`, or a scalar `Tile<bool>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition",
    label = "expected `bool` or `Tile<bool>`",
    note = "compare a number with zero: `x != 0`"
)]
pub trait Condition {
    /// How the branches are run.
    #[doc(hidden)]
    type Branch;
    /// Starts the branches.
    #[doc(hidden)]
    #[track_caller]
    fn branch(self, names: &'static [&'static str]) -> Self::Branch;
}

/// Starts an `if`.
#[doc(hidden)]
#[track_caller]
pub fn branch<C: Condition>(condition: C, names: &'static [&'static str]) -> C::Branch {
    condition.branch(names)
}

impl Condition for bool {
    type Branch = HostBranch;
    fn branch(self, _names: &'static [&'static str]) -> HostBranch {
        HostBranch(self)
    }
}

impl Condition for Tile<bool> {
    type Branch = DeviceBranch;
    fn branch(self, names: &'static [&'static str]) -> DeviceBranch {
        DeviceBranch { condition: self.raw, names, loc: Loc::caller(), then: Vec::new(), has_else: true }
    }
}

/// An `if` that plain Rust decides: its variables and values are of any type.
#[derive(Debug)]
#[doc(hidden)]
pub struct HostBranch(bool);

impl HostBranch {
    /// Nothing to save.
    pub fn save<V>(&mut self, _vars: V) {}
    /// Is the first branch taken?
    pub fn enter_then(&self) -> bool {
        self.0
    }
    /// Nothing to do between the branches.
    pub fn end_then<R, V>(&mut self, _value: &Option<R>, _saved: &(), _vars: V) {}
    /// Is the second branch taken?
    pub fn enter_else(&self) -> bool {
        !self.0
    }
    /// The same where there is none.
    pub fn skip_else(&self) -> bool {
        !self.0
    }
    /// The value of the branch taken.
    pub fn end<R, V>(self, then: Option<R>, other: Option<R>, _saved: (), _vars: V) -> R {
        then.or(other).expect("one of the two branches was taken")
    }
}

/// An `if` that the device decides: both branches are built.
#[derive(Debug)]
#[doc(hidden)]
pub struct DeviceBranch {
    condition: Raw,
    names: &'static [&'static str],
    loc: Loc,
    then: Vec<(usize, Raw)>,
    has_else: bool,
}

impl DeviceBranch {
    /// Saves the variables as they are before the `if`, and opens the first branch.
    pub fn save<V: Variables>(&mut self, vars: V) -> V::Saved {
        with(|c| {
            c.builder.set_loc(self.loc);
            let (condition, _) = scalar_condition(c, self.condition, "`if`");
            c.note_births();
            if let Err(diagnostic) = c.builder.begin_if(condition) {
                // The condition was checked; should the rules refuse it all the same, the counts of regions stay right.
                c.report(diagnostic);
            }
            c.enter();
        });
        vars.save()
    }

    /// The first branch is built.
    pub fn enter_then(&self) -> bool {
        true
    }

    /// Ends the first branch, opens the second, and gives the variables their values from before.
    pub fn end_then<R: Carry, V: Variables>(&mut self, value: &Option<R>, saved: &V::Saved, mut vars: V) {
        report_watched(self.names, self.loc, "branch", &vars, saved);
        self.then = branch_leaves(value, &vars);
        with(|c| {
            c.builder.set_loc(self.loc);
            let tainted: Vec<bool> = self.then.iter().map(|l| c.is_poison(l.1)).collect();
            let (values, _) = c.resolve(&raws(&self.then));
            for ((leaf, &value), bad) in self.then.iter_mut().zip(&values).zip(tainted) {
                leaf.1 = c.raw(value);
                if bad {
                    c.taint(leaf.1);
                }
            }
            c.note_births();
            c.builder.begin_else(&values);
            c.leave();
            c.enter();
        });
        vars.restore(saved);
    }

    /// The second branch is built.
    pub fn enter_else(&self) -> bool {
        true
    }

    /// The same where there is none.
    pub fn skip_else(&mut self) -> bool {
        self.has_else = false;
        true
    }

    /// Ends the second branch; gives the value of the `if`, and the variables their values after it.
    pub fn end<R: Carry, V: Variables>(self, then: Option<R>, other: Option<R>, saved: V::Saved, mut vars: V) -> R {
        report_watched(self.names, self.loc, "branch", &vars, &saved);
        let got = branch_leaves(&other, &vars);
        let after = with(|c| {
            c.builder.set_loc(self.loc);
            let when = match self.has_else {
                true => ("after the first branch", "after the second"),
                false => ("after the branch", "where it is not taken"),
            };
            let ends = end_values(c, self.names, when, &self.then, &got);
            let values: Vec<Value> = ends.iter().map(|e| e.0).collect();
            c.note_births();
            let closed = c.builder.end_if(&values);
            c.leave();
            match closed {
                Ok(values) => results(c, values, &ends),
                Err(diagnostic) => {
                    c.report(diagnostic);
                    raws(&self.then)
                }
            }
        })
        .unwrap_or_default();
        let mut from = Rebuild(after.iter());
        let value = then.expect("the first branch was built").rebuild(&mut from);
        vars.rebuild(&saved, &mut from);
        value
    }
}

fn branch_leaves<R: Carry>(value: &Option<R>, vars: &impl Variables) -> Vec<(usize, Raw)> {
    let mut of_value = Leaves { variable: RESULT, ..Leaves::default() };
    if let Some(value) = value {
        value.leaves(&mut of_value);
    }
    let mut all = of_value.raws;
    all.extend(leaves_of(vars));
    all
}

// ---- what `for` loops over: its type decides ------------------------------------------------------------------------

/// `range(lo, hi, step)`: a device loop with any step, also a negative one. Only as `for i in range(..)`.
pub fn range<L: Bound, H: Bound, S: Bound>(lo: L, hi: H, step: S) -> DeviceRange<L, H, S> {
    DeviceRange { lo, hi, step }
}

/// What [`range`] gives. It is no iterator: `for i in range(..)` in a kernel is a loop on the device.
#[must_use = "a range is the head of a `for` loop: `for i in range(lo, hi, step)`"]
#[derive(Clone, Copy, Debug)]
pub struct DeviceRange<L, H, S> {
    lo: L,
    hi: H,
    step: S,
}

/// Literals among the bounds of a [`DeviceRange`] are `i64`, which leaves no type open: the macros call these methods on the head
/// of a loop. On bounds of other types, and on what is no range of the device, those of [`Plain`] are called, which do nothing.
macro_rules! literal_bounds {
    ($($method:ident [$($generic:ident),*] $lo:ty, $hi:ty, $step:ty;)*) => { $(
        impl<$($generic),*> DeviceRange<$lo, $hi, $step> {
            #[doc(hidden)]
            pub fn $method(self) -> Self {
                self
            }
        }
    )* };
}
literal_bounds! {
    __tw_lo [H, S] i64, H, S;
    __tw_hi [L, S] L, i64, S;
    __tw_step [L, H] L, H, i64;
}

/// See [`DeviceRange`].
#[doc(hidden)]
pub trait Plain: Sized {
    /// Itself.
    fn __tw_lo(self) -> Self {
        self
    }
    /// Itself.
    fn __tw_hi(self) -> Self {
        self
    }
    /// Itself.
    fn __tw_step(self) -> Self {
        self
    }
}
impl<T> Plain for T {}

/// What a `for` of a kernel may run over: a [`range`] of the device, or any iterator of the host, whose loop is plain Rust.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that `for` runs over",
    label = "neither `range(lo, hi, step)` of the device nor an iterator"
)]
pub trait Head {
    /// The loop.
    type Loop;
    /// Starts it.
    #[track_caller]
    fn start(self, names: &'static [&'static str]) -> Self::Loop;
}

impl<L: Bound, H: Bound, S: Bound> Head for DeviceRange<L, H, S>
where
    L::Kind: Join<H::Kind>,
    Joined<L::Kind, H::Kind>: Join<S::Kind>,
    Joined<Joined<L::Kind, H::Kind>, S::Kind>: IndexKind,
{
    type Loop = ForLoop<IndexOf<L::Kind, H::Kind, S::Kind>>;
    fn start(self, names: &'static [&'static str]) -> Self::Loop {
        for_loop(self.lo, self.hi, self.step, names)
    }
}

impl<I: IntoIterator> Head for I {
    type Loop = HostFor<I::IntoIter>;
    fn start(self, _names: &'static [&'static str]) -> Self::Loop {
        HostFor(self.into_iter())
    }
}

/// A `for` loop of the host, in the form of a device loop: its body runs, and builds its code, once for each item.
#[derive(Debug)]
#[doc(hidden)]
pub struct HostFor<I>(I);

impl<I: Iterator> HostFor<I> {
    /// Nothing is to be done: the variables are those of the host.
    pub fn open<V>(&mut self, _vars: V) {}

    /// The next item.
    #[allow(clippy::should_implement_trait, reason = "what macros call on either loop")]
    pub fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }

    /// Nothing is to be done.
    pub fn close<V>(self, _saved: (), _vars: V) {}
}

/// `unroll(lo..hi)`: a host loop, whose body is built once for each element. Only as `for i in unroll(..)`.
pub fn unroll<I: IntoIterator>(items: I) -> I {
    items
}
