//! Reads the textual form of a function: see [`super::print`] for the syntax.
//!
//! The parser checks syntax and names alone, so that text can say every mistake that the verifier is there to find.
//! Numbers in names of values are arbitrary: values are numbered anew, in the order of their definitions. A value may
//! be used before the line that defines it (which the verifier then refuses). Each op's place is that of its
//! line in the text, in the file `<ir>`.

use super::function::{Function, OpId, Param, ParamHint, ParamKind, Region, RegionData, Value};
use super::ops::{Constant, DotPrecision, Op};
pub use super::table::every_op;
use super::types::{Elem, Shape, TileType};
use super::verify::MAX_NESTING;
use crate::dtype::DType;
use crate::error::{Diagnostic, Error, Loc, Result};
use crate::text::{Dialect, Parsed, Reader, Token, Tokens, lex};
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::LazyLock;

pub(super) const DIALECT: Dialect = Dialect { value: 'v', punctuation: "", dotted: false };

/// Parses the text of one kernel.
///
/// # Errors
/// [`Error::Parse`] with the line and column, what was expected and what was found.
pub fn parse(text: &str) -> Result<Function> {
    let tokens = Tokens { all: lex(text, &DIALECT).map_err(Error::Parse)?, at: 0 };
    let parser = Parser { tokens, func: Function::new(""), defined: HashMap::new(), uses: Vec::new() };
    parser.function().map_err(Error::Parse)
}

impl FromStr for Function {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text)
    }
}

fn op_named(mnemonic: &str) -> Option<Op> {
    static OPS: LazyLock<HashMap<&'static str, Op>> =
        LazyLock::new(|| every_op().into_iter().map(|op| (op.info().name, op)).collect());
    OPS.get(mnemonic).cloned()
}

/// Reads a constant of type `dtype`: see [`super::print`]. Hexadecimal text is bits, of whatever width.
pub(super) fn number(text: &str, dtype: DType) -> Result<Constant, String> {
    if let Some(hex) = text.strip_prefix("0x") {
        return bits(hex).map(Constant).ok_or_else(|| format!("`{text}` is not a hexadecimal number of 64 bits"));
    }
    let not_one = || format!("`{text}` is not a number of type {dtype}");
    match dtype {
        DType::Bool => match text {
            "true" => Ok(Constant(1)),
            "false" => Ok(Constant(0)),
            _ => Err(format!("`{text}` is not `true` or `false`")),
        },
        d if d.is_float() => {
            match text {
                "nan" => return Ok(quiet_nan(d)),
                "inf" => return Ok(Constant::from_f64(d, f64::INFINITY)),
                "-inf" => return Ok(Constant::from_f64(d, f64::NEG_INFINITY)),
                _ => {}
            }
            if !text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) {
                return Err(not_one());
            }
            // Through `f64`, a number of type `f32` might be rounded twice.
            let c = match d {
                DType::F32 => Constant(text.parse::<f32>().map_err(|_| not_one())?.to_bits().into()),
                _ => Constant::from_f64(d, text.parse().map_err(|_| not_one())?),
            };
            if c.as_f64(d).is_infinite() {
                return Err(format!("`{text}` is beyond the range of {d}; write `inf` for infinity"));
            }
            Ok(c)
        }
        d => {
            let value: i128 = text.parse().map_err(|_| not_one())?;
            let (min, max) = match (d.is_signed(), d.bits()) {
                (true, bits) => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                (false, bits) => (0, (1i128 << bits) - 1),
            };
            if !(min..=max).contains(&value) {
                return Err(format!("`{text}` is beyond the range of {d}: {min} to {max}"));
            }
            Ok(Constant::from_i64(d, value as i64))
        }
    }
}

fn bits(hex: &str) -> Option<u64> {
    if hex.bytes().all(|b| b.is_ascii_hexdigit()) { u64::from_str_radix(hex, 16).ok() } else { None }
}

/// The bits of `nan`: quiet, positive, without payload.
const fn quiet_nan(dtype: DType) -> Constant {
    Constant(match dtype {
        DType::F16 => 0x7e00,
        DType::BF16 => 0x7fc0,
        DType::F32 => 0x7fc0_0000,
        _ => 0x7ff8_0000_0000_0000,
    })
}

