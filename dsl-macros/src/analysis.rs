//! What can be told from a function's tokens alone: which outer variables a block mentions or assigns, and which expressions are
//! surely host values or surely made from device values.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::{HashMap, HashSet};
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Lit, Pat, UnOp};

/// A variable or place that a block may change, declared outside it.
#[derive(Clone)]
pub struct Place {
    /// The variable's name.
    pub root: String,
    /// The place as written: `x`, `*x`, `self.x`.
    pub text: String,
    /// The place as an expression.
    pub expr: Expr,
    /// What the block does with it.
    pub change: Change,
    /// Is the variable itself assigned, not a part of it or what it refers to?
    pub direct: bool,
}

/// What a block does with a variable. Which of these change it is for types to say, never for names of methods; see
/// `control::Rewriter::outer`. Least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It is mentioned: changed only if it is, or holds, a `&mut` reference or a cell.
    Mentioned,
    /// It is passed to a function: the same, and a `&mut` reference is not used up by it.
    Passed,
    /// A method is called on it, it is borrowed, or a macro names it: changed only if it is mutable at all.
    Used,
    /// It is assigned.
    Sure,
}

impl Place {
    /// Is it surely changed?
    pub fn sure(&self) -> bool {
        self.change == Change::Sure
    }
}

/// Finds the outer variables that code mentions, and what it does with them.
#[derive(Default)]
struct Finder {
    scopes: Vec<HashSet<String>>,
    places: Vec<Place>,
}

/// The outer places that `blocks` mention: those assigned in the order of their first assignment.
pub fn places(blocks: &[&Block]) -> Vec<Place> {
    let mut finder = Finder::default();
    for block in blocks {
        finder.visit_block(block);
    }
    finder.places
}

/// The same for an expression.
pub fn places_of(expr: &Expr) -> Vec<Place> {
    let mut finder = Finder::default();
    finder.visit_expr(expr);
    finder.places
}

/// The outer places that `blocks` surely assign.
pub fn assigned(blocks: &[&Block]) -> Vec<Place> {
    places(blocks).into_iter().filter(Place::sure).collect()
}

/// The same for an expression.
pub fn assigned_by(expr: &Expr) -> Vec<Place> {
    places_of(expr).into_iter().filter(Place::sure).collect()
}

/// The name, if the expression is one.
pub fn name_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Path(p) if p.qself.is_none() => p.path.get_ident().map(ToString::to_string),
        _ => None,
    }
}

impl Finder {
    fn scoped(&mut self, f: impl FnOnce(&mut Self)) {
        self.scopes.push(HashSet::new());
        f(self);
        self.scopes.pop();
    }

    fn declare(&mut self, pat: &Pat) {
        let names = pattern_names(pat);
        if let Some(scope) = self.scopes.last_mut() {
            scope.extend(names);
        }
    }

    fn target(&mut self, expr: &Expr, direct: bool) {
        match expr {
            Expr::Path(_) => self.add(expr, expr, Change::Sure, direct),
            // A part of a variable may be device state where the whole is not.
            Expr::Field(f) => match field_root(expr) {
                Some(root) => self.add(root, expr, Change::Sure, false),
                None => self.target(&f.base, false),
            },
            Expr::Index(i) => self.target(&i.expr, false),
            Expr::Paren(p) => self.target(&p.expr, direct),
            Expr::Group(g) => self.target(&g.expr, direct),
            Expr::Unary(u) if matches!(u.op, UnOp::Deref(_)) => match bare(&u.expr) {
                // `*(x.y)`: what lies behind a part of `x`.
                Expr::Path(_) => self.add(bare(&u.expr), expr, Change::Sure, false),
                other => self.target(other, false),
            },
            Expr::Tuple(t) => t.elems.iter().for_each(|e| self.target(e, direct)),
            Expr::Array(a) => a.elems.iter().for_each(|e| self.target(e, direct)),
            Expr::Call(c) => c.args.iter().for_each(|e| self.target(e, direct)),
            Expr::Struct(s) => s.fields.iter().for_each(|f| self.target(&f.expr, direct)),
            _ => {}
        }
    }

