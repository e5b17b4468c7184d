//! Who waits until units have ended: `start --wait`, systemctl(1).
//!
//! # Invariants
//!
//! - Each waiting client is answered once, when the last of its units has ended. What a unit does afterwards changes nothing.
//! - Nothing is looked at while nobody waits.

use agentd_engine::{ActiveState, Manager};
use agentd_protocol::CallError;
use agentd_protocol::manager::{AwaitEndsReply, AwaitEndsRequest, UnitEnd};
use agentd_unit::UnitName;

use super::{Answer, view};

/// One client, and what it waits for.
#[derive(Debug)]
struct Waiting {
    answer: Answer,
    units: Vec<(UnitName, Option<UnitEnd>)>,
}

/// All clients that wait for ends.
#[derive(Debug, Default)]
pub struct Ends {
    waiting: Vec<Waiting>,
}

impl Ends {
    /// A client waits from now on; the next [`Ends::look`] tells it what has ended already.
    ///
    /// # Errors
    /// [`CallError::NoSuchUnit`] of what is no name, [`CallError::InvalidParameter`] where there are too many.
    pub fn expect(&mut self, request: &AwaitEndsRequest, answer: &Answer) -> Result<(), CallError> {
        if request.units.len() > AwaitEndsRequest::MOST {
            return Err(CallError::InvalidParameter { parameter: "units".to_owned() });
        }
        let read = |text: &String| match UnitName::parse_lenient(text) {
            Ok(name) => Ok((name, None)),
            Err(error) => Err(CallError::NoSuchUnit { unit: text.clone(), message: error.to_string() }),
        };
        let units = request.units.iter().map(read).collect::<Result<_, _>>()?;
        self.waiting.push(Waiting { answer: answer.clone(), units });
        Ok(())
    }

    /// Looks which units are down now, and answers those whose last one is.
    pub fn look(&mut self, manager: &Manager) {
        self.waiting.retain_mut(|waiting| {
            if waiting.answer.is_closed() {
                return false;
            }
            for (name, end) in waiting.units.iter_mut().filter(|(_, end)| end.is_none()) {
                *end = ended(manager, name);
            }
            let all = waiting.units.iter().map(|(_, end)| end.clone()).collect::<Option<Vec<_>>>();
            let Some(ends) = all else { return true };
            waiting.answer.result(Ok(AwaitEndsReply { ends }));
            false
        });
    }
}

/// How a unit has ended, if it is down and no job is about to bring it up.
fn ended(manager: &Manager, name: &UnitName) -> Option<UnitEnd> {
    let end = |active, result: &str| {
        Some(UnitEnd { id: name.to_string(), active_state: view::active(active), result: result.to_owned() })
    };
    match manager.unit(name) {
        None => end(ActiveState::Inactive, "success"),
        Some(unit) if unit.job.is_some() => None,
        Some(unit) => match (unit.active, unit.forgotten) {
            (ActiveState::Inactive, Some(result)) => end(ActiveState::Failed, result.as_str()),
            (ActiveState::Inactive | ActiveState::Failed, _) => end(unit.active, unit.result.as_str()),
            (
                ActiveState::Activating
                | ActiveState::Active
                | ActiveState::Reloading
                | ActiveState::Deactivating,
                _,
            ) => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_units_and_what_is_no_name_are_refused() {
        let (answer, _client) = Answer::channel(4);
        let mut ends = Ends::default();
        let mut ask = |units: Vec<String>| ends.expect(&AwaitEndsRequest { units }, &answer).unwrap_err();
        let many = vec!["a.service".to_owned(); AwaitEndsRequest::MOST + 1];
        assert_eq!(ask(many), CallError::InvalidParameter { parameter: "units".to_owned() });
        assert!(matches!(ask(vec!["a/b".to_owned()]), CallError::NoSuchUnit { unit, .. } if unit == "a/b"));
    }
}
