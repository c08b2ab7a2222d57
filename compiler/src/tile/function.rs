//! Functions: values, operations and regions in arenas.

use super::ops::Op;
use super::types::TileType;
use crate::dtype::DType;
use crate::entity::Arena;
use crate::error::Loc;

crate::entity! {
    /// An SSA value: a result of an op, or a parameter of a region.
    Value, "v"
}
crate::entity! {
    /// An operation.
    OpId, "op"
}
crate::entity! {
    /// A region: a straight list of operations with parameters, ended by a terminator.
    Region, "region"
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueDef {
    /// Result number `index` of `op`.
    Result {
        /// The op.
        op: OpId,
        /// Which of its results.
        index: u32,
    },
    /// Parameter number `index` of `region`; of the body region: of the kernel.
    Param {
        /// The region.
        region: Region,
        /// Which of its parameters.
        index: u32,
    },
}

/// A value's type and origin.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueData {
    /// Its type.
    pub ty: TileType,
    /// Its origin.
    pub def: ValueDef,
}

/// One operation.
#[derive(Clone, PartialEq, Debug)]
pub struct OpData {
    /// What it does.
    pub op: Op,
    /// What it takes, in the order [`Op`] states.
    pub operands: Vec<Value>,
    /// What it gives.
    pub results: Vec<Value>,
    /// Its regions, for `for`, `while`, `if`.
    pub regions: Vec<Region>,
    /// The place in the user's source it came from.
    pub loc: Loc,
}

/// A list of operations, the last of which is the terminator, with parameters.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RegionData {
    /// Parameters: induction variable and carried values of loops; the kernel's flattened parameters for the body.
    pub params: Vec<Value>,
    /// Operations in order of execution.
    pub ops: Vec<OpId>,
}

/// What a kernel parameter is, as its writer sees it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ParamKind {
    /// One number: one region parameter.
    Scalar(DType),
    /// A base address: one region parameter of type `*T`.
    Ptr {
        /// What is pointed to.
        dtype: DType,
    },
    /// A strided view of a tensor: region parameters `base: *T`, then `rank` extents (`i32`), then `rank` strides
    /// in elements (`i32` or `i64`, all the same).
    View {
        /// What is viewed.
        dtype: DType,
        /// Its dimensions.
        rank: u8,
    },
}

impl ParamKind {
    /// How many region parameters the kernel parameter stands for.
    pub fn flat_len(&self) -> usize {
        match self {
            ParamKind::Scalar(_) | ParamKind::Ptr { .. } => 1,
            ParamKind::View { rank, .. } => 1 + 2 * usize::from(*rank),
        }
    }
}

/// A kernel parameter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Param {
    /// Its name in the source.
    pub name: String,
    /// What it is.
    pub kind: ParamKind,
}

/// What is known of one flattened kernel parameter beyond its type. The launch must check it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ParamHint {
    /// The value (for an address: in bytes) is a multiple of this power of two.
    pub divisor: u32,
    /// The value is exactly this one.
    pub known: Option<i64>,
    /// Memory reached through addresses of different classes does not overlap. Only for addresses.
    pub alias_class: u32,
}

impl Default for ParamHint {
    /// Nothing known; one alias class for all.
    fn default() -> Self {
        Self { divisor: 1, known: None, alias_class: 0 }
    }
}

/// One kernel: what one program of the grid does.
///
/// The body region's parameters are the kernel's parameters, flattened as [`ParamKind`] says.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// The kernel's name: an identifier.
    pub name: String,
    /// The kernel's parameters as its writer sees them.
    pub params: Vec<Param>,
    /// What is known of each flattened parameter; as long as the body's parameter list.
    pub hints: Vec<ParamHint>,
    /// All values.
    pub values: Arena<Value, ValueData>,
    /// All operations, also those no longer in any region.
    pub ops: Arena<OpId, OpData>,
    /// All regions, also those no longer reachable.
    pub regions: Arena<Region, RegionData>,
    /// The body; ended by `yield` without values.
    pub body: Region,
    /// Were products and sums written apart allowed to be contracted (`fp_fusion`)?
    pub fp_fusion: bool,
}

impl Function {
    /// A function without parameters and an empty body (not yet ended by `yield`).
    pub fn new(name: impl Into<String>) -> Self {
        let mut regions = Arena::new();
        let body = regions.push(RegionData::default());
        Self {
            name: name.into(),
            params: Vec::new(),
            hints: Vec::new(),
            values: Arena::new(),
            ops: Arena::new(),
            regions,
            body,
            fp_fusion: false,
        }
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> &TileType {
        &self.values[value].ty
    }

    /// Appends a parameter to a region.
    pub fn add_region_param(&mut self, region: Region, ty: TileType) -> Value {
        let index = self.regions[region].params.len() as u32;
        let value = self.values.push(ValueData { ty, def: ValueDef::Param { region, index } });
        self.regions[region].params.push(value);
        value
    }

    /// Creates an op with fresh results, in no region yet.
    pub fn create_op(
        &mut self,
        op: Op,
        operands: Vec<Value>,
        result_types: Vec<TileType>,
        regions: Vec<Region>,
        loc: Loc,
    ) -> OpId {
        let id = self.ops.push(OpData { op, operands, results: Vec::new(), regions, loc });
        for (index, ty) in result_types.into_iter().enumerate() {
            let def = ValueDef::Result { op: id, index: index as u32 };
            let value = self.values.push(ValueData { ty, def });
            self.ops[id].results.push(value);
        }
        id
    }

    /// The op that defines `value`, unless it is a region parameter.
    pub fn def_op(&self, value: Value) -> Option<OpId> {
        match self.values[value].def {
            ValueDef::Result { op, .. } => Some(op),
            ValueDef::Param { .. } => None,
        }
    }

    /// The number `value` is everywhere, if it is defined by `const`.
    pub fn const_of(&self, value: Value) -> Option<super::Constant> {
        match self.ops[self.def_op(value)?].op {
            Op::Const(c) => Some(c),
            _ => None,
        }
    }

    /// Calls `f` on every op reachable from `region`, in order, an op before those in its regions.
    pub fn walk(&self, region: Region, f: &mut impl FnMut(OpId)) {
        for &op in &self.regions[region].ops {
            f(op);
            for &inner in &self.ops[op].regions {
                self.walk(inner, f);
            }
        }
    }

    /// Replaces every use of `from` by `to`, in all ops.
    pub fn replace_uses(&mut self, from: Value, to: Value) {
        for op in self.ops.keys() {
            for operand in &mut self.ops[op].operands {
                if *operand == from {
                    *operand = to;
                }
            }
        }
    }

    /// The terminator of a region.
    ///
    /// # Panics
    /// If the region is empty, which the verifier refuses.
    pub fn terminator(&self, region: Region) -> OpId {
        *self.regions[region].ops.last().expect("a region ends in its terminator")
    }

    /// The region parameters that kernel parameter number `param` stands for.
    pub fn flat_params(&self, param: usize) -> &[Value] {
        let start: usize = self.params[..param].iter().map(|p| p.kind.flat_len()).sum();
        &self.regions[self.body].params[start..start + self.params[param].kind.flat_len()]
    }
}
