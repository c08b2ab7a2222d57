//! `#[derive(Carry)]`.

use super::diag::Errors;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Index, Member};

/// Expands the derive.
pub fn expand(item: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let mut errors = Errors::default();
    let krate = named_crate(&input.attrs, "carry", &mut errors);
    let Data::Struct(data) = &input.data else {
        errors.at(
            &input.ident,
            "`Carry` can be derived for structs alone",
            "which variant an enum has is decided while the kernel is built, so a device loop cannot change it",
        );
        return errors.into_tokens();
    };
    if !errors.is_empty() {
        return errors.into_tokens();
    }
    let fields: Vec<Member> = data
        .fields
        .iter()
        .enumerate()
        .map(|(i, f)| f.ident.clone().map_or_else(|| Member::Unnamed(Index::from(i)), Member::Named))
        .collect();
    let types: Vec<_> = data.fields.iter().map(|f| &f.ty).collect();
    let name = &input.ident;
    let (parameters, arguments, clause) = input.generics.split_for_impl();
    let given = clause.map(|c| &c.predicates);
    quote! {
        impl #parameters #krate::dsl::Carry for #name #arguments
        where
            Self: ::core::clone::Clone,
            #(#types: #krate::dsl::Carry,)*
            #given
        {
            fn leaves(&self, out: &mut #krate::dsl::carry::Leaves) {
                #(#krate::dsl::Carry::leaves(&self.#fields, out);)*
            }
            fn rebuild(&self, from: &mut #krate::dsl::carry::Rebuild<'_>) -> Self {
                Self { #(#fields: #krate::dsl::Carry::rebuild(&self.#fields, from)),* }
            }
        }
    }
}

/// The path of the crate `tilewright` that an attribute such as `#[carry(crate = path)]` says.
pub fn named_crate(attrs: &[syn::Attribute], attribute: &str, errors: &mut Errors) -> TokenStream {
    let mut krate = quote!(::tilewright);
    for attr in attrs.iter().filter(|a| a.path().is_ident(attribute)) {
        let parsed = attr.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("unknown argument; known is `crate = path`"));
            }
            let path: syn::Path = meta.value()?.call(syn::Path::parse_mod_style)?;
            krate = quote!(#path);
            Ok(())
        });
        if let Err(error) = parsed {
            errors.push(error);
        }
    }
    krate
}
