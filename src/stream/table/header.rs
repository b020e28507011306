//! Which cell of a file's rows is what, found by name in each file's own header.

use crate::session::ClientSettings;
use crate::stream::columns::{assign, near_hint};
use crate::stream::{Layout, Sensor, StreamError};

/// The header of a file.
pub(crate) trait Header {
    /// Names of the columns, without blanks around them.
    fn names(&self) -> &[String];

    /// A complaint about the header.
    fn header_error(&self, what: String) -> StreamError;

    /// What a measurement stands in.
    fn word(&self) -> &'static str {
        "column"
    }

    /// The place of the column called `name`; two of that name cannot be told apart.
    fn column(&self, name: &str) -> Result<Option<usize>, StreamError> {
        let mut places = (0..self.names().len()).filter(|&c| self.names()[c] == name);
        let place = places.next();
        match places.next() {
            None => Ok(place),
            Some(_) => Err(self.header_error(format!("there are two columns called {name:?}"))),
        }
    }
}

/// The columns that a table is read for, besides those of its clients.
pub(crate) struct Wanted {
    /// Names that the time column may have. Where rows count as time it is never read, but is no
    /// measurement either.
    pub(crate) time: Vec<String>,
    /// Whether a file must have a time column.
    pub(crate) time_needed: bool,
    pub(crate) run: Option<String>,
    pub(crate) flags: Vec<FlagColumn>,
    /// How a header becomes a sensor.
    pub(crate) naming: Box<dyn Fn(&str) -> Sensor + Send>,
}

pub(crate) struct FlagColumn {
    /// Names that it may have.
    pub(crate) names: Vec<String>,
    /// Whether a file must have it.
    pub(crate) needed: bool,
}

/// Where everything stands in one file.
#[derive(Debug)]
pub(crate) struct FileColumns {
    pub(crate) time: Option<usize>,
    pub(crate) run: Option<usize>,
    pub(crate) flags: Vec<Option<usize>>,
    pub(crate) values: Vec<usize>,
    pub(crate) inputs: Vec<usize>,
}

impl Wanted {
    /// What frames look like, judged by the first file.
    pub(crate) fn layout(
        &self,
        rows: &impl Header,
        clients: &[ClientSettings],
    ) -> Result<Layout, StreamError> {
        if clients.is_empty() {
            let what = "a table needs `clients`: who watches which columns";
            return Err(StreamError::Setting(what.into()));
        }
        let (sensors, _): (Vec<Sensor>, Vec<usize>) = self.measurements(rows).unzip();
        // The period is not known before rows are read.
        let columns = assign(&sensors, clients, 0.0).map_err(|what| rows.header_error(what))?;
        Ok(columns.layout)
    }

    /// Finds every column in the header of `rows`.
    pub(crate) fn find(
        &self,
        rows: &impl Header,
        layout: &Layout,
    ) -> Result<FileColumns, StreamError> {
        let (sensors, places): (Vec<Sensor>, Vec<usize>) = self.measurements(rows).unzip();
        let place = |sensor: &Sensor| {
            let mut same = (0..sensors.len()).filter(|&s| sensors[s].name == sensor.name);
            match (same.next(), same.next()) {
                (Some(found), None) => Ok(places[found]),
                (Some(_), Some(_)) => {
                    Err(rows.header_error(format!("there are two columns {:?}", sensor.name)))
                }
                (None, _) => Err(missing(rows, rows.word(), &sensor.name)),
            }
        };
        let clients = &layout.clients;
        Ok(FileColumns {
            time: self.time(rows)?,
            run: self.run.as_deref().map(|name| needed(rows, "run column", name)).transpose()?,
            flags: self.flags.iter().map(|flag| flag.find(rows)).collect::<Result<_, _>>()?,
            values: clients.iter().flat_map(|c| &c.sensors).map(place).collect::<Result<_, _>>()?,
            inputs: clients.iter().flat_map(|c| &c.inputs).map(place).collect::<Result<_, _>>()?,
        })
    }

    /// The time column, `None` where rows count as time.
    pub(crate) fn time(&self, rows: &impl Header) -> Result<Option<usize>, StreamError> {
        if !self.time_needed {
            return Ok(None);
        }
        match any_of(rows, &self.time)? {
            Some(column) => Ok(Some(column)),
            None => Err(missing(rows, "time column", &self.time.join("\" or \""))),
        }
    }

    /// Columns that can be measurements, with their places. A pattern such as `*` must not take in
    /// the time, the labels, or a column without a name.
    fn measurements(&self, rows: &impl Header) -> impl Iterator<Item = (Sensor, usize)> {
        let special = |name: &String| {
            name.is_empty()
                || self.time.contains(name)
                || self.run.as_ref() == Some(name)
                || self.flags.iter().any(|flag| flag.names.contains(name))
        };
        let header = rows.names().iter().enumerate();
        header.filter(move |(_, name)| !special(name)).map(|(c, name)| ((self.naming)(name), c))
    }
}

impl FlagColumn {
    fn find(&self, rows: &impl Header) -> Result<Option<usize>, StreamError> {
        let found = any_of(rows, &self.names)?;
        if found.is_none() && self.needed {
            return Err(missing(rows, "label column", &self.names.join("\" or \"")));
        }
        Ok(found)
    }
}

/// The place of a column that must be there; `what` says what it is for.
pub(crate) fn needed(rows: &impl Header, what: &str, name: &str) -> Result<usize, StreamError> {
    rows.column(name)?.ok_or_else(|| missing(rows, what, name))
}

fn any_of(rows: &impl Header, names: &[String]) -> Result<Option<usize>, StreamError> {
    for name in names {
        if let Some(column) = rows.column(name)? {
            return Ok(Some(column));
        }
    }
    Ok(None)
}

fn missing(rows: &impl Header, what: &str, name: &str) -> StreamError {
    let near = near_hint(name, rows.names().iter().map(String::as_str));
    rows.header_error(format!("no {what} \"{name}\"{near}"))
}
