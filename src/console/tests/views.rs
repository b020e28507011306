//! Every view over a real morning of the plant: at four sizes and below, by role, without colour and
//! in ASCII, with a knob on trial, looking back, and with a dozen clients.

use std::sync::LazyLock;

use jiff::Timestamp;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::fixture::Console;
use super::plant::{self, Desk};
use crate::console::app::{Msg, Screen};
use crate::console::mouse::Hit;
use crate::console::sessions::{Data, Openable};
use crate::console::theme::{Terminal, Theme, ThemeChoice};
use crate::console::view::view;
use crate::engine::handle::{EngineEvent, Load, Opened, Update};
use crate::engine::watch::{News, Snapshot};
use crate::session::SHIPPED;

/// Every screen, and the keys that lead to it.
pub(crate) const ALL_SCREENS: [(&str, &str); 9] = [
    ("overview", "1"),
    ("client", "2"),
    ("influence", "3"),
    ("incident", "4"),
    ("training", "5"),
    ("privacy", "6"),
    ("log", "7"),
    ("sessions", "8"),
    ("help", "1?"),
];

pub(crate) const SIZES: [(u16, u16); 4] = [(80, 24), (120, 40), (200, 60), (250, 80)];

/// Steps to 01:30:10: one incident is over and unanswered, another open with an effect.
const DURING: usize = 1082;

fn theme(choice: ThemeChoice, ascii: bool) -> Theme {
    Theme::new(choice, Terminal { ascii, light: Some(false), ..Terminal::default() })
}

/// What the engine says of the morning until 01:30:10: said once for all pictures.
static MORNING: LazyLock<(Opened, News, Snapshot)> = LazyLock::new(|| {
    let (mut watch, prepared) = plant::ready();
    let opened = Opened::of(&watch, Some(prepared));
    let mut news = News::default();
    for _ in 0..DURING {
        watch.step(&mut news).expect("a built-in plant has no bad rows");
    }
    let standing = watch.snapshot();
    (opened, news, standing)
});

fn shown(opened: Opened, news: News, standing: Snapshot) -> Console {
    let mut console = Console::bare(&plant::session());
    console.model.theme = theme(ThemeChoice::Dark, false);
    console.report(EngineEvent::Opened(Box::new(opened)));
    console.report(EngineEvent::Playing);
    let bulletin = Update { news, snapshot: Some(standing), load: Load::default(), live: None };
    console.report(EngineEvent::News(Box::new(bulletin)));
    let sessions = SHIPPED.iter().map(|session| Openable {
        name: session.name.to_owned(),
        about: format!("the session called {}", session.name),
        data: match session.name {
            name if name.starts_with("plant-live") => Data::Live,
            name if name.starts_with("plant") => Data::BuiltIn,
            _ => Data::Absent,
        },
    });
    console.tell(Msg::Sessions(sessions.collect()));
    console
}

/// The morning at 01:30:10, in the dark theme.
pub(crate) fn during() -> Console {
    let (opened, news, standing) = &*MORNING;
    shown(opened.clone(), news.clone(), standing.clone())
}

/// The same with an engine that does what it is told.
pub(crate) fn at_work() -> Desk {
    let mut desk = Desk::after(DURING);
    desk.console.model.theme = theme(ThemeChoice::Dark, false);
    desk
}

pub(crate) fn goes_to(console: &mut Console, keys: &str) {
    if console.model.help.is_some() {
        console.keys("<esc>");
    }
    console.keys(keys);
}

pub(crate) fn picture(console: &Console, width: u16, height: u16) -> (Buffer, Vec<Hit>) {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let hits = view(&console.model, &mut buffer);
    (buffer, hits)
}

pub(crate) fn text(buffer: &Buffer) -> Vec<String> {
    let rows = buffer.content().chunks(usize::from(buffer.area.width));
    rows.map(|row| {
        let row: String = row.iter().map(Cell::symbol).collect();
        row.trim_end().to_owned()
    })
    .collect()
}