    /// These are passed to a function: references among them may be written through.
    fn arguments<'a>(&mut self, args: impl IntoIterator<Item = &'a Expr>) {
        for arg in args {
            if let Expr::Path(_) = bare(arg) {
                self.add(bare(arg), bare(arg), Change::Passed, false);
            }
        }
    }

    /// A macro names these, and may do anything with them.
    fn named(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.named(group.stream()),
                // Keywords are no expressions.
                TokenTree::Ident(ident) => {
                    if let Ok(path) = syn::parse2::<Expr>(ident.into_token_stream()) {
                        self.add(&path, &path, Change::Used, false);
                    }
                }
                _ => {}
            }
        }
    }

    /// A method is called on this, or it is borrowed: it may be changed in place.
    fn used(&mut self, expr: &Expr) {
        if let Some(root) = field_root(expr) {
            self.add(root, expr, Change::Used, false);
            return;
        }
        match expr {
            Expr::Field(f) => self.used(&f.base),
            Expr::Index(i) => self.used(&i.expr),
            Expr::Paren(p) => self.used(&p.expr),
            Expr::Group(g) => self.used(&g.expr),
            Expr::Unary(u) if matches!(u.op, UnOp::Deref(_)) => self.used(&u.expr),
            _ => {}
        }
    }

    fn add(&mut self, root: &Expr, place: &Expr, change: Change, direct: bool) {
        let Some(name) = name_of(root) else { return };
        if self.scopes.iter().any(|s| s.contains(&name)) {
            return;
        }
        let text = quote::quote!(#place).to_string().replace(' ', "");
        match self.places.iter().position(|p| p.text == text) {
            // The order is that of assignments: what was only mentioned until now comes after what was assigned.
            Some(i) if self.places[i].change < change && change == Change::Sure => {
                let known = self.places.remove(i);
                self.places.push(Place { change, direct, ..known });
            }
            Some(i) => {
                self.places[i].change = self.places[i].change.max(change);
                self.places[i].direct |= direct;
            }
            None => self.places.push(Place { root: name, text, expr: place.clone(), change, direct }),
        }
    }
}

/// The variable of `x` or `x.a.0`, a path of fields.
fn field_root(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Path(_) => Some(expr),
        Expr::Field(f) => field_root(&f.base),
        _ => None,
    }
}

