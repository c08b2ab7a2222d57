//! What the text forms of Tile IR and Thread IR have in common: tokens, and taking them one after the other.

mod lex;
mod reader;

pub(crate) use lex::{Dialect, Token, lex, quoted};
pub(crate) use reader::{Parsed, Reader, Tokens};