/// Every row, and below it where its cells differ from plain text, under a name.
fn annotated(buffer: &Buffer, name: impl Fn(&Cell) -> String) -> String {
    let mut lines = Vec::new();
    let rows = buffer.content().chunks(usize::from(buffer.area.width));
    for (text, row) in text(buffer).into_iter().zip(rows) {
        lines.push(text);
        let mut runs: Vec<(usize, usize, String)> = Vec::new();
        for (x, cell) in row.iter().enumerate() {
            let name = if cell.symbol() == " " && !cell.modifier.contains(Modifier::REVERSED) {
                String::new()
            } else {
                name(cell)
            };
            match runs.last_mut() {
                Some((_, end, last)) if *end + 1 == x && *last == name => *end = x,
                _ => runs.push((x, x, name)),
            }
        }
        let said: Vec<String> = runs
            .into_iter()
            .filter(|(_, _, name)| !name.is_empty())
            .map(|(from, to, name)| format!("{from}-{to} {name}"))
            .collect();
        if !said.is_empty() {
            lines.push(format!("      ~ {}", said.join("  ")));
        }
    }
    lines.join("\n")
}

/// Roles by the names of the theme; those that look alike go by the first of them.
fn roles(theme: &Theme) -> Vec<(&'static str, Style)> {
    vec![
        ("", theme.text),
        ("label", theme.label),
        ("frame", theme.frame),
        ("trend", theme.trend),
        ("strong", theme.strong),
        ("over", theme.over),
        ("ghost", theme.ghost),
        ("missing", theme.missing),
        ("truth", theme.truth),
        ("cursor", theme.cursor),
        ("root", theme.root),
        ("root-unseen", theme.root_unseen),
        ("single", theme.single),
        ("single-unseen", theme.single_unseen),
        ("shelved", theme.shelved),
    ]
}

fn by_role(buffer: &Buffer, theme: &Theme) -> String {
    let look = |style: Style| {
        let mut one = Buffer::empty(Rect::new(0, 0, 1, 1));
        one.set_style(one.area, style);
        theme.finish(&mut one);
        (one[(0, 0)].fg, one[(0, 0)].bg, one[(0, 0)].modifier)
    };
    let plain: Vec<_> = roles(theme).into_iter().map(|(name, s)| (name.to_owned(), s)).collect();
    let under =
        |(name, style): &(String, Style)| (format!("cursor/{name}"), style.patch(theme.cursor));
    let both: Vec<(String, Style)> = plain.iter().cloned().chain(plain.iter().map(under)).collect();
    let known: Vec<_> = both.into_iter().map(|(name, style)| (name, look(style))).collect();
    let field = look(Style::new()).1;
    annotated(buffer, |cell| {
        // The lane of an open root lies on a field of its own.
        let tinted = theme.tint.bg == Some(cell.bg);
        let bg = if tinted { field } else { cell.bg };
        let found = known.iter().find(|(_, l)| *l == (cell.fg, bg, cell.modifier));
        let name =
            found.map_or_else(|| format!("unknown {:?}", cell.style()), |(name, _)| name.clone());
        if tinted { format!("tint {name}") } else { name }
    })
}

fn by_attribute(buffer: &Buffer) -> String {
    annotated(buffer, |cell| {
        let letters = [
            (Modifier::BOLD, 'B'),
            (Modifier::DIM, 'D'),
            (Modifier::UNDERLINED, 'U'),
            (Modifier::REVERSED, 'R'),
        ];
        letters.iter().filter(|(m, _)| cell.modifier.contains(*m)).map(|(_, l)| l).collect()
    })
}

