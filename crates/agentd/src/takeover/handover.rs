//! What a manager hands to its successor besides its own descriptors: those that it holds for units, each with what it
//! is, and what is kept of each unit without the bounds of the table.
//!
//! As text, in a file in memory: blocks of `key=value`, with an empty line behind each.

use std::fmt::Write as _;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;

use agentd_linux::ipc::Owner;
use agentd_linux::listen::Node;
use agentd_linux::rlimit::{Resource, Rlimit};
use agentd_unit::sections::{Listen, Preserve};
use agentd_unit::{Remembered, UnitName};

use super::definition;
use super::lines;
use super::record::{self, Record};
use crate::log::Carried;

/// What one descriptor is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A listener of a socket unit.
    Listener {
        /// The socket unit.
        unit: UnitName,
        /// The line of its file, as [`label`] has it.
        line: String,
        /// Its file: path, device and inode.
        node: Option<(PathBuf, u64, u64)>,
    },
    /// The connection of an instance.
    Connection {
        /// The instance.
        unit: UnitName,
    },
    /// A path unit: what tells of its paths, while it waits.
    Path {
        /// The path unit.
        unit: UnitName,
        /// Which of its paths were there when they were last looked at.
        existed: Vec<bool>,
        /// The number of the watch of each path itself.
        own: Vec<Option<i32>>,
    },
    /// A namespace that all commands of a unit's run enter.
    Namespace {
        /// The service.
        unit: UnitName,
        /// Of what.
        kind: Kind,
    },
    /// A descriptor in the store of a service.
    Stored {
        /// The service.
        unit: UnitName,
        /// Its name.
        name: String,
        /// It goes when the other side hangs up.
        poll: bool,
        /// How long it is kept.
        preserve: Preserve,
    },
}

/// What a namespace is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The network.
    Network,
    /// System V IPC and message queues.
    Ipc,
}

/// All that is handed on for units: an item without a descriptor says only how its unit stands.
#[derive(Debug)]
pub struct Handover<F> {
    /// What is held for units.
    pub items: Vec<(Item, Option<F>)>,
    /// What is kept of them.
    pub records: Vec<Record>,
    /// What units live by whose record is there.
    pub definitions: Vec<Remembered>,
    /// Whose IPC is to go once no unit of theirs runs.
    pub leavers: Vec<Owner>,
    /// The limit of descriptors that the first manager was started with, and that services get.
    pub nofile: Option<Rlimit>,
    /// What their logs go on with.
    pub lines: Carried,
}

impl<F> Default for Handover<F> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            records: Vec::new(),
            definitions: Vec::new(),
            leavers: Vec::new(),
            nofile: None,
            lines: Carried::default(),
        }
    }
}

/// How a line of a socket unit is told from its others.
#[must_use]
pub fn label(listen: &Listen) -> String {
    format!("{}={}", listen.kind.key(), listen.address).escape_default().to_string()
}

impl Handover<BorrowedFd<'_>> {
    /// As text.
    #[must_use]
    pub fn encode(&self) -> String {
        use std::os::fd::AsRawFd;
        let numbered = self.items.iter().map(|(item, fd)| (item, fd.as_ref().map(AsRawFd::as_raw_fd)));
        encode(numbered, &self.records)
            + &definitions(&self.definitions)
            + &leavers(&self.leavers)
            + &limit(self.nofile)
            + &lines::encode(&self.lines)
    }
}

impl Handover<RawFd> {
    /// From text. What cannot be read is left out.
    #[must_use]
    pub fn decode(text: &str) -> Self {
        let mut handover = Self::default();
        for block in text.split("\n\n") {
            if let Some(record) = block.strip_prefix("kind=unit\n") {
                handover.records.extend(record::decode(record.as_bytes()));
            } else if let Some(of) = block.strip_prefix("kind=definition\n") {
                handover.definitions.extend(definition::decode(of));
            } else if let Some(owner) = block.strip_prefix("kind=leaver\n") {
                handover.leavers.extend(leaver(owner));
            } else if let Some(line) = block.strip_prefix("kind=limit\n") {
                handover.nofile = nofile(line);
            } else if let Some(line) = block.strip_prefix(lines::LINE) {
                handover.lines.unfinished.extend(lines::line(line));
            } else if let Some(count) = block.strip_prefix(lines::COUNT) {
                handover.lines.counted.extend(lines::count(count));
            } else {
                handover.items.extend(decode(block));
            }
        }
        handover
    }