/// The name of a value, and where it stands.
type Name = (u32, Loc);

struct Parser {
    tokens: Tokens,
    func: Function,
    /// What each name means, and where it was defined.
    defined: HashMap<u32, (Value, Loc)>,
    /// The names of the operands of each op made, to be looked up when all are defined.
    uses: Vec<(OpId, Vec<Name>)>,
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
    // ---- values and types -------------------------------------------------------------------------------------

    fn name(&mut self) -> Parsed<Name> {
        let loc = self.loc();
        match *self.peek() {
            Token::Value(_, n) => {
                self.next();
                Ok((n, loc))
            }
            _ => self.expected("a value such as `v1`"),
        }
    }

    fn names(&mut self, close: char) -> Parsed<Vec<Name>> {
        self.list(close, Self::name)
    }

    /// `v1: f32[8]`.
    fn typed(&mut self) -> Parsed<(Name, TileType)> {
        let name = self.name()?;
        self.expect(':')?;
        Ok((name, self.ty()?))
    }

    fn dtype(&mut self) -> Parsed<DType> {
        let loc = self.loc();
        match self.peek() {
            Token::Word(word) => {
                let dtype = word.parse().map_err(|message: String| Diagnostic::new(loc, message))?;
                self.next();
                Ok(dtype)
            }
            _ => self.expected("an element type such as `f32`"),
        }
    }

    fn ty(&mut self) -> Parsed<TileType> {
        let pointer = self.eat('*');
        let dtype = self.dtype()?;
        let elem = if pointer { Elem::Ptr(dtype) } else { Elem::Scalar(dtype) };
        let dims = if self.eat('[') { self.list(']', |p| p.integer("an extent"))? } else { Vec::new() };
        Ok(TileType { elem, shape: Shape::new(dims) })
    }

    /// Binds a name to a value; a name is bound once in a function.
    fn define(&mut self, (name, loc): Name, value: Value) -> Parsed {
        match self.defined.insert(name, (value, loc)) {
            None => Ok(()),
            Some((_, first)) => {
                Err(Diagnostic::new(loc, format!("v{name} is defined a second time; the first was at {first}")))
            }
        }
    }

    fn define_params(&mut self, region: Region, params: Vec<(Name, TileType)>) -> Parsed {
        for (name, ty) in params {
            let value = self.func.add_region_param(region, ty);
            self.define(name, value)?;
        }
        Ok(())
    }

    // ---- the function -----------------------------------------------------------------------------------------

    fn function(mut self) -> Parsed<Function> {
        self.expect_word("kernel")?;
        let Token::Global(name) = self.peek().clone() else {
            return self.expected("the kernel's name, such as `@add`");
        };
        self.next();
        self.func.name = name;
        self.expect('(')?;
        self.list(')', Self::param)?;
        self.func.fp_fusion = self.eat_word("fp_fusion");
        self.expect('{')?;
        self.ops(self.func.body, 0)?;
        if *self.peek() != Token::End {
            return self.expected("the end of the text after the kernel");
        }
        for (op, names) in std::mem::take(&mut self.uses) {
            for (name, loc) in names {
                let Some(&(value, _)) = self.defined.get(&name) else {
                    return Err(Diagnostic::new(loc, format!("v{name} is not defined anywhere")));
                };
                self.func.ops[op].operands.push(value);
            }
        }
        Ok(self.func)
    }

    /// `%name: kind = v0: type {hints}, ..`.
    fn param(&mut self) -> Parsed {
        let Token::Param(name) = self.peek().clone() else {
            return self.expected("a parameter such as `%x`, or `)`");
        };
        self.next();
        self.expect(':')?;
        let kind = if self.eat('*') {
            ParamKind::Ptr { dtype: self.dtype()? }
        } else if self.eat_word("view") {
            ParamKind::View { dtype: self.dtype()?, rank: self.integer("the number of the view's dimensions")? }
        } else {
            ParamKind::Scalar(self.dtype()?)
        };
        self.expect('=')?;
        self.func.params.push(Param { name, kind });
        loop {
            let (name, ty) = self.typed()?;
            let hint = if self.eat('{') { self.hint()? } else { ParamHint::default() };
            let value = self.func.add_region_param(self.func.body, ty);
            self.define(name, value)?;
            self.func.hints.push(hint);
            // The comma belongs to this list if a value follows, else to the list of parameters.
            let another = self.is(',') && matches!(self.after(), Some(Token::Value(..)));
            if !another {
                return Ok(());
            }
            self.next();
        }
    }

