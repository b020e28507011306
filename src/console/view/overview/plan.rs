//! How the overview shares out its rows. Nothing moves with the data: a plan depends on the size of
//! the screen and the number of clients, and on the chosen client only where not all fit.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Quantities below each other on a long axis, in so many rows.
    Stack(u16),
    /// Quantities beside each other, in one row or two.
    Lanes(u16),
}

impl Shape {
    pub(crate) fn rows(self) -> u16 {
        match self {
            Shape::Stack(rows) | Shape::Lanes(rows) => rows,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub header: bool,
    pub shape: Shape,
    pub clients: u16,
    /// A row with the times of the axis.
    pub axis: bool,
    /// A last row with loss, privacy and thresholds, where there is no panel for them.
    pub line: bool,
}

/// Widest screen on which lanes of two rows would be too narrow.
const NARROW: u16 = 110;
const WANTED: u16 = 6;
/// Rows of a client: four quantities in one row each, then two rows for each that has a limit and a
/// blank one, then four.
const HEIGHTS: [u16; 8] = [14, 12, 10, 8, 7, 6, 5, 4];

impl Plan {
    /// Shares `rows` rows of `width` cells among `clients` clients and the rest.
    pub(crate) fn new(clients: usize, width: u16, rows: u16) -> Self {
        let clients = clients.min(usize::from(u16::MAX / 16)) as u16;
        let panels = width >= NARROW && rows >= 30;
        let line = !panels && rows >= 9;
        let lower_least = match rows {
            0..6 => 1,
            6..12 => 2,
            12..16 => 4,
            _ => WANTED,
        };
        let lower_wanted = if panels { (rows * 2 / 5).max(10) } else { lower_least };
        let free = rows.saturating_sub(u16::from(line));
        let stack = |least: u16| {
            let most = free.saturating_sub(least + 1);
            HEIGHTS.into_iter().find(|height| *height * clients <= most).map(Shape::Stack)
        };
        let lanes = |height: u16, extra: u16| {
            (clients * height + extra + lower_least <= free).then_some(Shape::Lanes(height))
        };
        let (shape, header, axis) = if let Some(shape) = stack(lower_wanted) {
            (shape, false, true)
        } else if let Some(shape) = lanes(2, 2).filter(|_| width >= NARROW) {
            (shape, true, true)
        } else if let Some(shape) = lanes(1, 2) {
            (shape, true, true)
        } else if let Some(shape) = lanes(1, 1) {
            (shape, true, false)
        } else {
            (Shape::Lanes(1), false, false)
        };
        let around = u16::from(header) + u16::from(axis);
        let fit = free.saturating_sub(around + lower_least) / shape.rows();
        let clients = clients.min(fit.max(1)).min(free);
        Self { header, shape, clients, axis, line }
    }

    /// The first client shown, so that `chosen` is among them.
    pub(crate) fn first(&self, chosen: usize) -> usize {
        (chosen + 1).saturating_sub(usize::from(self.clients))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_clients_get_a_long_axis_and_many_stand_in_lanes() {
        assert_eq!(Plan::new(3, 80, 21).shape, Shape::Stack(4));
        assert_eq!(Plan::new(3, 120, 37).shape, Shape::Stack(7));
        assert_eq!(Plan::new(3, 200, 57).shape, Shape::Stack(10));
        assert_eq!(Plan::new(3, 250, 77).shape, Shape::Stack(14));
        assert_eq!(Plan::new(12, 80, 21).shape, Shape::Lanes(1));
        assert_eq!(Plan::new(12, 120, 37).shape, Shape::Lanes(2));
        assert_eq!(Plan::new(12, 200, 57).shape, Shape::Lanes(2));
    }

    proptest! {
        #[test]
        fn clients_never_take_the_last_row_and_the_chosen_one_is_shown(
            clients in 0_usize..300, width in 1_u16..250, rows in 1_u16..90, chosen in 0_usize..300,
        ) {
            let plan = Plan::new(clients, width, rows);
            let used = u16::from(plan.header) + u16::from(plan.axis) + u16::from(plan.line)
                + plan.clients * plan.shape.rows();
            prop_assert!(used < rows || rows == 1, "{:?} leaves incidents no row", plan);
            if clients > 0 && plan.clients > 0 {
                let chosen = chosen % clients;
                let first = plan.first(chosen);
                prop_assert!((first..first + usize::from(plan.clients)).contains(&chosen));
            }
        }
    }
}
