//! Which variables a server has, and under which names.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use opcua::types::{
    AttributeId, BrowseDescription, BrowseDirection, BrowseResultMask, ByteString, NodeClass,
    NodeClassMask, NodeId, ObjectId, ReadValueId, ReferenceDescription, ReferenceTypeId,
    StatusCode, TimestampsToReturn, VariableId,
};

use super::link::Link;
use super::{Failure, Inspected, Plan, Variable};

/// Tags by name.
pub(super) type Variables = BTreeMap<String, NodeId>;

/// Folders within folders that are looked into.
const DEPTH: usize = 10;
/// Variables that are looked at.
const MOST: usize = 20_000;
/// Nodes of one request.
const CHUNK: usize = 100;

/// The tags that the session lists, or else all variables of its namespace.
pub(super) async fn variables(plan: &Plan, link: &Link) -> Result<Variables, Failure> {
    let namespaces = namespaces(link).await?;
    let wanted = match &plan.source.namespace {
        None => None,
        Some(uri) => {
            let found = namespaces.iter().position(|there| there == uri);
            Some(found.ok_or_else(|| {
                let there = namespaces.join(", ");
                Failure::Refused(format!("the server has no namespace {uri:?}; it has {there}"))
            })?)
        }
    };
    if plan.source.tags.is_empty() {
        let found = all(link).await?;
        let within = |node: &NodeId| wanted.is_none_or(|ns| usize::from(node.namespace) == ns);
        return Ok(named(found.into_iter().filter(|found| within(&found.node)).collect()));
    }
    let mut tags = Variables::new();
    for (name, text) in &plan.source.tags {
        let whole = match wanted {
            Some(ns) if !text.starts_with("ns=") => format!("ns={ns};{text}"),
            _ => text.clone(),
        };
        let node = NodeId::from_str(&whole)
            .map_err(|_| Failure::Refused(format!("{name}: {text:?} names no node")))?;
        tags.insert(name.clone(), node);
    }
    Ok(tags)
}

async fn namespaces(link: &Link) -> Result<Vec<String>, Failure> {
    let id = VariableId::Server_NamespaceArray.into();
    let read = ReadValueId::new(id, AttributeId::Value);
    let values = link.session.read(&[read], TimestampsToReturn::Neither, 0.0).await;
    let values = values.map_err(lost)?;
    let value = values.into_iter().next().and_then(|value| value.value);
    let Some(opcua::types::Variant::Array(array)) = value else {
        return Err(Failure::Lost("the server does not report its namespaces".into()));
    };
    Ok(array.values.iter().map(ToString::to_string).collect())
}

/// A variable, and the folders that lead to it.
struct Found {
    path: Vec<String>,
    node: NodeId,
}

/// Every variable below the objects of the server, but its own.
async fn all(link: &Link) -> Result<Vec<Found>, Failure> {
    let mut found = Vec::new();
    let mut seen: std::collections::HashSet<NodeId> = std::collections::HashSet::new();
    let mut level: Vec<(Vec<String>, NodeId)> = vec![(Vec::new(), ObjectId::ObjectsFolder.into())];
    for _ in 0..DEPTH {
        let mut next = Vec::new();
        for folders in level.chunks(CHUNK) {
            let children = children(link, folders).await?;
            for ((path, _), references) in folders.iter().zip(children) {
                for reference in references {
                    let node = reference.node_id.node_id;
                    // The server's own nodes describe itself.
                    if node.namespace == 0 || !seen.insert(node.clone()) || found.len() >= MOST {
                        continue;
                    }
                    let mut path = path.clone();
                    path.push(reference.browse_name.name.to_string());
                    match reference.node_class {
                        NodeClass::Variable => found.push(Found { path, node }),
                        _ => next.push((path, node)),
                    }
                }
            }
        }
        level = next;
    }
    Ok(found)
}

/// What stands in each folder.
async fn children(
    link: &Link,
    folders: &[(Vec<String>, NodeId)],
) -> Result<Vec<Vec<ReferenceDescription>>, Failure> {
    let ask = |(_, node): &(Vec<String>, NodeId)| BrowseDescription {
        node_id: node.clone(),
        browse_direction: BrowseDirection::Forward,
        reference_type_id: ReferenceTypeId::HierarchicalReferences.into(),
        include_subtypes: true,
        node_class_mask: (NodeClassMask::OBJECT | NodeClassMask::VARIABLE).bits(),
        result_mask: BrowseResultMask::All as u32,
    };
    let asked: Vec<BrowseDescription> = folders.iter().map(ask).collect();
    let mut results = link.session.browse(&asked, 0, None).await.map_err(lost)?;
    let mut all: Vec<Vec<ReferenceDescription>> = vec![Vec::new(); folders.len()];
    let mut open: Vec<usize> = (0..folders.len()).collect();
    loop {
        let mut rest: Vec<(usize, ByteString)> = Vec::new();
        for (folder, result) in open.iter().zip(results) {
            // A property describes its variable: it is no measurement.
            let property: NodeId = ReferenceTypeId::HasProperty.into();
            let references = result.references.unwrap_or_default().into_iter();
            all[*folder].extend(references.filter(|r| r.reference_type_id != property));
            if !result.continuation_point.is_null_or_empty() {
                rest.push((*folder, result.continuation_point));
            }
        }
        if rest.is_empty() {
            return Ok(all);
        }
        let points: Vec<ByteString> = rest.iter().map(|(_, point)| point.clone()).collect();
        results = link.session.browse_next(false, &points).await.map_err(lost)?;
        open = rest.into_iter().map(|(folder, _)| folder).collect();
    }
}

