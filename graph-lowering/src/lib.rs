//! The graph compiler of Tilewright: it will capture computations on tensors and lower them into kernels. Nothing of it is
//! here yet.
