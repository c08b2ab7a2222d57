//! Rewriting `if`, `while` and `for`.
//!
//! - `if` on a condition that is surely a host value stays plain Rust. Any other `if` becomes code that serves both
//!   kinds: `branch(condition)` chooses by the type of the condition.
//! - `while` on a surely-host condition stays plain Rust; any other is a device loop.
//! - `for` over a range is a device loop, unless `unroll(..)` is around the range; over anything else it is plain Rust.
//!
//! A device region changes the outer variables that its code assigns, or changes by methods, macros and functions: all
//! that it may change are handed over as `(&mut a, (&mut b, ()))`.

use super::analysis::{self, Binding, Change, Place, Scopes, assigned, assigned_by, bare, has_let, places, places_of};
use super::body::{Around, Rewriter, describe};
use super::diag::{respan, start};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::visit::{self, Visit};
use syn::visit_mut::VisitMut;
use syn::{Block, Expr, ExprForLoop, Lit, RangeLimits, Stmt};

/// What a `for` loop runs over.
enum Head {
    /// A device loop: bounds and step.
    Device(Box<Expr>, Box<Expr>, Option<Box<Expr>>),
    /// A call that may give a range of the device: what it gives decides.
    Range,
    /// A host loop over the argument of `unroll`.
    Unroll(Box<Expr>),
    /// A host loop.
    Host,
    /// Something that is refused, with a message and advice.
    Refused(&'static str, &'static str),
}

fn head(expr: &Expr) -> Head {
    let expr = bare(expr);
    match expr {
        Expr::Range(r) => match (&r.start, &r.end, &r.limits) {
            (_, _, RangeLimits::Closed(_)) => Head::Refused(
                "a device loop over an inclusive range",
                "write `lo..hi + 1`, or `unroll(lo..=hi)` if both are host values",
            ),
            (Some(lo), Some(hi), _) => Head::Device(lo.clone(), hi.clone(), None),
            _ => Head::Refused("a device loop needs both bounds", "write `0..n`"),
        },
        Expr::MethodCall(m) => {
            let ranged = matches!(bare(&m.receiver), Expr::Range(_));
            match (m.method.to_string().as_str(), m.args.first()) {
                ("step_by", Some(step)) if ranged => match head(&m.receiver) {
                    Head::Device(lo, hi, None) => Head::Device(lo, hi, Some(Box::new(step.clone()))),
                    other => other,
                },
                ("rev", None) if ranged => Head::Refused(
                    "a device loop over a reversed range",
                    "write `range(hi - 1, lo - 1, -1)`, or `unroll((lo..hi).rev())` if both are host values",
                ),
                _ => Head::Host,
            }
        }
        Expr::Call(c) => match analysis::called(c).as_deref() {
            Some("range") => Head::Range,
            Some("unroll") => match c.args.first() {
                Some(items) => Head::Unroll(Box::new(items.clone())),
                None => Head::Host,
            },
            _ => Head::Host,
        },
        _ => Head::Host,
    }
}

/// Do these statements contain a device loop, or a branch surely decided by the device, that assigns `name`?
pub fn device_changes(scopes: &Scopes, name: &str, stmts: &[Stmt]) -> bool {
    struct Finder<'a> {
        scopes: &'a Scopes,
        name: &'a str,
        found: bool,
    }
    impl Finder<'_> {
        fn check(&mut self, blocks: &[&Block]) {
            self.found |= assigned(blocks).iter().any(|p| p.sure() && p.root == self.name);
        }
    }
    impl<'ast> Visit<'ast> for Finder<'_> {
        fn visit_item(&mut self, _item: &'ast syn::Item) {}
        fn visit_expr_for_loop(&mut self, e: &'ast ExprForLoop) {
            if matches!(head(&e.expr), Head::Device(..) | Head::Range) {
                self.check(&[&e.body]);
            }
            visit::visit_expr_for_loop(self, e);
        }
        fn visit_expr_while(&mut self, e: &'ast syn::ExprWhile) {
            if !has_let(&e.cond) && !self.scopes.likely_host(&e.cond) {
                self.check(&[&e.body]);
            }
            visit::visit_expr_while(self, e);
        }
        fn visit_expr_if(&mut self, e: &'ast syn::ExprIf) {
            if self.scopes.is_device(&e.cond) {
                self.check(&[&e.then_branch]);
                if let Some((_, other)) = &e.else_branch {
                    self.found |= assigned_by(other).iter().any(|p| p.sure() && p.root == self.name);
                }
            }
            visit::visit_expr_if(self, e);
        }
    }
    let mut finder = Finder { scopes, name, found: false };
    stmts.iter().for_each(|s| finder.visit_stmt(s));
    finder.found
}

