//! A generated kernel as `#[kernel]` source: its Tile IR, op by op, in the words of the DSL.

use crate::error::{Error, Result};
use std::collections::HashMap;
use std::fmt::Write;
use tilewright_compiler::DType;
use tilewright_compiler::entity::Entity;
use tilewright_compiler::tile::{
    BinaryOp, Cmp, Constant, DotPrecision, Function, Op, OpId, ParamKind, ReduceOp, Region, UnaryOp, Value,
};
use tilewright_runtime::Access;

/// The source of a kernel whose views are accessed like this.
///
/// # Errors
/// [`Error::Internal`] for an op that generated kernels do not have.
pub fn source(func: &Function, access: &[Access]) -> Result<String> {
    let mut s = Source { func, names: HashMap::new(), views: HashMap::new(), out: String::new(), depth: 1 };
    let mut params = Vec::new();
    for (i, p) in func.params.iter().enumerate() {
        let (dtype, rank) = match p.kind {
            ParamKind::View { dtype, rank } => (dtype, rank),
            ParamKind::Scalar(dtype) => {
                params.push(format!("{}: {dtype}", p.name));
                s.names.insert(func.flat_params(i)[0], p.name.clone());
                continue;
            }
            ParamKind::Ptr { .. } => return Err(Error::Internal(format!("parameter {} is a pointer", p.name))),
        };
        let kind = if access.get(i).is_some_and(|a| a.writes()) { "Out" } else { "In" };
        params.push(format!("{}: {kind}<{dtype}, {rank}>", p.name));
        let flat = func.flat_params(i);
        for (axis, &extent) in flat[1..=usize::from(rank)].iter().enumerate() {
            s.names.insert(extent, format!("{}.dim({axis})", p.name));
        }
        let base = flat[0];
        s.views.insert(base, i);
        s.names.insert(base, format!("{}.ptr()", p.name));
    }
    s.region(func.body)?;
    Ok(format!("#[kernel]\nfn {}({}) {{\n{}}}\n", func.name, params.join(", "), s.out))
}

struct Source<'f> {
    func: &'f Function,
    /// Expressions of values.
    names: HashMap<Value, String>,
    /// Which parameter an address is the base of.
    views: HashMap<Value, usize>,
    out: String,
    depth: usize,
}

