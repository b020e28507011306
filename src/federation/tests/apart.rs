//! Halves that know nothing of each other but messages, against one process.

use super::super::apart::{ServerHalf, SiteHalf};
use super::super::schedule::{Plan, Schedule};
use super::*;
use crate::wire::{Message, Outgoing, ToSite};

/// A message that crossed as bytes.
fn crossed(message: &Outgoing) -> Message {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    Message::decode(&bytes).expect("a message")
}

fn came_back(message: &ToSite) -> ToSite {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    ToSite::decode(&bytes).expect("a message")
}

#[test]
fn sites_and_a_server_apart_learn_what_one_process_learns_and_release_as_much() {
    let mut plant = Plant::new(60, &[3, 4], 1);
    plant.rows[0].row_mut(10).fill(f32::NAN);
    plant.rows[1].row_mut(10).fill(f32::NAN);
    plant.rows[1].row_mut(30).fill(f32::NAN);
    let batched = ModelSettings {
        federation: settings::Federation::Batched { rounds: 4 },
        batch: 6,
        window: 8,
        ..small()
    };
    let noised = PrivacySettings {
        epsilon_c: Some(8.0),
        epsilon_a: Some(8.0),
        epsilon_g: Some(8.0),
        ..open()
    };
    let alone = ModelSettings { eta2: 0.0, ..small() };
    for (settings, privacy) in
        [(small(), open()), (batched, noised.clone()), (small(), noised), (alone, open())]
    {
        let hooks = hooks(&privacy);
        let mut whole = Federation::new(&plant.sites(), &settings, hooks, 5).expect("sites");
        let expected = whole.run(&mut on).expect("a training");
        let mut sites: Vec<SiteHalf> = (plant.sites().iter().enumerate())
            .map(|(m, site)| SiteHalf::new(m, site, &settings, hooks, 5).expect("a site"))
            .collect();
        let states: Vec<usize> = sites.iter().map(SiteHalf::states).collect();
        let mut server = ServerHalf::new(&states, &settings, hooks, 5).expect("a server");
        let measured: Vec<_> = sites.iter().map(SiteHalf::measured).collect();
        let rows = Schedule::rows(&settings, &measured);
        let plans: Vec<Plan> = Schedule::new(&settings, 5, &rows).expect("rounds").collect();
        for plan in &plans {
            let up: Vec<Vec<Message>> = sites
                .iter_mut()
                .map(|site| site.release(plan).expect("states").iter().map(crossed).collect())
                .collect();
            assert!(up.iter().enumerate().all(|(m, up)| server.fits(plan, m, up)));
            assert!(!server.fits(plan, 0, &up[1]), "those of another client");
            assert!(!server.fits(plan, 0, &up[0][1..]), "not all of them");
            let answer = server.round(plan, &up).expect("a round");
            for (m, site) in sites.iter_mut().enumerate() {
                let none = Vec::new();
                let back = answer.gradients.get(m).unwrap_or(&none);
                let back: Vec<ToSite> = back.iter().map(came_back).collect();
                assert!(site.fits(plan, &back));
                site.learn(plan, &back).expect("a step");
            }
        }
        let phi: Vec<LstmFc> = sites.iter_mut().map(|site| site.phi().expect("φ")).collect();
        let weights = FederatedWeights { phi, server: server.f_s().expect("f_s") };
        assert_eq!(weights, expected.weights);
        assert_eq!(server.together(), expected.together);
        let released: Vec<_> = sites.iter().map(SiteHalf::released).collect();
        assert_eq!(released, expected.released);
    }
}