/// The expression without the parentheses around it.
pub fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(p) => bare(&p.expr),
        Expr::Group(g) => bare(&g.expr),
        other => other,
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_block(&mut self, block: &'ast Block) {
        self.scoped(|s| visit::visit_block(s, block));
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let (Some(init), false) = (&local.init, matches!(local.pat, Pat::Ident(_) | Pat::Type(_))) {
            self.used(&init.expr);
        }
        visit::visit_local(self, local);
        self.declare(&local.pat);
    }

    fn visit_item(&mut self, _item: &'ast syn::Item) {}

    fn visit_expr_assign(&mut self, e: &'ast syn::ExprAssign) {
        self.target(&e.left, true);
        visit::visit_expr_assign(self, e);
    }

    fn visit_expr_binary(&mut self, e: &'ast syn::ExprBinary) {
        if is_assign_op(&e.op) {
            self.target(&e.left, true);
        }
        // A plain variable beside an operator is read.
        for side in [&*e.left, &*e.right] {
            if !matches!(bare(side), Expr::Path(_)) {
                self.visit_expr(side);
            }
        }
    }

    fn visit_expr_reference(&mut self, e: &'ast syn::ExprReference) {
        match e.mutability {
            Some(_) => self.target(&e.expr, false),
            None => self.used(&e.expr),
        }
        visit::visit_expr_reference(self, e);
    }

    fn visit_expr_method_call(&mut self, e: &'ast syn::ExprMethodCall) {
        self.used(&e.receiver);
        self.arguments(&e.args);
        visit::visit_expr_method_call(self, e);
    }

    fn visit_expr_call(&mut self, e: &'ast syn::ExprCall) {
        // A closure that changes what it captured is changed by the call.
        self.used(&e.func);
        self.arguments(&e.args);
        visit::visit_expr_call(self, e);
    }

    fn visit_expr_path(&mut self, e: &'ast syn::ExprPath) {
        let path = Expr::Path(e.clone());
        self.add(&path, &path, Change::Mentioned, false);
    }

    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        self.named(m.tokens.clone());
    }

    // Patterns may borrow what they take apart as mutable.
    fn visit_expr_match(&mut self, e: &'ast syn::ExprMatch) {
        self.used(&e.expr);
        visit::visit_expr_match(self, e);
    }

    fn visit_expr_let(&mut self, e: &'ast syn::ExprLet) {
        self.used(&e.expr);
        self.visit_expr(&e.expr);
        self.declare(&e.pat);
    }

    fn visit_expr_if(&mut self, e: &'ast syn::ExprIf) {
        self.scoped(|s| {
            s.visit_expr(&e.cond);
            s.visit_block(&e.then_branch);
        });
        if let Some((_, other)) = &e.else_branch {
            self.visit_expr(other);
        }
    }

    fn visit_expr_while(&mut self, e: &'ast syn::ExprWhile) {
        self.scoped(|s| visit::visit_expr_while(s, e));
    }

    fn visit_expr_for_loop(&mut self, e: &'ast syn::ExprForLoop) {
        self.visit_expr(&e.expr);
        self.scoped(|s| {
            s.declare(&e.pat);
            s.visit_block(&e.body);
        });
    }

    fn visit_expr_closure(&mut self, e: &'ast syn::ExprClosure) {
        self.scoped(|s| {
            e.inputs.iter().for_each(|p| s.declare(p));
            s.visit_expr(&e.body);
        });
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.scoped(|s| {
            s.declare(&arm.pat);
            visit::visit_arm(s, arm);
        });
    }
}

/// Is it `+=` or one of its kin?
pub fn is_assign_op(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// The names a pattern binds.
pub fn pattern_names(pat: &Pat) -> Vec<String> {
    pattern_variables(pat).into_iter().map(|(name, _)| name).collect()
}

/// The names a pattern binds, each with whether it is `mut`.
pub fn pattern_variables(pat: &Pat) -> Vec<(String, bool)> {
    struct Names(Vec<(String, bool)>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_pat_ident(&mut self, p: &'ast syn::PatIdent) {
            self.0.push((p.ident.to_string(), p.mutability.is_some()));
            visit::visit_pat_ident(self, p);
        }
        fn visit_expr(&mut self, _e: &'ast Expr) {}
    }
    let mut names = Names(Vec::new());
    names.visit_pat(pat);
    names.0
}

/// Does the condition bind by `let`? Then it is plain Rust.
pub fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(b) => has_let(&b.left) || has_let(&b.right),
        Expr::Paren(p) => has_let(&p.expr),
        Expr::Group(g) => has_let(&g.expr),
        _ => false,
    }
}

/// A number literal, perhaps negative or in parentheses.
pub fn number(expr: &Expr) -> Option<&Lit> {
    match expr {
        Expr::Lit(l) if matches!(l.lit, Lit::Int(_) | Lit::Float(_) | Lit::Bool(_)) => Some(&l.lit),
        Expr::Unary(u) if matches!(u.op, UnOp::Neg(_)) => number(&u.expr).filter(|l| !matches!(l, Lit::Bool(_))),
        Expr::Paren(p) => number(&p.expr),
        Expr::Group(g) => number(&g.expr),
        _ => None,
    }
}

