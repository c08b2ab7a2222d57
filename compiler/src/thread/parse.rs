//! Reads the text of a function: see [`super::print`] for the syntax.
//!
//! The parser checks syntax and names alone, so that text can say every mistake that the verifier is there to find.
//! Numbers in names of registers and buffers are arbitrary: they are numbered anew, in the order of their definitions. A
//! register may be used before the line that defines it (which the verifier then refuses).

use super::function::{
    AbiParam, AbiTy, Block, BlockData, Function, InstData, InstId, Shared, SharedBuf, Value, ValueData,
};
use super::ops::{Access, Op, Ty};
use super::syntax::{Number, Text, syntax};
use super::table::every_op;
use super::verify::MAX_NESTING;
use crate::entity::Arena;
use crate::error::{Diagnostic, Error, Loc, Result};
use crate::text::{Dialect, Parsed, Reader, Token, Tokens, lex};
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::LazyLock;

const DIALECT: Dialect = Dialect { value: 'r', punctuation: "+#?", dotted: true };

/// Parses the text of one function.
///
/// # Errors
/// [`Error::Parse`] with the line and column, what was expected and what was found.
pub fn parse(text: &str) -> Result<Function> {
    let tokens = Tokens { all: lex(text, &DIALECT).map_err(Error::Parse)?, at: 0 };
    let mut blocks = Arena::new();
    let body = blocks.push(BlockData::default());
    let func = Function {
        name: String::new(),
        params: Vec::new(),
        threads: 1,
        warp_width: 1,
        shared: Arena::new(),
        values: Arena::new(),
        insts: Arena::new(),
        blocks,
        body,
    };
    let parser = Parser { tokens, func, defined: HashMap::new(), buffers: HashMap::new(), uses: Vec::new() };
    parser.function().map_err(Error::Parse)
}

impl FromStr for Function {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text)
    }
}

/// The op of that name and what follows the name: `global_load.32x4` is `global_load` and `32x4`.
fn op_named(word: &str) -> Option<(Op, &str)> {
    static OPS: LazyLock<HashMap<&'static str, Op>> =
        LazyLock::new(|| every_op().into_iter().map(|op| (op.info().name, op)).collect());
    let mut name = word;
    loop {
        if let Some(op) = OPS.get(name) {
            return Some((op.clone(), word[name.len()..].trim_start_matches('.')));
        }
        name = name.rsplit_once('.')?.0;
    }
}

/// The name of a register, and where it stands.
type Name = (u32, Loc);

struct Parser {
    tokens: Tokens,
    func: Function,
    /// What each name means, and where it was defined.
    defined: HashMap<u32, (Value, Loc)>,
    /// The same of buffers.
    buffers: HashMap<u32, (Shared, Loc)>,
    /// The names of the operands of each instruction made, to be looked up when all are defined.
    uses: Vec<(InstId, Vec<Name>)>,
}

impl Reader for Parser {
    fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    fn tokens_mut(&mut self) -> &mut Tokens {
        &mut self.tokens
    }
}

impl Parser {
    // ---- the function ---------------------------------------------------------------------------------------------

    fn function(mut self) -> Parsed<Function> {
        self.expect_word("kernel")?;
        self.func.name = self.identifier("the kernel's name")?;
        self.expect('(')?;
        self.func.params = self.list(')', |p| {
            let name = p.identifier("a parameter, or `)`")?;
            p.expect(':')?;
            Ok(AbiParam { name, ty: p.abi_ty()? })
        })?;
        self.expect_word("threads")?;
        self.func.threads = self.integer("how many threads a program has")?;
        self.expect_word("warp")?;
        self.func.warp_width = self.integer("how many lanes a warp has")?;
        self.expect('{')?;
        while let Some(number) = buffer_number(self.peek()) {
            self.shared(number)?;
        }
        self.block(self.func.body, 0)?;
        if *self.peek() != Token::End {
            return self.expected("the end of the text after the kernel");
        }
        for (inst, names) in std::mem::take(&mut self.uses) {
            for (name, loc) in names {
                let Some(&(value, _)) = self.defined.get(&name) else {
                    return Err(Diagnostic::new(loc, format!("r{name} is not defined anywhere")));
                };
                self.func.insts[inst].operands.push(value);
            }
        }
        Ok(self.func)
    }