#[test]
fn every_view_at_four_sizes_by_role_on_dark_and_paper_alike() {
    let mut console = during();
    for (name, keys) in ALL_SCREENS {
        goes_to(&mut console, keys);
        for (width, height) in SIZES {
            let seen = [ThemeChoice::Dark, ThemeChoice::Paper].map(|choice| {
                console.model.theme = theme(choice, false);
                let (buffer, _) = picture(&console, width, height);
                by_role(&buffer, &console.model.theme)
            });
            assert_eq!(seen[0], seen[1], "{name} on paper");
            insta::assert_snapshot!(format!("view_{name}_{width}x{height}"), &seen[0]);
        }
    }
}

#[test]
fn every_view_says_the_same_without_colour() {
    let mut console = during();
    for (name, keys) in ALL_SCREENS {
        goes_to(&mut console, keys);
        for (width, height) in SIZES {
            let [dark, mono] = [ThemeChoice::Dark, ThemeChoice::Mono].map(|choice| {
                console.model.theme = theme(choice, false);
                picture(&console, width, height).0
            });
            assert_eq!(text(&dark), text(&mono), "{name} {width}x{height}");
            let plain = |cell: &Cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset);
            assert!(mono.content().iter().all(plain), "{name} {width}x{height}");
        }
    }
}

#[test]
fn every_view_in_ascii_without_colour() {
    let mut console = during();
    console.model.theme = theme(ThemeChoice::Mono, true);
    for (name, keys) in ALL_SCREENS {
        goes_to(&mut console, keys);
        for (width, height) in SIZES {
            let (buffer, _) = picture(&console, width, height);
            assert!(buffer.content().iter().all(|cell| cell.symbol().is_ascii()), "{name}");
            insta::assert_snapshot!(
                format!("ascii_{name}_{width}x{height}"),
                by_attribute(&buffer)
            );
        }
    }
}

#[test]
fn smaller_screens_say_less_and_still_say_what_matters() {
    let mut console = during();
    for (width, height) in [(60, 15), (40, 10), (32, 6), (20, 5), (12, 3)] {
        let (buffer, _) = picture(&console, width, height);
        insta::assert_snapshot!(format!("small_{width}x{height}"), text(&buffer).join("\n"));
    }
    goes_to(&mut console, "4");
    let (buffer, _) = picture(&console, 60, 15);
    insta::assert_snapshot!("small_incident_60x15", text(&buffer).join("\n"));
}

#[test]
fn a_knob_on_trial_shows_ghosts_and_counts() {
    let mut desk = at_work();
    desk.keys(":mode paper<enter><enter>");
    desk.steps(30);
    desk.keys("++++");
    let (buffer, _) = picture(&desk.console, 120, 40);
    insta::assert_snapshot!("trial_120x40", by_role(&buffer, &desk.console.model.theme));
    let (buffer, _) = picture(&desk.console, 80, 24);
    let line = text(&buffer);
    assert!(line.iter().any(|line| line.contains("alarms")), "{line:#?}");
}

#[test]
fn looking_back_shows_the_cursor_in_every_trend_and_the_truth_on_request() {
    let mut console = during();
    console.keys("hhhh");
    let (buffer, _) = picture(&console, 120, 40);
    insta::assert_snapshot!("looking_back_120x40", by_role(&buffer, &console.model.theme));
    assert!(!text(&buffer).join(" ").contains("S101"));
    console.keys("t");
    let (buffer, _) = picture(&console, 120, 40);
    insta::assert_snapshot!("truth_120x40", by_role(&buffer, &console.model.theme));
}

#[test]
fn what_is_asked_stands_in_the_last_line() {
    let mut console = during();
    let mut last_line = |keys: &str| {
        console.keys(keys);
        let (buffer, _) = picture(&console, 80, 24);
        text(&buffer).pop().unwrap_or_default()
    };
    insta::assert_snapshot!(
        "last_lines_80x24",
        [
            last_line(""),
            last_line("s"),
            last_line("<esc>g10:3"),
            last_line("<esc>:tau"),
            last_line(" x<enter>"),
        ]
        .join("\n")
    );
}

