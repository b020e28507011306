//! Which columns of a wide row belong to which client.

use super::{ClientColumns, Layout, Sensor};
use crate::base::suggest::nearest;
use crate::session::ClientSettings;

/// Columns of a source, sorted out by client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Columns {
    /// What frames look like.
    pub(crate) layout: Layout,
    /// For each value of a frame, its column in the source.
    pub(crate) values: Vec<usize>,
    /// For each input of a frame, its column in the source.
    pub(crate) inputs: Vec<usize>,
}

/// Sorts `header` out by client; the error names the client and the nearest column there is.
pub(crate) fn assign(
    header: &[Sensor],
    clients: &[ClientSettings],
    period_s: f64,
) -> Result<Columns, String> {
    let mut owner: Vec<Option<&str>> = vec![None; header.len()];
    let mut columns = Columns {
        layout: Layout { clients: Vec::new(), period_s },
        values: Vec::new(),
        inputs: Vec::new(),
    };
    for client in clients {
        let mut wanted = Vec::new();
        for pattern in &client.columns {
            let found = matches(header, pattern)
                .ok_or_else(|| unknown(header, &client.name, "columns", pattern))?;
            for column in found {
                let name = &header[column].name;
                let excepted = client.except.iter().any(|p| glob(p, name));
                if !excepted && !wanted.contains(&column) {
                    wanted.push(column);
                }
            }
        }
        if wanted.is_empty() {
            return Err(format!("client {}: `except` leaves no column over", client.name));
        }
        for &column in &wanted {
            if let Some(other) = owner[column].replace(&client.name) {
                return Err(format!(
                    "column {} is claimed by client {other} and by client {}",
                    header[column].name, client.name
                ));
            }
        }
        let mut inputs = Vec::new();
        for pattern in &client.inputs {
            let found = matches(header, pattern)
                .ok_or_else(|| unknown(header, &client.name, "inputs", pattern))?;
            for column in found {
                if wanted.contains(&column) {
                    return Err(format!(
                        "client {}: {} cannot be both a monitored column and a known input",
                        client.name, header[column].name
                    ));
                }
                if !inputs.contains(&column) {
                    inputs.push(column);
                }
            }
        }
        let sensors = |list: &[usize]| list.iter().map(|&c| header[c].clone()).collect();
        columns.layout.clients.push(ClientColumns {
            name: client.name.clone(),
            title: client.title.clone(),
            sensors: sensors(&wanted),
            inputs: sensors(&inputs),
        });
        columns.values.extend(wanted);
        columns.inputs.extend(inputs);
    }
    // A client may know the commands it is given, not what another one measures.
    for (c, client) in columns.layout.clients.iter().enumerate() {
        for &column in &columns.inputs[columns.layout.input_span(c)] {
            if let Some(other) = owner[column] {
                return Err(format!(
                    "client {}: input {} is measured by client {other}, which keeps it to itself",
                    client.name, header[column].name
                ));
            }
        }
    }
    Ok(columns)
}

/// Columns that a name or pattern means, in header order; none is an error of the caller's.
fn matches(header: &[Sensor], pattern: &str) -> Option<Vec<usize>> {
    let found: Vec<usize> = (0..header.len()).filter(|&c| glob(pattern, &header[c].name)).collect();
    (!found.is_empty()).then_some(found)
}

fn unknown(header: &[Sensor], client: &str, list: &str, pattern: &str) -> String {
    let near = near_hint(pattern, header.iter().map(|s| s.name.as_str()));
    if pattern.contains(['*', '?', '[']) {
        format!("client {client}: no column matches {pattern:?} in `{list}`{near}")
    } else {
        format!("client {client}: no column {pattern:?} (named in `{list}`){near}")
    }
}

/// What to add to a complaint about an unknown `name`: the nearest there is, or nothing.
pub(crate) fn near_hint<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    nearest(name, candidates).map(|near| format!("; the nearest is {near:?}")).unwrap_or_default()
}

/// Whether `pattern` means `name`: `*` any run of characters, `?` any one, `[1-3]` one of these.
pub(crate) fn glob(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<Piece>, Vec<char>) = (pieces(pattern), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // The place of the last `*` and how much of the name it has swallowed so far.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if p < pattern.len() && matches!(pattern[p], Piece::Run) {
            star = Some((p, n));
            p += 1;
        } else if p < pattern.len() && pattern[p].takes(name[n]) {
            p += 1;
            n += 1;
        } else if let Some((at, swallowed)) = star {
            star = Some((at, swallowed + 1));
            p = at + 1;
            n = swallowed + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|piece| matches!(piece, Piece::Run))
}

enum Piece {
    Exactly(char),
    Any,
    Run,
    OneOf(Vec<(char, char)>),
}

