//! The columns of some steps as bytes: little-endian numbers, one column after the other, packed by
//! zlib, whose check sum finds a byte that has changed.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use jiff::Timestamp;

use super::batch::{Seen, StepMark};
use crate::evidence::threshold::Flags;
use crate::server::ServerView;
use crate::server::health::Standing;
use crate::site::{LocalView, Truth};
use crate::stream::{Continuity, Label};

/// No block unpacks to more: a damaged or hostile file must not fill the memory.
const MOST_BYTES: u64 = 256 << 20;

/// Bytes that are no block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a block of {what} cannot be unpacked: {why}")]
pub(super) struct BadBlock {
    what: &'static str,
    why: String,
}

/// Packs one block after the other. Its tables of some 100 kB are made once, not for every block.
#[derive(Debug)]
pub(super) struct Packer {
    fast: ZlibEncoder<Vec<u8>>,
    /// Stores bytes as they are, with a check sum.
    plain: ZlibEncoder<Vec<u8>>,
}

impl Default for Packer {
    fn default() -> Self {
        let encoder = |level| ZlibEncoder::new(Vec::new(), level);
        Self { fast: encoder(Compression::fast()), plain: encoder(Compression::none()) }
    }
}

impl Packer {
    pub(super) fn pack(&mut self, bytes: &[u8]) -> Vec<u8> {
        packed(&mut self.fast, bytes)
    }

    /// The same for bytes that packing would not make fewer.
    fn keep(&mut self, bytes: &[u8]) -> Vec<u8> {
        packed(&mut self.plain, bytes)
    }
}

fn packed(encoder: &mut ZlibEncoder<Vec<u8>>, bytes: &[u8]) -> Vec<u8> {
    // A vector takes every byte.
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.reset(Vec::new()))
        .expect("bytes can always be written to memory")
}

pub(super) fn unpack(what: &'static str, packed: &[u8]) -> Result<Vec<u8>, BadBlock> {
    let bad = |why: String| BadBlock { what, why };
    let mut bytes = Vec::new();
    let mut decoder = ZlibDecoder::new(packed).take(MOST_BYTES + 1);
    decoder.read_to_end(&mut bytes).map_err(|why| bad(why.to_string()))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(bad("it is too large".to_owned()));
    }
    Ok(bytes)
}

/// Reads columns one after the other.
struct Columns<'a> {
    what: &'static str,
    bytes: &'a [u8],
    rows: usize,
}

impl<'a> Columns<'a> {
    fn column<const N: usize, T, F: Fn([u8; N]) -> T>(
        &mut self,
        read: F,
    ) -> Result<impl Iterator<Item = T> + use<'a, N, T, F>, BadBlock> {
        let short = || BadBlock { what: self.what, why: "it is too short".to_owned() };
        let length = self.rows.checked_mul(N).ok_or_else(short)?;
        let (column, rest) = self.bytes.split_at_checked(length).ok_or_else(short)?;
        self.bytes = rest;
        let (cells, _) = column.as_chunks::<N>();
        Ok(cells.iter().map(move |cell| read(*cell)))
    }

    fn end(self) -> Result<(), BadBlock> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        Err(BadBlock { what: self.what, why: "it is too long".to_owned() })
    }
}

const NEW_RUN: u8 = 0;
const NEXT: u8 = 1;
const GAP: u8 = 2;

/// time in ns (i64) │ continuity (u8) │ label (i32) │ seconds of a gap (f64)
pub(super) fn pack_steps(packer: &mut Packer, steps: &[StepMark]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(steps.len() * 21);
    for step in steps {
        bytes.extend(nanoseconds(step.time).to_le_bytes());
    }
    bytes.extend(steps.iter().map(|step| match step.continuity {
        Continuity::NewRun => NEW_RUN,
        Continuity::Next => NEXT,
        Continuity::Gap { .. } => GAP,
    }));
    for step in steps {
        bytes.extend(label_number(step.label).to_le_bytes());
    }
    for step in steps {
        let gap = if let Continuity::Gap { seconds } = step.continuity { seconds } else { 0.0 };
        bytes.extend(gap.to_le_bytes());
    }
    packer.pack(&bytes)
}

