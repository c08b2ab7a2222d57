//! The functions of `Tensor` by name.

use serde_json::Value;
use std::str::FromStr;
use tilewright_compiler::tile::ReduceOp;
use tilewright_graph_lowering::tensor::random;
use tilewright_graph_lowering::{DType, Reduction, Tensor};

fn float(v: &Value) -> f64 {
    v.as_f64().unwrap_or_else(|| v.as_str().unwrap().parse().unwrap())
}

fn size(v: &Value) -> usize {
    v.as_u64().unwrap() as usize
}

fn sizes(p: &[Value]) -> Vec<usize> {
    p.iter().map(size).collect()
}

fn dtype(v: &Value) -> DType {
    DType::from_str(v.as_str().unwrap()).unwrap()
}

/// What the function `f` gives for these operands and further arguments.
pub fn apply(f: &str, x: &[Tensor], p: &[Value]) -> Vec<Tensor> {
    if let Some(y) = several(f, x) {
        return y;
    }
    let found = match x.len() {
        1 => one(f, &x[0]).or_else(|| reduction(f, &x[0], p)),
        2 => two(f, &x[0], &x[1]),
        _ => None,
    };
    vec![found.or_else(|| made(f, x, p)).or_else(|| view(f, x, p)).unwrap_or_else(|| composite(f, x, p))]
}

