//! What `#[kernel]` and `#[device_fn]` expand to.
//!
//! `#[kernel] fn f` becomes the launcher `fn f`, and an empty type `f` (in the namespace of types, so that the two live
//! side by side) with `f::definition`, which gives the `KernelDef`, and the rewritten body.

use super::analysis::Binding;
use super::args::{self, Kind, Options, Param};
use super::body::Rewriter;
use super::diag::{Errors, respan};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{FnArg, GenericParam, Generics, ItemFn, ReturnType, Safety, Signature, TypeParamBound, WherePredicate};

/// Bounds that make a type parameter an element type.
const ELEMENT_BOUNDS: [&str; 6] = ["Element", "Num", "Int", "Float", "Bits", "DotElement"];

/// Expands `#[kernel]`.
pub fn expand_kernel(attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = args::options(attr, &mut errors);
    let mut function: ItemFn = match syn::parse2(item) {
        Ok(function) => function,
        Err(error) => {
            errors.push(error);
            return errors.into_tokens();
        }
    };
    let params = args::params(&mut function.sig.inputs, &mut errors);
    check_signature(&function.sig, &mut errors);
    if !errors.is_empty() {
        return fallback(function, errors);
    }
    let mut rewriter = Rewriter::new(options.krate.clone(), true);
    for p in &params {
        let host = matches!(p.kind, Kind::Comptime);
        let mutable = p.mutable.is_some();
        // Views, pointers and scalars are handles. A comptime value is owned, and may hold anything.
        let binding =
            Binding { host, device: !host, mutable, plain: !host && !mutable, owned: true, ..Binding::default() };
        rewriter.scopes.declare(p.name.to_string(), binding);
    }
    declare_consts(&mut rewriter, &function.sig.generics);
    rewriter.visit_block_mut(&mut function.block);
    if !rewriter.errors.is_empty() {
        // The launcher and the definition stay; the body is empty, for it is never built, and nothing in it is unused.
        function.block = syn::parse_quote!({ ::core::unreachable!() });
        function.attrs.push(syn::parse_quote!(#[allow(unused)]));
    }
    let errors = rewriter.errors.into_tokens();
    let launcher = launcher(&function, &params, &options);
    let definition = definition(&function, &params, &options);
    quote!(#errors #launcher #definition)
}

/// Expands `#[device_fn]`.
pub fn expand_device_fn(attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = args::options(attr, &mut errors);
    let mut function: ItemFn = match syn::parse2(item) {
        Ok(function) => function,
        Err(error) => {
            errors.push(error);
            return errors.into_tokens();
        }
    };
    check_modifiers(&function.sig, "device function", &mut errors);
    let mut rewriter = Rewriter::new(options.krate.clone(), false);
    for input in &mut function.sig.inputs {
        match input {
            FnArg::Typed(typed) => {
                let comptime = args::take_comptime(&mut typed.attrs);
                let host = comptime || is_host_param(&typed.ty);
                let reference = matches!(&*typed.ty, syn::Type::Reference(r) if r.mutability.is_some());
                let changes = typed.ty.to_token_stream().to_string().contains("FnMut");
                let owned = matches!(&*typed.ty, syn::Type::Path(_));
                let binding = Binding { host, reference, changes, owned, ..Binding::default() };
                rewriter.scopes.declare_all(&typed.pat, binding);
            }
            FnArg::Receiver(r) => {
                let text = r.to_token_stream().to_string().replace(' ', "");
                let mutable = text.starts_with("mutself");
                let reference = !mutable && r.to_token_stream().to_string().contains("mut");
                rewriter.scopes.declare("self".into(), Binding { mutable, reference, ..Binding::default() });
            }
        }
    }
    declare_consts(&mut rewriter, &function.sig.generics);
    rewriter.visit_block_mut(&mut function.block);
    errors.append(rewriter.errors);
    if !errors.is_empty() {
        return fallback(function, errors);
    }
    let imports = imports(&options.krate);
    let ItemFn { attrs, vis, sig, block, .. } = &function;
    let stmts = &block.stmts;
    quote! {
        #(#attrs)*
        // The lints would judge the generated code.
        #[allow(unused_imports, unused_parens, unused_braces, unused_assignments, unused_qualifications, unreachable_code)]
            #[allow(clippy::all)]
        #vis #sig {
            #imports
            #(#stmts)*
        }
    }
}

/// The function as written, without a body, beside the errors.
fn fallback(function: ItemFn, errors: Errors) -> TokenStream {
    let errors = errors.into_tokens();
    let ItemFn { vis, sig, .. } = &function;
    quote! {
        #errors
        #[allow(unused, dead_code)]
        #vis #sig {
            ::core::unreachable!()
        }
    }
}

fn is_host_param(ty: &syn::Type) -> bool {
    matches!(ty, syn::Type::Path(p) if p.path.get_ident().is_some_and(|i| {
        ["bool", "usize", "isize", "i32", "i64", "u32", "u64", "f32", "f64"].iter().any(|t| i == t)
    }))
}

fn declare_consts(rewriter: &mut Rewriter, generics: &Generics) {
    for c in generics.const_params() {
        rewriter.scopes.declare(c.ident.to_string(), Binding { host: true, plain: true, ..Binding::default() });
    }
}

/// The traits behind the generated method calls.
fn imports(krate: &TokenStream) -> TokenStream {
    quote! {
        use #krate::dsl::view::{OfOther as _, OfView as _};
        use #krate::dsl::watch::{Behind as _, Seen as _, Tagged as _};
        use #krate::dsl::logic::{HostBoth as _, LiteralHost as _, LiteralTile as _, TileLeft as _, TileRight as _};
    }
}

fn check_modifiers(sig: &Signature, what: &str, errors: &mut Errors) {
    if let Some(t) = &sig.asyncness {
        errors.at(t, &format!("a {what} is not `async`"), "wait on the launch instead");
    }
    if !matches!(sig.safety, Safety::Default) {
        errors.at(&sig.safety, &format!("a {what} is not `unsafe`"), "remove `unsafe`");
    }
    if let Some(t) = &sig.constness {
        errors.at(t, &format!("a {what} is not `const`"), "remove `const`: it runs while kernels are built");
    }
    if let Some(t) = &sig.abi {
        errors.at(t, &format!("a {what} has no ABI"), "remove `extern`");
    }
    if let Some(t) = &sig.variadic {
        errors.at(t, &format!("a {what} has a fixed number of parameters"), "pass a tuple or an array");
    }
}

fn check_signature(sig: &Signature, errors: &mut Errors) {
    check_modifiers(sig, "kernel", errors);
    if let ReturnType::Type(_, ty) = &sig.output
        && !matches!(&**ty, syn::Type::Tuple(t) if t.elems.is_empty())
    {
        errors.at(ty, "a kernel returns nothing", "write results through `Out<T, R>` or `Ptr<T>` parameters");
    }
    for param in &sig.generics.params {
        match param {
            GenericParam::Lifetime(l) => errors.at(
                l,
                "a kernel has no lifetime parameters",
                "views and pointers take none, and `#[comptime]` values are owned",
            ),
            GenericParam::Const(_) => {}
            GenericParam::Type(t) => {
                let in_where = sig.generics.where_clause.iter().flat_map(|w| &w.predicates).any(|p| {
                    matches!(p, WherePredicate::Type(p)
                        if matches!(&p.bounded_ty, syn::Type::Path(b) if b.path.is_ident(&t.ident))
                            && p.bounds.iter().any(is_element_bound))
                });
                if !in_where && !t.bounds.iter().any(is_element_bound) {
                    errors.at(
                        t,
                        &format!("the type parameter `{}` of a kernel is not bound to be an element type", t.ident),
                        &format!(
                            "write `{0}: Float`, `{0}: Int`, `{0}: Num` or `{0}: Element`; other choices are `#[comptime]` parameters",
                            t.ident
                        ),
                    );
                }
            }
        }
    }
}

fn is_element_bound(bound: &TypeParamBound) -> bool {
    matches!(bound, TypeParamBound::Trait(t)
        if t.path.segments.last().is_some_and(|s| ELEMENT_BOUNDS.iter().any(|b| s.ident == b)))
}

/// `::<T, N>`, or nothing.
fn turbofish(generics: &Generics) -> TokenStream {
    let names = generics.params.iter().filter_map(|p| match p {
        GenericParam::Type(t) => Some(&t.ident),
        GenericParam::Const(c) => Some(&c.ident),
        GenericParam::Lifetime(_) => None,
    });
    let names: Vec<_> = names.collect();
    if names.is_empty() { quote!() } else { quote!(::<#(#names),*>) }
}

/// The function that makes a launch.
fn launcher(function: &ItemFn, params: &[Param], options: &Options) -> TokenStream {
    let krate = &options.krate;
    let ItemFn { attrs, vis, sig, .. } = function;
    let name = &sig.ident;
    let life = syn::Lifetime::new("'__tw", name.span());
    let mut generics = sig.generics.clone();
    generics.params.insert(0, syn::parse_quote!(#life));
    let (parameters, _, clause) = generics.split_for_impl();
    let inputs = params.iter().map(|p| {
        let (name, ty) = (&p.name, &p.ty);
        match &p.kind {
            Kind::View(_, element, rank) => quote!(#name: #krate::View<#life, #element, #rank>),
            Kind::Ptr(element) => quote!(#name: #krate::Slice<#life, #element>),
            Kind::Scalar | Kind::Comptime => quote!(#name: #ty),
        }
    });
    let arguments = params.iter().filter_map(|p| {
        let name = &p.name;
        let text = name.to_string();
        Some(match &p.kind {
            Kind::View(access, ..) => {
                quote!((#text, #krate::KernelArg::from_view(#name, #krate::dsl::Access::#access)))
            }
            Kind::Ptr(_) => quote!((#text, #krate::KernelArg::from_slice(#name))),
            Kind::Scalar => quote!((#text, #krate::KernelArg::from_scalar(#name))),
            Kind::Comptime => return None,
        })
    });
    let comptime = comptime(params).map(|p| &p.name);
    let turbofish = turbofish(&sig.generics);
    quote! {
        #(#attrs)*
        #[allow(clippy::too_many_arguments, unused_qualifications)]
        #vis fn #name #parameters (#(#inputs),*) -> #krate::Launch<#life> #clause {
            #krate::Launch::new(
                #name::definition #turbofish (#(#comptime),*),
                ::std::vec![#(#arguments),*],
            )
        }
    }
}

fn comptime(params: &[Param]) -> impl Iterator<Item = &Param> {
    params.iter().filter(|p| matches!(p.kind, Kind::Comptime))
}

/// The type of the kernel's name, with its definition and its body.
fn definition(function: &ItemFn, params: &[Param], options: &Options) -> TokenStream {
    let krate = &options.krate;
    let ItemFn { attrs, vis, sig, block, .. } = function;
    let name = &sig.ident;
    let text = name.to_string();
    let configured: Vec<_> = attrs.iter().filter(|a| a.path().is_ident("cfg") || a.path().is_ident("allow")).collect();
    let (parameters, _, clause) = sig.generics.split_for_impl();
    let turbofish = turbofish(&sig.generics);

    let comptime_names: Vec<_> = comptime(params).map(|p| &p.name).collect();
    let comptime_types: Vec<_> = comptime(params).map(|p| &p.ty).collect();
    // Spanned at the type, where a mistake is.
    let identities = comptime(params).map(|p| {
        let (name, krate) = (&p.name, respan(krate, p.ty.span()));
        quote_spanned!(p.ty.span()=> (&&&&#krate::dsl::comptime::Asked(&#name)).comptime_value())
    });
    let elements = sig.generics.type_params().map(|t| &t.ident);
    let constants = sig.generics.const_params().map(|c| &c.ident);
    let adds = params.iter().filter(|p| !matches!(p.kind, Kind::Comptime)).map(|p| {
        let (name, ty, text) = (&p.name, &p.ty, p.name.to_string());
        let krate = respan(krate, ty.span());
        quote_spanned!(ty.span()=> let #name = <#ty as #krate::dsl::KernelParam>::param(__tw_params, #text);)
    });
    let passed = params.iter().map(|p| {
        let name = &p.name;
        if matches!(p.kind, Kind::Comptime) { quote!(::core::clone::Clone::clone(&#name)) } else { quote!(#name) }
    });
    let inputs = params.iter().map(|p| {
        let (name, mutable, ty) = (&p.name, &p.mutable, &p.ty);
        let ty = match p.kind {
            Kind::Scalar => quote_spanned!(ty.span()=> <#ty as #krate::dsl::KernelParam>::Handle),
            _ => quote!(#ty),
        };
        quote!(#mutable #name: #ty)
    });
    let fp_fusion = options.fp_fusion;
    let krate_here = respan(krate, name.span());
    let place = quote_spanned!(name.span()=> #krate_here::dsl::Loc::caller());
    let imports = imports(krate);
    let stmts = &block.stmts;
    let summary = format!("The kernel [`fn@{text}`], as a type to find its definition by.");
    let body = format_ident!("__tw_body");
    quote! {
        #(#configured)*
        #[doc = #summary]
        #[allow(non_camel_case_types)]
        #vis enum #name {}

        #(#configured)*
        #[allow(unused_qualifications)]
        impl #name {
            /// The definition of the kernel for these element types and comptime arguments.
            #[allow(clippy::too_many_arguments)]
            pub fn definition #parameters (#(#comptime_names: #comptime_types),*) -> #krate::dsl::KernelDef #clause {
                let __tw_id = #krate::dsl::KernelId {
                    path: ::core::concat!(::core::module_path!(), "::", #text),
                    item: ::core::any::TypeId::of::<Self>(),
                    dtypes: ::std::vec![#(<#elements as #krate::dsl::Element>::DTYPE),*],
                    comptime: {
                        #[allow(unused_imports)]
                        use #krate::dsl::comptime::{ByEq as _, Exact as _, Neither as _, Written as _};
                        ::std::vec![
                            #(#identities,)*
                            #((&&&&#krate::dsl::comptime::Asked(&#constants)).comptime_value()),*
                        ]
                    },
                };
                let __tw_place = #place;
                #krate::dsl::KernelDef::new(#text, __tw_id, move |__tw_spec| {
                    #krate::dsl::build(#text, __tw_place, __tw_spec, #fp_fusion, |__tw_params| {
                        #(#adds)*
                        Self::#body #turbofish (#(#passed),*)
                    })
                })
            }

            // The lints would judge the generated code.
            #[allow(unused_imports, unused_parens, unused_braces, unused_assignments, unused_qualifications, unreachable_code)]
            #[allow(clippy::all)]
            #(#configured)*
            fn #body #parameters (#(#inputs),*) #clause {
                #imports
                #(#stmts)*
            }
        }
    }
}