    /// A name, in quotes or not.
    fn identifier(&mut self, what: &str) -> Parsed<String> {
        let (Token::Word(name) | Token::Quoted(name)) = self.peek().clone() else { return self.expected(what) };
        self.next();
        Ok(name)
    }

    /// `shared0: 256 bytes, align 16, elem 32, offset 0`.
    fn shared(&mut self, number: u32) -> Parsed {
        let loc = self.loc();
        self.next();
        self.expect(':')?;
        let bytes = self.integer("the size of the buffer")?;
        self.expect_word("bytes")?;
        self.expect(',')?;
        self.expect_word("align")?;
        let align = self.integer("an alignment")?;
        self.expect(',')?;
        self.expect_word("elem")?;
        let elem_bits = self.integer("the bits of an element")?;
        self.expect(',')?;
        self.expect_word("offset")?;
        let offset = self.integer("where the buffer starts")?;
        let buf = self.func.shared.push(SharedBuf { bytes, align, elem_bits, offset });
        match self.buffers.insert(number, (buf, loc)) {
            None => Ok(()),
            Some((_, first)) => Err(again(&format!("shared{number}"), loc, first)),
        }
    }

    // ---- registers and types --------------------------------------------------------------------------------------

    fn name(&mut self) -> Parsed<Name> {
        let loc = self.loc();
        match *self.peek() {
            Token::Value(_, n) => {
                self.next();
                Ok((n, loc))
            }
            _ => self.expected("a register such as `r1`"),
        }
    }

    /// One of some named things.
    fn one_of<T: Copy>(&mut self, all: &[T], name: fn(T) -> &'static str, what: &str) -> Parsed<T> {
        let found = match self.peek() {
            Token::Word(word) => all.iter().copied().find(|&t| name(t) == word),
            _ => None,
        };
        let Some(found) = found else {
            let names: Vec<String> = all.iter().map(|&t| format!("`{}`", name(t))).collect();
            return self.expected(format_args!("{what}: {}", names.join(", ")));
        };
        self.next();
        Ok(found)
    }

    fn ty(&mut self) -> Parsed<Ty> {
        self.one_of(&Ty::ALL, Ty::name, "the type of a register")
    }

    fn abi_ty(&mut self) -> Parsed<AbiTy> {
        self.one_of(&AbiTy::ALL, AbiTy::name, "the type of a parameter")
    }

    /// Defines `r1: i32, r2: f32`; a register is defined once in a function.
    fn typed(&mut self) -> Parsed<Vec<Value>> {
        let mut values = Vec::new();
        loop {
            let (name, loc) = self.name()?;
            self.expect(':')?;
            let ty = self.ty()?;
            let value = self.func.values.push(ValueData { ty });
            if let Some((_, first)) = self.defined.insert(name, (value, loc)) {
                return Err(again(&format!("r{name}"), loc, first));
            }
            values.push(value);
            if !self.eat(',') {
                return Ok(values);
            }
        }
    }

    /// Is a register next, and not the first result of an instruction?
    fn at_operand(&self) -> bool {
        matches!(self.peek(), Token::Value(..)) && self.after() != Some(&Token::Punct(':'))
    }

    // ---- instructions ---------------------------------------------------------------------------------------------

