//! Bytes of people who mean harm, thousands of them from a seed: nothing panics, and what is read prints back.

use agentd_protocol::{Call, FrameReader, MAX_FRAME, Reply, Request};

/// A small generator (xorshift64), so that a failing case comes back with its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }
}

const CALLS: [&str; 5] = [
    r#"{"method":"io.agentd.Manager.StartUnit","parameters":{"unit":"a.service","mode":"fail","wait":false}}"#,
    r#"{"method":"io.agentd.Manager.KillUnit","parameters":{"unit":"a.service","whom":"main","signal":15}}"#,
    r#"{"method":"io.agentd.Manager.ListUnits","parameters":{"types":["service"],"all":true},"more":true}"#,
    r#"{"method":"io.agentd.Manager.Shutdown","parameters":{"kind":"exit","exit_code":3}}"#,
    r#"{"method":"io.agentd.Unit.GetLogs","parameters":{"unit":"a.service","lines":5,"follow":true},"more":true}"#,
];

/// Changes, drops, doubles and inserts bytes, more often those that mean something in JSON.
fn mutate(text: &str, random: &mut Random) -> Vec<u8> {
    const TELLING: &[u8] = b"\"{}[]:,\\0-e.\0\xff\xc3n";
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[at] = random.below(256) as u8,
            1 => bytes[at] = TELLING[random.below(TELLING.len())],
            2 => bytes.insert(at, TELLING[random.below(TELLING.len())]),
            3 => {
                let end = at + random.below(bytes.len() - at + 1).min(12);
                bytes.drain(at..end);
            }
            _ => bytes.extend_from_within(at..),
        }
        if bytes.is_empty() {
            bytes.push(b'{');
        }
    }
    bytes
}

#[test]
fn no_bytes_make_a_reader_panic_and_every_call_that_is_read_prints_back() {
    let mut read = 0;
    for seed in 1..40_000_u64 {
        let mut random = Random(seed);
        let mut stream = mutate(CALLS[random.below(CALLS.len())], &mut random);
        stream.push(0);
        let mut reader = FrameReader::new();
        let mut input = stream.as_slice();
        while let Some(frame) = reader.next_frame(&mut input).unwrap() {
            drop(Reply::parse(&frame));
            let Ok(call) = Call::parse(&frame) else { continue };
            let printed = call.to_frame().unwrap();
            assert!(printed.len() <= MAX_FRAME, "seed {seed}");
            assert_eq!(Call::parse(&printed[..printed.len() - 1]).unwrap(), call, "seed {seed}");
            read += usize::from(Request::from_call(call).is_ok());
        }
    }
    assert!(read > 500, "the mutations are not all so wild that nothing is tested: {read}");
}

#[test]
fn a_stream_gives_the_same_frames_however_it_is_cut() {
    for seed in 1..2_000_u64 {
        let mut random = Random(seed);
        let stream: Vec<u8> =
            (0..4).flat_map(|_| mutate(CALLS[random.below(CALLS.len())], &mut random)).collect();
        let whole = frames(&stream, stream.len());
        let size = 1 + random.below(stream.len());
        assert_eq!(frames(&stream, size), whole, "seed {seed}");
    }
}

fn frames(stream: &[u8], size: usize) -> (Vec<Vec<u8>>, usize) {
    let mut reader = FrameReader::new();
    let mut all = Vec::new();
    for mut piece in stream.chunks(size) {
        while let Ok(Some(frame)) = reader.next_frame(&mut piece) {
            all.push(frame);
        }
        assert!(piece.is_empty(), "nothing of this size is too long");
    }
    (all, reader.held())
}
