//! Who waits for which request of the engine's.

use std::collections::HashMap;

use agentd_engine::{JobId, JobResult, RequestError, RequestId};
use agentd_protocol::manager::{Empty, JobReply};
use agentd_protocol::{CallError, JobResult as WireResult};
use agentd_unit::UnitName;

use super::Answer;

/// One request that has no final answer yet.
#[derive(Debug)]
struct Pending {
    answer: Answer,
    /// Answer when the job has ended, not when it was accepted.
    wait: bool,
    job: Option<u32>,
}

/// All requests that have no final answer yet.
#[derive(Debug, Default)]
pub struct Replies {
    pending: HashMap<RequestId, Pending>,
    next: u64,
}

impl Replies {
    /// A name for a request that nobody waits for.
    pub fn unattended(&mut self) -> RequestId {
        self.next += 1;
        RequestId(self.next)
    }

    /// A name for a request whose answer goes to a client.
    pub fn expect(&mut self, answer: Answer, wait: bool) -> RequestId {
        let id = self.unattended();
        self.pending.insert(id, Pending { answer, wait, job: None });
        id
    }

    /// The request became a job.
    pub fn accepted(&mut self, request: RequestId, job: JobId) {
        let Some(pending) = self.pending.get_mut(&request) else { return };
        pending.job = Some(job.0);
        if !pending.wait {
            pending.answer.result(Ok(JobReply { job: Some(job.0), result: None }));
            self.pending.remove(&request);
        }
    }

    /// The job of the request has ended.
    pub fn finished(&mut self, request: RequestId, result: JobResult) {
        if let Some(pending) = self.pending.remove(&request) {
            pending.answer.result(Ok(JobReply { job: pending.job, result: Some(wire(result)) }));
        }
    }

    /// The request is done.
    pub fn done(&mut self, request: RequestId) {
        if let Some(pending) = self.pending.remove(&request) {
            pending.answer.result(Ok(Empty {}));
        }
    }

    /// The request cannot be carried out.
    pub fn refused(&mut self, request: RequestId, error: &RequestError) {
        if let Some(pending) = self.pending.remove(&request) {
            pending.answer.result::<Empty>(Err(call_error(error)));
        }
    }

    /// Forgets clients that went away; their jobs go on.
    pub fn prune(&mut self) {
        self.pending.retain(|_, pending| !pending.answer.is_closed());
    }
}

/// The wire's word for a job's result.
const fn wire(result: JobResult) -> WireResult {
    match result {
        JobResult::Done => WireResult::Done,
        JobResult::Canceled => WireResult::Canceled,
        JobResult::Timeout => WireResult::Timeout,
        JobResult::Failed => WireResult::Failed,
        JobResult::Dependency => WireResult::Dependency,
        JobResult::Skipped => WireResult::Skipped,
        JobResult::Invalid => WireResult::Invalid,
        JobResult::Assert => WireResult::Assert,
    }
}

/// The wire's error for a refusal.
fn call_error(error: &RequestError) -> CallError {
    let message = error.to_string();
    let text = |unit: &UnitName| unit.to_string();
    match error {
        RequestError::NotFound(unit) => CallError::NoSuchUnit { unit: text(unit), message },
        RequestError::LoadFailed(unit, _) => CallError::LoadFailed { unit: text(unit), message },
        RequestError::Masked(unit) => CallError::UnitMasked { unit: text(unit), message },
        RequestError::RequirementMissing { unit, .. }
        | RequestError::Contradiction(unit)
        | RequestError::Conflict(unit, _) => CallError::TransactionFailed { unit: text(unit), message },
        RequestError::Cycle(path) => {
            CallError::TransactionFailed { unit: path.first().map(text).unwrap_or_default(), message }
        }
        RequestError::ManualRefused(unit) => CallError::OnlyByDependency { unit: text(unit), message },
        RequestError::NoIsolation(unit) => CallError::NoIsolation { unit: text(unit), message },
        RequestError::NotApplicable(unit, _) => CallError::NotApplicable { unit: text(unit), message },
        RequestError::NoProcess(unit) => CallError::NoSuchProcess { unit: text(unit), message },
        RequestError::NoJob(job) => CallError::NoSuchJob { job: job.0, message },
        RequestError::ShuttingDown => CallError::ShuttingDown { message },
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::Receiver;

    use super::*;
    use crate::control::Parcel;

    fn reply(client: &mut Receiver<Parcel>) -> agentd_protocol::Reply {
        client.try_recv().unwrap().into_iter().next().unwrap()
    }

    #[test]
    fn a_client_that_waits_hears_once_when_the_job_has_ended() {
        let mut replies = Replies::default();
        let (answer, mut client) = Answer::channel(4);
        let request = replies.expect(answer, true);
        replies.accepted(request, JobId(5));
        assert!(client.try_recv().is_err());
        replies.finished(request, JobResult::Failed);
        let reply: JobReply = reply(&mut client).into_result().unwrap();
        assert_eq!(reply, JobReply { job: Some(5), result: Some(WireResult::Failed) });
        replies.finished(request, JobResult::Done);
        assert!(client.try_recv().is_err());
    }

    #[test]
    fn a_client_that_does_not_wait_hears_when_the_job_is_accepted() {
        let mut replies = Replies::default();
        let (answer, mut client) = Answer::channel(4);
        let request = replies.expect(answer, false);
        replies.accepted(request, JobId(5));
        let reply: JobReply = reply(&mut client).into_result().unwrap();
        assert_eq!(reply, JobReply { job: Some(5), result: None });
    }

    #[test]
    fn a_refusal_carries_the_engines_sentence() {
        let mut replies = Replies::default();
        let (answer, mut client) = Answer::channel(4);
        let request = replies.expect(answer, true);
        let unit = UnitName::parse("ghost.service").unwrap();
        replies.refused(request, &RequestError::NotFound(unit));
        let error = reply(&mut client).into_result::<JobReply>().unwrap_err();
        assert_eq!(error.to_string(), "Unit ghost.service not found.");
    }
}
