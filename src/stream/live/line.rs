//! Lines of CSV and JSON objects: from bytes to the time and values they hold.
//!
//! A line costs no allocation once its tags are known. It knows no files, topics or clocks but the
//! one that is written in the line.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use serde::Deserializer as _;
use serde::de::{self, DeserializeSeed, MapAccess, Visitor};

use super::assembler::Quality;
use super::tags::Tags;
use crate::session::{LiveSource, Shape};
use crate::stream::StreamError;
use crate::stream::table::clock::Clock;
use crate::stream::table::number::{Numbers, bare};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Line {
    /// All values of an instant; they stand in [`LineReader::row`].
    Row(Timestamp),
    /// A value of one tag; `None` is a tag that no client watches.
    Value(Timestamp, Option<usize>, f64, Quality),
    /// A header, or nothing.
    Nothing,
}

/// How the cells of CSV lines are to be read.
#[derive(Debug, Clone, Default)]
struct Columns {
    delimiter: u8,
    time: usize,
    /// For each cell, its tag.
    tags: Vec<Option<usize>>,
    /// Cells of tag, value and quality, where a line holds one value.
    single: Option<(usize, usize, Option<usize>)>,
}

/// Reads lines.
#[derive(Debug)]
pub(crate) struct LineReader {
    time_key: String,
    /// Keys of tag and value where a line holds one value.
    single: Option<(String, String)>,
    quality_key: String,
    clock: Clock,
    numbers: Numbers,
    columns: Option<Columns>,
    row: Vec<f64>,
}

impl LineReader {
    pub(crate) fn new(live: &LiveSource) -> Result<Self, StreamError> {
        let single = match &live.shape {
            Shape::Wide => None,
            Shape::Long { tag, value, .. } => Some((tag.clone(), value.clone())),
        };
        Ok(Self {
            time_key: live.time.column.clone(),
            single,
            quality_key: live.quality.clone(),
            clock: Clock::new(&live.time)?,
            numbers: Numbers::new(&live.missing),
            columns: None,
            row: Vec::new(),
        })
    }

    /// The values of the last [`Line::Row`], one a tag.
    pub(crate) fn row(&self) -> &[f64] {
        &self.row
    }

    pub(crate) fn time_key(&self) -> &str {
        &self.time_key
    }

    /// The names in a line, where it is a header or an object; other than that of the time.
    pub(crate) fn names(&self, line: &[u8]) -> Option<Vec<String>> {
        if is_object(line) {
            let names = serde_json::from_slice::<serde_json::Map<_, _>>(line).ok()?;
            return Some(names.into_iter().map(|(name, _)| name).collect());
        }
        self.is_header(line).then(|| {
            let delimiter = delimiter(line);
            let text = |cell: &[u8]| String::from_utf8_lossy(bare(cell)).into_owned();
            cells(line, delimiter).map(text).collect()
        })
    }

    fn is_header(&self, line: &[u8]) -> bool {
        cells(line, delimiter(line)).any(|cell| bare(cell) == self.time_key.as_bytes())
    }