impl Source<'_> {
    fn line(&mut self, text: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "{:width$}{text}", "", width = self.depth * 4);
    }

    fn name(&self, v: Value) -> Result<String> {
        self.names.get(&v).cloned().ok_or_else(|| Error::Internal(format!("{v} has no name in the source")))
    }

    fn region(&mut self, region: Region) -> Result<()> {
        for &op in &self.func.regions[region].ops {
            self.op(op)?;
        }
        Ok(())
    }

    /// Is the value used as the step of loops alone?
    fn only_step(&self, v: Value) -> bool {
        let mut only = true;
        self.func.walk(self.func.body, &mut |op| {
            let data = &self.func.ops[op];
            only &= data.operands.iter().enumerate().all(|(i, &o)| o != v || (data.op == Op::For && i == 2));
        });
        only
    }

    fn shape(&self, v: Value) -> String {
        self.func.ty(v).shape.to_string()
    }

    fn view(&self, base: Value) -> Result<&str> {
        let i = self.views.get(&base).ok_or_else(|| Error::Internal(format!("{base} is no view")))?;
        Ok(&self.func.params[*i].name)
    }

    fn op(&mut self, id: OpId) -> Result<()> {
        let func = self.func;
        let data = &func.ops[id];
        let v = &data.operands;
        let result = data.results.first().copied();
        let dtype = result.map(|r| func.ty(r).dtype());
        let args = |s: &Self, list: &[Value]| list.iter().map(|&x| s.name(x)).collect::<Result<Vec<_>>>();
        let text = match &data.op {
            // The step of a loop is a host number.
            Op::Const(_) if result.is_some_and(|r| self.only_step(r)) => return Ok(()),
            // Adding an offset to an address repeats the address by itself.
            Op::Broadcast if func.ty(v[0]).elem.is_ptr() => {
                let base = self.name(v[0])?;
                self.names.extend(result.map(|r| (r, base)));
                return Ok(());
            }
            Op::ProgramId { axis } => format!("program_id({axis})"),
            Op::Const(c) => {
                let r = result.ok_or_else(|| Error::Internal("a constant without a result".into()))?;
                let ty = func.ty(r);
                let number = literal(*c, ty.dtype());
                if ty.is_scalar() {
                    format!("scalar::<{}>({number})", ty.dtype())
                } else {
                    format!("full::<{}>({}, {number})", ty.dtype(), ty.shape)
                }
            }
            Op::Arange { start } => {
                let n = result.map_or(0, |r| func.ty(r).shape.elements());
                format!("arange({start}, {})", i64::from(*start) + n as i64)
            }
            Op::Unary(op) => match op {
                UnaryOp::Neg => format!("-{}", self.name(v[0])?),
                UnaryOp::Not => format!("!{}", self.name(v[0])?),
                op => format!("{}({})", op.name(), self.name(v[0])?),
            },
            Op::Binary(op) => {
                let a = args(self, v)?;
                match infix(*op) {
                    Some(sign) => format!("{} {sign} {}", a[0], a[1]),
                    None => format!("{}({}, {})", function(*op), a[0], a[1]),
                }
            }
            Op::Compare(op) => {
                let a = args(self, v)?;
                let sign = match op {
                    Cmp::Eq => "==",
                    Cmp::Ne => "!=",
                    Cmp::Lt => "<",
                    Cmp::Le => "<=",
                    Cmp::Gt => ">",
                    Cmp::Ge => ">=",
                };
                format!("{} {sign} {}", a[0], a[1])
            }
            Op::Fma => format!("fma({})", args(self, v)?.join(", ")),
            Op::Permute(perm) => format!("permute({}, {perm:?})", self.name(v[0])?),
            Op::Select => format!("where_({})", args(self, v)?.join(", ")),
            Op::Cast => format!("{}.to::<{}>()", self.name(v[0])?, dtype.map_or("", DType::name)),
            Op::Broadcast => {
                format!("broadcast_to({}, {})", self.name(v[0])?, result.map_or_else(String::new, |r| self.shape(r)))
            }
            Op::Reshape => {
                format!("reshape({}, {})", self.name(v[0])?, result.map_or_else(String::new, |r| self.shape(r)))
            }
            Op::PtrAdd => format!("{} + {}", self.name(v[0])?, self.name(v[1])?),
            Op::Load => {
                let a = args(self, v)?;
                format!("{}.load_or({}, {})", a[0], a.get(1).map_or("", |m| m), a.get(2).map_or("", |o| o))
            }
            Op::ViewLoad { rank } => {
                let n = usize::from(*rank);
                let offsets = args(self, &v[1 + 2 * n..1 + 3 * n])?.join(", ");
                format!(
                    "{}.load([{offsets}], {})",
                    self.view(v[0])?,
                    result.map_or_else(String::new, |r| self.shape(r))
                )
            }
            Op::ViewStore { rank } => {
                let n = usize::from(*rank);
                let offsets = args(self, &v[1 + 2 * n..1 + 3 * n])?.join(", ");
                let value = self.name(v[1 + 3 * n])?;
                let text = format!("{}.store([{offsets}], {value});", self.view(v[0])?);
                self.line(&text);
                return Ok(());
            }
            // The DSL's reductions keep the axis with extent 1; so do those of generated kernels, by the reshape that
            // follows, which then changes nothing.
            Op::Reduce { op, axis } => {
                let name = match op {
                    ReduceOp::Sum => "sum",
                    ReduceOp::Prod => "prod",
                    ReduceOp::Min => "min",
                    ReduceOp::Max => "max",
                    ReduceOp::And => "all",
                    ReduceOp::Or => "any",
                    ReduceOp::Xor => "xor_sum",
                };
                format!("{name}({}, {axis})", self.name(v[0])?)
            }
            Op::ArgReduce { max, axis } => {
                format!("{}({}, {axis})", if *max { "argmax" } else { "argmin" }, self.name(v[0])?)
            }
            Op::Dot { precision } => {
                let name = if *precision == DotPrecision::Tf32 { "dot_tf32" } else { "dot" };
                format!("{name}({})", args(self, v)?.join(", "))
            }
            Op::For => return self.for_loop(id),
            Op::Yield => return Ok(()),
            op => return Err(Error::Internal(format!("generated kernels have no `{}`", op.mnemonic()))),
        };
        let result = result.ok_or_else(|| Error::Internal("an op without a result".into()))?;
        let name = format!("v{}", result.index());
        self.line(&format!("let {name} = {text};"));
        self.names.insert(result, name);
        Ok(())
    }

    fn for_loop(&mut self, id: OpId) -> Result<()> {
        let func = self.func;
        let data = &func.ops[id];
        let region = data.regions[0];
        let params = &func.regions[region].params;
        for (i, &carried) in params[1..].iter().enumerate() {
            let name = format!("acc{}", carried.index());
            let init = self.name(data.operands[3 + i])?;
            self.line(&format!("let mut {name} = {init};"));
            self.names.insert(carried, name.clone());
            self.names.insert(data.results[i], name);
        }
        let mut used = false;
        func.walk(region, &mut |op| used |= func.ops[op].operands.contains(&params[0]));
        let iv = format!("{}i{}", if used { "" } else { "_" }, params[0].index());
        let step = func.const_of(data.operands[2]).and_then(|c| c.as_i64(DType::I32));
        let step = step.ok_or_else(|| Error::Internal("a loop without a constant step".into()))?;
        let (lo, hi) = (self.name(data.operands[0])?, self.name(data.operands[1])?);
        self.line(&format!("for {iv} in ({lo}..{hi}).step_by({step}) {{"));
        self.names.insert(params[0], iv);
        self.depth += 1;
        self.region(region)?;
        let ends = &func.ops[func.terminator(region)].operands;
        for (&carried, &next) in params[1..].iter().zip(ends) {
            let (name, next) = (self.name(carried)?, self.name(next)?);
            self.line(&format!("{name} = {next};"));
        }
        self.depth -= 1;
        self.line("}");
        Ok(())
    }
}

fn infix(op: BinaryOp) -> Option<&'static str> {
    Some(match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Rem => "%",
        BinaryOp::And => "&",
        BinaryOp::Or => "|",
        BinaryOp::Xor => "^",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        _ => return None,
    })
}

fn function(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Min => "minimum",
        BinaryOp::Max => "maximum",
        op => op.name(),
    }
}

/// A number as Rust writes it.
fn literal(c: Constant, dtype: DType) -> String {
    if dtype == DType::Bool {
        return (c.0 != 0).to_string();
    }
    match c.as_i64(dtype) {
        Some(i) => i.to_string(),
        None => {
            let x = c.as_f64(dtype);
            match x {
                x if x.is_nan() => "nan()".into(),
                f64::INFINITY => "inf()".into(),
                f64::NEG_INFINITY => "-inf()".into(),
                x => format!("{x:?}"),
            }
        }
    }
}
