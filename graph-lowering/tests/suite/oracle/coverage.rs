//! Has every public function of `Tensor` values to compare with?

use super::cases;
use proc_macro2::TokenTree;
use std::collections::BTreeSet;

/// What gives no tensor, or makes one of given values; `promote` is seen in the sums of all pairs of types.
const NO_VALUES: &[&str] = &[
    "new",
    "vector",
    "scalar",
    "ty",
    "dtype",
    "dims",
    "rank",
    "elements",
    "check",
    "to_literal",
    "to_vec",
    "to_f64s",
    "promote",
];

/// The public functions in the `impl Tensor` blocks of a file, also those that its macros make, and public functions
/// beside them.
fn public(source: &str, out: &mut BTreeSet<String>) {
    let is_public = |v: &syn::Visibility| matches!(v, syn::Visibility::Public(_));
    for item in syn::parse_file(source).unwrap().items {
        match item {
            syn::Item::Impl(block) if block.trait_.is_none() && is_tensor(&block.self_ty) => {
                for member in block.items {
                    match member {
                        syn::ImplItem::Fn(f) if is_public(&f.vis) => {
                            out.insert(f.sig.ident.to_string());
                        }
                        syn::ImplItem::Macro(m) => made(&m.mac, out),
                        _ => {}
                    }
                }
            }
            syn::Item::Fn(f) if is_public(&f.vis) => {
                out.insert(f.sig.ident.to_string());
            }
            _ => {}
        }
    }
}

fn is_tensor(ty: &syn::Type) -> bool {
    matches!(ty, syn::Type::Path(p) if p.path.is_ident("Tensor"))
}

/// The first of each `name Op;`.
fn made(mac: &syn::Macro, out: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = mac.tokens.clone().into_iter().collect();
    for w in tokens.windows(3) {
        if let [TokenTree::Ident(name), TokenTree::Ident(_), TokenTree::Punct(end)] = w
            && end.as_char() == ';'
        {
            out.insert(name.to_string());
        }
    }
}

#[test]
fn every_function_has_values() {
    let mut all = BTreeSet::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tensor");
    for file in std::fs::read_dir(folder).unwrap() {
        public(&std::fs::read_to_string(file.unwrap().path()).unwrap(), &mut all);
    }
    assert!(all.contains("softmax") && all.contains("log1p") && all.contains("rem_") && all.len() > 90, "{all:?}");
    let with_values: BTreeSet<String> = cases().into_iter().map(|c| c.f).collect();
    let missing: Vec<&String> =
        all.iter().filter(|f| !with_values.contains(*f) && !NO_VALUES.contains(&f.as_str())).collect();
    assert!(missing.is_empty(), "functions without values in tests/golden/values.jsonl: {missing:?}; extend make.py");
}
