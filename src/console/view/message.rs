//! The screen while there is nothing measured to show: what is going on, in words.

use std::mem;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::pen::{cut, put, width};
use crate::console::app::{Model, Stage};
use crate::console::glyph::BLOCKS;
use crate::console::text::{clean, clean_lines};
use crate::console::theme::Theme;
use crate::console::training::Course;

/// Draws the words into the middle of `area`.
pub fn draw(model: &Model, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let (heading, style, lines) = match &model.stage {
        Stage::Preparing => {
            (format!("preparing {} …", model.name), theme.strong, preparing(&model.course, area.width))
        }
        Stage::Reading | Stage::Playing => {
            ("waiting for the first measurement …".to_owned(), theme.strong, Vec::new())
        }
        Stage::Ended => ("this stream holds no measurement".to_owned(), theme.strong, Vec::new()),
        Stage::Failed(error) => {
            ("FAILED".to_owned(), theme.failure, clean_lines(&error.to_string()))
        }
    };
    let lines: Vec<String> =
        lines.iter().flat_map(|line| wrapped(line, area.width.saturating_sub(4).max(1))).collect();
    let height = 1 + lines.len() as u16;
    let top = area.height.saturating_sub(height) / 2;
    let centred = |text: &str| area.width.saturating_sub(width(text)) / 2;
    let heading = cut(&heading, area.width);
    put(buffer, area, centred(&heading), top, &heading, style);
    for (row, line) in lines.iter().enumerate() {
        put(buffer, area, centred(line), top + 1 + row as u16, line, theme.text);
    }
}

/// What is being done, how far it is, and the losses with the curve of the first one.
fn preparing(course: &Course, room: u16) -> Vec<String> {
    let Some(training) = &course.latest else {
        return vec!["nominal data is being read; a built-in plant is simulated first".to_owned()];
    };
    let mut lines = vec![clean(&training.doing)];
    if let Some((done, all)) = training.steps {
        lines.push(format!("{done} of {all}"));
    }
    let levels = course.levels(usize::from(room / 2).min(60));
    if levels.len() > 1 {
        lines.push(levels.iter().map(|level| BLOCKS[*level]).collect());
    }
    let losses = training.losses.iter();
    let losses: Vec<String> =
        losses.map(|(name, loss)| format!("{} {loss:.4}", clean(name))).collect();
    if !losses.is_empty() {
        lines.push(format!("loss: {}", losses.join("   ")));
    }
    lines
}

/// `text` broken between words where it can be, and inside them where it must be.
fn wrapped(text: &str, room: u16) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for mut word in text.split(' ') {
        let needed = width(&line).saturating_add(1).saturating_add(width(word));
        if !line.is_empty() && needed > room {
            lines.push(mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        // Only a word at the start of a line can still be too long.
        while width(word) > room {
            let (fits, rest) = word.split_at(fitting(word, room));
            lines.push(fits.to_owned());
            word = rest;
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Bytes of `word` that fit into `room` cells: at least one character, so that breaking ends.
fn fitting(word: &str, room: u16) -> usize {
    let ends = word.char_indices().map(|(at, c)| at + c.len_utf8());
    let least = word.chars().next().map_or(0, char::len_utf8);
    ends.take_while(|end| width(&word[..*end]) <= room).last().unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_words_are_broken_and_nothing_is_lost() {
        assert_eq!(
            wrapped("not found in /some/long/folder", 12),
            ["not found in", "/some/long/f", "older"]
        );
    }

    proptest! {
        #[test]
        fn every_line_fits(text in "[a-z /]{0,80}", room in 1_u16..30) {
            let lines = wrapped(&text, room);
            prop_assert!(lines.iter().all(|line| width(line) <= room));
            let letters = |s: &str| s.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
