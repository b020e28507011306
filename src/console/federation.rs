//! The screen of a server whose sites are elsewhere: every site as a partner, and what was decided.
//!
//! ```text
//!  federation short · evidence · step 512 · 2 of 3 sites online
//!  site   state   heard  lag clock    up     down   ε      late miss twice refused
//!  P1     online  0.1 s  0   +0.3 ms  12 kB  9 kB   0.412  0    0    0     0
//!  …
//!  10:38  opened #1 root P1 …
//!  The server gets messages only and cannot show a site's sensors.  q stops
//! ```
//!
//! It must not know measurements: it is given accounts of sites, and lines of facts.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::style::{Modifier, Style};

use super::term::Term;
use super::text::clean;
use super::view::pen::indented;
use super::view::top::SEEDED;
use crate::remote::account::{Account, Board, Joins, SpentSoFar};
use crate::session::{Mode, Session};

/// Time between two pictures.
const FRAME: Duration = Duration::from_millis(200);
/// Lines of facts that are kept.
const MOST_LINES: usize = 500;

const SENSORS: &str = "The server gets messages only and cannot show a site's sensors.";
/// Before the second and every later row of a line of facts.
const INDENT: &str = "  ";
/// Heads of columns, and room for what usually stands below them: together they fit 80 columns.
const HEADS: [(&str, usize); 12] = [
    ("site", 6),
    ("state", 7),
    ("heard", 6),
    ("lag", 3),
    ("clock", 8),
    ("up", 6),
    ("down", 6),
    ("ε", 6),
    ("late", 4),
    ("miss", 4),
    ("twice", 5),
    ("refused", 7),
];

/// Lines that are shown below the sites; a writer of facts writes here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines {
    whole: Arc<Mutex<VecDeque<String>>>,
    /// What was written of the next line.
    begun: Vec<u8>,
}

impl Lines {
    pub(crate) fn push(&self, line: &str) {
        let mut lines = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(clean(line));
        if lines.len() > MOST_LINES {
            lines.pop_front();
        }
    }

