//! Rewriting expressions: comparisons, `&&`/`||`, literals on the left of an operator, offsets of views; and refusing,
//! with advice, what a kernel cannot say. Control flow is in `control`.

use super::analysis::{self, Binding, Scopes, is_assign_op, literals_only, name_of, number};
use super::diag::{Errors, respan, start};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::visit_mut::{self, VisitMut};
use syn::{BinOp, Block, Expr, Lit, Pat, Stmt};

/// What surrounds the expression at hand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Around {
    /// The body of a function or closure.
    Function,
    /// A loop of plain Rust.
    HostLoop,
    /// A device loop.
    DeviceLoop,
    /// A branch that the device may decide.
    Branch,
}

/// Rewrites one function's body.
pub struct Rewriter {
    /// Path of the crate `tilewright`.
    pub krate: TokenStream,
    /// Mistakes found.
    pub errors: Errors,
    /// Variables in scope.
    pub scopes: Scopes,
    /// What surrounds the expression at hand, innermost last.
    pub around: Vec<Around>,
    /// Is it a kernel, not a device function?
    pub kernel: bool,
}

impl Rewriter {
    /// A rewriter for a body in which nothing is declared yet.
    pub fn new(krate: TokenStream, kernel: bool) -> Self {
        let mut scopes = Scopes::default();
        scopes.push();
        Self { krate, errors: Errors::default(), scopes, around: vec![Around::Function], kernel }
    }

    /// The crate's path, with the place of what is called through it.
    pub fn krate_at(&self, span: Span) -> TokenStream {
        respan(&self.krate, span)
    }

    /// Runs `f` in a scope of its own.
    pub fn scoped(&mut self, f: impl FnOnce(&mut Self)) {
        self.scopes.push();
        f(self);
        self.scopes.pop();
    }

    /// Runs `f` on code inside `around`.
    pub fn inside(&mut self, around: Around, f: impl FnOnce(&mut Self)) {
        self.around.push(around);
        f(self);
        self.around.pop();
    }

    /// The innermost device loop or branch of this function, if any; and for loops: inside the innermost host loop.
    fn device_around(&self, stop_at_host_loop: bool) -> Option<Around> {
        for &around in self.around.iter().rev() {
            match around {
                Around::Function => return None,
                Around::HostLoop if stop_at_host_loop => return None,
                Around::HostLoop => {}
                Around::DeviceLoop | Around::Branch => return Some(around),
            }
        }
        None
    }

    fn leave_loop(&mut self, what: &str, place: &Expr, labelled: bool) {
        // Which loop a label names is not followed: it might be outside the device loop.
        match self.device_around(!labelled) {
            Some(Around::DeviceLoop) => self.errors.at(
                place,
                &format!("`{what}` cannot leave a device loop early"),
                "put the condition into `while`, or guard the rest of the body with `if`; a loop over host values is `for i in unroll(0..n)`",
            ),
            Some(_) => self.errors.at(
                place,
                &format!("`{what}` under a condition that the device may decide"),
                "if the condition is known while the kernel is built, write `if comptime(..)`; else guard the rest of the body with `if`",
            ),
            None => {}
        }
    }

