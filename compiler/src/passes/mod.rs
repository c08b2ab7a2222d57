//! Passes: Tile IR to better Tile IR with the same meaning.

use crate::tile::Function;

/// The pass of this name.
pub fn by_name(_name: &str) -> Option<fn(&mut Function)> {
    None
}