pub(super) fn unpack_steps(packed: &[u8], rows: usize) -> Result<Vec<StepMark>, BadBlock> {
    let what = "steps";
    let bytes = unpack(what, packed)?;
    let mut columns = Columns { what, bytes: &bytes, rows };
    let times = columns.column(i64::from_le_bytes)?;
    let continuities = columns.column(u8::from_le_bytes)?;
    let labels = columns.column(i32::from_le_bytes)?;
    let gaps = columns.column(f64::from_le_bytes)?;
    columns.end()?;
    let bad = |why: &str| BadBlock { what, why: why.to_owned() };
    let mut steps = Vec::with_capacity(rows);
    for (((time, continuity), label), seconds) in times.zip(continuities).zip(labels).zip(gaps) {
        steps.push(StepMark {
            time: Timestamp::from_nanosecond(i128::from(time))
                .map_err(|_| bad("a time is none"))?,
            continuity: match continuity {
                NEW_RUN => Continuity::NewRun,
                NEXT => Continuity::Next,
                GAP => Continuity::Gap { seconds },
                _ => return Err(bad("a step follows in no known way")),
            },
            label: match label {
                -1 => Label::Unlabelled,
                0 => Label::Normal,
                1 => Label::Anomalous { event: None },
                event => Label::Anomalous { event: u32::try_from(event - 2).ok() },
            },
        });
    }
    Ok(steps)
}

/// Instants of data are within the years that 64 bits of nanoseconds reach.
pub(super) fn nanoseconds(time: Timestamp) -> i64 {
    let time = time.as_nanosecond();
    i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
}

fn label_number(label: Label) -> i32 {
    match label {
        Label::Unlabelled => -1,
        Label::Normal => 0,
        Label::Anomalous { event: None } => 1,
        Label::Anomalous { event: Some(event) } => {
            i32::try_from(event).map_or(1, |event| event.saturating_add(2))
        }
    }
}

/// d_c │ d_a │ r_c │ r_a │ surprise, all f32. Their digits are noise: packing them takes time and saves
/// nothing.
pub(super) fn pack_site<'a>(
    packer: &mut Packer,
    seen: &(impl Iterator<Item = &'a Seen> + Clone),
) -> Vec<u8> {
    let columns: [fn(&LocalView) -> f32; 5] =
        [|l| l.d_c, |l| l.d_a, |l| l.r_c, |l| l.r_a, |l| l.surprise];
    let mut bytes = Vec::new();
    for column in columns {
        for seen in seen.clone() {
            bytes.extend(column(&seen.local).to_le_bytes());
        }
    }
    packer.keep(&bytes)
}

pub(super) fn unpack_site(packed: &[u8], rows: usize) -> Result<Vec<LocalView>, BadBlock> {
    let what = "residuals";
    let bytes = unpack(what, packed)?;
    let mut columns = Columns { what, bytes: &bytes, rows };
    let mut read = || columns.column(f32::from_le_bytes);
    let (d_c, d_a, r_c, r_a, surprise) = (read()?, read()?, read()?, read()?, read()?);
    columns.end()?;
    let rows = d_c.zip(d_a).zip(r_c).zip(r_a).zip(surprise);
    let view = |((((d_c, d_a), r_c), r_a), surprise)| LocalView { d_c, d_a, r_c, r_a, surprise };
    Ok(rows.map(view).collect())
}

/// Flags as one byte: 0 where there are none.
fn flag_byte(flags: Option<Flags>) -> u8 {
    flags.map_or(0, |flags| 1 + u8::from(flags.z_c) + 2 * u8::from(flags.z_a))
}

fn is_flag_byte(byte: u8) -> bool {
    byte <= 4
}

/// The flags of such a byte.
fn flags_of(byte: u8) -> Option<Flags> {
    byte.checked_sub(1).map(|bits| Flags::new(bits & 1 > 0, bits & 2 > 0))
}

/// flags (u8) │ level (u8) │ level beside what is explained (u8): as they were before their release.
pub(super) fn pack_truth<'a>(
    packer: &mut Packer,
    seen: &(impl Iterator<Item = &'a Seen> + Clone),
) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(seen.clone().map(|seen| flag_byte(seen.truth.flags)));
    bytes.extend(seen.clone().map(|seen| seen.truth.own.unwrap_or(u8::MAX)));
    bytes.extend(seen.clone().map(|seen| seen.truth.beside.unwrap_or(u8::MAX)));
    packer.pack(&bytes)
}

pub(super) fn unpack_truth(packed: &[u8], rows: usize) -> Result<Vec<Truth>, BadBlock> {
    let what = "steps before their release";
    let bytes = unpack(what, packed)?;
    let mut columns = Columns { what, bytes: &bytes, rows };
    let mut read = || columns.column(u8::from_le_bytes);
    let (flags, own, beside) = (read()?, read()?, read()?);
    columns.end()?;
    let level = |level: u8| (level != u8::MAX).then_some(level);
    let truth = |((flags, own), beside): ((u8, u8), u8)| {
        is_flag_byte(flags).then(|| Truth {
            flags: flags_of(flags),
            own: level(own),
            beside: level(beside),
        })
    };
    let truths: Option<Vec<_>> = flags.zip(own).zip(beside).map(truth).collect();
    truths.ok_or(BadBlock { what, why: "it says nonsense".to_owned() })
}

