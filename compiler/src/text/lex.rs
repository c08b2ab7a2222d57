//! IR text cut into tokens.
//!
//! What both representations have in common: words, numbers, names with a sigil or in quotes, brackets, and comments from `;` to
//! the end of the line. A [`Dialect`] says what is a representation's own.

use crate::error::{Diagnostic, Loc};
use std::fmt;

/// What one representation writes otherwise than the other.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// The letter that begins the names of values.
    pub value: char,
    /// Characters that stand for themselves, beyond `( ) { } [ ] , : = *`.
    pub punctuation: &'static str,
    /// May words have points in them, as `icmp.lt` does?
    pub dotted: bool,
}

/// What a token is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    /// A word that is none of the below.
    Word(String),
    /// The letter of values, and a number: `v12`.
    Value(char, u32),
    /// A name in quotes.
    Quoted(String),
    /// `@name`.
    Global(String),
    /// `%name`.
    Param(String),
    /// A number, with its sign: digits, a point, an exponent; or `0x` and hexadecimal digits.
    Number(String),
    /// A character that stands for itself.
    Punct(char),
    /// The end of the text.
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(s) | Token::Number(s) => write!(f, "`{s}`"),
            Token::Value(letter, n) => write!(f, "`{letter}{n}`"),
            Token::Quoted(s) => write!(f, "`\"{s}\"`"),
            Token::Global(s) => write!(f, "`@{s}`"),
            Token::Param(s) => write!(f, "`%{s}`"),
            Token::Punct(c) => write!(f, "`{c}`"),
            Token::End => f.write_str("the end of the text"),
        }
    }
}

/// A name in quotes, as [`lex`] reads it.
pub(crate) fn quoted(name: &str) -> String {
    let mut s = String::from('"');
    for c in name.chars() {
        match c {
            '"' | '\\' => s.extend(['\\', c]),
            '\n' => s.push_str("\\n"),
            '\r' => s.push_str("\\r"),
            c => s.push(c),
        }
    }
    s.push('"');
    s
}

/// The file name in places of IR text, which may come from anywhere.
pub(crate) const FILE: &str = "<ir>";

/// Cuts `text` into tokens with their places; the last is [`Token::End`].
pub(crate) fn lex(text: &str, dialect: &'static Dialect) -> Result<Vec<(Token, Loc)>, Diagnostic> {
    let mut lexer = Lexer { dialect, rest: text, loc: Loc { file: FILE, line: 1, col: 1 } };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space();
        let loc = lexer.loc;
        let token = lexer.token()?;
        let end = token == Token::End;
        tokens.push((token, loc));
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    dialect: &'static Dialect,
    rest: &'a str,
    loc: Loc,
}

impl<'a> Lexer<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        if c == '\n' {
            self.loc.line = self.loc.line.saturating_add(1);
            self.loc.col = 1;
        } else {
            self.loc.col = self.loc.col.saturating_add(1);
        }
        Some(c)
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let start = self.rest;
        while self.peek().is_some_and(&accept) {
            self.next();
        }
        &start[..start.len() - self.rest.len()]
    }

    fn skip_space(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if self.peek() != Some(';') {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn token(&mut self) -> Result<Token, Diagnostic> {
        let loc = self.loc;
        let Some(c) = self.peek() else {
            return Ok(Token::End);
        };
        match c {
            '(' | ')' | '{' | '}' | '[' | ']' | ',' | ':' | '=' | '*' => {
                self.next();
                Ok(Token::Punct(c))
            }
            '@' | '%' => {
                self.next();
                let name = self.name(c, loc)?;
                Ok(if c == '@' { Token::Global(name) } else { Token::Param(name) })
            }
            '-' | '0'..='9' => Ok(self.number()),
            '"' => self.quoted(loc).map(Token::Quoted),
            c if self.dialect.punctuation.contains(c) => {
                self.next();
                Ok(Token::Punct(c))
            }
            c if is_word(c) => {
                let Dialect { value, dotted, .. } = *self.dialect;
                let word = self.take_while(|c| is_word(c) || (dotted && c == '.'));
                match word.strip_prefix(value).filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) {
                    Some(digits) => digits.parse().map(|n| Token::Value(value, n)).map_err(|_| {
                        Diagnostic::new(loc, format!("the number of value `{word}` is above {}", u32::MAX))
                    }),
                    None => Ok(Token::Word(word.to_owned())),
                }
            }
            c => Err(Diagnostic::new(loc, format!("character {c:?} has no meaning here"))),
        }
    }

    /// A number, or `-inf`. What does not turn out to be a number is refused where one is expected.
    fn number(&mut self) -> Token {
        let start = self.rest;
        if self.peek() == Some('-') {
            self.next();
        }
        let mut last = '\0';
        while let Some(c) = self.peek() {
            let exponent_sign = matches!(c, '+' | '-') && matches!(last, 'e' | 'E');
            if !(is_word(c) || c == '.' || exponent_sign) {
                break;
            }
            last = c;
            self.next();
        }
        Token::Number(start[..start.len() - self.rest.len()].to_owned())
    }

    fn name(&mut self, sigil: char, loc: Loc) -> Result<String, Diagnostic> {
        if self.peek() != Some('"') {
            let word = self.take_while(is_word);
            if word.is_empty() {
                return Err(Diagnostic::new(loc, format!("expected a name after `{sigil}`")));
            }
            return Ok(word.to_owned());
        }
        self.quoted(loc)
    }

    /// From quote to quote.
    fn quoted(&mut self, loc: Loc) -> Result<String, Diagnostic> {
        self.next();
        let mut name = String::new();
        loop {
            match self.next() {
                Some('"') => return Ok(name),
                Some('\\') => match self.next() {
                    Some(c @ ('"' | '\\')) => name.push(c),
                    Some('n') => name.push('\n'),
                    Some('r') => name.push('\r'),
                    _ => return Err(Diagnostic::new(loc, r#"only \", \\, \n and \r stand for something in a name"#)),
                },
                Some(c) => name.push(c),
                None => return Err(Diagnostic::new(loc, "the quoted name has no end")),
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
