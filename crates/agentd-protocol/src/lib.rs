//! The control interface: varlink wire, request and reply types, sd_notify datagrams.
#![forbid(unsafe_code)]
