//! What the macros write, and that they never panic.

use super::{carry, kernel};
use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::quote;
use std::str::FromStr;

fn expand(item: TokenStream) -> String {
    kernel::expand_kernel(quote!(), item).to_string()
}

/// The body that the rewriter makes of these statements, without blanks.
fn body(statements: TokenStream) -> String {
    let text = kernel::expand_device_fn(quote!(), quote!(fn f(n: Tile<i32>, size: usize) { #statements })).to_string();
    let start = text.find("TileRight as _ } ;").expect("the imports stand first") + "TileRight as _ } ;".len();
    text[start..text.len() - 1].replace(' ', "")
}

#[test]
fn the_parts_of_a_kernel() {
    let text = expand(quote! {
        /// Docs.
        #[allow(dead_code)]
        pub(crate) fn f<T: Float>(x: In<T, 2>, p: Ptr<u8>, mut n: i32, #[comptime] size: usize) where T: Num {}
    });
    let file: syn::File = syn::parse_str(&text).expect("the expansion is a list of items");
    assert_eq!(file.items.len(), 3, "launcher, type, implementation");
    let text = text.replace(' ', "");
    for part in [
        "pub(crate)fnf<'__tw,T:Float>(x:::tilewright::View<'__tw,T,2>,p:::tilewright::Slice<'__tw,u8>,n:i32,size:usize)\
         ->::tilewright::Launch<'__tw>whereT:Num",
        "::tilewright::Launch::new(f::definition::<T>(size)",
        "(\"x\",::tilewright::KernelArg::from_view(x,::tilewright::dsl::Access::In))",
        "(\"p\",::tilewright::KernelArg::from_slice(p)),(\"n\",::tilewright::KernelArg::from_scalar(n))",
        "pub(crate)enumf{}",
        "pubfndefinition<T:Float>(size:usize)->::tilewright::dsl::KernelDefwhereT:Num",
        "mutn:<i32as::tilewright::dsl::KernelParam>::Handle",
        "(\"f\",__tw_place,__tw_spec,false,",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
}

#[test]
fn host_code_stays_as_it_is() {
    let code = quote! {
        if size > 3 && size < 10 { g(1 + 2); }
        for x in list { h(x); }
        while size == 3 { break; }
        let y = 2 * size;
        if let Some(z) = maybe { h(z) }
        let mut total = 0;
        for i in list { total += i; }
    };
    assert_eq!(body(code.clone()), code.to_string().replace(' ', ""));
}

#[test]
fn device_operators() {
    assert_eq!(body(quote!(n < 3)), "(&&&::tilewright::dsl::logic::Pair(&(n),&(3))).tw_lt()",);
    assert_eq!(body(quote!(2 * n)), "(&&::tilewright::dsl::logic::Pair(&(2),&(n))).tw_mul()");
    assert_eq!(body(quote!(n * 2)), "n*2");
    assert_eq!(
        body(quote!(x.load([n, 0], [1, size]))),
        "x.load([(&&::tilewright::dsl::view::Accessed(&x)).__tw_offset(n),\
         (&&::tilewright::dsl::view::Accessed(&x)).__tw_offset(0)],[1,size])"
    );
}

#[test]
fn device_loops_carry_what_they_assign() {
    let text = body(quote! {
        let mut a = 0.0;
        let mut b = g();
        for i in 0..n {
            let mut c = a;
            c += 1.0;
            (a, b.field) = (c, 1);
            h(&mut d);
        }
    });
    assert!(text.starts_with("letmuta=::tilewright::dsl::scalar::<f32>(0.0);"), "{text}");
    assert!(text.contains(".open((&muta,(&mutb.field,(&mutd,()))))"), "{text}");
    assert!(text.contains("&[\"a\",\"b.field\",\"d\"]"), "{text}");
}

#[test]
fn mistakes_leave_an_item_of_that_name() {
    let text = expand(quote!(
        pub fn f(x: Ptr<f32>) {
            loop {}
        }
    ));
    assert!(text.contains("compile_error") && text.contains("pub fn f"), "{text}");
    assert!(syn::parse_str::<syn::File>(&text).is_ok());
    let text = expand(quote!(
        pub fn f(x: usize) {}
    ));
    assert!(text.contains("compile_error") && text.contains("pub fn f"), "{text}");
    let text = kernel::expand_device_fn(
        quote!(),
        quote!(
            fn f(x: Tile<f32>) -> Tile<f32> {
                x? + unroll(2)
            }
        ),
    )
    .to_string();
    assert!(text.contains("fn f"), "{text}");
}

#[test]
fn carry_of_structs() {
    let text = carry::expand(quote!(
        struct S<T: Element>(Tile<T>, Ptr<T>);
    ))
    .to_string();
    assert!(syn::parse_str::<syn::File>(&text).is_ok(), "{text}");
    assert!(carry::expand(quote!(union U { a: u8 })).to_string().contains("compile_error"));
}

/// Numbers that look random and are the same every time (xorshift64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.roll(list.len())]
    }
}

/// Tokens without any grammar.
fn noise(dice: &mut Dice, depth: usize) -> TokenStream {
    const WORDS: [&str; 24] = [
        "fn", "kernel", "if", "else", "while", "for", "in", "let", "mut", "x", "In", "Ptr", "f32", "unroll", "range",
        "return", "break", "match", "self", "impl", "loop", "crate", "struct", "where",
    ];
    (0..dice.roll(12))
        .map(|_| match dice.roll(6) {
            0 if depth > 0 => {
                let delimiter =
                    [Delimiter::Parenthesis, Delimiter::Brace, Delimiter::Bracket, Delimiter::None][dice.roll(4)];
                TokenTree::Group(Group::new(delimiter, noise(dice, depth - 1)))
            }
            1 => TokenTree::Literal(Literal::usize_unsuffixed(dice.roll(9))),
            2 | 3 => {
                let symbols = "<>=!&|+-*/%.,;:#?'".as_bytes();
                let spacing = if dice.roll(2) == 0 { Spacing::Alone } else { Spacing::Joint };
                match symbols[dice.roll(symbols.len())] {
                    // A lone quote is no token stream that the compiler makes.
                    b'\'' => TokenTree::Literal(Literal::f32_unsuffixed(0.5)),
                    symbol => TokenTree::Punct(Punct::new(symbol.into(), spacing)),
                }
            }
            _ => TokenTree::Ident(Ident::new(dice.pick(&WORDS), Span::call_site())),
        })
        .collect()
}

/// An expression of the grammar.
fn expression(dice: &mut Dice, depth: usize) -> String {
    let leaf = |dice: &mut Dice| {
        dice.pick(&[
            "x", "n", "size", "1", "2.5", "-3", "true", "0usize", "\"s\"", "MAX", "*p", "s.f", "v[0]", "(1, n)",
            "inf()",
        ])
        .to_owned()
    };
    if depth == 0 {
        return leaf(dice);
    }
    let d = depth - 1;
    match dice.roll(17) {
        0 => {
            format!("({} {} {})", expression(dice, d), dice.pick(&["+", "*", "-", "<<", "&", "%"]), expression(dice, d))
        }
        1 => format!("({} {} {})", expression(dice, d), dice.pick(&["<", "==", "!=", ">="]), expression(dice, d)),
        2 => format!("({} {} {})", expression(dice, d), dice.pick(&["&&", "||"]), expression(dice, d)),
        3 => format!("if {} {} else {}", condition(dice, d), block(dice, d), block(dice, d)),
        4 => format!(
            "x.{}([{}, 0], [{}])",
            dice.pick(&["load", "store", "map"]),
            expression(dice, d),
            expression(dice, d)
        ),
        5 => format!("(|a, mut b| {})", expression(dice, d)),
        6 => format!(
            "match {} {{ 0 => {}, y if {} => {} }}",
            expression(dice, 0).replace("(1, n)", "n"),
            expression(dice, d),
            condition(dice, d),
            block(dice, d)
        ),
        7 => block(dice, d),
        8 => format!(
            "{}({})",
            dice.pick(&["unroll", "range", "exp", "comptime", "program_id", "g"]),
            expression(dice, d)
        ),
        9 => format!("({} as f32)", expression(dice, 0)),
        10 => format!("!{}", expression(dice, 0)),
        11 => format!("&mut {}", expression(dice, 0)),
        12 => dice
            .pick(&["return", "break", "continue", "x?", "async {}", "unsafe { 1 }", "loop { break }", "f!(a < b)"])
            .to_owned(),
        13 => format!("({}..{})", expression(dice, d), expression(dice, d)),
        14 => format!("[{}; 2 * N]", expression(dice, d)),
        15 => format!("S {{ a: {}, ..x }}", expression(dice, d)),
        _ => leaf(dice),
    }
}

fn condition(dice: &mut Dice, depth: usize) -> String {
    match dice.roll(3) {
        0 => "let Some(y) = maybe && y > 2".to_owned(),
        1 => format!("({} < n)", expression(dice, depth)),
        _ => format!("({})", expression(dice, depth)),
    }
}

fn block(dice: &mut Dice, depth: usize) -> String {
    let d = depth.saturating_sub(1);
    let mut text = String::from("{ ");
    for _ in 0..dice.roll(4) {
        text += &match dice.roll(9) {
            0 => format!(
                "let {} = {};",
                dice.pick(&["y", "mut y", "(a, mut b)", "mut x", "y: usize", "S { a, .. }"]),
                expression(dice, d)
            ),
            1 => "let z;".to_owned(),
            2 => format!(
                "{} {} {};",
                dice.pick(&["x", "*p", "s.f.g", "v[n]", "(x, y)", "self.a", "[a, _]"]),
                dice.pick(&["=", "="]),
                expression(dice, d)
            ),
            3 => format!(
                "{} {} {};",
                dice.pick(&["x", "*p", "s.f", "z"]),
                dice.pick(&["+=", "<<="]),
                expression(dice, d)
            ),
            4 => format!(
                "for {} in {} {}",
                dice.pick(&["i", "_", "(i, j)", "mut i"]),
                dice.pick(&[
                    "0..n",
                    "(0..n).step_by(2)",
                    "range(0, n, -1)",
                    "unroll(0..4)",
                    "list",
                    "0..=n",
                    "..",
                    "(0..n).rev()",
                    "range()",
                    "2.5..true"
                ]),
                block(dice, d)
            ),
            5 => format!("{} while {} {}", dice.pick(&["", "'a:"]), condition(dice, d), block(dice, d)),
            6 => format!("if {} {}", condition(dice, d), block(dice, d)),
            7 => "fn inner() -> bool { 1 < 2 }".to_owned(),
            _ => format!("{};", expression(dice, d)),
        };
        text.push(' ');
    }
    text + &expression(dice, d) + " }"
}

#[test]
fn noise_never_panics() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..4000 {
        let (attr, item) = (noise(&mut dice, 1), noise(&mut dice, 3));
        let parameters = noise(&mut dice, 2);
        let statements = noise(&mut dice, 3);
        kernel::expand_kernel(attr.clone(), item.clone());
        kernel::expand_device_fn(attr, item.clone());
        carry::expand(item);
        kernel::expand_kernel(quote!(), quote!(fn f(#parameters) { #statements }));
    }
}

#[test]
fn random_bodies_expand_to_items() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let (mut parsed, mut clean) = (0, 0);
    for _ in 0..1200 {
        let source = format!("fn f(x: Ptr<f32>, n: i32, #[comptime] size: usize) {}", block(&mut dice, 4));
        let tokens = TokenStream::from_str(&source).unwrap_or_else(|e| panic!("{e}: {source}"));
        parsed += usize::from(syn::parse2::<syn::ItemFn>(tokens.clone()).is_ok());
        for expansion in [kernel::expand_kernel(quote!(), tokens.clone()), kernel::expand_device_fn(quote!(), tokens)] {
            clean += usize::from(!expansion.to_string().contains("compile_error"));
            assert!(syn::parse2::<syn::File>(expansion.clone()).is_ok(), "{source}\n\nbecame\n\n{expansion}");
        }
    }
    assert!(parsed > 800, "most of the random functions are Rust: {parsed}");
    assert!(clean > 400, "many of them are kernels: {clean}");
}
