//! Dependencies as a picture: the language of graphviz's dot, in the colours of systemd-analyze(1).

use std::io::{self, Write};

use agentd_unit::edges::{EdgeKind, Edges};
use agentd_unit::{OpenGate, UnitName};

use crate::args::analyze::Dot;
use crate::context::Context;
use crate::exit::{Exit, Outcome};
use crate::offline;

/// What is drawn, and how.
const COLOURS: [(EdgeKind, &str, bool); 7] = [
    (EdgeKind::Requires, "black", false),
    (EdgeKind::BindsTo, "black", false),
    (EdgeKind::Requisite, "darkblue", false),
    (EdgeKind::Wants, "grey66", false),
    (EdgeKind::Upholds, "grey66", false),
    (EdgeKind::Conflicts, "red", false),
    (EdgeKind::After, "green", true),
];

/// A picture while it is written.
pub(crate) struct Picture<'a, W>(&'a mut W);

impl<'a, W: Write> Picture<'a, W> {
    /// Begins it.
    pub(crate) fn begin(out: &'a mut W) -> io::Result<Self> {
        writeln!(out, "digraph agentd {{")?;
        Ok(Self(out))
    }

    /// An arrow from one unit to another.
    pub(crate) fn arrow(&mut self, from: &str, to: &str, colour: &str) -> io::Result<()> {
        writeln!(self.0, "\t\"{}\" -> \"{}\" [color=\"{colour}\"];", escape(from), escape(to))
    }

    /// Ends it.
    pub(crate) fn end(self) -> io::Result<()> {
        writeln!(self.0, "}}")
    }
}

/// A name within quotes of dot's language.
fn escape(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"")
}

/// `agentctl analyze dot [UNIT…]`.
pub(super) fn dot(context: &Context, arguments: &Dot, out: &mut impl Write) -> Outcome {
    let set = offline::loader(context)?.load(&OpenGate).set;
    let edges = Edges::of(&set);
    let wanted = |from: &UnitName, to: &UnitName| {
        arguments.units.is_empty() || arguments.units.contains(from) || arguments.units.contains(to)
    };
    let mut picture = Picture::begin(out)?;
    for from in edges.names() {
        for (kind, colour, is_order) in COLOURS {
            if (arguments.order && !is_order) || (arguments.require && is_order) {
                continue;
            }
            for to in edges.from(from, kind).filter(|to| wanted(from, to)) {
                picture.arrow(from.as_str(), to.as_str(), colour)?;
            }
        }
    }
    picture.end()?;
    if !context.quiet {
        eprintln!("   Color legend: black     = Requires, BindsTo");
        eprintln!("                 dark blue = Requisite");
        eprintln!("                 grey      = Wants, Upholds");
        eprintln!("                 red       = Conflicts");
        eprintln!("                 green     = After");
    }
    Ok(Exit::Done)
}
