//! Arguments of the attributes, and the parameters of a kernel.

use super::diag::Errors;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Attribute, FnArg, GenericArgument, Pat, PathArguments, Token, Type};

/// What `#[kernel(..)]` says.
pub struct Options {
    /// Path of the crate `tilewright`.
    pub krate: TokenStream,
    /// May products and sums written apart be contracted?
    pub fp_fusion: bool,
}

/// Reads the arguments of an attribute.
pub fn options(attr: TokenStream, errors: &mut Errors) -> Options {
    let mut options = Options { krate: quote!(::tilewright), fp_fusion: false };
    let parser = syn::meta::parser(|meta| {
        if meta.path.is_ident("crate") {
            let path: syn::Path = meta.value()?.call(syn::Path::parse_mod_style)?;
            options.krate = quote!(#path);
        } else if meta.path.is_ident("fp_fusion") {
            options.fp_fusion = true;
        } else {
            return Err(meta.error("unknown argument; known are `fp_fusion` and `crate = path`"));
        }
        Ok(())
    });
    if let Err(error) = parser.parse2(attr) {
        errors.push(error);
    }
    options
}

/// What a kernel parameter is.
pub enum Kind {
    /// `In`, `Out`, `InOut`: the name of the handle, element type, rank.
    View(Ident, Box<GenericArgument>, Box<GenericArgument>),
    /// `Ptr`: element type.
    Ptr(Box<GenericArgument>),
    /// A number.
    Scalar,
    /// A host value.
    Comptime,
}

/// A kernel parameter.
pub struct Param {
    /// Its name.
    pub name: Ident,
    /// Is it `mut`?
    pub mutable: Option<Token![mut]>,
    /// Its type as written.
    pub ty: Type,
    /// What it is.
    pub kind: Kind,
}

/// Removes `#[comptime]`; says whether it was there.
pub fn take_comptime(attrs: &mut Vec<Attribute>) -> bool {
    let before = attrs.len();
    attrs.retain(|a| !a.path().is_ident("comptime"));
    attrs.len() != before
}

/// Host types that need `#[comptime]`.
const HOST_TYPES: [&str; 7] = ["usize", "isize", "u128", "i128", "char", "str", "String"];

/// Reads the parameters of a kernel, and removes their `#[comptime]`.
pub fn params(inputs: &mut Punctuated<FnArg, Token![,]>, errors: &mut Errors) -> Vec<Param> {
    let mut params = Vec::new();
    for input in inputs {
        let typed = match input {
            FnArg::Receiver(r) => {
                errors.at(
                    &*r,
                    "a kernel has no `self`",
                    "pass device values as parameters and host values as `#[comptime]` parameters",
                );
                continue;
            }
            FnArg::Typed(typed) => typed,
        };
        let comptime = take_comptime(&mut typed.attrs);
        let Pat::Ident(pat) = &*typed.pat else {
            errors.at(&typed.pat, "a kernel parameter is a plain name", "take the value apart inside the kernel");
            continue;
        };
        let kind = kind(&typed.ty, comptime, errors);
        params.push(Param { name: pat.ident.clone(), mutable: pat.mutability, ty: (*typed.ty).clone(), kind });
    }
    params
}

fn kind(ty: &Type, comptime: bool, errors: &mut Errors) -> Kind {
    let Type::Path(path) = ty else {
        match ty {
            Type::Reference(r) if comptime && r.lifetime.as_ref().is_none_or(|l| l.ident != "static") => errors.at(
                ty,
                "a `#[comptime]` reference outlives the launch",
                "write `&'static`, or pass an owned value",
            ),
            Type::ImplTrait(_) => errors.at(
                ty,
                "a kernel parameter has one type",
                "give a `#[device_fn]` the closure, and a kernel a `#[comptime]` choice between closures",
            ),
            Type::Reference(_) if !comptime => errors.at(
                ty,
                "a kernel parameter is no reference",
                "take `In<T, R>`, `Out<T, R>`, `InOut<T, R>` or `Ptr<T>` for memory, and `#[comptime]` for host values",
            ),
            _ if !comptime => errors.at(
                ty,
                "this type is no kernel parameter",
                "take `In<T, R>`, `Out<T, R>`, `InOut<T, R>`, `Ptr<T>` or a number; mark host values `#[comptime]`",
            ),
            _ => {}
        }
        return if comptime { Kind::Comptime } else { Kind::Scalar };
    };
    let Some(last) = path.path.segments.last() else { return Kind::Scalar };
    let name = last.ident.to_string();
    let arguments: Vec<&GenericArgument> = match &last.arguments {
        PathArguments::AngleBracketed(a) => a.args.iter().collect(),
        _ => Vec::new(),
    };
    let memory = matches!(name.as_str(), "In" | "Out" | "InOut" | "Ptr");
    if comptime && memory {
        errors.at(ty, "device memory is not known while the kernel is built", "remove `#[comptime]`");
    }
    if comptime {
        return Kind::Comptime;
    }
    match (name.as_str(), &arguments[..]) {
        ("In" | "Out" | "InOut", [element, rank]) => {
            Kind::View(last.ident.clone(), Box::new((*element).clone()), Box::new((*rank).clone()))
        }
        ("In" | "Out" | "InOut", _) => {
            errors.at(ty, "a view has an element type and a rank", "write for example `In<f32, 2>`");
            Kind::Scalar
        }
        ("Ptr", [element]) => Kind::Ptr(Box::new((*element).clone())),
        ("Ptr", _) => {
            errors.at(ty, "a pointer has an element type", "write for example `Ptr<f32>`");
            Kind::Scalar
        }
        ("Tile" | "Scalar", _) => {
            errors.at(
                ty,
                "a kernel parameter has the type that the host passes",
                "write the number type, for example `f32`: inside the kernel it is a scalar tile",
            );
            Kind::Scalar
        }
        (host, _) if HOST_TYPES.contains(&host) => {
            errors.at(
                ty,
                &format!("`{host}` is not a type of the device"),
                "mark the parameter `#[comptime]` if the kernel is built for each value, or pass an `i32` or `i64`",
            );
            Kind::Scalar
        }
        _ => Kind::Scalar,
    }
}
