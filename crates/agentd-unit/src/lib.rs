//! The unit language: names, files, drop-ins, templates, typed settings, diagnostics with source spans.
#![forbid(unsafe_code)]
