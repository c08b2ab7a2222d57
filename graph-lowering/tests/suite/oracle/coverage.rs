//! Has every public function of `Tensor` values to compare with, and every primitive a gradient?

use super::apply::apply;
use super::{cases, tensors};
use proc_macro2::TokenTree;
use std::collections::{BTreeMap, BTreeSet};
use tilewright_compiler::tile::{BinaryOp, Op as TileOp, ReduceOp, TileType, UnaryOp, rules};
use tilewright_graph_lowering::graph::TensorType;
use tilewright_graph_lowering::prim::Op;
use tilewright_graph_lowering::{DType, Options, Tensor, compile, vjp};

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

/// A primitive as the enum has it, without attributes: `Slice`, `Unary(Neg)`, `Reduce(Max)`.
fn kind(op: &Op) -> String {
    match op {
        Op::Unary(f) => format!("Unary({f:?})"),
        Op::Binary(f) => format!("Binary({f:?})"),
        Op::Elementary(f) => format!("Elementary({f:?})"),
        Op::Reduce(r) => format!("Reduce({:?})", r.op),
        other => format!("{other:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(),
    }
}

/// What there is of the primitives: the variants of the enum, and the functions of floats behind them.
fn every_kind() -> BTreeSet<String> {
    let source = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/prim/mod.rs")).unwrap();
    let elementary = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/prim/elementary.rs")).unwrap();
    let takes = |op: TileOp, operands: usize, result: TileType| {
        rules::check(&op, &vec![TileType::new(DType::F32, [4]); operands], &[result]).is_ok()
    };
    let vector = || TileType::new(DType::F32, [4]);
    let mut all = BTreeSet::new();
    for variant in variants(&source, "Op") {
        match variant.as_str() {
            "Unary" => {
                let floats = UnaryOp::ALL.iter().filter(|&&f| takes(TileOp::Unary(f), 1, vector()));
                all.extend(floats.map(|f| format!("Unary({f:?})")));
            }
            "Binary" => {
                let floats = BinaryOp::ALL.iter().filter(|&&f| takes(TileOp::Binary(f), 2, vector()));
                all.extend(floats.map(|f| format!("Binary({f:?})")));
            }
            "Reduce" => {
                let scalar = || TileType::scalar(DType::F32);
                let floats = ReduceOp::ALL.iter().filter(|&&op| takes(TileOp::Reduce { op, axis: 0 }, 1, scalar()));
                all.extend(floats.map(|f| format!("Reduce({f:?})")));
            }
            "Elementary" => {
                all.extend(variants(&elementary, "Elementary").into_iter().map(|f| format!("Elementary({f})")));
            }
            _ => {
                all.insert(variant);
            }
        }
    }
    all
}

/// The variants of an enum in a source.
fn variants(source: &str, name: &str) -> Vec<String> {
    let items = syn::parse_file(source).unwrap().items;
    let found = items.into_iter().find_map(|item| match item {
        syn::Item::Enum(e) if e.ident == name => Some(e.variants.into_iter().map(|v| v.ident.to_string()).collect()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no enum {name}"))
}

/// The primitives that a float's gradient goes through in the cases with gradients, and whether any case has it go
/// through.
fn met() -> (BTreeSet<String>, BTreeMap<String, bool>) {
    let (mut with_gradient, mut passes) = (BTreeSet::new(), BTreeMap::new());
    let mut seen = BTreeSet::new();
    for case in cases() {
        let new = (case.f.clone(), format!("{:?}", case.p), case.x.len(), case.g.is_some());
        if !case.x.iter().any(|x| x.t == "f32") || !seen.insert(new) {
            continue;
        }
        let x: Vec<Tensor> = tensors(&case.x);
        let f = |x: &Vec<Tensor>| apply(&case.f, x, &case.p);
        let mut graphs = vec![compile(f, Options::new().backend("interpreter")).map(|c| (c.plan(&x), c.graph()))];
        // Primitives that only gradients are made of.
        if let Some(seeds) = &case.g {
            let seeds = tensors(seeds);
            let pull = |x: &Vec<Tensor>| vjp(f, x).unwrap().1(&seeds);
            graphs.push(compile(pull, Options::new().backend("interpreter")).map(|c| (c.plan(&x), c.graph())));
        }
        for (forward, planned) in graphs.into_iter().enumerate().map(|(i, g)| (i == 0, g.unwrap())) {
            planned.0.unwrap_or_else(|e| panic!("{}: {e}", case.f));
            // What was computed while the function was captured leaves no graph.
            let Some(graph) = planned.1 else { continue };
            let mut needed = BTreeSet::new();
            for (id, node) in graph.nodes.iter() {
                let some = passes.entry(kind(&node.op)).or_default();
                let wanted = node.op == Op::Input || node.args.iter().any(|a| needed.contains(a));
                if !wanted || !node.ty.dtype.is_float() {
                    continue;
                }
                needed.insert(id);
                let blank = |ty: &TensorType| Tensor::zeros(ty.dtype, &ty.dims);
                let args: Vec<Tensor> = node.args.iter().map(|a| blank(&graph.nodes[*a].ty)).collect();
                let of_args = node.op.primitive().vjp(&args, &blank(&node.ty), &blank(&node.ty));
                let here = of_args.iter().zip(&node.args).any(|(g, a)| g.is_some() && needed.contains(a));
                *some |= here;
                if here && forward && case.g.is_some() {
                    with_gradient.insert(kind(&node.op));
                }
            }
        }
    }
    (with_gradient, passes)
}

/// Primitives that no function of `Tensor` makes of floats.
const NOT_MADE: &[&str] = &["Unary(Exp2Approx)"];
/// Primitives that are rewritten before a graph is seen, and the functions that are nothing but them; `Detach` has no
/// gradient.
const REWRITTEN: &[(&str, Option<&str>)] = &[("Cumsum", Some("cumsum")), ("Detach", None)];
/// Primitives that only gradients are made of: theirs are compared in `attention.rs`.
const OF_GRADIENTS: &[&str] = &["AttentionGrad", "AttentionRow"];

#[test]
fn every_primitive_has_a_gradient_to_compare_with() {
    let (with_gradient, passes) = met();
    let unmet: Vec<String> = every_kind().into_iter().filter(|k| !passes.contains_key(k)).collect();
    let (rewritten, unmet): (Vec<_>, Vec<_>) = unmet.into_iter().partition(|k| REWRITTEN.iter().any(|(r, _)| r == k));
    assert_eq!(unmet, NOT_MADE, "primitives that no case meets");
    assert_eq!(rewritten, REWRITTEN.iter().map(|(k, _)| *k).collect::<Vec<_>>(), "primitives that graphs show again");
    for (kind, function) in REWRITTEN {
        let has = function.is_none_or(|f| cases().iter().any(|c| c.f == f && c.g.is_some()));
        assert!(has, "{kind}: no gradient of {function:?} in tests/golden/values.jsonl; extend make.py");
    }
    let passed = passes.iter().filter(|&(_, &some)| some).map(|(k, _)| k.as_str());
    let missing: Vec<&str> = passed.filter(|k| !with_gradient.contains(*k)).collect();
    assert_eq!(
        missing, OF_GRADIENTS,
        "primitives whose gradients no case of tests/golden/values.jsonl has; extend make.py"
    );
}
