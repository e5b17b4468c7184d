//! The files that define a unit, for `cat`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use agentd_engine::UnitView;
use agentd_protocol::CallError;
use agentd_protocol::unit::{FileContent, GetFilesReply};

use super::{Answer, continued, last};

/// The most of one file that is shown: more than any unit file may have.
const MAX_BYTES: u64 = 1 << 19;

/// Sends the files as they are on the disk now, one a reply.
pub fn send(unit: Result<UnitView, CallError>, more: bool, answer: &Answer) -> bool {
    let view = match unit {
        Ok(view) => view,
        Err(error) => return answer.result::<GetFilesReply>(Err(error)),
    };
    let mut files = Vec::new();
    for path in view.unit.fragment.iter().chain(&view.unit.drop_ins) {
        match content(path) {
            Ok(content) => files.push(FileContent { path: path.display().to_string(), content }),
            Err(error) => {
                let message = format!("{} cannot be read: {error}", path.display());
                return answer.result::<GetFilesReply>(Err(CallError::Failed { message }));
            }
        }
    }
    let Some(end) = files.pop() else {
        return answer.result(Ok(GetFilesReply::default()));
    };
    if !more {
        files.push(end);
        return answer.send(last(&GetFilesReply { files }));
    }
    files.into_iter().all(|file| answer.send(continued(&GetFilesReply { files: vec![file] })))
        && answer.send(last(&GetFilesReply { files: vec![end] }))
}

fn content(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