/// evidence (f32) │ flags (u8) │ level (u8) │ standing (u8): first of the server that decides, then of
/// the rehearsal. No flags are 0, otherwise 1 + Z_c + 2 Z_a; no level is 255.
pub(super) fn pack_server<'a>(
    packer: &mut Packer,
    seen: &(impl Iterator<Item = &'a Seen> + Clone),
) -> Vec<u8> {
    let views: [fn(&Seen) -> &ServerView; 2] = [|seen| &seen.server, |seen| &seen.rehearsed];
    let mut bytes = Vec::new();
    for view in views {
        for seen in seen.clone() {
            bytes.extend(view(seen).evidence.to_le_bytes());
        }
        bytes.extend(seen.clone().map(|seen| flag_byte(view(seen).flags)));
        bytes.extend(seen.clone().map(|seen| view(seen).level.unwrap_or(u8::MAX)));
        bytes.extend(seen.clone().map(|seen| match view(seen).standing {
            Standing::Trusted => 0,
            Standing::OutOfCalibration => 1,
            Standing::Unreliable => 2,
        }));
    }
    packer.pack(&bytes)
}

pub(super) fn unpack_server(packed: &[u8], rows: usize) -> Result<Vec<[ServerView; 2]>, BadBlock> {
    let what = "decisions";
    let bytes = unpack(what, packed)?;
    let mut columns = Columns { what, bytes: &bytes, rows };
    let mut views = || -> Result<Vec<ServerView>, BadBlock> {
        let evidence = columns.column(f32::from_le_bytes)?;
        let flags = columns.column(u8::from_le_bytes)?;
        let levels = columns.column(u8::from_le_bytes)?;
        let standings = columns.column(u8::from_le_bytes)?;
        let view = |(((evidence, flags), level), standing): (((f32, u8), u8), u8)| {
            if !is_flag_byte(flags) {
                return None;
            }
            Some(ServerView {
                evidence,
                flags: flags_of(flags),
                level: (level != u8::MAX).then_some(level),
                standing: match standing {
                    0 => Standing::Trusted,
                    1 => Standing::OutOfCalibration,
                    2 => Standing::Unreliable,
                    _ => return None,
                },
            })
        };
        let views: Option<Vec<_>> =
            evidence.zip(flags).zip(levels).zip(standings).map(view).collect();
        views.ok_or(BadBlock { what, why: "it says nonsense".to_owned() })
    };
    let (server, rehearsed) = (views()?, views()?);
    columns.end()?;
    Ok(server.into_iter().zip(rehearsed).map(|(server, rehearsed)| [server, rehearsed]).collect())
}

/// time in ns (i64) │ continuity (u8) │ label (i32) │ gap (f64), then every sensor (f32), one column
/// after the other.
pub(super) fn pack_frames(packer: &mut Packer, marks: &[StepMark], values: &[&[f64]]) -> Vec<u8> {
    let width = values.first().map_or(0, |row| row.len());
    let mut bytes = pack_steps(packer, marks);
    let mut columns = Vec::with_capacity(4 * width * values.len());
    for sensor in 0..width {
        for row in values {
            let value = row.get(sensor).copied().unwrap_or(f64::NAN);
            columns.extend((value as f32).to_le_bytes());
        }
    }
    let marks = bytes.len() as u32;
    bytes.extend(packer.pack(&columns));
    bytes.extend(marks.to_le_bytes());
    bytes
}

/// Instants with their values, a row of sensors each.
pub(super) type Measured = (Vec<StepMark>, Vec<Vec<f64>>);

