//! Is a sensor itself at fault? Every client watches its own, whichever method decides.

use super::told::Told;
use crate::engine::material::{ClientMaterial, Material, SensorView};
use crate::evidence::sensor::{HabitFit, SensorHabit, SensorWatch};
use crate::stream::{Frame, Layout};

/// The sensors of one client. Their values stay inside; what is said is that one is at fault.
#[derive(Debug)]
struct Post {
    view: SensorView,
    watch: SensorWatch,
    y: Vec<f32>,
}

/// The sensors of every client.
#[derive(Debug)]
pub(super) struct Sensors(Vec<Post>);

impl Sensors {
    /// From what each sensor did when all was well.
    pub fn new(material: &Material) -> Self {
        let post = |client: &ClientMaterial| Post {
            view: client.view.clone(),
            watch: SensorWatch::new(habits(client)),
            y: vec![f32::NAN; client.view.used.len()],
        };
        Self(material.clients.iter().map(post).collect())
    }

    /// One step.
    pub fn step(&mut self, frame: &Frame, layout: &Layout) {
        for (m, post) in self.0.iter_mut().enumerate() {
            post.view.standardise(frame.row(layout, m), &mut post.y);
            post.look();
        }
    }

    /// `steps` without data.
    pub fn skip(&mut self, steps: usize) {
        for post in &mut self.0 {
            post.y.fill(f32::NAN);
            (0..steps).for_each(|_| post.look());
        }
    }

    /// A new run begins: nothing of the one before counts.
    pub fn reset(&mut self) {
        self.0.iter_mut().for_each(|post| post.watch.reset());
    }

    /// Says what is wrong now.
    pub fn tell(&self, told: &mut Told) {
        for (m, post) in self.0.iter().enumerate() {
            told.note_faults(m, post.watch.faults());
        }
    }
}

impl Post {
    fn look(&mut self) {
        self.watch.step(self.y.iter().map(|y| f64::from(*y)));
    }
}

fn habits(client: &ClientMaterial) -> Vec<SensorHabit> {
    let mut habits = vec![HabitFit::default(); client.view.used.len()];
    for row in client.fit.outer_iter().chain(client.calibration.outer_iter()) {
        habits.iter_mut().zip(row).for_each(|(habit, y)| habit.add(f64::from(*y)));
    }
    habits.iter().map(HabitFit::habit).collect()
}