    /// Reads a line; an error says what is wrong with it.
    pub(crate) fn read(&mut self, line: &[u8], tags: &Tags) -> Result<Line, String> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(Line::Nothing);
        }
        if is_object(line) {
            return self.object(line, tags);
        }
        if self.columns.is_none() || self.is_header(line) {
            self.columns = Some(self.header(line, tags)?);
            return Ok(Line::Nothing);
        }
        self.cells(line, tags)
    }

    fn header(&self, line: &[u8], tags: &Tags) -> Result<Columns, String> {
        let delimiter = delimiter(line);
        let names: Vec<Cow<'_, str>> =
            cells(line, delimiter).map(|cell| String::from_utf8_lossy(bare(cell))).collect();
        let find = |name: &str| names.iter().position(|cell| cell == name);
        let time = find(&self.time_key).ok_or_else(|| {
            let shown: String = String::from_utf8_lossy(line).chars().take(60).collect();
            format!("expected a header with the column {:?}, found {shown:?}", self.time_key)
        })?;
        let single = match &self.single {
            None => None,
            Some((tag, value)) => {
                let need =
                    |name: &str| find(name).ok_or(format!("no column {name:?} in the header"));
                Some((need(tag)?, need(value)?, find(&self.quality_key)))
            }
        };
        let tags = names.iter().map(|name| tags.find(name)).collect();
        Ok(Columns { delimiter, time, tags, single })
    }

    fn cells(&mut self, line: &[u8], tags: &Tags) -> Result<Line, String> {
        let Some(columns) = &self.columns else { return Ok(Line::Nothing) };
        let comma = columns.delimiter != b',';
        let (mut time, mut seen) = (None, 0);
        let mut single = (None, f64::NAN, Quality::Good);
        self.row.clear();
        self.row.resize(tags.names().len(), f64::NAN);
        for (i, cell) in cells(line, columns.delimiter).enumerate() {
            seen += 1;
            let cell = bare(cell);
            if i == columns.time {
                time = Some(cell);
            } else if let Some((tag, value, quality)) = columns.single {
                if i == tag {
                    single.0 = std::str::from_utf8(cell).ok().and_then(|name| tags.find(name));
                } else if i == value {
                    single.1 = number(&self.numbers, cell, comma, "value")?;
                } else if Some(i) == quality {
                    single.2 = quality_of(cell);
                }
            } else if let Some(tag) = columns.tags.get(i).copied().flatten() {
                self.row[tag] = number(&self.numbers, cell, comma, &tags.names()[tag])?;
            }
        }
        if seen != columns.tags.len() {
            return Err(format!("expected {} cells, found {seen}", columns.tags.len()));
        }
        let time = self.time(time.unwrap_or_default(), comma)?;
        Ok(match columns.single {
            Some(_) => Line::Value(time, single.0, single.1, single.2),
            None => Line::Row(time),
        })
    }

    fn time(&self, cell: &[u8], comma: bool) -> Result<Timestamp, String> {
        self.clock.read(cell, &self.numbers, comma).ok_or_else(|| {
            let found: String = String::from_utf8_lossy(cell).chars().take(40).collect();
            format!("{}: expected {}, found {found:?}", self.time_key, self.clock.expected())
        })
    }

    fn object(&mut self, line: &[u8], tags: &Tags) -> Result<Line, String> {
        self.row.clear();
        self.row.resize(tags.names().len(), f64::NAN);
        let mut found = Found::default();
        let into = Object {
            time: &self.time_key,
            single: self.single.as_ref().map(|(tag, value)| (tag.as_str(), value.as_str())),
            quality: &self.quality_key,
            numbers: &self.numbers,
            tags,
            row: &mut self.row,
            found: &mut found,
        };
        let mut reader = serde_json::Deserializer::from_slice(line);
        reader.deserialize_map(into).map_err(|why| format!("no JSON object: {why}"))?;
        reader.end().map_err(|why| format!("no JSON object: {why}"))?;
        let time = found.time.as_deref().unwrap_or_default();
        let time = self.time(time.as_bytes(), false)?;
        Ok(match self.single {
            Some(_) => Line::Value(time, found.tag, found.value, found.quality),
            None => Line::Row(time),
        })
    }

    /// The value of one tag: an object with time, value and quality, or a bare number that counts
    /// from its arrival.
    pub(crate) fn value(
        &self,
        payload: &[u8],
        value_key: &str,
        arrived: Timestamp,
    ) -> Result<(Timestamp, f64, Quality), String> {
        let payload = payload.trim_ascii();
        if !is_object(payload) {
            let value = number(&self.numbers, bare(payload), false, "value")?;
            return Ok((arrived, value, Quality::Good));
        }
        let (mut found, mut none) = (Found::default(), []);
        let nobody = Tags::of_layout(crate::stream::Layout { clients: Vec::new(), period_s: 1.0 });
        let into = Object {
            time: &self.time_key,
            single: Some(("", value_key)),
            quality: &self.quality_key,
            numbers: &self.numbers,
            tags: &nobody,
            row: &mut none,
            found: &mut found,
        };
        let mut reader = serde_json::Deserializer::from_slice(payload);
        reader.deserialize_map(into).map_err(|why| format!("no JSON object: {why}"))?;
        let time = match found.time.as_deref() {
            Some(time) => self.time(time.as_bytes(), false)?,
            None => arrived,
        };
        Ok((time, found.value, found.quality))
    }
}