pub(super) fn unpack_frames(data: &[u8], rows: usize) -> Result<Measured, BadBlock> {
    let what = "measurements";
    let short = || BadBlock { what, why: "it is too short".to_owned() };
    let (rest, marks) = data.split_last_chunk::<4>().ok_or_else(short)?;
    let marks = u32::from_le_bytes(*marks) as usize;
    let (marks, values) = rest.split_at_checked(marks).ok_or_else(short)?;
    let marks = unpack_steps(marks, rows)?;
    let bytes = unpack(what, values)?;
    let width = (bytes.len() / 4).checked_div(rows).unwrap_or(0);
    let mut columns = Columns { what, bytes: &bytes, rows };
    let mut values = vec![vec![f64::NAN; width]; rows];
    for sensor in 0..width {
        for (row, value) in values.iter_mut().zip(columns.column(f32::from_le_bytes)?) {
            row[sensor] = f64::from(value);
        }
    }
    columns.end()?;
    Ok((marks, values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn view() -> impl Strategy<Value = ServerView> {
        let standing = prop_oneof![
            Just(Standing::Trusted),
            Just(Standing::OutOfCalibration),
            Just(Standing::Unreliable)
        ];
        (
            any::<u32>(),
            prop::option::of((any::<bool>(), any::<bool>())),
            prop::option::of(0_u8..9),
            standing,
        )
            .prop_map(|(evidence, flags, level, standing)| ServerView {
                evidence: f32::from_bits(evidence),
                flags: flags.map(|(z_c, z_a)| Flags::new(z_c, z_a)),
                level,
                standing,
            })
    }

    fn seen() -> impl Strategy<Value = Seen> {
        let number = || any::<u32>().prop_map(f32::from_bits);
        let local = (number(), number(), number(), number(), number())
            .prop_map(|(d_c, d_a, r_c, r_a, surprise)| LocalView { d_c, d_a, r_c, r_a, surprise });
        let level = || prop::option::of(0_u8..9);
        let flags = prop::option::of((any::<bool>(), any::<bool>()));
        let truth = (flags, level(), level()).prop_map(|(flags, own, beside)| Truth {
            flags: flags.map(|(z_c, z_a)| Flags::new(z_c, z_a)),
            own,
            beside,
        });
        (local, view(), view(), truth).prop_map(|(local, server, rehearsed, truth)| Seen {
            local,
            server,
            rehearsed,
            truth,
        })
    }

    fn step() -> impl Strategy<Value = StepMark> {
        let continuity = prop_oneof![
            Just(Continuity::NewRun),
            Just(Continuity::Next),
            (0.0..1e6_f64).prop_map(|seconds| Continuity::Gap { seconds }),
        ];
        let label = prop_oneof![
            Just(Label::Unlabelled),
            Just(Label::Normal),
            prop::option::of(0_u32..9).prop_map(|event| Label::Anomalous { event }),
        ];
        (0_i64..1 << 60, continuity, label).prop_map(|(time, continuity, label)| StepMark {
            time: Timestamp::from_nanosecond(i128::from(time)).expect("within years"),
            continuity,
            label,
        })
    }

    /// NaN is not equal to itself; its bits are.
    fn bits(seen: &[Seen]) -> String {
        format!("{seen:?}")
    }

    proptest! {
        #[test]
        fn what_was_packed_is_unpacked(
            seen in prop::collection::vec(seen(), 0..40),
            steps in prop::collection::vec(step(), 0..40),
        ) {
            let (n, packer) = (seen.len(), &mut Packer::default());
            let local = unpack_site(&pack_site(packer, &seen.iter()), n).expect("a block");
            let server = unpack_server(&pack_server(packer, &seen.iter()), n).expect("a block");
            let truth = unpack_truth(&pack_truth(packer, &seen.iter()), n).expect("a block");
            let again: Vec<Seen> = local
                .into_iter()
                .zip(server)
                .zip(truth)
                .map(|((local, [server, rehearsed]), truth)| Seen {
                    local,
                    server,
                    rehearsed,
                    truth,
                })
                .collect();
            prop_assert_eq!(bits(&seen), bits(&again));
            prop_assert_eq!(unpack_steps(&pack_steps(packer, &steps), steps.len()).expect("a block"), steps);
        }

        #[test]
        fn a_changed_byte_is_noticed_and_no_bytes_do_harm(
            seen in prop::collection::vec(seen(), 1..40),
            at in any::<prop::sample::Index>(), bit in 0_u8..8,
            bytes in prop::collection::vec(any::<u8>(), 0..200), rows in 0_usize..50,
        ) {
            let packer = &mut Packer::default();
            let mut packed = pack_site(packer, &seen.iter());
            let at = at.index(packed.len());
            packed[at] ^= 1 << bit;
            let sound = pack_site(packer, &seen.iter());
            // Some bits of the header say nothing about the content.
            if let Ok(found) = unpack("test", &packed) {
                prop_assert_eq!(found, unpack("test", &sound).expect("sound"));
            }
            let _ = unpack_site(&bytes, rows);
            let _ = unpack_server(&bytes, rows);
            let _ = unpack_truth(&bytes, rows);
            let _ = unpack_steps(&bytes, rows);
            let _ = unpack_frames(&bytes, rows);
        }
    }

    #[test]
    fn measurements_come_back_in_their_rows() {
        let time = |second| Timestamp::from_second(second).expect("an instant");
        let mark = |second| StepMark {
            time: time(second),
            continuity: Continuity::Next,
            label: Label::Normal,
        };
        let marks = [mark(1), mark(2), mark(3)];
        let rows = [[1.0, 2.5], [3.0, -4.0], [0.5, 0.25]];
        let packed =
            pack_frames(&mut Packer::default(), &marks, &rows.each_ref().map(<[f64; 2]>::as_slice));
        let (again, values) = unpack_frames(&packed, 3).expect("a block");
        assert_eq!((again.as_slice(), values), (&marks[..], rows.map(|row| row.to_vec()).to_vec()));
    }
}
