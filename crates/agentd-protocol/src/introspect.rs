//! `org.varlink.service`: who serves here and what it can do, <https://varlink.org/Service>.

use serde::{Deserialize, Serialize};

use crate::error::CallError;

/// One interface with its description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: &'static str,
    /// Its description in varlink's language.
    pub description: &'static str,
}

/// Every interface that the manager serves.
pub const INTERFACES: [Interface; 3] = [
    Interface { name: "org.varlink.service", description: include_str!("idl/org.varlink.service.varlink") },
    Interface { name: "io.agentd.Manager", description: include_str!("idl/io.agentd.Manager.varlink") },
    Interface { name: "io.agentd.Unit", description: include_str!("idl/io.agentd.Unit.varlink") },
];

/// The answer to `GetInfo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoReply {
    /// Who makes it.
    pub vendor: String,
    /// What it is.
    pub product: String,
    /// Its version.
    pub version: String,
    /// Where to read more; may be empty.
    pub url: String,
    /// The names of its interfaces.
    pub interfaces: Vec<String>,
}

impl InfoReply {
    /// What the manager of this version says of itself.
    #[must_use]
    pub fn of_this_version() -> Self {
        Self {
            vendor: "agentd".into(),
            product: "agentd".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            url: env!("CARGO_PKG_REPOSITORY").into(),
            interfaces: INTERFACES.iter().map(|interface| interface.name.to_owned()).collect(),
        }
    }
}

/// `GetInterfaceDescription`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescriptionRequest {
    /// The interface's name.
    pub interface: String,
}

/// The answer to `GetInterfaceDescription`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescriptionReply {
    /// In varlink's language.
    pub description: String,
}

impl DescriptionRequest {
    /// The description that is asked for.
    ///
    /// # Errors
    /// `InterfaceNotFound`.
    pub fn answer(&self) -> Result<DescriptionReply, CallError> {
        INTERFACES
            .iter()
            .find(|known| known.name == self.interface)
            .map(|known| DescriptionReply { description: known.description.to_owned() })
            .ok_or_else(|| CallError::InterfaceNotFound { interface: self.interface.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interface_that_is_listed_is_described() {
        for name in InfoReply::of_this_version().interfaces {
            let description = DescriptionRequest { interface: name.clone() }.answer().unwrap().description;
            assert!(description.contains(&format!("\ninterface {name}\n")), "{name}");
        }
        let other = DescriptionRequest { interface: "io.agentd.Other".into() };
        assert!(matches!(other.answer(), Err(CallError::InterfaceNotFound { .. })));
    }
}