    fn hint(&mut self) -> Parsed<ParamHint> {
        let mut hint = ParamHint::default();
        self.list('}', |p| {
            if p.eat_word("div") {
                hint.divisor = p.integer("a divisor")?;
            } else if p.eat_word("known") {
                hint.known = Some(p.integer("the known value")?);
            } else if p.eat_word("alias") {
                hint.alias_class = p.integer("an alias class")?;
            } else {
                return p.expected("`div`, `known` or `alias`");
            }
            Ok(())
        })?;
        Ok(hint)
    }

    // ---- ops --------------------------------------------------------------------------------------------------

    /// Ops up to and with the closing brace.
    fn ops(&mut self, region: Region, depth: usize) -> Parsed {
        if depth > MAX_NESTING {
            return Err(Diagnostic::new(self.loc(), format!("regions are nested more than {MAX_NESTING} deep")));
        }
        while !self.eat('}') {
            self.op(region, depth)?;
        }
        Ok(())
    }

    fn op(&mut self, region: Region, depth: usize) -> Parsed {
        let loc = self.loc();
        let mut results = Vec::new();
        if matches!(self.peek(), Token::Value(..)) {
            results.push(self.typed()?);
            while self.eat(',') {
                results.push(self.typed()?);
            }
            self.expect('=')?;
        }
        let raw = self.eat_word("raw");
        let op = match self.peek() {
            Token::Word(word) => op_named(word),
            _ => None,
        };
        let Some(mut op) = op else {
            let what = if results.is_empty() && !raw { "an op or `}`" } else { "an op" };
            return self.expected(what);
        };
        self.next();

        let elem = results.first().map(|(_, ty)| ty.elem);
        let mut params: Vec<Vec<(Name, TileType)>> = Vec::new();
        let operands = match &op {
            _ if raw => {
                self.attribute(&mut op, elem)?;
                self.expect('(')?;
                self.names(')')?
            }
            Op::For => {
                let iv = self.typed()?;
                self.expect('=')?;
                let lo = self.name()?;
                self.expect_word("to")?;
                let hi = self.name()?;
                self.expect_word("step")?;
                let mut operands = vec![lo, hi, self.name()?];
                let mut inside = vec![iv];
                self.carry(&mut inside, &mut operands)?;
                params.push(inside);
                operands
            }
            Op::While => {
                let (mut inside, mut operands) = (Vec::new(), Vec::new());
                self.carry(&mut inside, &mut operands)?;
                params.push(inside);
                operands
            }
            Op::ViewLoad { .. } | Op::ViewStore { .. } => self.view_access(&mut op)?,
            _ => {
                let mut operands = Vec::new();
                if matches!(self.peek(), Token::Value(..)) && !self.begins_results() {
                    operands.push(self.name()?);
                    while self.eat(',') {
                        operands.push(self.name()?);
                    }
                }
                self.attribute(&mut op, elem)?;
                operands
            }
        };

        let (names, types): (Vec<Name>, Vec<TileType>) = results.into_iter().unzip();
        let id = self.func.create_op(op.clone(), Vec::new(), types, Vec::new(), loc);
        for (name, value) in names.into_iter().zip(self.func.ops[id].results.clone()) {
            self.define(name, value)?;
        }
        self.uses.push((id, operands));
        self.func.regions[region].ops.push(id);
        match op {
            _ if raw => {
                while self.eat('(') {
                    let params = self.list(')', Self::typed)?;
                    self.inner(id, params, depth)?;
                }
            }
            Op::For => self.inner(id, params.pop().unwrap_or_default(), depth)?,
            Op::While => {
                self.inner(id, params.pop().unwrap_or_default(), depth)?;
                self.expect_word("do")?;
                let params = if self.eat('(') { self.list(')', Self::typed)? } else { Vec::new() };
                self.inner(id, params, depth)?;
            }
            Op::If => {
                self.inner(id, Vec::new(), depth)?;
                self.expect_word("else")?;
                self.inner(id, Vec::new(), depth)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Does a list of results begin here, rather than one of operands?
    fn begins_results(&self) -> bool {
        self.after() == Some(&Token::Punct(':'))
    }

    /// `{ .. }`: one more region of an op.
    fn inner(&mut self, op: OpId, params: Vec<(Name, TileType)>, depth: usize) -> Parsed {
        let region = self.func.regions.push(RegionData::default());
        self.func.ops[op].regions.push(region);
        self.define_params(region, params)?;
        self.expect('{')?;
        self.ops(region, depth + 1)
    }

    /// `carry (v1: type = v2, ..)`, or nothing.
    fn carry(&mut self, inside: &mut Vec<(Name, TileType)>, operands: &mut Vec<Name>) -> Parsed {
        if self.eat_word("carry") {
            self.expect('(')?;
            self.list(')', |p| {
                inside.push(p.typed()?);
                p.expect('=')?;
                operands.push(p.name()?);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// What stands after `view_load` or `view_store`.
    fn view_access(&mut self, op: &mut Op) -> Parsed<Vec<Name>> {
        let mut operands = vec![self.name()?];
        let at = self.loc();
        for word in ["dims", "strides", "at"] {
            self.expect_word(word)?;
            self.expect('[')?;
            operands.extend(self.names(']')?);
            if word == "dims" {
                let dims = u8::try_from(operands.len() - 1)
                    .map_err(|_| Diagnostic::new(at, "a view has at most 255 dimensions in text"))?;
                if let Op::ViewLoad { rank } | Op::ViewStore { rank } = op {
                    *rank = dims;
                }
            }
        }
        match op {
            Op::ViewStore { .. } => {
                self.expect_word("value")?;
                operands.push(self.name()?);
            }
            _ if self.eat_word("pad") => operands.push(self.name()?),
            _ => {}
        }
        Ok(operands)
    }

    fn attribute(&mut self, op: &mut Op, result: Option<Elem>) -> Parsed {
        match op {
            Op::ProgramId { axis } | Op::NumPrograms { axis } => *axis = self.integer("an axis of the grid")?,
            Op::Const(c) => *c = self.constant(result)?,
            Op::Arange { start } => *start = self.integer("the first element, of type i32")?,
            Op::Permute(perm) => {
                self.expect('[')?;
                *perm = self.list(']', |p| p.integer("a dimension"))?;
            }
            Op::ViewLoad { rank } | Op::ViewStore { rank } => {
                self.expect_word("rank")?;
                *rank = self.integer("the number of the view's dimensions")?;
            }
            Op::Reduce { axis, .. } | Op::ArgReduce { axis, .. } => {
                self.expect_word("axis")?;
                *axis = self.integer("a dimension")?;
            }
            Op::Dot { precision } => {
                self.expect_word("precision")?;
                let found = DotPrecision::ALL.iter().find(|p| self.is_word(p.name()));
                let Some(found) = found else {
                    return self.expected("`ieee` or `tf32`");
                };
                *precision = *found;
                self.next();
            }
            Op::Unary(_)
            | Op::Binary(_)
            | Op::Compare(_)
            | Op::Select
            | Op::Fma
            | Op::Cast
            | Op::Bitcast
            | Op::Broadcast
            | Op::Reshape
            | Op::PtrAdd
            | Op::Load
            | Op::Store
            | Op::For
            | Op::While
            | Op::If
            | Op::Yield
            | Op::Condition => {}
        }
        Ok(())
    }

    fn constant(&mut self, result: Option<Elem>) -> Parsed<Constant> {
        let loc = self.loc();
        let (Token::Number(text) | Token::Word(text)) = self.peek() else {
            return self.expected("a number");
        };
        // For an address, which the verifier refuses, and without a type there are only bits.
        let dtype = match result {
            Some(Elem::Scalar(dtype)) => dtype,
            _ => DType::U64,
        };
        let c = number(text, dtype).map_err(|message| Diagnostic::new(loc, message))?;
        self.next();
        Ok(c)
    }
}
