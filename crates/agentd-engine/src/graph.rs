//! Who is what to whom: every relation of every pair of units, seen from both ends.
//!
//! Built as a whole from the definitions whenever one of them changed. One edge a pair and direction of view; all
//! relations of the pair are bits in it, so a walk over one kind of relation is a walk over the unit's neighbours.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::BitOr;

use agentd_unit::UnitName;

use crate::order;

/// A unit's place in the manager's table. It stays while the unit is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct UnitId(pub(crate) u32);

impl UnitId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of relations of one unit to another.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Relation(u32);

impl Relation {
    pub(crate) const REQUIRES: Self = Self(1);
    pub(crate) const REQUISITE: Self = Self(1 << 1);
    pub(crate) const WANTS: Self = Self(1 << 2);
    pub(crate) const BINDS_TO: Self = Self(1 << 3);
    pub(crate) const PART_OF: Self = Self(1 << 4);
    pub(crate) const UPHOLDS: Self = Self(1 << 5);
    pub(crate) const CONFLICTS: Self = Self(1 << 6);
    pub(crate) const AFTER: Self = Self(1 << 7);
    /// Goes with `AFTER`: the order comes from a soft edge or a default, and gives way in a cycle.
    pub(crate) const SOFT: Self = Self(1 << 8);
    pub(crate) const ON_FAILURE: Self = Self(1 << 9);
    pub(crate) const ON_SUCCESS: Self = Self(1 << 10);
    pub(crate) const RELOADS: Self = Self(1 << 11);
    pub(crate) const STOPS: Self = Self(1 << 12);
    pub(crate) const TRIGGERS: Self = Self(1 << 13);

    /// How far the inverse of a relation is from it.
    const INVERSE: u32 = 16;

    pub(crate) const REQUIRED_BY: Self = Self::REQUIRES.inverse();
    pub(crate) const REQUISITE_OF: Self = Self::REQUISITE.inverse();
    pub(crate) const WANTED_BY: Self = Self::WANTS.inverse();
    pub(crate) const BOUND_BY: Self = Self::BINDS_TO.inverse();
    pub(crate) const CONSISTS_OF: Self = Self::PART_OF.inverse();
    pub(crate) const UPHELD_BY: Self = Self::UPHOLDS.inverse();
    pub(crate) const CONFLICTED_BY: Self = Self::CONFLICTS.inverse();
    pub(crate) const BEFORE: Self = Self::AFTER.inverse();
    pub(crate) const TRIGGERED_BY: Self = Self::TRIGGERS.inverse();

    /// Pulled in, and it must come up.
    pub(crate) const HARD_PULL: Self = Self(Self::REQUIRES.0 | Self::BINDS_TO.0);
    /// Pulled in, whatever comes of it.
    pub(crate) const SOFT_PULL: Self = Self(Self::WANTS.0 | Self::UPHOLDS.0);
    /// Hard edges, for order.
    pub(crate) const HARD: Self = Self(Self::HARD_PULL.0 | Self::REQUISITE.0);
    /// Who cannot start when this one cannot.
    pub(crate) const NEEDED_BY: Self = Self(Self::HARD.0 << Self::INVERSE);
    /// Who is stopped when this one is stopped.
    pub(crate) const PROPAGATE_STOP: Self = Self(Self::PROPAGATE_RESTART.0 | Self::STOPS.0);
    /// Who is restarted when this one is restarted.
    pub(crate) const PROPAGATE_RESTART: Self =
        Self(Self::REQUIRED_BY.0 | Self::REQUISITE_OF.0 | Self::BOUND_BY.0 | Self::CONSISTS_OF.0);
    /// Who keeps a unit with StopWhenUnneeded up.
    pub(crate) const IN_USE_BY: Self = Self(
        Self::REQUIRED_BY.0 | Self::REQUISITE_OF.0 | Self::WANTED_BY.0 | Self::BOUND_BY.0 | Self::UPHELD_BY.0,
    );
    /// Never at the same time, in either direction.
    pub(crate) const AGAINST: Self = Self(Self::CONFLICTS.0 | Self::CONFLICTED_BY.0);

    const fn inverse(self) -> Self {
        Self(self.0 << Self::INVERSE | self.0 >> Self::INVERSE)
    }

