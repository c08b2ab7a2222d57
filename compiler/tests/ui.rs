//! What the compiler says of mistakes in kernels. `TRYBUILD=overwrite` writes the expected messages anew.

#[test]
fn messages() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