    /// Instructions up to and with the closing brace.
    fn block(&mut self, block: Block, depth: usize) -> Parsed {
        if depth > MAX_NESTING {
            return Err(Diagnostic::new(self.loc(), format!("blocks are nested more than {MAX_NESTING} deep")));
        }
        while !self.eat('}') {
            let inst = self.inst()?;
            self.func.blocks[block].insts.push(inst);
            match self.func.insts[inst].op {
                Op::If => {
                    self.inner(inst, Vec::new(), depth)?;
                    self.expect_word("else")?;
                    self.inner(inst, Vec::new(), depth)?;
                }
                Op::Loop => self.loop_blocks(inst, depth)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// `{ .. }`: one more block of an instruction.
    fn inner(&mut self, inst: InstId, params: Vec<Value>, depth: usize) -> Parsed {
        self.expect('{')?;
        let block = self.func.blocks.push(BlockData { params, insts: Vec::new() });
        self.func.insts[inst].blocks.push(block);
        self.block(block, depth + 1)
    }

    /// `r8: i32 = r1 { .. } body r9: i32 { .. }`.
    fn loop_blocks(&mut self, inst: InstId, depth: usize) -> Parsed {
        let carried = if matches!(self.peek(), Token::Value(..)) { self.typed()? } else { Vec::new() };
        let mut names = Vec::new();
        if !carried.is_empty() || self.is('=') {
            self.expect('=')?;
            while self.at_operand() {
                names.push(self.name()?);
                if !self.eat(',') {
                    break;
                }
            }
        }
        self.uses.push((inst, names));
        self.inner(inst, carried, depth)?;
        self.expect_word("body")?;
        let params = if matches!(self.peek(), Token::Value(..)) { self.typed()? } else { Vec::new() };
        self.inner(inst, params, depth)
    }

    /// An instruction without its blocks.
    fn inst(&mut self) -> Parsed<InstId> {
        let results = if matches!(self.peek(), Token::Value(..)) {
            let results = self.typed()?;
            self.expect('=')?;
            results
        } else {
            Vec::new()
        };
        let loc = self.loc();
        let word = match self.peek() {
            Token::Word(word) => word.clone(),
            _ => String::new(),
        };
        let Some((mut op, suffix)) = op_named(&word) else {
            return self.expected(if results.is_empty() { "an instruction or `}`" } else { "an op" });
        };
        self.next();
        let ty = results.first().map(|&r| self.func.ty(r));
        let mut text = Operation { parser: self, ty, names: Vec::new(), suffix, loc, word: &word };
        syntax(&mut op, &mut text)?;
        let names = text.end()?;
        let inst = self.func.insts.push(InstData { op, operands: Vec::new(), results, blocks: Vec::new() });
        self.uses.push((inst, names));
        Ok(inst)
    }
}

/// An error: a name is defined twice.
fn again(name: &str, loc: Loc, first: Loc) -> Diagnostic {
    Diagnostic::new(loc, format!("{name} is defined a second time; the first was at {first}"))
}

/// The number of a buffer's name.
fn buffer_number(token: &Token) -> Option<u32> {
    let Token::Word(word) = token else { return None };
    word.strip_prefix("shared").filter(|n| n.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

/// Reads what follows an op's name.
struct Operation<'a> {
    parser: &'a mut Parser,
    /// The type of the first result.
    ty: Option<Ty>,
    /// Operands read.
    names: Vec<Name>,
    /// What belongs to the name and is not yet read, without the point before it.
    suffix: &'a str,
    /// Where the name stands, and what it is in whole.
    loc: Loc,
    word: &'a str,
}

impl Operation<'_> {
    /// The operands, if nothing of the name is left.
    fn end(self) -> Parsed<Vec<Name>> {
        if self.suffix.is_empty() {
            return Ok(self.names);
        }
        Err(Diagnostic::new(self.loc, format!("`.{}` of `{}` has no meaning", self.suffix, self.word)))
    }

    /// The next part of the name, if it is as wanted.
    fn part<T>(&mut self, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let (part, rest) = self.suffix.split_once('.').unwrap_or((self.suffix, ""));
        let read = read(part)?;
        self.suffix = rest;
        Some(read)
    }

    /// An error: what a name should go on with.
    fn name_expected<T>(&self, what: &str) -> Parsed<T> {
        Err(Diagnostic::new(self.loc, format!("expected {what} in the op's name, found `{}`", self.word)))
    }

    /// Is the token that far ahead this one?
    fn ahead(&self, by: usize, wanted: &str) -> bool {
        let tokens = &self.parser.tokens;
        tokens.all.get(tokens.at + by).is_some_and(|(token, _)| match token {
            Token::Word(word) => word == wanted,
            Token::Punct(c) => wanted.chars().eq([*c]),
            _ => false,
        })
    }

    /// The type's constant that stands here.
    fn bits(&mut self) -> Option<u64> {
        let token = self.parser.peek().clone();
        let text = match &token {
            Token::Number(text) | Token::Word(text) => text.as_str(),
            _ => return None,
        };
        if let Some(hex) = hexadecimal(text) {
            return Some(hex);
        }
        match self.ty? {
            Ty::Pred => text.parse::<bool>().ok().map(u64::from),
            Ty::I32 => text.parse::<i32>().ok().map(|n| u64::from(n as u32)),
            Ty::I64 => text.parse::<i64>().ok().map(|n| n as u64),
            ty @ (Ty::F32 | Ty::F64) if text == "nan" => {
                let Some(Token::Number(text)) = self.parser.after() else { return None };
                let bits = hexadecimal(text)?;
                let is_nan = if ty == Ty::F32 {
                    u32::try_from(bits).is_ok_and(|b| f32::from_bits(b).is_nan())
                } else {
                    f64::from_bits(bits).is_nan()
                };
                if is_nan {
                    self.parser.next();
                }
                is_nan.then_some(bits)
            }
            ty => {
                let infinite = matches!(text, "inf" | "-inf");
                if !infinite && !text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) {
                    return None;
                }
                // Through `f64`, a number of type `f32` might be rounded twice.
                let (bits, beyond) = if ty == Ty::F32 {
                    let x: f32 = text.parse().ok()?;
                    (x.to_bits().into(), x.is_infinite())
                } else {
                    let x: f64 = text.parse().ok()?;
                    (x.to_bits(), x.is_infinite())
                };
                (beyond == infinite).then_some(bits)
            }
        }
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u64::from_str_radix(digits, 16).ok()
}

/// The tokens of a literal.
fn pieces(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split_whitespace().flat_map(|part| {
        let word = part.bytes().all(|b| b.is_ascii_alphanumeric());
        let step = if word { part.len().max(1) } else { 1 };
        (0..part.len()).step_by(step).map(move |i| &part[i..i + step])
    })
}

impl Text for Operation<'_> {
    type Error = Diagnostic;

    fn width(&mut self, access: &mut Access) -> Parsed {
        let read = self.part(|part| {
            let (bits, n) = part.split_once('x').unwrap_or((part, "1"));
            Some((bits.parse().ok()?, n.parse().ok()?))
        });
        match read {
            Some((bits, n)) => {
                (access.bits, access.n) = (bits, n);
                Ok(())
            }
            None => self.name_expected("the bits and elements of the access, such as `.32x4`,"),
        }
    }

    fn tagged(&mut self, tag: &'static str, n: &mut impl Number) -> Parsed {
        let read = self.part(|part| {
            let digits = part.strip_prefix(tag).filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
            digits.parse::<i128>().ok()?.try_into().ok()
        });
        match read {
            Some(read) => {
                *n = read;
                Ok(())
            }
            None => self.name_expected(&format!("`.{tag}` and a number")),
        }
    }

    fn flagged(&mut self, tag: &'static str, set: &mut bool) -> Parsed {
        *set = self.part(|part| (part == tag).then_some(())).is_some();
        Ok(())
    }

    fn literal(&mut self, text: &'static str) -> Parsed {
        for piece in pieces(text) {
            if !self.ahead(0, piece) {
                return self.parser.expected(format_args!("`{piece}`"));
            }
            self.parser.next();
        }
        Ok(())
    }

    fn either(&mut self, words: [&'static str; 2], first: &mut bool) -> Parsed {
        let [yes, no] = words.map(str::trim);
        *first = self.ahead(0, yes);
        if !*first && !self.ahead(0, no) {
            return self.parser.expected(format_args!("`{yes}` or `{no}`"));
        }
        self.parser.next();
        Ok(())
    }

    fn number(&mut self, n: &mut impl Number, what: &'static str) -> Parsed {
        let loc = self.parser.loc();
        let read: i128 = self.parser.integer(what)?;
        *n = read
            .try_into()
            .map_err(|_| Diagnostic::new(loc, format!("{read} is too large or too small for {what}")))?;
        Ok(())
    }

    fn constant(&mut self, bits: &mut u64) -> Parsed {
        match self.bits() {
            Some(read) => {
                self.parser.next();
                *bits = read;
                Ok(())
            }
            None => match self.ty {
                Some(ty) => self.parser.expected(format_args!("a constant of type {ty}, or its bits such as `0x1`")),
                None => self.parser.expected("the bits of a constant such as `0x1`"),
            },
        }
    }

    fn param(&mut self, index: &mut u32) -> Parsed {
        if self.parser.eat('#') {
            *index = self.parser.integer("the number of a parameter")?;
            return Ok(());
        }
        let loc = self.parser.loc();
        let name = self.parser.identifier("the name of a parameter, or its number such as `#0`")?;
        let found = self.parser.func.params.iter().position(|p| p.name == name);
        let Some(found) = found.and_then(|at| u32::try_from(at).ok()) else {
            return Err(Diagnostic::new(loc, format!("the kernel has no parameter {name:?}")));
        };
        *index = found;
        Ok(())
    }

    fn buffer(&mut self, buf: &mut Shared) -> Parsed {
        let Some(number) = buffer_number(self.parser.peek()) else {
            return self.parser.expected("a shared buffer such as `shared0`");
        };
        let Some(&(found, _)) = self.parser.buffers.get(&number) else {
            let message = format!("shared{number} is not declared at the beginning of the kernel");
            return Err(Diagnostic::new(self.parser.loc(), message));
        };
        self.parser.next();
        *buf = found;
        Ok(())
    }

    fn operand(&mut self) -> Parsed {
        if !self.parser.eat('?') {
            self.names.push(self.parser.name()?);
        }
        Ok(())
    }

    fn operands(&mut self, n: usize) -> Parsed {
        for i in 0..n {
            if !self.parser.at_operand() {
                return if i == 0 { Ok(()) } else { self.parser.expected("a register such as `r1`") };
            }
            self.names.push(self.parser.name()?);
            // What stands after the last is another's.
            if i + 1 == n || !self.parser.eat(',') {
                break;
            }
        }
        Ok(())
    }

    fn rest(&mut self) -> Parsed {
        self.operands(usize::MAX)
    }

    fn more(&mut self, text: &'static str) -> Parsed<bool> {
        if text.trim().is_empty() {
            return Ok(self.parser.at_operand());
        }
        let there = pieces(text).enumerate().all(|(i, piece)| self.ahead(i, piece));
        // An `if` with a block is an instruction of its own.
        let other = text.trim() == "if" && (self.ahead(2, "{") || self.ahead(2, ","));
        if !there || other {
            return Ok(false);
        }
        self.literal(text)?;
        Ok(true)
    }

    fn is_register(&mut self, _known: bool) -> bool {
        self.parser.at_operand()
    }

    fn offset(&mut self, by: &mut i32) -> Parsed {
        let loc = self.parser.loc();
        let read: i128 = if self.parser.eat('+') {
            self.parser.integer::<u32>("how much is added")?.into()
        } else if *self.parser.peek() == Token::Number("-".into()) {
            self.parser.next();
            -i128::from(self.parser.integer::<u32>("how much is subtracted")?)
        } else {
            0
        };
        *by = read.try_into().map_err(|_| Diagnostic::new(loc, "the sum is too large or too small for 32 bits"))?;
        Ok(())
    }
}