    /// Whether they have one in common.
    pub(crate) const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Relation {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// One neighbour and all that it is to the unit whose list it stands in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    pub(crate) other: UnitId,
    pub(crate) relation: Relation,
}

/// All edges of all units.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// By unit; each list in the order of names.
    edges: Vec<Box<[Edge]>>,
    /// Each unit's place in the order of names: what decides ties.
    rank: Vec<u32>,
    /// Which cycle of orders it is entangled in; 0 for none.
    tangle: Vec<u32>,
    /// Orders that gave way in a cycle: (the later, the earlier).
    given_up: BTreeSet<(UnitId, UnitId)>,
}

impl Graph {
    /// Puts the relations of all units together. `names` is the whole table.
    pub(crate) fn build(names: &[&UnitName], mut relations: Vec<(UnitId, UnitId, Relation)>) -> Self {
        let mut by_name: Vec<usize> = (0..names.len()).collect();
        by_name.sort_by_key(|id| names[*id]);
        let mut rank = vec![0; names.len()];
        for (place, id) in by_name.into_iter().enumerate() {
            rank[id] = place as u32;
        }
        relations.retain(|(from, to, _)| from != to);
        let inverses: Vec<_> = relations.iter().map(|(from, to, r)| (*to, *from, r.inverse())).collect();
        relations.extend(inverses);
        relations.sort_by_key(|(from, to, _)| (*from, rank[to.index()]));
        let mut edges: Vec<Vec<Edge>> = vec![Vec::new(); names.len()];
        for (from, other, relation) in relations {
            match edges[from.index()].last_mut() {
                Some(last) if last.other == other => last.relation = last.relation | relation,
                _ => edges[from.index()].push(Edge { other, relation }),
            }
        }
        let edges = edges.into_iter().map(|mut list| {
            list.iter_mut().for_each(|edge| edge.relation = weigh(edge.relation));
            list.into_boxed_slice()
        });
        let mut graph = Self { edges: edges.collect(), rank, tangle: Vec::new(), given_up: BTreeSet::new() };
        graph.tangle = order::tangles(&graph);
        graph
    }

    /// How many places the table has.
    pub(crate) fn len(&self) -> usize {
        self.edges.len()
    }

    /// The neighbours of a unit, in the order of their names.
    pub(crate) fn edges(&self, unit: UnitId) -> &[Edge] {
        self.edges.get(unit.index()).map_or(&[], |edges| edges)
    }

    /// The neighbours that are any of this to it.
    pub(crate) fn related(&self, unit: UnitId, relation: Relation) -> impl Iterator<Item = UnitId> + '_ {
        self.edges(unit).iter().filter(move |edge| edge.relation.any(relation)).map(|edge| edge.other)
    }

    /// Its place in the order of names.
    pub(crate) fn rank(&self, unit: UnitId) -> u32 {
        self.rank.get(unit.index()).copied().unwrap_or(u32::MAX)
    }

    /// Which cycle of orders it is entangled in; 0 for none.
    pub(crate) fn tangle(&self, unit: UnitId) -> u32 {
        self.tangle.get(unit.index()).copied().unwrap_or(0)
    }

    /// Whether the order of this pair, if there is one, still stands.
    pub(crate) fn stands(&self, later: UnitId, earlier: UnitId) -> bool {
        let entangled = self.tangle(later) != 0 && self.tangle(later) == self.tangle(earlier);
        !entangled || !self.given_up.contains(&(later, earlier))
    }

    /// Gives the order of this pair up; false if it was given up before.
    pub(crate) fn give_up(&mut self, later: UnitId, earlier: UnitId) -> bool {
        self.given_up.insert((later, earlier))
    }

    /// What this unit is ordered after, and whether that order is soft. What was given up is not there.
    pub(crate) fn after(&self, later: UnitId) -> impl Iterator<Item = (UnitId, bool)> + '_ {
        self.edges(later)
            .iter()
            .filter(move |edge| edge.relation.any(Relation::AFTER) && self.stands(later, edge.other))
            .map(|edge| (edge.other, edge.relation.any(Relation::SOFT)))
    }
}

/// An order is soft only if no hard edge asks for it too, and hard if a person wrote it without any edge.
fn weigh(relation: Relation) -> Relation {
    let weigh = |r: Relation| {
        let soft = r.any(Relation::SOFT) || r.any(Relation::SOFT_PULL);
        if soft && !r.any(Relation::HARD) { r | Relation::SOFT } else { r.without(Relation::SOFT) }
    };
    let forward = weigh(relation);
    weigh(forward.inverse()).inverse()
}
