//! Keys, digests, signatures, the manifest and the verdict.
#![forbid(unsafe_code)]