    fn comparison(&mut self, left: &Expr, right: &Expr, method: &str) -> Expr {
        let span = start(left);
        let krate = self.krate_at(span);
        let method = Ident::new(method, span);
        Expr::Verbatim(quote_spanned!(span=> (&&&#krate::dsl::logic::Pair(&(#left), &(#right))).#method()))
    }

    fn binary(&mut self, expr: &mut Expr) {
        let Expr::Binary(b) = expr else { return };
        let plain = self.scopes.is_host(&b.left) && self.scopes.is_host(&b.right);
        let literal_left = literals_only(&b.left) && !self.scopes.is_host(&b.right);
        let lets = analysis::has_let(&b.left) || analysis::has_let(&b.right);
        // The other side's type takes any host number; only rustc would have a literal without a suffix be an `i32`.
        let (device_left, device_right) = (self.scopes.is_device(&b.left), self.scopes.is_device(&b.right));
        if device_left {
            analysis::widen(&mut b.right);
        }
        if device_right {
            analysis::widen(&mut b.left);
        }
        self.visit_expr_mut(&mut b.left);
        self.visit_expr_mut(&mut b.right);
        if plain || lets || is_assign_op(&b.op) {
            return;
        }
        let (left, right) = (&*b.left, &*b.right);
        let compare = match b.op {
            BinOp::Eq(_) => "tw_eq",
            BinOp::Ne(_) => "tw_ne",
            BinOp::Lt(_) => "tw_lt",
            BinOp::Le(_) => "tw_le",
            BinOp::Gt(_) => "tw_gt",
            BinOp::Ge(_) => "tw_ge",
            _ => "",
        };
        let arithmetic = match b.op {
            BinOp::Add(_) => "tw_add",
            BinOp::Sub(_) => "tw_sub",
            BinOp::Mul(_) => "tw_mul",
            BinOp::Div(_) => "tw_div",
            BinOp::Rem(_) => "tw_rem",
            BinOp::BitAnd(_) => "tw_and",
            BinOp::BitOr(_) => "tw_or",
            BinOp::BitXor(_) => "tw_xor",
            BinOp::Shl(_) => "tw_shl",
            BinOp::Shr(_) => "tw_shr",
            _ => "",
        };
        let new = if !compare.is_empty() {
            self.comparison(left, right, compare)
        } else if let BinOp::And(_) | BinOp::Or(_) = b.op {
            let span = start(left);
            let krate = self.krate_at(span);
            let (stops, combine) = match b.op {
                BinOp::And(_) => (quote!(stops_and), quote!(and)),
                _ => (quote!(stops_or), quote!(or)),
            };
            Expr::Verbatim(quote_spanned!(span=> {
                let __tw_left = #left;
                let __tw_right =
                    if #krate::dsl::logic::Side::#stops(&__tw_left) { ::core::option::Option::None }
                    else { ::core::option::Option::Some(#right) };
                #krate::dsl::logic::Logic::#combine(__tw_left, __tw_right)
            }))
        } else if literal_left && !arithmetic.is_empty() {
            let span = start(left);
            let krate = self.krate_at(span);
            let method = Ident::new(arithmetic, span);
            Expr::Verbatim(quote_spanned!(span=> (&&#krate::dsl::logic::Pair(&(#left), &(#right))).#method()))
        } else {
            return;
        };
        *expr = new;
    }

    /// Wraps the elements of array literals of offsets, so that they may be of mixed types. Whether they are offsets into a
    /// view, or arguments of a method of the user's own, is for the type of the receiver to say.
    fn view_offsets(&mut self, call: &mut syn::ExprMethodCall) {
        if !matches!(call.method.to_string().as_str(), "load" | "load_or" | "store") {
            return;
        }
        let receiver = &call.receiver;
        let place = is_place(receiver);
        if let Some(Expr::Array(offsets)) = call.args.first_mut() {
            for offset in &mut offsets.elems {
                let span = start(offset);
                let krate = self.krate_at(span);
                *offset = Expr::Verbatim(match place {
                    true => quote_spanned!(span=> (&&#krate::dsl::view::Accessed(&#receiver)).__tw_offset(#offset)),
                    // It is evaluated once.
                    false => quote_spanned!(span=> #krate::dsl::view::offset(#offset)),
                });
            }
        }
    }

    fn refuse(&mut self, place: &Expr, message: &str, help: &str) {
        self.errors.at(place, message, help);
    }

    /// `let mut acc = 0.0` becomes a device scalar if a device loop or branch further down changes `acc`.
    fn promote(&mut self, local: &mut syn::Local, rest: &[Stmt]) -> bool {
        let Some(init) = &mut local.init else { return false };
        if init.diverge.is_some() {
            return false;
        }
        match (&local.pat, &mut *init.expr) {
            (Pat::Ident(pat), value) => self.promote_one(pat, value, rest),
            (Pat::Tuple(pats), Expr::Tuple(values)) if pats.elems.len() == values.elems.len() => {
                // The variables that stay host values are declared with the others, by `local`.
                for (pat, value) in pats.elems.iter().zip(&mut values.elems) {
                    if let Pat::Ident(pat) = pat {
                        self.promote_one(pat, value, rest);
                    }
                }
                false
            }
            (Pat::Type(typed), value) if is_tile_type(&typed.ty) && number(value).is_some() => {
                let (span, number) = (start(value), &*value);
                let krate = respan(&self.krate, span);
                *value = Expr::Verbatim(quote_spanned!(span=> #krate::dsl::scalar(#number)));
                false
            }
            _ => false,
        }
    }

    fn promote_one(&mut self, pat: &syn::PatIdent, value: &mut Expr, rest: &[Stmt]) -> bool {
        let Some(lit) = number(value) else { return false };
        if pat.mutability.is_none() {
            return false;
        }
        let name = pat.ident.to_string();
        self.scopes.push();
        self.scopes.declare(name.clone(), Binding { host: true, ..Binding::default() });
        let changed = super::control::device_changes(&self.scopes, &name, rest);
        self.scopes.pop();
        if !changed {
            return false;
        }
        let element = match lit {
            Lit::Int(l) if l.suffix().is_empty() => "i32",
            Lit::Int(l) => l.suffix(),
            Lit::Float(l) if l.suffix().is_empty() => "f32",
            Lit::Float(l) => l.suffix(),
            _ => "bool",
        };
        let (span, number) = (start(value), &*value);
        let krate = respan(&self.krate, span);
        let element = Ident::new(element, span);
        *value = Expr::Verbatim(quote_spanned!(span=> #krate::dsl::scalar::<#element>(#number)));
        true
    }

    fn local(&mut self, local: &mut syn::Local, rest: &[Stmt]) {
        if self.promote(local, rest) {
            self.scopes.declare_all(&local.pat, Binding { device: true, ..Binding::default() });
            return;
        }
        let Some(init) = &mut local.init else {
            let uninit = Some(start(&local.pat));
            self.scopes.declare_all(&local.pat, Binding { uninit, ..Binding::default() });
            return;
        };
        let values = binding_of(&self.scopes, &local.pat, &init.expr);
        // `[program_id(0), 0]`: the elements of an array have one type.
        if let Expr::Array(array) = &mut *init.expr
            && array.elems.iter().any(|e| self.scopes.is_device(e))
        {
            for literal in array.elems.iter_mut().filter(|e| number(e).is_some()) {
                let span = start(literal);
                let krate = respan(&self.krate, span);
                *literal = Expr::Verbatim(quote_spanned!(span=> #krate::dsl::scalar(#literal)));
            }
        }
        if let (Pat::Ident(pat), Expr::Closure(closure)) = (&local.pat, &*init.expr)
            && closure.capture.is_none()
            && pat.mutability.is_none()
        {
            let borrowed = analysis::places_of(&init.expr).into_iter().map(|p| p.root);
            let borrowed = borrowed.filter(|name| self.scopes.get(name).is_some()).collect();
            self.scopes.captures(pat.ident.to_string(), borrowed);
        }
        self.visit_expr_mut(&mut init.expr);
        if let Some((_, diverge)) = &mut init.diverge {
            self.visit_expr_mut(diverge);
        }
        for (name, binding) in values {
            self.scopes.declare(name, binding);
        }
    }
}

/// What is known of the variables that `let pat = init` binds.
fn binding_of(scopes: &Scopes, pat: &Pat, init: &Expr) -> Vec<(String, Binding)> {
    match (pat, init) {
        (Pat::Tuple(p), Expr::Tuple(e)) if p.elems.len() == e.elems.len() => {
            p.elems.iter().zip(&e.elems).flat_map(|(p, e)| binding_of(scopes, p, e)).collect()
        }
        (Pat::Type(t), _) => {
            let mut all = binding_of(scopes, &t.pat, init);
            if matches!(&*t.ty, syn::Type::Path(p) if p.path.get_ident().is_some_and(is_host_type)) {
                all.iter_mut().for_each(|(_, b)| {
                    *b = Binding { host: true, mutable: b.mutable, plain: !b.mutable, ..Binding::default() };
                });
            }
            all.iter_mut().for_each(|(_, b)| {
                b.reference |= matches!(&*t.ty, syn::Type::Reference(r) if r.mutability.is_some());
                b.owned |= matches!(&*t.ty, syn::Type::Path(_));
            });
            all
        }
        _ => {
            let binding = Binding {
                host: scopes.is_host(init),
                likely: scopes.likely_host(init),
                device: scopes.is_device(init),
                reference: matches!(init, Expr::Reference(r) if r.mutability.is_some()),
                changes: matches!(init, Expr::Closure(_)) && !analysis::assigned_by(init).is_empty(),
                plain: number(init).is_some(),
                ..Binding::default()
            };
            let variables = analysis::pattern_variables(pat).into_iter();
            variables
                .map(|(name, mutable)| (name, Binding { mutable, plain: binding.plain && !mutable, ..binding }))
                .collect()
        }
    }
}

/// A variable or a part of one, which may be named twice.
fn is_place(expr: &Expr) -> bool {
    match expr {
        Expr::Path(_) => true,
        Expr::Field(f) => is_place(&f.base),
        Expr::Paren(p) => is_place(&p.expr),
        _ => false,
    }
}

/// What to write for `tile as ty`.
fn cast_help(ty: &syn::Type) -> String {
    let name = quote!(#ty).to_string();
    const ELEMENTS: [&str; 13] =
        ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"];
    match name.as_str() {
        "usize" | "isize" => format!(
            "the device has no `{name}`: offsets and loop bounds take this tile as it is, pointers also `.to::<i64>()`; an \
             extent of a tile, or an index of a list, must be a host value, such as a `#[comptime]` parameter"
        ),
        name if ELEMENTS.contains(&name) || ty_is_parameter(name) => format!("write `.to::<{name}>()`"),
        name => {
            format!("`{name}` is no type of the device; tiles convert to {} with `.to::<..>()`", ELEMENTS.join(", "))
        }
    }
}

/// Type parameters are short and begin with a capital.
fn ty_is_parameter(name: &str) -> bool {
    name.len() <= 2 && name.starts_with(char::is_uppercase)
}

/// Is it `Tile<T>` or `Scalar<T>`?
fn is_tile_type(ty: &syn::Type) -> bool {
    matches!(ty, syn::Type::Path(p)
        if p.path.segments.last().is_some_and(|s| s.ident == "Tile" || s.ident == "Scalar"))
}

fn is_host_type(name: &Ident) -> bool {
    [
        "bool", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize", "f32", "f64",
        "String",
    ]
    .iter()
    .any(|t| name == t)
}

impl VisitMut for Rewriter {
    fn visit_block_mut(&mut self, block: &mut Block) {
        self.scopes.push();
        for i in 0..block.stmts.len() {
            let (head, rest) = block.stmts.split_at_mut(i + 1);
            match &mut head[i] {
                Stmt::Local(local) => self.local(local, rest),
                other => self.visit_stmt_mut(other),
            }
        }
        self.scopes.pop();
    }

    fn visit_item_mut(&mut self, _item: &mut syn::Item) {}

    // Expressions in types are constants of plain Rust.
    fn visit_type_mut(&mut self, _ty: &mut syn::Type) {}

    fn visit_angle_bracketed_generic_arguments_mut(&mut self, _args: &mut syn::AngleBracketedGenericArguments) {}

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::If(_) => self.rewrite_if(expr),
            Expr::While(_) => self.rewrite_while(expr),
            Expr::ForLoop(_) => self.rewrite_for(expr),
            Expr::Binary(_) => self.binary(expr),
            Expr::MethodCall(_) => {
                visit_mut::visit_expr_mut(self, expr);
                if let Expr::MethodCall(call) = expr {
                    self.view_offsets(call);
                }
            }
            Expr::Closure(closure) => {
                self.scopes.push();
                for input in &closure.inputs {
                    self.scopes.declare_all(input, Binding::default());
                }
                self.inside(Around::Function, |s| s.visit_expr_mut(&mut closure.body));
                self.scopes.pop();
            }
            Expr::Match(m) => {
                if self.scopes.is_device(&m.expr) {
                    self.errors.at(
                        &m.expr,
                        "`match` on a device value",
                        "the value is not known while the kernel is built; compare it with `if` and `else if`",
                    );
                }
                let device = self.scopes.is_host(&m.expr);
                self.visit_expr_mut(&mut m.expr);
                for arm in &mut m.arms {
                    self.scopes.push();
                    self.scopes.declare_all(&arm.pat, Binding { host: device, ..Binding::default() });
                    self.visit_pat_mut(&mut arm.pat);
                    self.visit_expr_mut(&mut arm.body);
                    self.scopes.pop();
                }
            }
            Expr::Cast(c) if self.scopes.is_device(&c.expr) => {
                let help = cast_help(&c.ty);
                self.errors.at(&*expr, "`as` converts host values alone, and this is a tile", &help);
            }
            Expr::Call(call) if name_of(&call.func).and_then(|n| self.scopes.get(&n)).is_some_and(|b| b.changes) => {
                let place = call.func.clone();
                visit_mut::visit_expr_mut(self, expr);
                if self.device_around(false).is_some() {
                    self.refuse(
                        &place,
                        "a closure that changes variables around it is called in a loop or branch that the device may decide",
                        "let the closure return the new value, and assign it here",
                    );
                }
            }
            Expr::Index(i) => {
                if matches!(&*i.index, Expr::Range(r) if r.start.is_none() && r.end.is_none())
                    && self.scopes.is_device(&i.expr)
                    || matches!(name_of(&i.index).as_deref(), Some("None"))
                {
                    self.errors.at(
                        &*i,
                        "tiles are not indexed",
                        "a dimension of extent 1 is inserted by `expand_dims(x, axis)`; part of memory is read with `load`",
                    );
                }
                if self.scopes.is_device(&i.index) {
                    self.errors.at(
                        &i.index,
                        "a list of the host is indexed by a device value, which is not known while the kernel is built",
                        "if the index counts a loop, write `for i in unroll(0..n)`; device memory is read with `load`",
                    );
                }
                visit_mut::visit_expr_mut(self, expr);
            }
            Expr::Repeat(r) => self.visit_expr_mut(&mut r.expr),
            Expr::Const(_) => {}
            Expr::Break(b) => {
                let labelled = b.label.is_some();
                if let Some(value) = &mut b.expr {
                    self.visit_expr_mut(value);
                }
                self.leave_loop("break", expr, labelled);
            }
            Expr::Continue(c) => {
                let labelled = c.label.is_some();
                self.leave_loop("continue", expr, labelled);
            }
            Expr::Return(r) => {
                if let Some(value) = &mut r.expr {
                    self.visit_expr_mut(value);
                }
                if self.device_around(false).is_some() {
                    self.refuse(
                        expr,
                        "`return` inside a loop or branch that the device may decide",
                        "guard the rest of the function with `if`; if the condition is known while the kernel is built, write `if comptime(..)`",
                    );
                }
            }
            Expr::Try(_) if self.kernel || self.device_around(false).is_some() => self.refuse(
                expr,
                "`?` leaves the function early, which a kernel cannot do here",
                "handle the `Option` or `Result` before the launch and pass the value as a `#[comptime]` parameter",
            ),
            Expr::Loop(_) => self.refuse(
                expr,
                "`loop` has no condition for the device",
                "write `while condition { .. }`, or `for i in 0..n { .. }`",
            ),
            Expr::Await(_) | Expr::Async(_) => {
                self.refuse(expr, "a kernel cannot wait for futures", "await before the launch, and pass the result");
            }
            Expr::Unsafe(_) => self.refuse(
                expr,
                "`unsafe` has no meaning in a kernel",
                "raw memory is reached through `Ptr<T>` parameters with masks",
            ),
            Expr::Yield(_) => self.refuse(expr, "`yield` has no meaning in a kernel", ""),
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }
}

/// The name of the variable, for messages.
pub fn describe(expr: &Expr) -> String {
    name_of(expr).unwrap_or_else(|| quote!(#expr).to_string())
}