#[test]
fn an_incident_that_is_answered_shelved_or_noted_says_so() {
    let mut desk = at_work();
    let head = |desk: &Desk| {
        let (buffer, _) = picture(&desk.console, 120, 40);
        let rows = text(&buffer);
        rows.into_iter().find(|row| row.contains("#1  01:")).unwrap_or_default()
    };
    assert!(head(&desk).contains("not acknowledged"), "{}", head(&desk));
    desk.keys("s1");
    assert!(head(&desk).contains("shelved, "), "{}", head(&desk));
    desk.keys("unasked the shift<enter>4");
    let (buffer, _) = picture(&desk.console, 120, 40);
    assert!(text(&buffer).iter().any(|row| row.contains("note: asked the shift")));
    desk.keys("1a");
    assert!(!head(&desk).contains("UNACK"), "{}", head(&desk));
}

/// The morning with every client four times over: a dozen of them.
fn dozen() -> Console {
    const TIMES: usize = 4;
    let (mut opened, mut news, mut standing) = MORNING.clone();
    let few = std::mem::take(&mut opened.layout.clients);
    for letter in ['a', 'b', 'c', 'd'] {
        opened.layout.clients.extend(few.iter().cloned().map(|mut client| {
            client.name.push(letter);
            client
        }));
    }
    news.readouts = news.readouts.chunks(few.len()).flat_map(|row| row.repeat(TIMES)).collect();
    for frame in &mut news.frames {
        *frame.raw_values_mut() = frame.raw_values().repeat(TIMES);
    }
    standing.clients = standing.clients.repeat(TIMES);
    standing.thresholds = standing.thresholds.repeat(TIMES);
    let sensors = std::mem::take(&mut standing.sensors);
    standing.sensors = sensors.iter().cycle().take(TIMES * few.len()).cloned().collect();
    shown(opened, news, standing)
}

#[test]
fn a_dozen_clients_stand_in_lanes() {
    let console = dozen();
    for (width, height) in SIZES {
        let (buffer, _) = picture(&console, width, height);
        let seen = by_role(&buffer, &console.model.theme);
        insta::assert_snapshot!(format!("dozen_{width}x{height}"), seen);
    }
    let (buffer, _) = picture(&console, 60, 15);
    insta::assert_snapshot!("dozen_60x15", text(&buffer).join("\n"));
}

#[test]
fn no_view_panics_at_any_size_and_its_hits_lie_on_the_screen() {
    let (mut few, mut many) = (during(), dozen());
    let widths = [1, 3, 20, 40, 48, 72, 109, 110, 250];
    let heights = [1, 2, 5, 8, 10, 13, 24, 80];
    for (name, keys) in ALL_SCREENS {
        for console in [&mut few, &mut many] {
            goes_to(console, keys);
            for width in widths {
                for height in heights {
                    let (buffer, hits) = picture(console, width, height);
                    let area = buffer.area;
                    for hit in hits.iter().filter(|hit| !hit.area.is_empty()) {
                        assert_eq!(
                            hit.area.intersection(area),
                            hit.area,
                            "{name} {width}x{height}"
                        );
                    }
                    let wild = |cell: &Cell| cell.symbol().chars().any(char::is_control);
                    assert!(!buffer.content().iter().any(wild), "{name} {width}x{height}");
                }
            }
        }
    }
}

#[test]
fn the_same_model_makes_the_same_picture_in_every_view() {
    let mut console = during();
    for (name, keys) in ALL_SCREENS {
        goes_to(&mut console, keys);
        let (one, other) = (picture(&console, 120, 40), picture(&console, 120, 40));
        assert_eq!(one, other, "{name}");
    }
    assert!(console.model.help.is_some());
    console.keys("<esc>1");
    assert_eq!(console.model.screen, Screen::Overview);
    let newest: Option<Timestamp> = console.model.newest();
    assert_eq!(newest, console.model.moment());
}
