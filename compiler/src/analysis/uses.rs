//! Use counts, and how deep in the nest of regions values are defined.

use crate::entity::Entity;
use crate::tile::{Function, Region, Value};

/// How many operands of reachable ops each value is.
#[derive(Clone, PartialEq, Debug)]
pub struct UseCounts(Vec<u32>);

impl UseCounts {
    /// Counts the uses in a function.
    pub fn new(func: &Function) -> Self {
        let mut counts = vec![0; func.values.len()];
        func.walk(func.body, &mut |op| {
            for &operand in &func.ops[op].operands {
                counts[operand.index()] += 1;
            }
        });
        Self(counts)
    }

    /// The number of uses of a value; 0 for one made since the count.
    pub fn of(&self, value: Value) -> u32 {
        self.0.get(value.index()).copied().unwrap_or(0)
    }
}

/// How many regions enclose the definition of each value, and each region itself: 1 for what lies in the body.
#[derive(Clone, PartialEq, Debug)]
pub struct Depths {
    values: Vec<u32>,
    regions: Vec<u32>,
}

impl Depths {
    /// Measures a function.
    pub fn new(func: &Function) -> Self {
        let mut depths = Self { values: vec![0; func.values.len()], regions: vec![0; func.regions.len()] };
        depths.enter(func, func.body, 1);
        depths
    }

    fn enter(&mut self, func: &Function, region: Region, depth: u32) {
        self.regions[region.index()] = depth;
        for &param in &func.regions[region].params {
            self.values[param.index()] = depth;
        }
        for &op in &func.regions[region].ops {
            for &result in &func.ops[op].results {
                self.values[result.index()] = depth;
            }
            for &inner in &func.ops[op].regions {
                self.enter(func, inner, depth + 1);
            }
        }
    }

    /// The depth of a value's definition.
    pub fn of(&self, value: Value) -> u32 {
        self.values[value.index()]
    }

    /// Records that a value is now defined at `depth`.
    pub fn set(&mut self, value: Value, depth: u32) {
        self.values[value.index()] = depth;
    }

    /// The depth of what lies directly in `region`.
    pub fn of_region(&self, region: Region) -> u32 {
        self.regions[region.index()]
    }

    /// Is `value`, which is visible in `region`, defined outside of it?
    /// What is visible lies in the region or around it, so the depths alone decide.
    pub fn is_defined_outside(&self, value: Value, region: Region) -> bool {
        self.of(value) < self.of_region(region)
    }
}
