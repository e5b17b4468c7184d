//! `[Install]`, systemd.unit(5).

use super::{Setting, Slot};

/// The keys.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new("WantedBy", Slot::Units(|d| &mut d.install.wanted_by), "These units want this one."),
    Setting::new("RequiredBy", Slot::Units(|d| &mut d.install.required_by), "These units require this one."),
    Setting::new("UpheldBy", Slot::Units(|d| &mut d.install.upheld_by), "These units uphold this one."),
    Setting::new("Alias", Slot::Names(|d| &mut d.install.alias), "Other names of this unit."),
    Setting::typed(
        "Also",
        Slot::Names(|d| &mut d.install.also),
        "Enabled and disabled together with it.",
        "agentctl enable follows it in a later version",
    ),
    Setting::typed(
        "DefaultInstance",
        Slot::Text(|d| &mut d.install.default_instance),
        "Of a template: the instance that enable makes when it names none.",
        "agentctl enable follows it in a later version",
    ),
    Setting::new(
        "Enabled",
        Slot::MaybeBool(|d| &mut d.install.enabled),
        "Whether this section counts from the moment the file is there; default yes.",
    ),
];
