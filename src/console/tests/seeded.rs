//! Where noise is drawn from a seed, nothing is private, and every view says so.

use super::fixture::{self, Console};
use super::plant;
use super::views::{ALL_SCREENS, SIZES, during, goes_to, picture, text};
use crate::session::Session;

/// Below the three common sizes: cards of words, the smallest screen with trends, and larger ones.
const SMALL: [(u16, u16); 6] = [(12, 3), (20, 5), (32, 6), (40, 8), (40, 12), (60, 15)];

fn says_so_everywhere(mut console: Console, what: &str) {
    for (name, keys) in ALL_SCREENS {
        goes_to(&mut console, keys);
        for (width, height) in SMALL.into_iter().chain(SIZES) {
            let seen = text(&picture(&console, width, height).0).join("\n");
            let roomy = width >= 120 && what != "looking back";
            let words = if roomy { "seeded: not private" } else { "seeded" };
            assert!(seen.contains(words), "{what}, {name} at {width}x{height}:\n{seen}");
        }
    }
}

#[test]
fn a_seeded_run_says_so_on_every_view_at_every_size() {
    says_so_everywhere(during(), "playing");
    let mut back = during();
    // The line has most to say while somebody looks back, sorts, and has given the mouse away.
    back.keys("1<left><left><left>sMt");
    says_so_everywhere(back, "looking back");
    says_so_everywhere(Console::bare(&plant::session()), "preparing");
    let mut failed = during();
    failed.fail();
    says_so_everywhere(failed, "failed");
    let mut typing = during();
    typing.keys("1:");
    for (width, height) in SMALL.into_iter().chain(SIZES) {
        let seen = text(&picture(&typing, width, height).0).join("\n");
        assert!(seen.contains("seeded"), "typing at {width}x{height}:\n{seen}");
    }
}

#[test]
fn real_data_is_seeded_only_where_a_seed_was_asked_for() {
    let says = |session: &Session| {
        let seen = text(&picture(&Console::bare(session), 80, 24).0).join("\n");
        seen.contains("seeded")
    };
    let mut real = fixture::table_session();
    assert!(!says(&real));
    real.set_seed(5);
    assert!(says(&real));
}
