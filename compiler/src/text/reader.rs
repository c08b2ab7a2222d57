//! Taking tokens one after the other.

use super::lex::Token;
use crate::error::{Diagnostic, Loc};
use std::str::FromStr;

/// What a part of the text means, or the first mistake.
pub(crate) type Parsed<T = ()> = Result<T, Diagnostic>;

/// Tokens, the last of which is [`Token::End`], and how many of them are taken.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub all: Vec<(Token, Loc)>,
    pub at: usize,
}

/// A parser: what has tokens.
pub(crate) trait Reader: Sized {
    fn tokens(&self) -> &Tokens;
    fn tokens_mut(&mut self) -> &mut Tokens;

    /// The next token.
    fn peek(&self) -> &Token {
        &self.tokens().all[self.tokens().at].0
    }

    /// Where it stands.
    fn loc(&self) -> Loc {
        self.tokens().all[self.tokens().at].1
    }

    /// The token after the next.
    fn after(&self) -> Option<&Token> {
        self.tokens().all.get(self.tokens().at + 1).map(|(token, _)| token)
    }

    /// Takes a token; the end is never gone past.
    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if token != Token::End {
            self.tokens_mut().at += 1;
        }
        token
    }

    /// An error: what should have stood here.
    fn expected<T>(&self, what: impl std::fmt::Display) -> Parsed<T> {
        Err(Diagnostic::new(self.loc(), format!("expected {what}, found {}", self.peek())))
    }

    /// Is this character next?
    fn is(&self, c: char) -> bool {
        *self.peek() == Token::Punct(c)
    }

    /// Takes it, if it is.
    fn eat(&mut self, c: char) -> bool {
        let found = self.is(c);
        if found {
            self.next();
        }
        found
    }

    /// Takes it, or is an error.
    fn expect(&mut self, c: char) -> Parsed {
        if self.eat(c) { Ok(()) } else { self.expected(format_args!("`{c}`")) }
    }

    /// Is this word next?
    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(w) if w == word)
    }

    /// Takes it, if it is.
    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.next();
        }
        found
    }

    /// Takes it, or is an error.
    fn expect_word(&mut self, word: &str) -> Parsed {
        if self.eat_word(word) { Ok(()) } else { self.expected(format_args!("`{word}`")) }
    }

    /// A decimal integer of a Rust type.
    fn integer<T: FromStr>(&mut self, what: &str) -> Parsed<T> {
        let parsed = match self.peek() {
            Token::Number(text) => text.parse().ok(),
            _ => None,
        };
        match parsed {
            Some(n) => {
                self.next();
                Ok(n)
            }
            None => self.expected(what),
        }
    }

    /// `one, two, ..` up to and with the bracket `close`; a comma may stand before it.
    fn list<T>(&mut self, close: char, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        loop {
            if self.eat(close) {
                return Ok(items);
            }
            items.push(item(self)?);
            if !self.eat(',') && !self.is(close) {
                return self.expected(format_args!("`,` or `{close}`"));
            }
        }
    }
}
