//! The jobs connected with one job, found by a breadth-first search in both directions.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::Result;
use crate::rows::jobs::dependencies;
use crate::rows::keys::JobSeq;
use crate::rows::tx::Tx;
use crate::rows::{Row, named};
use domain::job::graph::{Direction, Edge, Graph, Node};
use domain::values::name::JobId;

pub(crate) fn graph(tx: &Tx<'_>, id: &JobId, limit: usize) -> Result<Option<Graph>> {
    let Some(found) = by_id(tx, id)? else {
        return Ok(None);
    };
    let mut search = Search { limit: limit.max(1), ..Search::default() };
    search.insert(&found);
    for direction in [Direction::Up, Direction::Down] {
        search.spread(tx, found.seq, direction)?;
    }
    Ok(Some(search.graph))
}

#[derive(Default)]
struct Search {
    graph: Graph,
    edges: HashSet<Edge>,
    indexes: HashMap<JobId, usize>,
    limit: usize,
}

struct FoundNode {
    /// `None` if the job was removed.
    seq: Option<JobSeq>,
    node: Node,
}

impl Search {
    /// The index of a job in the graph, unless the limit is reached.
    fn insert(&mut self, found: &FoundNode) -> Option<usize> {
        if let Some(index) = self.indexes.get(&found.node.id) {
            return Some(*index);
        }
        if self.graph.nodes.len() >= self.limit {
            self.graph.is_cut = true;
            return None;
        }
        self.indexes.insert(found.node.id.clone(), self.graph.nodes.len());
        self.graph.nodes.push(found.node.clone());
        Some(self.graph.nodes.len() - 1)
    }

    /// Follows one direction, the nearest jobs first.
    fn spread(&mut self, tx: &Tx<'_>, from: Option<JobSeq>, direction: Direction) -> Result<()> {
        let mut seen: HashSet<JobSeq> = from.into_iter().collect();
        let mut open: VecDeque<(usize, JobSeq)> = from.map(|seq| (0, seq)).into_iter().collect();
        while let Some((index, seq)) = open.pop_front() {
            for found in self.next(tx, seq, direction)? {
                let Some(other) = self.insert(&found) else {
                    continue;
                };
                let edge = match direction {
                    Direction::Up => Edge { job: index, depends_on: other },
                    Direction::Down => Edge { job: other, depends_on: index },
                };
                if self.edges.insert(edge) {
                    self.graph.edges.push(edge);
                }
                if let Some(seq) = found.seq.filter(|seq| seen.insert(*seq)) {
                    open.push_back((other, seq));
                }
            }
        }
        Ok(())
    }

    fn next(&self, tx: &Tx<'_>, seq: JobSeq, direction: Direction) -> Result<Vec<FoundNode>> {
        match direction {
            Direction::Up => {
                let gone = |id: JobId| FoundNode { seq: None, node: Node { id, number: None, state: None } };
                let ids = dependencies::parents(tx, seq)?;
                ids.into_iter().map(|id| Ok(by_id(tx, &id)?.unwrap_or_else(|| gone(id)))).collect()
            }
            // One more than the limit shows that there are more.
            Direction::Down => children(tx, seq, self.limit + 1),
        }
    }
}

fn by_id(tx: &Tx<'_>, id: &JobId) -> Result<Option<FoundNode>> {
    tx.first("select seq, id, state from jobs where id = :id", named! { id }, read)
}

/// The dependents of a job, in the order of enqueuing.
fn children(tx: &Tx<'_>, parent_seq: JobSeq, limit: usize) -> Result<Vec<FoundNode>> {
    // By the primary keys of `dependencies` and `jobs`.
    tx.all(
        "select j.seq, j.id, j.state from dependencies d cross join jobs j
         where j.seq = d.child_seq and d.parent_seq = :parent_seq order by d.child_seq limit :limit",
        named! { parent_seq, limit },
        read,
    )
}

fn read(row: &Row<'_>) -> Result<FoundNode> {
    let node = Node { id: row.get("id")?, number: row.get("seq")?, state: row.get("state")? };
    Ok(FoundNode { seq: row.get("seq")?, node })
}