    /// The descriptors, once they are owned.
    #[must_use]
    pub fn owned(self, mut own: impl FnMut(RawFd) -> Option<OwnedFd>) -> Handover<OwnedFd> {
        let items = self.items.into_iter().map(|(item, number)| (item, number.and_then(&mut own))).collect();
        Handover {
            items,
            records: self.records,
            definitions: self.definitions,
            leavers: self.leavers,
            nofile: self.nofile,
            lines: self.lines,
        }
    }
}

impl Handover<OwnedFd> {
    /// Takes out the items that `wanted` makes something of.
    pub fn take<T>(
        &mut self,
        wanted: impl Fn(Item, Option<OwnedFd>) -> Result<T, (Item, Option<OwnedFd>)>,
    ) -> Vec<T> {
        let mut taken = Vec::new();
        for (item, fd) in std::mem::take(&mut self.items) {
            match wanted(item, fd) {
                Ok(thing) => taken.push(thing),
                Err(other) => self.items.push(other),
            }
        }
        taken
    }
}

fn encode<'a>(items: impl Iterator<Item = (&'a Item, Option<RawFd>)>, records: &[Record]) -> String {
    let mut text = String::new();
    // Writing to a text cannot fail.
    for (item, fd) in items {
        let _never = write!(text, "{}", block(item));
        if let Some(fd) = fd {
            let _never = writeln!(text, "fd={fd}");
        }
        text.push('\n');
    }
    for record in records {
        let record = record::encode(record, usize::MAX);
        let _never = writeln!(text, "kind=unit\n{}", String::from_utf8_lossy(&record));
    }
    text
}

fn definitions(all: &[Remembered]) -> String {
    all.iter().filter_map(definition::encode).map(|text| format!("kind=definition\n{text}\n")).collect()
}

fn leavers(owners: &[Owner]) -> String {
    let block = |owner: &Owner| match owner {
        Owner::User(id) => format!("kind=leaver\nuser={id}\n\n"),
        Owner::Group(id) => format!("kind=leaver\ngroup={id}\n\n"),
    };
    owners.iter().map(block).collect()
}

fn limit(nofile: Option<Rlimit>) -> String {
    let block = |limit: Rlimit| format!("kind=limit\nnofile={}:{}\n\n", limit.soft, limit.hard);
    nofile.map(block).unwrap_or_default()
}

fn nofile(line: &str) -> Option<Rlimit> {
    let (soft, hard) = line.trim_end().strip_prefix("nofile=")?.split_once(':')?;
    Some(Rlimit { resource: Resource::Nofile, soft: soft.parse().ok()?, hard: hard.parse().ok()? })
}

fn leaver(line: &str) -> Option<Owner> {
    match line.trim_end().split_once('=')? {
        ("user", id) => id.parse().ok().map(Owner::User),
        ("group", id) => id.parse().ok().map(Owner::Group),
        _ => None,
    }
}

fn block(item: &Item) -> String {
    match item {
        Item::Listener { unit, line, node } => {
            let node = node.as_ref().map(|(path, device, inode)| {
                format!("device={device}\ninode={inode}\npath={}\n", path.display())
            });
            format!("kind=listener\nunit={unit}\nline={line}\n{}", node.unwrap_or_default())
        }
        Item::Connection { unit } => format!("kind=connection\nunit={unit}\n"),
        Item::Path { unit, existed, own } => {
            let existed: String = existed.iter().map(|was| if *was { '1' } else { '0' }).collect();
            let own: Vec<String> =
                own.iter().map(|id| id.map_or_else(|| "-".to_owned(), |id| id.to_string())).collect();
            format!("kind=path\nunit={unit}\nexisted={existed}\nown={}\n", own.join(","))
        }
        Item::Namespace { unit, kind } => {
            let of = if *kind == Kind::Network { "network" } else { "ipc" };
            format!("kind=namespace\nunit={unit}\nof={of}\n")
        }
        Item::Stored { unit, name, poll, preserve } => {
            let (poll, preserve) = (u8::from(*poll), word(*preserve));
            format!("kind=stored\nunit={unit}\nname={name}\npoll={poll}\npreserve={preserve}\n")
        }
    }
}