fn is_object(line: &[u8]) -> bool {
    line.trim_ascii_start().first() == Some(&b'{')
}

/// Whichever of comma, semicolon and tab a line has most of.
fn delimiter(line: &[u8]) -> u8 {
    let count = |delimiter: u8| line.split(|byte| *byte == delimiter).count();
    [b',', b';', b'\t'].into_iter().rev().max_by_key(|d| count(*d)).unwrap_or(b',')
}

/// The cells of a line; a delimiter between quotes is no delimiter.
fn cells(line: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    line.split(move |byte| {
        quoted ^= *byte == b'"';
        *byte == delimiter && !quoted
    })
}

fn number(numbers: &Numbers, cell: &[u8], comma: bool, tag: &str) -> Result<f64, String> {
    numbers.read(cell, comma).ok_or_else(|| {
        let found: String = String::from_utf8_lossy(cell).chars().take(40).collect();
        format!("{tag}: expected a number, found {found:?}")
    })
}

/// What a source says about a value: words, or the number of OPC classic (192 is good).
fn quality_of(text: &[u8]) -> Quality {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    if text.is_empty() || is(&["good", "ok", "192", "0", "true"]) {
        Quality::Good
    } else if is(&["uncertain", "questionable", "64"]) {
        Quality::Uncertain
    } else {
        Quality::Bad
    }
}

/// What stands in an object beside the values of a row.
#[derive(Debug, Default)]
struct Found<'a> {
    time: Option<Cow<'a, str>>,
    tag: Option<usize>,
    value: f64,
    quality: Quality,
}

struct Object<'r, 'a> {
    time: &'r str,
    single: Option<(&'r str, &'r str)>,
    quality: &'r str,
    numbers: &'r Numbers,
    tags: &'r Tags,
    row: &'r mut [f64],
    found: &'r mut Found<'a>,
}

impl<'de> Visitor<'de> for Object<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of time and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Text)? {
            if key == self.time {
                self.found.time = map.next_value_seed(Scalar)?.into_text();
                continue;
            }
            let single = self.single.map(|(tag, value)| (key == tag, key == value));
            let place = self.tags.find(&key);
            match (single, place) {
                (Some((true, _)), _) => {
                    let name = map.next_value_seed(Scalar)?.into_text();
                    self.found.tag = name.and_then(|name| self.tags.find(&name));
                }
                (Some((_, true)), _) => {
                    let value = map.next_value_seed(Scalar)?;
                    self.found.value =
                        value.number(self.numbers, &key).map_err(de::Error::custom)?;
                }
                (Some(_), _) if key == self.quality => {
                    let text = map.next_value_seed(Scalar)?.into_text();
                    self.found.quality = quality_of(text.unwrap_or_default().as_bytes());
                }
                (None, Some(tag)) => {
                    let value = map.next_value_seed(Scalar)?;
                    self.row[tag] = value.number(self.numbers, &key).map_err(de::Error::custom)?;
                }
                (Some(_) | None, _) => {
                    map.next_value::<de::IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// A text that is borrowed from the line where it can be.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: de::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// A number, a text, or nothing.
enum Cell<'a> {
    Number(f64),
    Text(Cow<'a, str>),
    Nothing,
}

impl<'a> Cell<'a> {
    fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Number(number) => Some(Cow::Owned(number.to_string())),
            Self::Text(text) => Some(text),
            Self::Nothing => None,
        }
    }

    fn number(&self, numbers: &Numbers, tag: &str) -> Result<f64, String> {
        match self {
            Self::Number(value) if value.is_finite() => Ok(*value),
            Self::Number(_) | Self::Nothing => Ok(f64::NAN),
            Self::Text(text) => number(numbers, bare(text.as_bytes()), false, tag),
        }
    }
}

struct Scalar;

impl<'de> DeserializeSeed<'de> for Scalar {
    type Value = Cell<'de>;

    fn deserialize<D: de::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scalar {
    type Value = Cell<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a text or null")
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Cell::Number(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Cell::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Cell::Number(value as f64))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Cell::Number(f64::from(u8::from(value))))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Cell::Nothing)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cell::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cell::Text(Cow::Owned(text.to_owned())))
    }
}