/// Gives an integer literal without a suffix that no `i32` holds the suffix of a type that holds it.
pub fn widen(expr: &mut Expr) {
    match expr {
        Expr::Lit(l) => {
            let Lit::Int(int) = &l.lit else { return };
            let Ok(value) = int.base10_parse::<u64>() else { return };
            if int.suffix().is_empty() && value > i32::MAX as u64 {
                let suffix = if i64::try_from(value).is_ok() { "i64" } else { "u64" };
                l.lit = Lit::Int(syn::LitInt::new(&format!("{}{suffix}", int.base10_digits()), int.span()));
            }
        }
        Expr::Unary(u) if matches!(u.op, UnOp::Neg(_)) => widen(&mut u.expr),
        Expr::Paren(p) => widen(&mut p.expr),
        Expr::Group(g) => widen(&mut g.expr),
        _ => {}
    }
}

/// Does the expression consist of number literals alone?
pub fn literals_only(expr: &Expr) -> bool {
    match expr {
        Expr::Binary(b) => literals_only(&b.left) && literals_only(&b.right),
        Expr::Paren(p) => literals_only(&p.expr),
        Expr::Group(g) => literals_only(&g.expr),
        _ => number(expr).is_some_and(|l| !matches!(l, Lit::Bool(_))),
    }
}

/// What is known of a variable.
#[derive(Clone, Copy, Default)]
pub struct Binding {
    /// Surely a host value.
    pub host: bool,
    /// Likely a host value (see [`Scopes::likely_host`]).
    pub likely: bool,
    /// Surely made from device values.
    pub device: bool,
    /// Declared `mut`.
    pub mutable: bool,
    /// A `&mut` reference.
    pub reference: bool,
    /// A closure that changes variables around it when it is called.
    pub changes: bool,
    /// A number or handle that nothing but an assignment changes.
    pub plain: bool,
    /// Declared with a type that is not a reference.
    pub owned: bool,
    /// Declared by `let x;` at this span.
    pub uninit: Option<proc_macro2::Span>,
}

/// The variables in scope, innermost scope last.
#[derive(Default)]
pub struct Scopes(Vec<HashMap<String, Binding>>, HashMap<String, Vec<String>>);

impl Scopes {
    /// Opens a scope.
    pub fn push(&mut self) {
        self.0.push(HashMap::new());
    }

    /// Closes the innermost scope.
    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// Declares a variable.
    pub fn declare(&mut self, name: String, binding: Binding) {
        if let Some(scope) = self.0.last_mut() {
            scope.insert(name, binding);
        }
    }

    /// Declares all variables of a pattern alike.
    pub fn declare_all(&mut self, pat: &Pat, binding: Binding) {
        for (name, mutable) in pattern_variables(pat) {
            self.declare(name, Binding { mutable, plain: binding.plain && !mutable, ..binding });
        }
    }

    /// Notes what a closure borrows from around it. Names are not told apart by scope: one too many does no harm.
    pub fn captures(&mut self, closure: String, names: Vec<String>) {
        self.1.insert(closure, names);
    }

    /// What the closure of this name borrows.
    pub fn captured(&self, closure: &str) -> &[String] {
        self.1.get(closure).map_or(&[], Vec::as_slice)
    }

    /// What is known of a variable.
    pub fn get(&self, name: &str) -> Option<Binding> {
        self.0.iter().rev().find_map(|s| s.get(name)).copied()
    }

