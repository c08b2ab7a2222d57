//! What the benchmark programs share. `benches/README.md` says what is measured, how, and where results are recorded.
//!
//! | module | what |
//! |---|---|
//! | [`cases`] | which kernels at which sizes: one list for us and for the peers |
//! | [`data`] | random inputs, poisoned outputs, and the comparison with a reference |
//! | [`timing`] | medians by device events |
//! | [`report`] | one measurement, the table, the JSON |
//! | [`machine`] | what a result was measured on |
//! | [`streams`], [`rows`], [`product`], [`attention`] | the kernels, measured and checked |
//! | [`tuning`] | the autotuner over a list of configurations |
//! | [`launch_cost`], [`bare`] | what the host pays for a launch, beside the driver's own |
//! | [`compile_time`] | from definition to code, and the driver's part |
//! | [`gpt2`] | a decoder of GPT-2's size through the graph compiler |

pub mod attention;
pub mod bare;
pub mod cases;
pub mod compile_time;
pub mod data;
pub mod gpt2;
pub mod launch_cost;
pub mod machine;
pub mod product;
pub mod report;
pub mod rows;
pub mod streams;
pub mod timing;
pub mod tuning;