fn one(f: &str, x: &Tensor) -> Option<Tensor> {
    Some(match f {
        "neg" => x.neg(),
        "abs" => x.abs(),
        "exp" => x.exp(),
        "exp2" => x.exp2(),
        "log" => x.log(),
        "log2" => x.log2(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tanh" => x.tanh(),
        "erf" => x.erf(),
        "sqrt" => x.sqrt(),
        "rsqrt" => x.rsqrt(),
        "floor" => x.floor(),
        "ceil" => x.ceil(),
        "trunc" => x.trunc(),
        "round" => x.round(),
        "log1p" => x.log1p(),
        "expm1" => x.expm1(),
        "erfc" => x.erfc(),
        "not" => x.not(),
        "relu" => x.relu(),
        "sigmoid" => x.sigmoid(),
        "silu" => x.silu(),
        "softplus" => x.softplus(),
        "log_sigmoid" => x.log_sigmoid(),
        "gelu" => x.gelu(),
        "gelu_tanh" => x.gelu_tanh(),
        "sign" => x.sign(),
        "detach" => x.detach(),
        "as_float" => x.as_float(),
        "zeros_like" => x.zeros_like(),
        "transpose" => x.transpose(),
        _ => return None,
    })
}

fn two(f: &str, x: &Tensor, y: &Tensor) -> Option<Tensor> {
    Some(match f {
        "add_" => x.add_(y),
        "sub_" => x.sub_(y),
        "mul_" => x.mul_(y),
        "div_" => x.div_(y),
        "floor_div" => x.floor_div(y),
        "rem_" => x.rem_(y),
        "fmod" => x.fmod(y),
        "minimum" => x.minimum(y),
        "maximum" => x.maximum(y),
        "fmin" => x.fmin(y),
        "fmax" => x.fmax(y),
        "and" => x.and(y),
        "or" => x.or(y),
        "xor" => x.xor(y),
        "shl" => x.shl(y),
        "shr" => x.shr(y),
        "mul_hi" => x.mul_hi(y),
        "eq_" => x.eq_(y),
        "ne_" => x.ne_(y),
        "lt" => x.lt(y),
        "le" => x.le(y),
        "gt" => x.gt(y),
        "ge" => x.ge(y),
        "logaddexp" => x.logaddexp(y),
        "xlogy" => x.xlogy(y),
        "mse_loss" => x.mse_loss(y),
        "matmul" => x.matmul(y),
        "gather_rows" => x.gather_rows(y),
        "embedding" => x.embedding(y),
        _ => return None,
    })
}

fn reduction(f: &str, x: &Tensor, p: &[Value]) -> Option<Tensor> {
    Some(match f {
        "sum" => x.sum(&sizes(p)),
        "prod" => x.prod(&sizes(p)),
        "max" => x.max(&sizes(p)),
        "min" => x.min(&sizes(p)),
        "any" => x.any(&sizes(p)),
        "all" => x.all(&sizes(p)),
        "mean" => x.mean(&sizes(p)),
        "norm" => x.norm(&sizes(p)),
        "var" => x.var(&sizes(&p[1..]), size(&p[0])),
        "std" => x.std(&sizes(&p[1..]), size(&p[0])),
        "argmax" => x.argmax(size(&p[0])),
        "argmin" => x.argmin(size(&p[0])),
        "cumsum" => x.cumsum(size(&p[0])),
        "softmax" => x.softmax(size(&p[0])),
        "log_softmax" => x.log_softmax(size(&p[0])),
        "logsumexp" => x.logsumexp(size(&p[0])),
        "reduce_strict" => x.reduce_strict(ReduceOp::from_str(p[0].as_str().unwrap()).unwrap(), &sizes(&p[1..])),
        _ => return None,
    })
}

fn made(f: &str, x: &[Tensor], p: &[Value]) -> Option<Tensor> {
    Some(match f {
        "full" => Tensor::full(dtype(&p[0]), &sizes(&p[2..]), float(&p[1])),
        "full_int" => Tensor::full_int(dtype(&p[0]), &sizes(&p[2..]), p[1].as_i64().unwrap()),
        "zeros" => Tensor::zeros(dtype(&p[0]), &sizes(&p[1..])),
        "arange" => Tensor::arange(dtype(&p[0]), size(&p[1])),
        "iota" => Tensor::iota(dtype(&p[0]), &sizes(&p[2..]), size(&p[1])),
        "bits" => random::bits(&x[0], size(&p[0]) as u32, &sizes(&p[1..])),
        "uniform" => random::uniform(&x[0], size(&p[0]) as u32, &sizes(&p[1..])),
        "dropout" => x[0].dropout(float(&p[0]), &x[1], size(&p[1]) as u32),
        _ => return None,
    })
}

fn view(f: &str, x: &[Tensor], p: &[Value]) -> Option<Tensor> {
    let third = |n: usize| sizes(&p[n * p.len() / 3..(n + 1) * p.len() / 3]);
    Some(match f {
        "reshape" => x[0].reshape(&sizes(p)),
        "permute" => x[0].permute(&sizes(p)),
        "unsqueeze" => x[0].unsqueeze(size(&p[0])),
        "narrow" => x[0].narrow(size(&p[0]), size(&p[1]), size(&p[2])),
        "slice_axis" => x[0].slice_axis(size(&p[0]), size(&p[1])..size(&p[2])),
        "slice" => x[0].slice(&third(0), &third(1), &third(2)),
        "pad" => {
            let (low, rest) = p.split_at(x[0].rank());
            x[0].pad(&sizes(low), &sizes(&rest[..low.len()]), float(&rest[low.len()]))
        }
        "cat" => Tensor::cat(&x.iter().collect::<Vec<_>>(), size(&p[0])),
        "broadcast_to" => x[0].broadcast_to(&sizes(p)),
        "broadcast_in_dim" => {
            let rank = size(&p[0]);
            x[0].broadcast_in_dim(&sizes(&p[1..=rank]), &sizes(&p[rank + 1..]))
        }
        "cast" => x[0].cast(dtype(&p[0])),
        _ => return None,
    })
}

fn composite(f: &str, x: &[Tensor], p: &[Value]) -> Tensor {
    match f {
        "where_" => x[0].where_(&x[1], &x[2]),
        "masked_fill" => x[0].masked_fill(&x[1], float(&p[0])),
        "clamp" => x[0].clamp(&x[1], &x[2]),
        "clamp to integers" => x[0].clamp(p[0].as_i64().unwrap(), p[1].as_i64().unwrap()),
        "clamp to floats" => x[0].clamp(float(&p[0]), float(&p[1])),
        "layer_norm" => x[0].layer_norm(x.get(1), x.get(2), float(&p[0])),
        "rms_norm" => x[0].rms_norm(x.get(1), float(&p[0])),
        "linear" => x[0].linear(&x[1], x.get(2)),
        "attention" => x[0].attention(&x[1], &x[2], x.get(3), p[0].as_bool().unwrap(), None),
        "scatter_add" => x[0].scatter_add(&x[1], size(&p[0])),
        "one_hot" => x[0].one_hot(size(&p[0])),
        "cross_entropy" => {
            let reduction = match p[0].as_str() {
                Some("mean") => Reduction::Mean,
                Some("sum") => Reduction::Sum,
                _ => Reduction::None,
            };
            // What is ignored if nothing is given is part of the meaning.
            let ignored = p[1].as_i64().filter(|&i| i != -100);
            x[0].cross_entropy(&x[1], ignored, reduction)
        }
        _ => panic!("there is no function `{f}`"),
    }
}

/// Cases that show many types at once.
fn several(f: &str, x: &[Tensor]) -> Option<Vec<Tensor>> {
    let types = "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64".split(' ').map(|t| DType::from_str(t).unwrap());
    let integers = "i8 u8 i16 u16 i32 u32 i64 u64".split(' ').map(|t| DType::from_str(t).unwrap());
    Some(match f {
        "sums of all pairs" => x.iter().flat_map(|a| x.iter().map(move |b| a + b)).collect(),
        "numbers beside all types" => x.iter().flat_map(|a| [a + 2, a * 2.5, a * 2.0]).collect(),
        "numbers out of range" => vec![x[0].lt(300), x[0].gt(-1), x[0].eq_(256), x[0].clamp(-1, 200)],
        "casts to all types" => x.iter().flat_map(|a| types.clone().map(move |t| a.cast(t))).collect(),
        "integers to integers" => x.iter().flat_map(|a| integers.clone().map(move |t| a.cast(t))).collect(),
        _ => return None,
    })
}
