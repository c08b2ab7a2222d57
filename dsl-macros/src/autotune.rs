//! What `#[autotune]` adds to a kernel: `NAME::tunable()`, `NAME::tuned(..)`, and its registration.
//!
//! The kernel itself stays as it is; the attribute stands above `#[kernel]`.

use super::args::{self, Kind, Param};
use super::diag::Errors;
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Expr, ItemFn, Token, braced, bracketed};

/// A size: `n = x.dims()[0] => exact`.
struct Dim {
    name: Ident,
    value: Expr,
    bucket: Option<Expr>,
}

impl Parse for Dim {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name: Ident = input.parse()?;
        let value =
            if input.parse::<Option<Token![=]>>()?.is_some() { input.parse()? } else { syn::parse_quote!(#name) };
        let bucket = if input.parse::<Option<Token![=>]>>()?.is_some() { Some(input.parse()?) } else { None };
        Ok(Self { name, value, bucket })
    }
}

/// An argument the command makes: `x: [n]`, `eps: 1e-5`.
struct Argument {
    name: Ident,
    value: Expr,
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        Ok(Self { name, value: input.parse()? })
    }
}

/// What `#[autotune(..)]` says.
#[derive(Default)]
struct Arguments {
    krate: Option<syn::Path>,
    space: Option<Expr>,
    key: Option<Punctuated<Dim, Token![,]>>,
    grid: Option<Expr>,
    prune: Option<Expr>,
    dtypes: Option<Punctuated<Ident, Token![,]>>,
    args: Option<Punctuated<Argument, Token![,]>>,
    example: Option<Punctuated<Expr, Token![,]>>,
    tolerance: Option<Expr>,
}

const KNOWN: &str = "known are `space`, `key`, `grid`, `prune`, `dtypes`, `args`, `example`, `tolerance` and `crate`";

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut all = Self::default();
        fn list<T: Parse>(input: ParseStream<'_>) -> syn::Result<Punctuated<T, Token![,]>> {
            let content;
            bracketed!(content in input);
            Punctuated::parse_terminated(&content)
        }
        while !input.is_empty() {
            if input.parse::<Option<Token![crate]>>()?.is_some() {
                input.parse::<Token![=]>()?;
                all.krate = Some(input.call(syn::Path::parse_mod_style)?);
            } else {
                let name: Ident = input.parse()?;
                input.parse::<Token![=]>()?;
                match name.to_string().as_str() {
                    "space" => all.space = Some(input.parse()?),
                    "key" => all.key = Some(list(input)?),
                    "grid" => all.grid = Some(input.parse()?),
                    "prune" => all.prune = Some(input.parse()?),
                    "dtypes" => all.dtypes = Some(list(input)?),
                    "example" => all.example = Some(list(input)?),
                    "tolerance" => all.tolerance = Some(input.parse()?),
                    "args" => {
                        let content;
                        braced!(content in input);
                        all.args = Some(Punctuated::parse_terminated(&content)?);
                    }
                    _ => return Err(syn::Error::new(name.span(), format!("unknown argument `{name}`; {KNOWN}"))),
                }
            }
            if input.is_empty() {
                break;
            }
            input.parse::<Token![,]>()?;
        }
        Ok(all)
    }
}

