//! What a socket is made with, systemd.socket(5).

use super::{number_or, octal};
use crate::sections::SocketSection;
use crate::values::span;

pub(super) fn value(key: &str, socket: &SocketSection) -> Option<String> {
    let options = &socket.options;
    let span_or_none = |bound: Option<_>| bound.map_or_else(|| "0".to_owned(), span::display);
    Some(match key {
        "SocketMode" => octal(socket.mode),
        "DirectoryMode" => octal(socket.directory_mode),
        "TriggerLimitBurst" => {
            number_or(socket.trigger_limit_burst, if socket.accept { "200" } else { "20" })
        }
        "PollLimitBurst" => number_or(socket.poll_limit_burst, if socket.accept { "150" } else { "15" }),
        "KeepAliveTimeSec" => span_or_none(options.keep_alive_time),
        "KeepAliveIntervalSec" => span_or_none(options.keep_alive_interval),
        "DeferAcceptSec" => span_or_none(options.defer_accept),
        "KeepAliveProbes" => number_or(options.keep_alive_probes, "0"),
        "Priority" => number_or(options.priority, "-1"),
        "Mark" => number_or(options.mark, "-1"),
        "IPTTL" => number_or(options.ip_ttl, "-1"),
        "ReceiveBuffer" => number_or(options.receive_buffer, "0"),
        "SendBuffer" => number_or(options.send_buffer, "0"),
        "PipeSize" => number_or(options.pipe_size, "0"),
        "MessageQueueMaxMessages" => number_or(options.queue_messages, "0"),
        "MessageQueueMessageSize" => number_or(options.queue_message_size, "0"),
        _ => return None,
    })
}