/// A name for each variable: its own, with the folders before it where two have the same.
fn named(found: Vec<Found>) -> Variables {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for found in &found {
        *counts.entry(found.path.last().cloned().unwrap_or_default()).or_default() += 1;
    }
    let name = |found: Found| {
        let own = found.path.last().cloned().unwrap_or_default();
        let name = if counts.get(&own) == Some(&1) { own } else { found.path.join(".") };
        (name, found.node)
    };
    found.into_iter().map(name).collect()
}

/// What stands in the server: its present values say which variables are numbers.
pub(super) async fn inspect(link: &Link) -> Result<(Inspected, Vec<Option<NodeId>>), Failure> {
    let namespaces = namespaces(link).await?;
    let mut numbers: BTreeMap<u16, Vec<Variable>> = BTreeMap::new();
    let tags: Vec<(String, NodeId)> = named(all(link).await?).into_iter().collect();
    for tags in tags.chunks(CHUNK) {
        let read = |attribute: AttributeId| {
            let of = move |(_, node): &(String, NodeId)| ReadValueId::new(node.clone(), attribute);
            tags.iter().map(of).collect::<Vec<_>>()
        };
        let neither = TimestampsToReturn::Neither;
        let asked = (read(AttributeId::Value), read(AttributeId::Historizing));
        let values = link.session.read(&asked.0, neither, 0.0).await.map_err(lost)?;
        let kept = link.session.read(&asked.1, neither, 0.0).await.map_err(lost)?;
        for (((name, node), value), kept) in tags.iter().zip(values).zip(kept) {
            let number = value.value.as_ref().and_then(number);
            numbers.entry(node.namespace).or_default().push(Variable {
                name: name.clone(),
                is_number: number.is_some(),
                has_history: matches!(kept.value, Some(opcua::types::Variant::Boolean(true))),
                recent: Vec::new(),
            });
        }
    }
    let count = |variables: &[Variable]| variables.iter().filter(|v| v.is_number).count();
    let uri = |ns: u16| namespaces.get(usize::from(ns)).cloned().unwrap_or_default();
    let Some(most) = numbers.iter().max_by_key(|(_, v)| count(v)).map(|(ns, _)| *ns) else {
        return Err(Failure::Refused("the server has no variables".into()));
    };
    let variables = numbers.remove(&most).unwrap_or_default();
    let node = |variable: &Variable| {
        let found = tags.iter().find(|(name, _)| *name == variable.name);
        found.map(|(_, node)| node.clone()).filter(|_| variable.has_history)
    };
    let nodes = variables.iter().map(node).collect();
    let others = numbers.iter().map(|(ns, v)| (uri(*ns), count(v))).filter(|(_, n)| *n > 0);
    Ok((Inspected { namespace: uri(most), variables, others: others.collect() }, nodes))
}

/// A value as a number; a switch is 0 or 1.
pub(super) fn number(value: &opcua::types::Variant) -> Option<f64> {
    match value {
        opcua::types::Variant::Boolean(on) => Some(f64::from(u8::from(*on))),
        value => value.as_f64(),
    }
}

/// A request that failed: the connection is begun anew.
pub(super) fn lost(why: impl std::fmt::Display) -> Failure {
    Failure::Lost(why.to_string())
}

/// Whether a status says that the node is not there.
pub(super) fn is_unknown(status: StatusCode) -> bool {
    status == StatusCode::BadNodeIdUnknown || status == StatusCode::BadNodeIdInvalid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_one_name_are_told_apart_by_their_folders() {
        let found = |path: &[&str], id: u32| Found {
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            node: NodeId::new(2, id),
        };
        let names = named(vec![
            found(&["Boiler", "Level"], 1),
            found(&["Tank", "Level"], 2),
            found(&["Tank", "Flow"], 3),
        ]);
        let names: Vec<&str> = names.keys().map(String::as_str).collect();
        assert_eq!(names, ["Boiler.Level", "Flow", "Tank.Level"]);
    }
}
