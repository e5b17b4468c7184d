//! The readers of what others send: calls on the control socket, and datagrams of sd_notify(3).

use agentd_protocol::notify::NotifyMessage;
use agentd_protocol::{Call, FrameReader, MAX_FRAME, Reply, Request};

/// Every law by its name, which is that of its folder in `corpus/`.
pub const TARGETS: [(&str, crate::mutate::Law); 2] = [("frames", frames), ("datagram", datagram)];

/// A stream gives the same frames however it is cut, and what is read as a call prints as the same call.
pub fn frames(data: &[u8]) {
    let whole = cut(data, data.len().max(1));
    assert_eq!(cut(data, 3), whole);
    for frame in &whole.0 {
        drop(Reply::parse(frame));
        let Ok(call) = Call::parse(frame) else { continue };
        if let Ok(printed) = call.to_frame() {
            assert!(printed.len() <= MAX_FRAME);
            assert_eq!(Call::parse(&printed[..printed.len() - 1]).ok().as_ref(), Some(&call));
        }
        drop(Request::from_call(call));
    }
}

/// The frames, and what is left behind them.
fn cut(data: &[u8], size: usize) -> (Vec<Vec<u8>>, usize) {
    let mut reader = FrameReader::new();
    let mut all = Vec::new();
    for mut piece in data.chunks(size) {
        loop {
            match reader.next_frame(&mut piece) {
                Ok(Some(frame)) => all.push(frame),
                Ok(None) => break,
                Err(_) => return (all, 0),
            }
        }
    }
    (all, reader.held())
}

/// A datagram is read, whatever it is.
pub fn datagram(data: &[u8]) {
    drop(NotifyMessage::parse(data));
}