/// Expands `#[autotune]`: the item as it is, and what is added.
pub fn expand(attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let added = match (syn::parse2::<Arguments>(attr), syn::parse2::<ItemFn>(item.clone())) {
        (Ok(arguments), Ok(function)) => added(arguments, function, &mut errors),
        (a, f) => {
            a.err().into_iter().chain(f.err()).for_each(|e| errors.push(e));
            quote!()
        }
    };
    let errors = errors.into_tokens();
    quote!(#item #added #errors)
}

fn added(arguments: Arguments, mut function: ItemFn, errors: &mut Errors) -> TokenStream {
    let name = function.sig.ident.clone();
    if !function.attrs.iter().any(|a| a.path().segments.last().is_some_and(|s| s.ident == "kernel")) {
        errors.at(&name, "`#[autotune]` is for kernels", "write `#[kernel]` below it");
        return quote!();
    }
    // Mistakes in the parameters are told by `#[kernel]`.
    let params = args::params(&mut function.sig.inputs, &mut Errors::default());
    let (Some(space), Some(key), Some(grid)) = (&arguments.space, &arguments.key, &arguments.grid) else {
        let help = "for example `space = space! { block: [256, 1024], num_warps: [4, 8] }, key = [n = x.dims()[0]], \
                    grid = [n.div_ceil(block)]`";
        errors.at(&name, "`#[autotune]` needs `space`, `key` and `grid`", help);
        return quote!();
    };
    let types: Vec<_> = function.sig.generics.type_params().map(|t| t.ident.clone()).collect();
    if types.len() > 1 || function.sig.generics.const_params().next().is_some() {
        let help = "write a kernel of one element type, or build the `Tunable` by hand";
        errors.at(&function.sig.generics, "`#[autotune]` takes at most one type parameter and no constants", help);
        return quote!();
    }
    if arguments.dtypes.is_some() == types.is_empty() {
        let (message, help) = match types.first() {
            Some(t) => {
                (format!("which element types `{t}` may be is not said"), "write for example `dtypes = [f32, f16]`")
            }
            None => ("a kernel without a type parameter has no choice of element types".into(), "remove `dtypes`"),
        };
        errors.at(&name, &message, help);
        return quote!();
    }
    let memory = params.iter().find(|p| matches!(p.kind, Kind::View(..) | Kind::Ptr(_)));
    let Some(memory) = memory.map(|p| &p.name) else {
        errors.at(
            &name,
            "a tuned kernel has a view or a pointer among its parameters",
            "its device is that of the launch",
        );
        return quote!();
    };
    Parts {
        arguments: &arguments,
        function: &function,
        params: &params,
        space,
        key,
        grid,
        memory,
        element: types.first(),
    }
    .tokens(errors)
}

struct Parts<'a> {
    arguments: &'a Arguments,
    function: &'a ItemFn,
    params: &'a [Param],
    space: &'a Expr,
    key: &'a Punctuated<Dim, Token![,]>,
    grid: &'a Expr,
    memory: &'a Ident,
    element: Option<&'a Ident>,
}