impl Piece {
    fn takes(&self, c: char) -> bool {
        match self {
            Piece::Exactly(own) => *own == c,
            Piece::Any => true,
            Piece::Run => false,
            Piece::OneOf(ranges) => ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)),
        }
    }
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let class = (c == '[').then(|| after.split_once(']')).flatten();
        rest = after;
        pieces.push(match (c, class) {
            ('*', _) => Piece::Run,
            ('?', _) => Piece::Any,
            (_, Some((inside, behind))) if !inside.is_empty() => {
                rest = behind;
                Piece::OneOf(ranges(inside))
            }
            _ => Piece::Exactly(c),
        });
    }
    pieces
}

fn ranges(inside: &str) -> Vec<(char, char)> {
    let chars: Vec<char> = inside.chars().collect();
    let mut ranges = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        if chars.get(i + 1) == Some(&'-') && i + 2 < chars.len() {
            ranges.push((chars[i], chars[i + 2]));
            i += 3;
        } else {
            ranges.push((chars[i], chars[i]));
            i += 1;
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn client(name: &str, columns: &[&str], except: &[&str]) -> ClientSettings {
        let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        ClientSettings {
            name: name.into(),
            title: String::new(),
            columns: list(columns),
            except: list(except),
            inputs: Vec::new(),
        }
    }

    fn header(names: &[&str]) -> Vec<Sensor> {
        names.iter().map(|n| Sensor::new(*n, "")).collect()
    }

    #[test]
    fn patterns_take_columns_in_header_order_and_exceptions_leave_some_out() {
        let header = header(&["P1_FT01", "P1_FT01Z", "P2_SIT01", "P1_LIT01"]);
        let found = assign(
            &header,
            &[client("P1", &["P1_*"], &["*Z"]), client("P2", &["P2_?IT01"], &[])],
            1.0,
        )
        .expect("all patterns match");
        assert_eq!(found.values, [0, 3, 2]);
        assert_eq!(found.layout.span(1), 2..3);
    }

    #[test]
    fn a_misspelt_column_is_answered_with_the_nearest_one() {
        let header = header(&["P1_FT01", "P1_LIT01"]);
        let error = assign(&header, &[client("P1", &["P1_LIT1"], &[])], 1.0).unwrap_err();
        assert_eq!(
            error,
            "client P1: no column \"P1_LIT1\" (named in `columns`); the nearest is \"P1_LIT01\""
        );
    }

    #[test]
    fn a_class_takes_one_of_its_characters() {
        assert!(glob("XMEAS[6-9]", "XMEAS7") && !glob("XMEAS[6-9]", "XMEAS5"));
        assert!(glob("?_PU1[01]", "F_PU10") && !glob("?_PU[1-3]", "F_PU10"));
        assert!(glob("a[b", "a[b") && glob("x[]", "x[]"), "no class: an ordinary bracket");
    }

    #[test]
    fn a_column_has_one_owner() {
        let header = header(&["a", "b"]);
        let error = assign(&header, &[client("X", &["a"], &[]), client("Y", &["*"], &[])], 1.0);
        assert_eq!(error.unwrap_err(), "column a is claimed by client X and by client Y");
    }

    #[test]
    fn inputs_are_known_and_not_monitored_and_never_what_another_client_measures() {
        let header = header(&["a", "a_set", "b", "b_set"]);
        let known = |inputs: &[&str]| ClientSettings {
            inputs: inputs.iter().map(ToString::to_string).collect(),
            ..client("A", &["a"], &[])
        };
        let both =
            |inputs: &[&str]| assign(&header, &[known(inputs), client("B", &["b"], &[])], 1.0);
        let found = both(&["*_set"]).expect("nobody measures set points");
        assert_eq!((found.values, found.inputs), (vec![0, 2], vec![1, 3]));
        let error = "client A: input b is measured by client B, which keeps it to itself";
        assert_eq!(both(&["b"]).unwrap_err(), error);
        let error = "client A: a cannot be both a monitored column and a known input";
        assert_eq!(both(&["a"]).unwrap_err(), error);
    }

    proptest! {
        #[test]
        fn a_star_for_any_part_of_a_name_still_means_the_name(
            name in "[a-cA-C_0-9]{0,12}", cut in 0usize..12, len in 0usize..12,
            noise in "\\PC{0,8}",
        ) {
            let cut = cut.min(name.len());
            let end = (cut + len).min(name.len());
            let pattern = format!("{}*{}", &name[..cut], &name[end..]);
            prop_assert!(glob(&pattern, &name));
            let longer = format!("{name}x");
            prop_assert!(glob(&name, &name) && !glob(&name, &longer));
            // Any pattern gives an answer, and with a star in front it takes what it took before.
            let wider = format!("*{noise}");
            prop_assert!(!glob(&noise, &name) || glob(&wider, &name));
        }
    }
}