/// A place that a region is handed, and how.
struct Handed {
    place: Place,
    how: How,
}

/// How a place is handed to a region.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// As `&mut`: it is device state, or that is a mistake.
    Assigned,
    /// As `&mut` if its type is device state; if not, it is watched for changes.
    Mutable,
    /// A binding that is not `mut`: through the reference that it is, if it is one to device state; else it is watched.
    Behind,
    /// The same, and it is assigned.
    AssignedBehind,
    /// Watched, for a closure borrows it.
    Watched,
}

/// `(&mut a, (&mut b, ()))`. What only may be changed is asked by its type for whether it is device state.
fn handed_over(krate: &TokenStream, places: &[Handed], span: Span) -> TokenStream {
    let krate = respan(krate, span);
    places.iter().rev().fold(quote_spanned!(span=> ()), |rest, handed| {
        let expr = &handed.place.expr;
        let tag = quote_spanned!(span=> (&&&&&#krate::dsl::watch::Probe::of(&#expr)).tag());
        match handed.how {
            How::Assigned => quote_spanned!(span=> (&mut #expr, #rest)),
            How::Mutable => quote_spanned!(span=> (#tag.wrap(&mut #expr), #rest)),
            How::Behind => quote_spanned!(span=> (#expr.__tw_hand(#tag), #rest)),
            How::AssignedBehind => quote_spanned!(span=> (#expr.__tw_behind(), #rest)),
            How::Watched => quote_spanned!(span=> (#krate::dsl::watch::Seen::__tw_hand(&#expr, #tag), #rest)),
        }
    })
}

fn names(places: &[Handed]) -> TokenStream {
    let names = places.iter().map(|p| &p.place.text);
    quote!(&[#(#names),*])
}

/// Of places that overlap, only the whole: a region borrows each but once. What is surely assigned is in front.
fn without_overlaps(all: Vec<Handed>) -> Vec<Handed> {
    /// `*r.x` and `r.x` are the same place.
    fn plain(h: &Handed) -> &str {
        h.place.text.trim_start_matches('*')
    }
    let part_of =
        |part: &str, whole: &str| part.strip_prefix(whole).is_some_and(|r| r.is_empty() || r.starts_with('.'));
    let mut kept: Vec<Handed> = Vec::new();
    for new in all {
        if let Some(whole) = kept.iter_mut().find(|k| part_of(plain(&new), plain(k))) {
            if plain(&new) == plain(whole) && new.place.sure() && !whole.place.sure() {
                *whole = new;
            }
            continue;
        }
        kept.retain(|k| !part_of(plain(k), plain(&new)));
        kept.push(new);
    }
    kept
}

impl Rewriter {
    /// The places to hand over to a region that mentions `places`. Syntax tells which may be changed at all: those declared
    /// `mut` and used by more than their value, and bindings that are no more than a `&mut` reference. Their types tell
    /// the rest (see `dsl::watch`), and what turns out unchanged is no state of the region when it is closed.
    fn outer(&mut self, places: Vec<Place>, around: Around) -> Vec<Handed> {
        let mut all: Vec<Handed> = Vec::new();
        let mut captured: Vec<Place> = Vec::new();
        for mut place in places {
            let known = self.scopes.get(&place.root);
            let binding = known.unwrap_or_default();
            captured.extend(self.scopes.captured(&place.root).iter().map(|name| {
                let ident = syn::Ident::new(name, Span::call_site());
                Place { root: name.clone(), text: name.clone(), expr: syn::parse_quote!(#ident), ..place.clone() }
            }));
            if binding.mutable && place.change < Change::Used || binding.plain && !place.sure() {
                continue;
            }
            if known.is_none() && !place.sure() {
                // Not seen declared: a function, a type, or a static.
                if place.change == Change::Used && analysis::is_constant_name(&place.root) && place.text == place.root {
                    all.push(Handed { place, how: How::Watched });
                }
                continue;
            }
            let bare = place.text == place.root;
            let how = if binding.reference && !binding.mutable {
                // What is assigned through a reference that is not `mut` itself lies behind it.
                if bare {
                    let behind = &place.expr;
                    place.expr = syn::parse_quote!(*#behind);
                    place.text = format!("*{}", place.text);
                }
                if place.sure() { How::Assigned } else { How::Mutable }
            } else if binding.mutable || known.is_none() {
                if place.sure() { How::Assigned } else { How::Mutable }
            } else if place.sure() && (!bare || binding.uninit.is_some()) {
                How::Assigned
            } else if place.sure() && place.direct {
                let name = &place.text;
                self.errors.at(
                    &place.expr,
                    &format!("`{name}` changes in a loop or branch that the device may decide, but is not `mut`"),
                    &format!("declare it as `let mut {name} = ..`"),
                );
                continue;
            } else if place.sure() {
                How::AssignedBehind
            } else if around == Around::DeviceLoop || place.change > Change::Passed || !binding.owned {
                // Only as a whole: whether a part of it can be borrowed depends on what it is.
                let root = syn::Ident::new(&place.root, start(&place.expr));
                place.expr = if place.root == "self" { syn::parse_quote!(self) } else { syn::parse_quote!(#root) };
                place.text = place.root.clone();
                How::Behind
            } else {
                continue;
            };
            if around != Around::DeviceLoop && place.change == Change::Mentioned && how != How::Mutable {
                continue;
            }
            all.push(Handed { place, how });
        }
        for place in captured {
            if self.scopes.get(&place.root).is_some_and(|b| !b.plain) {
                all.push(Handed { place, how: How::Watched });
            }
        }
        without_overlaps(all)
    }

    /// Refuses variables without a value before the region that changes them.
    fn check_places(&mut self, places: &[Handed], what: &str) {
        for Handed { place, .. } in places.iter().filter(|h| h.place.sure()) {
            if let Some(span) = self.scopes.get(&place.root).and_then(|b| b.uninit) {
                self.errors.at_span(
                    span,
                    &format!("`{}` has no value before the {what} that assigns it", place.root),
                    "give it a value here, or write `let x = if .. { .. } else { .. };`",
                );
            }
        }
    }

    fn no_label(&mut self, label: &Option<syn::Label>) {
        if let Some(label) = label {
            self.errors.at(label, "a device loop takes no label", "`break` and `continue` cannot leave device loops");
        }
    }

    /// Rewrites an `if`.
    pub fn rewrite_if(&mut self, expr: &mut Expr) {
        let Expr::If(e) = expr else { return };
        if has_let(&e.cond)
            || self.scopes.is_host(&e.cond)
            || self.scopes.likely_host(&e.cond) && leaves(&e.then_branch)
        {
            self.scopes.push();
            self.visit_expr_mut(&mut e.cond);
            for name in let_names(&e.cond) {
                self.scopes.declare(name, Binding::default());
            }
            self.visit_block_mut(&mut e.then_branch);
            self.scopes.pop();
            if let Some((_, other)) = &mut e.else_branch {
                self.visit_expr_mut(other);
            }
            return;
        }
        let mut found = places(&[&e.then_branch]);
        if let Some((_, other)) = &e.else_branch {
            found.extend(places_of(other));
        }
        let places = self.outer(found, Around::Branch);
        self.check_places(&places, "branch");
        let span = start(&e.cond);
        self.visit_expr_mut(&mut e.cond);
        self.inside(Around::Branch, |s| {
            s.visit_block_mut(&mut e.then_branch);
            if let Some((_, other)) = &mut e.else_branch {
                s.visit_expr_mut(other);
            }
        });
        let (krate, cond, then) = (self.krate_at(span), &e.cond, &e.then_branch);
        let (other, enter_else) = match &e.else_branch {
            Some((_, other)) => (quote!(#other), quote_spanned!(span=> enter_else)),
            None => (quote_spanned!(span=> {}), quote_spanned!(span=> skip_else)),
        };
        let (vars, names) = (handed_over(&self.krate, &places, span), names(&places));
        *expr = block(quote_spanned!(span=> {
            let mut __tw_if = #krate::dsl::control::branch(#cond, #names);
            let __tw_saved = __tw_if.save(#vars);
            let __tw_then =
                if __tw_if.enter_then() { ::core::option::Option::Some(#then) } else { ::core::option::Option::None };
            __tw_if.end_then(&__tw_then, &__tw_saved, #vars);
            let __tw_else =
                if __tw_if.#enter_else() { ::core::option::Option::Some(#other) } else { ::core::option::Option::None };
            __tw_if.end(__tw_then, __tw_else, __tw_saved, #vars)
        }));
    }

    /// Rewrites a `while`.
    pub fn rewrite_while(&mut self, expr: &mut Expr) {
        let Expr::While(e) = expr else { return };
        if has_let(&e.cond) || self.scopes.likely_host(&e.cond) {
            self.scopes.push();
            self.visit_expr_mut(&mut e.cond);
            for name in let_names(&e.cond) {
                self.scopes.declare(name, Binding::default());
            }
            self.inside(Around::HostLoop, |s| s.visit_block_mut(&mut e.body));
            self.scopes.pop();
            return;
        }
        self.no_label(&e.label);
        for place in assigned_by(&e.cond).iter().filter(|p| p.sure()) {
            self.errors.at(
                &place.expr,
                &format!("the condition of a device loop assigns `{}`", place.text),
                "assign it in the body of the loop",
            );
        }
        let mut found = places(&[&e.body]);
        found.extend(places_of(&e.cond));
        let places = self.outer(found, Around::DeviceLoop);
        self.check_places(&places, "loop");
        let (span, at) = (e.while_token.span, start(&e.cond));
        self.inside(Around::DeviceLoop, |s| {
            s.visit_expr_mut(&mut e.cond);
            s.visit_block_mut(&mut e.body);
        });
        let (krate, cond, body) = (self.krate_at(span), &e.cond, &e.body);
        let (vars, names) = (handed_over(&self.krate, &places, span), names(&places));
        let enter = quote_spanned!(at=> __tw_while.body(#cond, #vars));
        *expr = block(quote_spanned!(span=> {
            let mut __tw_while = #krate::dsl::control::while_loop(#vars, #names);
            #enter;
            #body
            __tw_while.end(#vars);
        }));
    }

    /// Rewrites a `for`.
    pub fn rewrite_for(&mut self, expr: &mut Expr) {
        let Expr::ForLoop(e) = expr else { return };
        match head(&e.expr) {
            Head::Refused(message, help) => self.errors.at(&e.expr, message, help),
            Head::Host => {
                let host = self.scopes.is_host(&e.expr);
                self.visit_expr_mut(&mut e.expr);
                self.host_loop(e, host);
            }
            Head::Unroll(items) => {
                // Whatever is called so by that name, it is called: only what its items are is guessed from its argument.
                let host = match bare(&items) {
                    Expr::Range(_) => true,
                    Expr::MethodCall(m) => matches!(bare(&m.receiver), Expr::Range(_)),
                    other => self.scopes.is_host(other),
                };
                self.visit_expr_mut(&mut e.expr);
                self.host_loop(e, host);
            }
            head @ (Head::Device(..) | Head::Range) => {
                let e = e.clone();
                *expr = self.device_for(e, head);
            }
        }
    }

    fn host_loop(&mut self, e: &mut ExprForLoop, host: bool) {
        self.scoped(|s| {
            s.scopes.declare_all(&e.pat, Binding { host, ..Binding::default() });
            s.inside(Around::HostLoop, |s| s.visit_block_mut(&mut e.body));
        });
    }

    /// A bound that is surely a host integer is passed as `i64`, which leaves no literal's type open.
    fn bound(&mut self, mut bound: Expr) -> TokenStream {
        if matches!(analysis::number(&bound), Some(Lit::Float(_) | Lit::Bool(_))) {
            self.errors.at(&bound, "a loop bound is an integer", "count with integers, and convert inside the loop");
        }
        let host = self.scopes.is_host(&bound);
        self.visit_expr_mut(&mut bound);
        let span = start(&bound);
        let krate = self.krate_at(span);
        if host { quote_spanned!(span=> #krate::dsl::control::host_bound(#bound)) } else { quote!(#bound) }
    }

    /// A device loop; over what a call gives it is one of the host if that is no range of the device.
    fn device_for(&mut self, mut e: ExprForLoop, head: Head) -> Expr {
        self.no_label(&e.label);
        let places = self.outer(places(&[&e.body]), Around::DeviceLoop);
        for Handed { place, .. } in &places {
            if place.sure() && analysis::pattern_names(&e.pat).contains(&place.root) {
                self.errors.at(
                    &place.expr,
                    &format!("the loop variable `{}` is assigned in the loop", describe(&place.expr)),
                    "a device loop counts by itself; use another variable",
                );
            }
        }
        self.check_places(&places, "loop");
        let span = e.for_token.span;
        let (krate, device) = (self.krate_at(span), matches!(head, Head::Device(..)));
        let names = names(&places);
        let start = match head {
            Head::Device(lo, hi, step) => {
                let (lo, hi) = (self.bound(*lo), self.bound(*hi));
                let step = match step {
                    Some(step) => self.bound(*step),
                    None => quote_spanned!(span=> 1i64),
                };
                quote_spanned!(span=> #krate::dsl::control::for_loop(#lo, #hi, #step, #names))
            }
            _ => {
                self.visit_expr_mut(&mut e.expr);
                let (at, call) = (start(&e.expr), &e.expr);
                let krate = self.krate_at(at);
                // Spans of the call: what is wrong with it is told there.
                let typed = quote_spanned!(at=> #call.__tw_lo().__tw_hi().__tw_step());
                quote_spanned!(at=> {
                    use #krate::dsl::control::{Head as _, Plain as _};
                    #typed.start(#names)
                })
            }
        };
        self.scoped(|s| {
            s.scopes.declare_all(&e.pat, Binding { device, plain: device, ..Binding::default() });
            s.inside(Around::DeviceLoop, |s| s.visit_block_mut(&mut e.body));
        });
        let (pat, body) = (&e.pat, &e.body);
        let vars = handed_over(&self.krate, &places, span);
        let rounds = if device {
            quote_spanned!(span=> {
                let #pat = __tw_for.index();
                #body
            })
        } else {
            quote_spanned!(span=> while let ::core::option::Option::Some(__tw_item) = __tw_for.next() {
                let #pat = __tw_item;
                #body
            })
        };
        block(quote_spanned!(span=> {
            let mut __tw_for = #start;
            let __tw_saved = __tw_for.open(#vars);
            #rounds
            __tw_for.close(__tw_saved, #vars);
        }))
    }
}

/// Does the block leave a loop or the function, which only plain Rust can?
fn leaves(block: &Block) -> bool {
    struct Finder(bool);
    impl<'ast> Visit<'ast> for Finder {
        fn visit_item(&mut self, _item: &'ast syn::Item) {}
        fn visit_expr(&mut self, e: &'ast Expr) {
            self.0 |= matches!(e, Expr::Break(_) | Expr::Continue(_) | Expr::Return(_) | Expr::Try(_));
            visit::visit_expr(self, e);
        }
    }
    let mut finder = Finder(false);
    finder.visit_block(block);
    finder.0
}

/// The names that the `let`s of a condition bind.
fn let_names(cond: &Expr) -> Vec<String> {
    match cond {
        Expr::Let(l) => analysis::pattern_names(&l.pat),
        Expr::Binary(b) => [let_names(&b.left), let_names(&b.right)].concat(),
        Expr::Paren(p) => let_names(&p.expr),
        _ => Vec::new(),
    }
}

/// Generated code as a block expression: unlike free tokens it may stand as a statement.
fn block(tokens: TokenStream) -> Expr {
    match syn::parse2::<syn::ExprBlock>(tokens.clone()) {
        Ok(block) => Expr::Block(block),
        Err(_) => Expr::Verbatim(tokens),
    }
}
