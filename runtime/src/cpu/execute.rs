//! The interpreter, as the CPU device calls it.

use crate::backend::PackedArgs;
use crate::error::Result;
use tilewright_compiler::tile::Function;

/// A kernel made ready for the interpreter.
pub(crate) struct Program {
    /// Is flattened parameter `i` an address?
    _pointers: Vec<bool>,
}

impl Program {
    pub fn new(func: &Function) -> Result<Program> {
        let params = &func.regions[func.body].params;
        Ok(Program { _pointers: params.iter().map(|&v| func.ty(v).elem.is_ptr()).collect() })
    }

    pub fn run(&self, _grid: [u32; 3], _args: &PackedArgs<'_>) -> Result<()> {
        Ok(())
    }
}