    /// Is the expression surely a host value? "No" means "not known".
    pub fn is_host(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Lit(_) => true,
            Expr::Path(p) => match name_of(expr) {
                Some(name) => self.get(&name).map_or_else(|| is_constant_name(&name), |b| b.host),
                // `i32::MAX`, `Mode::Fast`: constants and enum variants.
                None => {
                    p.path.segments.len() > 1
                        && p.path.segments.last().is_some_and(|s| s.ident.to_string().starts_with(char::is_uppercase))
                }
            },
            Expr::Unary(u) => self.is_host(&u.expr),
            Expr::Paren(p) => self.is_host(&p.expr),
            Expr::Group(g) => self.is_host(&g.expr),
            Expr::Reference(r) => self.is_host(&r.expr),
            Expr::Field(f) => self.is_host(&f.base),
            Expr::Index(i) => self.is_host(&i.expr) && self.is_host(&i.index),
            // `as` is defined for host numbers alone.
            Expr::Cast(_) => true,
            Expr::Binary(b) => !is_assign_op(&b.op) && self.is_host(&b.left) && self.is_host(&b.right),
            Expr::MethodCall(m) => self.is_host(&m.receiver) && m.args.iter().all(|a| self.is_host(a)),
            Expr::Tuple(t) => t.elems.iter().all(|e| self.is_host(e)),
            Expr::Array(a) => a.elems.iter().all(|e| self.is_host(e)),
            Expr::Call(c) => called(c).is_some_and(|n| n == "comptime"),
            Expr::Macro(m) => m.mac.path.is_ident("cfg"),
            _ => false,
        }
    }

    /// Is the condition likely a host value: surely, or made by methods that mostly give host numbers and flags? Where one of
    /// that name gives a tile, rustc says that a `bool` was expected.
    pub fn likely_host(&self, condition: &Expr) -> bool {
        match condition {
            Expr::Unary(u) => self.likely_host(&u.expr),
            Expr::Paren(p) => self.likely_host(&p.expr),
            Expr::Group(g) => self.likely_host(&g.expr),
            Expr::Binary(b) => !is_assign_op(&b.op) && self.likely_host(&b.left) && self.likely_host(&b.right),
            Expr::MethodCall(m) if !self.is_host(condition) => {
                matches!(m.method.to_string().as_str(), "len" | "is_empty" | "is_some" | "is_none" | "rank")
            }
            Expr::Path(_) if name_of(condition).and_then(|n| self.get(&n)).is_some_and(|b| b.likely) => true,
            _ => self.is_host(condition),
        }
    }

    /// Is the expression surely made from device values? "No" means "not known".
    pub fn is_device(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Path(_) => name_of(expr).and_then(|n| self.get(&n)).is_some_and(|b| b.device),
            Expr::Unary(u) => self.is_device(&u.expr),
            Expr::Paren(p) => self.is_device(&p.expr),
            Expr::Group(g) => self.is_device(&g.expr),
            Expr::Binary(b) => !is_assign_op(&b.op) && (self.is_device(&b.left) || self.is_device(&b.right)),
            Expr::MethodCall(m) => {
                let method = m.method.to_string();
                // A guess that decides nothing but which advice is given, and whether a literal becomes a device scalar.
                matches!(method.as_str(), "load" | "load_or" | "load_if" | "dim" | "stride" | "to" | "bitcast")
                    && self.is_device(&m.receiver)
            }
            Expr::Call(c) => called(c).is_some_and(|n| matches!(n.as_str(), "program_id" | "num_programs")),
            _ => false,
        }
    }
}

/// The last name of the path that is called.
pub fn called(call: &syn::ExprCall) -> Option<String> {
    match &*call.func {
        Expr::Path(p) => p.path.segments.last().map(|s| s.ident.to_string()),
        _ => None,
    }
}

/// Is it written as constants and statics are?
pub fn is_constant_name(name: &str) -> bool {
    name.chars().any(char::is_uppercase) && !name.chars().any(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_the_order_of_their_assignments() {
        let block: Block = syn::parse_quote!({
            let x = f(b, c);
            a = x;
            d.add(x);
            b = g(a);
        });
        let names: Vec<(String, bool)> = places(&[&block]).into_iter().map(|p| (p.text.clone(), p.sure())).collect();
        let expected = [("f", false), ("c", false), ("a", true), ("d", false), ("b", true), ("g", false)];
        assert_eq!(names, expected.map(|(name, sure)| (name.to_owned(), sure)));
    }
}
