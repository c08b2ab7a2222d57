//! Collecting mistakes, so that all are told at once.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// The mistakes found so far.
#[derive(Default)]
pub struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds a mistake at `place`: what is wrong, and what to do.
    pub fn at(&mut self, place: impl ToTokens, message: &str, help: &str) {
        self.push(syn::Error::new_spanned(place, with_help(message, help)));
    }

    /// Adds a mistake at a span.
    pub fn at_span(&mut self, span: Span, message: &str, help: &str) {
        self.push(syn::Error::new(span, with_help(message, help)));
    }

    /// Adds an error.
    pub fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            none => *none = Some(error),
        }
    }

    /// Adds the mistakes of another collection.
    pub fn append(&mut self, other: Errors) {
        if let Some(error) = other.0 {
            self.push(error);
        }
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// `compile_error!` for each.
    pub fn into_tokens(self) -> TokenStream {
        self.0.map(|e| e.to_compile_error()).unwrap_or_default()
    }
}

fn with_help(message: &str, help: &str) -> String {
    if help.is_empty() { message.to_owned() } else { format!("{message}\n\nhelp: {help}") }
}

/// The span of the first token: error places and locations point at where an expression starts.
pub fn start(tokens: &impl ToTokens) -> Span {
    first_span(tokens.to_token_stream()).unwrap_or_else(Span::call_site)
}

fn first_span(stream: TokenStream) -> Option<Span> {
    let first = stream.into_iter().next()?;
    Some(match &first {
        proc_macro2::TokenTree::Group(g) if g.delimiter() == proc_macro2::Delimiter::None => {
            first_span(g.stream()).unwrap_or_else(|| g.span())
        }
        proc_macro2::TokenTree::Group(g) => g.span_open(),
        other => other.span(),
    })
}

/// The same tokens at another place: the place of a call, as a mistake names it, is that of its first token.
pub fn respan(tokens: &TokenStream, span: Span) -> TokenStream {
    let moved = tokens.clone().into_iter().map(|mut token| {
        token.set_span(span);
        token
    });
    moved.collect()
}
