//! The images: what a machine boots from.

pub mod base;
pub mod cpio;
pub mod tree;