const fn word(preserve: Preserve) -> &'static str {
    match preserve {
        Preserve::No => "no",
        Preserve::Restart => "restart",
        Preserve::Yes => "yes",
    }
}

fn decode(block: &str) -> Option<(Item, Option<RawFd>)> {
    let get = |key: &str| lines::get(block, key);
    let unit = UnitName::parse(get("unit")?).ok()?;
    let number = |key: &str| get(key).and_then(|value| value.parse::<u64>().ok());
    let item = match get("kind")? {
        "listener" => {
            let node = || Some((PathBuf::from(get("path")?), number("device")?, number("inode")?));
            Item::Listener { unit, line: get("line")?.to_owned(), node: node() }
        }
        "connection" => Item::Connection { unit },
        "path" => Item::Path {
            unit,
            existed: get("existed")?.chars().map(|digit| digit == '1').collect(),
            own: get("own")?.split(',').filter(|id| !id.is_empty()).map(|id| id.parse().ok()).collect(),
        },
        "namespace" => Item::Namespace {
            unit,
            kind: [("network", Kind::Network), ("ipc", Kind::Ipc)]
                .into_iter()
                .find_map(|(word, kind)| (get("of") == Some(word)).then_some(kind))?,
        },
        "stored" => Item::Stored {
            unit,
            name: get("name")?.to_owned(),
            poll: get("poll") == Some("1"),
            preserve: [Preserve::No, Preserve::Restart, Preserve::Yes]
                .into_iter()
                .find(|preserve| get("preserve") == Some(word(*preserve)))?,
        },
        _ => return None,
    };
    Some((item, get("fd").and_then(|number| number.parse().ok())))
}

/// The parts of a file that make it known again.
#[must_use]
pub fn parts(node: &Node) -> (PathBuf, u64, u64) {
    (node.path.clone(), node.device, node.inode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::takeover::record::tests::sample;

    #[test]
    fn what_is_handed_on_comes_back_as_it_was() {
        let unit = |name: &str| UnitName::parse(name).unwrap();
        let items = [
            (
                Item::Listener {
                    unit: unit("web.socket"),
                    line: "ListenStream=/run/a = b".to_owned(),
                    node: Some(("/run/a = b".into(), 7, u64::MAX)),
                },
                Some(9),
            ),
            (
                Item::Listener { unit: unit("web.socket"), line: "ListenStream=80".to_owned(), node: None },
                Some(10),
            ),
            (Item::Connection { unit: unit("talk@1-2.service") }, Some(11)),
            (
                Item::Path { unit: unit("job.path"), existed: vec![true, false], own: vec![Some(3), None] },
                Some(12),
            ),
            (Item::Path { unit: unit("busy.path"), existed: vec![true], own: Vec::new() }, None),
            (Item::Namespace { unit: unit("web.service"), kind: Kind::Network }, Some(14)),
            (Item::Namespace { unit: unit("web.service"), kind: Kind::Ipc }, Some(15)),
            (
                Item::Stored {
                    unit: unit("web.service"),
                    name: "a=b".to_owned(),
                    poll: true,
                    preserve: Preserve::Restart,
                },
                Some(13),
            ),
        ];
        let mut records = [sample("web.service"), sample("talk.socket")];
        records[0].memo.recent_starts =
            (0..500).map(|n| agentd_engine::Monotonic(std::time::Duration::from_secs(n))).collect();
        let owners = [Owner::User(5), Owner::Group(u32::MAX)];
        let nofile = Some(Rlimit { resource: Resource::Nofile, soft: 1024, hard: u64::MAX });
        let text = encode(items.iter().map(|(item, fd)| (item, *fd)), &records);
        let text = text + &leavers(&owners) + &limit(nofile);
        let back = Handover::decode(&text);
        assert_eq!(back.items, items);
        assert_eq!((&back.leavers[..], back.nofile), (&owners[..], nofile));
        assert_eq!(back.records, records, "whole, also where the table has no room");
        let bad = Handover::decode("kind=path\nunit=x\n\nkind=listener\n\nnonsense");
        assert!(bad.items.is_empty() && bad.records.is_empty());
    }
}