impl Parts<'_> {
    fn tokens(&self, errors: &mut Errors) -> TokenStream {
        let krate = self.krate();
        let runtime = quote!(#krate::__private::runtime);
        let ItemFn { vis, sig, .. } = self.function;
        let (name, text) = (&sig.ident, sig.ident.to_string());
        let life = syn::Lifetime::new("'__tw", name.span());
        let mut generics = sig.generics.clone();
        generics.params.insert(0, syn::parse_quote!(#life));
        let (parameters, _, clause) = generics.split_for_impl();
        let turbofish = self.element.map(|t| quote!(::<#t>));
        let passed: Vec<_> = self.params.iter().filter(|p| !matches!(p.kind, Kind::Comptime)).collect();
        let inputs: Vec<_> = passed
            .iter()
            .map(|p| {
                let (name, ty) = (&p.name, &p.ty);
                match &p.kind {
                    Kind::View(_, element, rank) => quote!(#name: #runtime::View<#life, #element, #rank>),
                    Kind::Ptr(element) => quote!(#name: #runtime::Slice<#life, #element>),
                    Kind::Scalar | Kind::Comptime => quote!(#name: #ty),
                }
            })
            .collect();
        let names: Vec<_> = passed.iter().map(|p| &p.name).collect();
        let comptime: Vec<_> = self.params.iter().filter(|p| matches!(p.kind, Kind::Comptime)).collect();
        let (config_names, config_types): (Vec<_>, Vec<_>) = comptime.iter().map(|p| (&p.name, &p.ty)).unzip();
        let config_texts: Vec<_> = config_names.iter().map(|n| n.to_string()).collect();
        let all_names = self.params.iter().map(|p| &p.name);
        let dims: Vec<_> = self.key.iter().map(|d| &d.name).collect();
        let values = self.key.iter().map(|d| &d.value);
        let (grid, memory) = (self.grid, self.memory);
        let dtype = match self.element {
            Some(t) => quote!(<#t as #runtime::Element>::DTYPE),
            None => quote!(#runtime::DType::F32),
        };
        let tunable = self.tunable(&krate, &runtime);
        let made = self.inputs(&krate, &runtime, &turbofish, errors);
        let scope = quote! {
            #(let #config_names = __tw_config.get::<#config_types>(#config_texts)?;)*
        };
        let tuned_doc = format!("The launch of [`fn@{text}`] in the best configuration known for these sizes.");
        quote! {
            #[allow(unused_qualifications, unused_variables, clippy::all)]
            impl #name {
                /// The kernel as the autotuner knows it.
                pub fn tunable() -> &'static #krate::Tunable {
                    static TUNABLE: ::std::sync::LazyLock<#krate::Tunable> = ::std::sync::LazyLock::new(|| #tunable);
                    &TUNABLE
                }

                #[doc = #tuned_doc]
                ///
                /// # Errors
                /// If no configuration can be launched.
                #vis fn tuned #parameters (#(#inputs),*) -> #runtime::Result<#runtime::Launch<#life>> #clause {
                    let __tw_dims = [#((#values) as i64),*];
                    #krate::Tuner::global().launch(Self::tunable(), &#memory.device(), #dtype, &__tw_dims, |__tw_config| {
                        Self::__tw_configured #turbofish (#(#names,)* &__tw_dims, __tw_config)
                    })
                }

                #[allow(clippy::too_many_arguments)]
                fn __tw_configured #parameters (
                    #(#inputs,)*
                    __tw_dims: &[i64],
                    __tw_config: &#krate::Config,
                ) -> #runtime::Result<#runtime::Launch<#life>> #clause {
                    let mut __tw_sizes = __tw_dims.iter().map(|&d| usize::try_from(d).unwrap_or(0));
                    #(let #dims = __tw_sizes.next().unwrap_or(0);)*
                    #scope
                    let __tw_grid = #grid;
                    Ok(#name #turbofish (#(#all_names),*).grid(__tw_grid).options(__tw_config.options()))
                }

                #made
            }

            #krate::register!(#name::tunable);
        }
    }

    fn krate(&self) -> TokenStream {
        match &self.arguments.krate {
            Some(path) => quote!(#path::autotune),
            None => quote!(::tilewright::autotune),
        }
    }

    /// The `Tunable`.
    fn tunable(&self, krate: &TokenStream, runtime: &TokenStream) -> TokenStream {
        let name = &self.function.sig.ident;
        let text = name.to_string();
        let space = match self.space {
            // The macro is found without being imported.
            Expr::Macro(m) if m.mac.path.is_ident("space") => {
                let tokens = &m.mac.tokens;
                quote!(#krate::space! { #tokens })
            }
            other => other.to_token_stream(),
        };
        let dims: Vec<_> = self.key.iter().map(|d| &d.name).collect();
        let dim_texts: Vec<_> = dims.iter().map(|d| d.to_string()).collect();
        let buckets = self.key.iter().filter_map(|d| {
            let text = d.name.to_string();
            let bucket = match d.bucket.as_ref()? {
                Expr::Path(p) if p.path.is_ident("exact") => quote!(#krate::Bucket::Exact),
                Expr::Path(p) if p.path.is_ident("pow2") => quote!(#krate::Bucket::Pow2),
                Expr::Call(c) if c.func.to_token_stream().to_string() == "multiple" => {
                    let step = &c.args;
                    quote!(#krate::Bucket::Multiple(#step))
                }
                other => other.to_token_stream(),
            };
            Some(quote!(.bucket(#text, #bucket)))
        });
        let dtypes = self.arguments.dtypes.iter().map(|list| {
            let list = list.iter();
            quote!(.dtypes(&[#(<#list as #runtime::Element>::DTYPE),*]))
        });
        let keep = self.arguments.prune.iter().map(|condition| {
            let comptime: Vec<_> = self.params.iter().filter(|p| matches!(p.kind, Kind::Comptime)).collect();
            let (names, types): (Vec<_>, Vec<_>) = comptime.iter().map(|p| (&p.name, &p.ty)).unzip();
            let texts: Vec<_> = names.iter().map(|n| n.to_string()).collect();
            let why = format!("not {}", condition.to_token_stream());
            quote! {
                .keep(#why, |__tw_config, __tw_dims| {
                    #(let #dims = __tw_dims.size(#dim_texts);)*
                    #(let Ok(#names) = __tw_config.get::<#types>(#texts) else { return true };)*
                    let num_warps = __tw_config.options().num_warps as usize;
                    let num_stages = __tw_config.options().num_stages as usize;
                    !(#condition)
                })
            }
        });
        let inputs = self.arguments.args.iter().map(|_| match &self.arguments.dtypes {
            None => quote!(.inputs(|__tw_problem| #name::__tw_inputs(__tw_problem))),
            Some(list) => {
                let list = list.iter();
                quote! {
                    .inputs(|__tw_problem| {
                        #(if __tw_problem.dtype == <#list as #runtime::Element>::DTYPE {
                            return #name::__tw_inputs::<#list>(__tw_problem);
                        })*
                        Err(__tw_problem.unlisted())
                    })
                }
            }
        });
        let tolerance = self.arguments.tolerance.iter().map(|t| quote!(.tolerance(#t)));
        let example = self.arguments.example.iter().map(|list| {
            let list = list.iter();
            quote!(.example(&[#(#list),*]))
        });
        quote! {
            #krate::Tunable::new(#text, &[#(#dim_texts),*], (#space)#(#keep)*)
                #(#buckets)* #(#dtypes)* #(#inputs)* #(#tolerance)* #(#example)*
        }
    }

    /// The function that makes inputs for the command.
    fn inputs(
        &self,
        krate: &TokenStream,
        runtime: &TokenStream,
        turbofish: &Option<TokenStream>,
        errors: &mut Errors,
    ) -> TokenStream {
        let Some(list) = &self.arguments.args else { return quote!() };
        let passed: Vec<_> = self.params.iter().filter(|p| !matches!(p.kind, Kind::Comptime)).collect();
        for a in list {
            if !passed.iter().any(|p| p.name == a.name) {
                errors.at(&a.name, &format!("the kernel has no parameter `{}` to make", a.name), "remove it");
            }
        }
        let (mut make, mut buffers, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for (i, p) in passed.iter().enumerate() {
            let Some(a) = list.iter().find(|a| a.name == p.name) else {
                errors.at(
                    &p.name,
                    "`args` does not say how to make this parameter",
                    "add it, such as `x: [n]` or `eps: 1e-5`",
                );
                continue;
            };
            let (buffer, value, which) = (format_ident!("__tw_buffer{i}"), &a.value, i as u64);
            match &p.kind {
                Kind::View(access, element, _) => {
                    make.push(if access == "Out" {
                        quote!(let #buffer = __tw_problem.zeros::<#element>(&#value)?;)
                    } else {
                        quote!(let #buffer = __tw_problem.random::<#element>(#which, &#value)?;)
                    });
                    calls.push(quote!(#buffer.view(#value)?));
                    buffers.push(buffer);
                }
                Kind::Ptr(element) => {
                    make.push(quote!(let #buffer = __tw_problem.random::<#element>(#which, &#value)?;));
                    calls.push(quote!(#buffer.slice(..)?));
                    buffers.push(buffer);
                }
                Kind::Scalar | Kind::Comptime => calls.push(quote!(#value)),
            }
        }
        let dims: Vec<_> = self.key.iter().map(|d| &d.name).collect();
        let sizes = quote! {
            let mut __tw_sizes = __tw_dims.iter().map(|&d| usize::try_from(d).unwrap_or(0));
            #(let #dims = __tw_sizes.next().unwrap_or(0);)*
        };
        let (parameters, _, clause) = self.function.sig.generics.split_for_impl();
        quote! {
            fn __tw_inputs #parameters (
                __tw_problem: &#krate::Problem,
            ) -> #runtime::Result<::std::boxed::Box<dyn #krate::Instance>> #clause {
                let __tw_dims = __tw_problem.dims.values().to_vec();
                #sizes
                #(#make)*
                Ok(#krate::instance(
                    (__tw_dims, #(#buffers,)*),
                    |(__tw_dims, #(#buffers,)*), __tw_config| {
                        #sizes
                        Self::__tw_configured #turbofish (#(#calls,)* __tw_dims, __tw_config)
                    },
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> TokenStream {
        quote! {
            #[kernel]
            pub fn f<T: Float>(x: In<T, 1>, p: Ptr<u8>, k: i32, y: Out<T, 1>, #[comptime] block: usize) {}
        }
    }

    fn text(attr: TokenStream, item: TokenStream) -> String {
        expand(attr, item).to_string().replace(' ', "")
    }

    #[test]
    fn the_parts() {
        let attr = quote! {
            space = space! { block: [64, 128] }, key = [n = x.dims()[0] => exact, k], grid = [n.div_ceil(block)],
            prune = block > n, dtypes = [f32, f16], args = { x: [n], p: [3], k: k as i32, y: [n] }, example = [5, 6],
        };
        let tokens = expand(attr.clone(), kernel());
        let file: syn::File = syn::parse2(tokens).expect("the expansion is a list of items");
        assert_eq!(file.items.len(), 3, "the kernel, the implementation, the registration");
        let text = text(attr, kernel());
        for part in [
            "#[kernel]pubfnf<T:Float>",
            "space!{block:[64,128]}",
            ".bucket(\"n\",::tilewright::autotune::Bucket::Exact)",
            "let__tw_dims=[(x.dims()[0])asi64,(k)asi64]",
            "&x.device()",
            "!(block>n)",
            "letblock=__tw_config.get::<usize>(\"block\")?;",
            "returnf::__tw_inputs::<f16>(__tw_problem)",
            "f::<T>(x,p,k,y,block).grid(__tw_grid)",
            "__tw_problem.zeros::<T>(&[n])",
            "__tw_problem.random::<u8>(1u64,&[3])",
            ".example(&[5,6])",
            "register!(f::tunable)",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    }

    #[test]
    fn mistakes_are_told_and_the_kernel_stays() {
        let good = quote!(space = space! {}, key = [n = 1], grid = [1]);
        let plain = quote!(
            #[kernel]
            fn f(x: In<f32, 1>) {}
        );
        for (attr, item, message) in [
            (quote!(spce = 3), kernel(), "unknownargument`spce`"),
            (quote!(space = 3), kernel(), "needs`space`,`key`and`grid`"),
            (good.clone(), kernel(), "whichelementtypes`T`maybeisnotsaid"),
            (quote!(#good, dtypes = [f32]), plain.clone(), "remove`dtypes`"),
            (
                good.clone(),
                quote!(
                    fn f(x: In<f32, 1>) {}
                ),
                "isforkernels",
            ),
            (
                good.clone(),
                quote!(
                    #[kernel]
                    fn f(n: i32) {}
                ),
                "aviewora",
            ),
            (quote!(#good, args = { z: 3 }), plain.clone(), "noparameter`z`"),
            (quote!(#good, args = {}), plain.clone(), "doesnotsayhowtomakethisparameter"),
            (quote!(key = n), kernel(), "compile_error"),
            (
                quote!(),
                quote!(
                    struct S;
                ),
                "compile_error",
            ),
        ] {
            let text = text(attr, item.clone());
            assert!(text.contains(message) && text.contains("compile_error!"), "no `{message}` in {text}");
            assert!(text.starts_with(&item.to_string().replace(' ', "")), "the item stays: {text}");
        }
        let fine = text(good, plain);
        assert!(!fine.contains("compile_error"), "{fine}");
    }
}