    pub(super) fn last(&self, rows: usize) -> Vec<String> {
        let lines = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().skip(lines.len().saturating_sub(rows)).cloned().collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.begun.drain(..=end).collect();
            self.push(String::from_utf8_lossy(&line).trim_end());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the first line of a screen says of a run: its session, its method, and what is not private in it.
pub(crate) fn title(session: &Session, mode: Mode, is_encrypted: bool) -> String {
    let mut title = format!("{} · {mode:?}", session.name).to_lowercase();
    if session.is_seeded() {
        title = format!("{title} · {}", SEEDED[0]);
    }
    if !is_encrypted {
        title += " · INSECURE";
    }
    title
}

/// What the screen of one party of a federation shows.
#[derive(Debug, Clone)]
pub(crate) struct PartyView<B> {
    /// Session and method.
    pub(crate) title: String,
    pub(crate) board: Arc<Mutex<B>>,
    pub(crate) lines: Lines,
}

/// Shows the server until the run is `over`; `q` or Ctrl-C asks for its end by `interrupt`.
pub(crate) fn watch_federation(
    view: &PartyView<Board>,
    interrupt: &AtomicBool,
    over: &AtomicBool,
) -> io::Result<()> {
    watch(view, draw, accept, interrupt, over)
}

/// The server accepts the first site that waits.
fn accept(board: &mut Board) {
    board.accepts = waits(board).map(|(client, _)| client);
}

/// The first site that waits to be accepted, by its place, and the digest of its model.
fn waits(board: &Board) -> Option<(usize, u64)> {
    board.accounts.iter().enumerate().find_map(|(client, account)| match account.joins {
        Some(Joins::Waits(models)) => Some((client, models)),
        Some(Joins::Absent | Joins::Enrols) | None => None,
    })
}

/// Shows one party as `draw` does; the key `a` does `accept`.
pub(super) fn watch<B: Clone>(
    view: &PartyView<B>,
    draw: impl Fn(&mut Buffer, &str, &B, &Lines),
    accept: impl Fn(&mut B),
    interrupt: &AtomicBool,
    over: &AtomicBool,
) -> io::Result<()> {
    let mut term = Term::take(false)?;
    while !over.load(Ordering::Relaxed) {
        let board = view.board.lock().unwrap_or_else(PoisonError::into_inner).clone();
        term.draw(|buffer| draw(buffer, &view.title, &board, &view.lines))?;
        match key(&mut term)? {
            Some(Key::Stop) => interrupt.store(true, Ordering::Relaxed),
            Some(Key::Accept) => {
                accept(&mut view.board.lock().unwrap_or_else(PoisonError::into_inner));
            }
            None => {}
        }
    }
    Ok(())
}

/// A key with a meaning here.
enum Key {
    Stop,
    Accept,
}

/// Waits for a key until the next picture is due.
fn key(term: &mut Term) -> io::Result<Option<Key>> {
    if !event::poll(FRAME)? {
        return Ok(None);
    }
    match event::read()? {
        Event::Key(key) => {
            let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
            let is_ctrl_c = is_ctrl && key.code == KeyCode::Char('c');
            if is_ctrl_c || key.code == KeyCode::Char('q') {
                return Ok(Some(Key::Stop));
            }
            return Ok((key.code == KeyCode::Char('a')).then_some(Key::Accept));
        }
        Event::Resize(..) => term.repaint(),
        Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Paste(_) => {}
    }
    Ok(None)
}

fn draw(buffer: &mut Buffer, title: &str, board: &Board, lines: &Lines) {
    let area = buffer.area;
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut row = 0;
    let mut put = |buffer: &mut Buffer, text: &str, style: Style| {
        if row < height {
            buffer.set_stringn(area.x, area.y + row as u16, text, width, style);
        }
        row += 1;
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let online = board.accounts.iter().filter(|account| account.online == Some(true)).count();
    let sites = board.accounts.len();
    let step = board.step;
    let head = format!("federation {title} · step {step} · {online} of {sites} sites online");
    put(buffer, &fitting(head, width), bold);
    let heads = HEADS.map(|(head, _)| head.to_owned());
    let rows: Vec<[String; 12]> = board.accounts.iter().map(site).collect();
    let widths = widths(&rows);
    put(buffer, &cells(&heads, &widths), bold);
    // Sites that are not there come first where not all have room.
    let mut accounts: Vec<(&Account, &[String; 12])> = board.accounts.iter().zip(&rows).collect();
    let room = (height.saturating_sub(4) * 2 / 3).max(1);
    if accounts.len() > room {
        accounts.sort_by_key(|(account, _)| account.online == Some(true));
    }
    for (account, row) in accounts.iter().take(room) {
        let style = match account.online {
            Some(true) => Style::new(),
            Some(false) | None => Style::new().add_modifier(Modifier::REVERSED),
        };
        put(buffer, &cells(row, &widths), style);
    }
    if accounts.len() > room {
        put(buffer, &format!("… and {} more", accounts.len() - room), Style::new());
    }
    put(buffer, "", Style::new());
    let shown = 3 + accounts.len().min(room) + usize::from(accounts.len() > room);
    let room = height.saturating_sub(shown + 1);
    let wrapped: Vec<String> =
        lines.last(room).iter().flat_map(|line| indented(line, INDENT, area.width)).collect();
    for line in &wrapped[wrapped.len().saturating_sub(room)..] {
        put(buffer, line, Style::new());
    }
    if height > 3 {
        let last = area.y + area.height - 1;
        if let Some((client, models)) = waits(board) {
            let name = &board.accounts[client].name;
            let foot = format!("{name} waits with the model {models:016x}.  a accepts  q stops");
            buffer.set_stringn(area.x, last, &foot, width, bold);
        } else {
            let (foot, dim) = (format!("{SENSORS}  q stops"), Modifier::DIM);
            buffer.set_stringn(area.x, last, &foot, width, Style::new().add_modifier(dim));
        }
    }
}

/// The first line of a screen: what has two forms has its short one where the long one has no room.
pub(super) fn fitting(head: String, width: usize) -> String {
    let [long, short] = SEEDED;
    if head.chars().count() > width { head.replace(long, short) } else { head }
}

/// One site, cell by cell.
fn site(account: &Account) -> [String; 12] {
    let counts = &account.counts;
    let state = match account.online {
        _ if account.left => "left",
        _ if matches!(account.joins, Some(Joins::Waits(_))) => "waits",
        Some(true) if account.joins == Some(Joins::Enrols) => "enrols",
        _ if account.joins.is_some() => "absent",
        Some(true) => "online",
        Some(false) => "offline",
        None => "unknown",
    };
    let nothing = || "–".to_owned();
    let heard = account.silent_for().map(|silent| format!("{:.1} s", silent.as_secs_f64()));
    let clock = account.skew.ahead_s().map(|ahead| format!("{:+.1} ms", ahead * 1e3));
    let spent = account.spent.and_then(|SpentSoFar { epsilon, .. }| epsilon);
    [
        account.name.clone(),
        state.to_owned(),
        heard.unwrap_or_else(nothing),
        account.lag().to_string(),
        clock.unwrap_or_else(nothing),
        bytes(counts.bytes_up),
        bytes(counts.bytes_down),
        spent.map_or_else(nothing, epsilon_cell),
        counts.late.to_string(),
        counts.missing.to_string(),
        counts.duplicates.to_string(),
        counts.refused().to_string(),
    ]
}

/// ε in six characters. Values from a million on need more.
fn epsilon_cell(epsilon: f64) -> String {
    if epsilon < 100.0 { format!("{epsilon:.3}") } else { format!("{epsilon:.0}") }
}

/// The width of each column: nothing is cut within a cell.
fn widths(rows: &[[String; 12]]) -> [usize; 12] {
    std::array::from_fn(|column| {
        let widest = rows.iter().map(|row| row[column].chars().count()).max();
        widest.unwrap_or(0).max(HEADS[column].1)
    })
}

/// One line of the table.
fn cells(cells: &[String; 12], widths: &[usize; 12]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
    padded.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

fn bytes(count: u64) -> String {
    match count {
        0..1000 => format!("{count} B"),
        1000..1_000_000 => format!("{} kB", count / 1000),
        _ => format!("{} MB", count / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use std::io::Write as _;

    fn shown(sites: usize, columns: u16, rows: u16) -> Vec<String> {
        let account = |m: usize| {
            let mut account = Account::new(format!("P{m}"));
            account.is_online(m != 2);
            account.spent = Some(SpentSoFar { epsilon: Some(0.5), releases: 7 });
            account.counts.bytes_up = 12_345;
            account
        };
        let accounts = (1..=sites).map(account).collect();
        let board = Board { step: 512, accounts, accepts: None };
        let lines = Lines::default();
        lines.push("opened #1");
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
        draw(&mut buffer, "short · evidence · seeded: not private", &board, &lines);
        let row = |y: u16| -> String {
            (0..columns).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>()
        };
        (0..rows).map(|y| row(y).trim_end().to_owned()).collect()
    }

    #[test]
    fn every_site_is_shown_with_its_state_its_bytes_and_its_own_epsilon() {
        let rows = shown(3, 100, 12);
        let first =
            "federation short · evidence · seeded: not private · step 512 · 2 of 3 sites online";
        assert_eq!(rows[0], first);
        assert!(rows[2].starts_with("P1     online  –"), "{}", rows[2]);
        assert!(rows[2].contains("12 kB") && rows[2].contains("0.500"), "{}", rows[2]);
        assert!(rows[3].starts_with("P2     offline"), "{}", rows[3]);
        assert_eq!(rows[6], "opened #1");
        assert!(rows[11].starts_with("The server gets messages only and cannot show"));
    }

    #[test]
    fn all_columns_fit_eighty_and_a_site_that_waits_is_shown_with_the_key_that_accepts_it() {
        let rows = shown(3, 80, 24);
        assert!(rows[0].contains("· seeded ·") && rows[0].ends_with("sites online"), "{rows:?}");
        assert!(rows[1].ends_with("refused"), "{}", rows[1]);
        let mut waits = Account::new("P3".to_owned());
        waits.is_online(true);
        waits.joins = Some(Joins::Waits(0xAB));
        let mut board = Board { accounts: vec![waits], ..Board::default() };
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 6));
        draw(&mut buffer, "short", &board, &Lines::default());
        let row = |y: u16| -> String {
            (0..80).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>()
        };
        assert!(row(2).starts_with("P3     waits"), "{}", row(2));
        assert!(row(5).starts_with("P3 waits with the model 00000000000000ab.  a accepts"));
        accept(&mut board);
        assert_eq!(board.accepts, Some(0));
    }

    #[test]
    fn the_first_line_says_what_is_not_private_in_a_run() {
        let built_in = super::super::tests::fixture::session();
        let words = "plant-attack-day · evidence · seeded: not private · INSECURE";
        assert_eq!(title(&built_in, Mode::Evidence, false), words);
        let real = super::super::tests::fixture::table_session();
        assert_eq!(title(&real, Mode::Paper, true), "table · paper");
    }

    #[test]
    fn a_line_that_is_written_in_pieces_is_shown_as_one() {
        let mut lines = Lines::default();
        for piece in ["10:38 ", "opened", " #1\nclo", "sed #1\n", "half"] {
            lines.write_all(piece.as_bytes()).expect("lines take everything");
        }
        assert_eq!(lines.last(9), ["10:38 opened #1", "closed #1"]);
    }

    #[test]
    fn of_many_sites_those_that_are_away_are_shown_first_and_no_size_does_harm() {
        let rows = shown(60, 100, 12);
        assert!(rows[2].starts_with("P2     offline"), "{}", rows[2]);
        assert!(rows.iter().any(|row| row == "… and 55 more"), "{rows:?}");
        for (columns, height) in [(1, 1), (20, 3), (80, 24), (3, 40)] {
            shown(3, columns, height);
        }
    }
}
