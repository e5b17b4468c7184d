//! The laws of the fuzz targets over the inputs that are kept, each of which was found or written for a reason, and over
//! thousands that are made of them.

#![forbid(unsafe_code)]

#[allow(unreachable_pub, reason = "the fuzz crate has it as a library")]
#[path = "../../../xtask/fuzz/src/mutate.rs"]
mod mutate;
#[allow(unreachable_pub, reason = "the fuzz crate has it as a library")]
#[path = "../../../xtask/fuzz/src/protocol.rs"]
mod protocol;

#[test]
fn the_laws_hold_for_every_input() {
    let words = [
        "READY=1\n",
        "STATUS=",
        "ERRNO=",
        "FDSTORE=1\n",
        "FDNAME=",
        "BARRIER=1",
        "WATCHDOG=trigger",
        "MAINPID=",
        "\n",
        "\0",
        "{\"method\":\"",
        "io.agentd.Manager.",
        "\"parameters\":{",
        "\"more\":true",
        "\"oneway\":true",
        "}",
        "null",
        "\"error\":\"",
        "\"unit\":\"a.service\"",
        "\\u0000",
        "1e999",
    ];
    let words = words.map(str::to_owned);
    for (target, law) in protocol::TARGETS {
        mutate::hold(target, law, &words);
    }
}
