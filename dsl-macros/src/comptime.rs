//! `#[derive(Comptime)]`.

use super::carry::named_crate;
use super::diag::Errors;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Fields, Member};

/// Expands the derive.
pub fn expand(item: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let mut errors = Errors::default();
    let krate = named_crate(&input.attrs, "comptime", &mut errors);
    let (types, body) = match &input.data {
        Data::Struct(data) => {
            let fields: Vec<Member> = data.fields.members().collect();
            let types: Vec<_> = data.fields.iter().map(|f| f.ty.clone()).collect();
            (types, quote!(#(#krate::dsl::Comptime::identity(&self.#fields, out);)*))
        }
        Data::Enum(data) => {
            let arms = data.variants.iter().enumerate().map(|(number, variant)| {
                let name = &variant.ident;
                let bound: Vec<_> = (0..variant.fields.len()).map(|i| format_ident!("field{i}")).collect();
                let pattern = match &variant.fields {
                    Fields::Unit => quote!(Self::#name),
                    Fields::Unnamed(_) => quote!(Self::#name(#(#bound),*)),
                    Fields::Named(_) => {
                        let members = variant.fields.members();
                        quote!(Self::#name { #(#members: #bound),* })
                    }
                };
                quote!(#pattern => {
                    out.number(#number);
                    #(#krate::dsl::Comptime::identity(#bound, out);)*
                })
            });
            let types = data.variants.iter().flat_map(|v| v.fields.iter().map(|f| f.ty.clone())).collect();
            (types, if data.variants.is_empty() { quote!() } else { quote!(match self { #(#arms)* }) })
        }
        Data::Union(_) => {
            errors.at(
                &input.ident,
                "`Comptime` can be derived for structs and enums",
                "nothing tells which field of a union holds the value",
            );
            (Vec::new(), quote!())
        }
    };
    if !errors.is_empty() {
        return errors.into_tokens();
    }
    let name = &input.ident;
    let (parameters, arguments, clause) = input.generics.split_for_impl();
    let given = clause.map(|c| &c.predicates);
    quote! {
        impl #parameters #krate::dsl::Comptime for #name #arguments
        where
            Self: ::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static,
            #(#types: #krate::dsl::Comptime,)*
            #given
        {
            #[allow(unused_variables)]
            fn identity(&self, out: &mut #krate::dsl::comptime::Identity) {
                #body
            }
        }
    }
}
