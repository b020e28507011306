use headwater::session::{Proprietary, Tier};
use headwater::study::detection::{BEDS, Setup, run};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let kind = match args[0].as_str() {
        "linear" => Proprietary::Linear,
        "ownlag" => Proprietary::OwnLag,
        "paper" => Proprietary::Paper,
        _ => Proprietary::Residual,
    };
    let (_, bed) = BEDS.iter().find(|(n, _)| *n == args[1]).unwrap();
    let decimate = if args[1].starts_with("plant") { 5 } else { 1 };
    for seed in args[2].split(',').map(|s| s.parse::<u64>().unwrap()) {
        for (name, tier, learned) in [
            ("tier1", Tier::Symbols, false),
            ("tier1+graph", Tier::Symbols, true),
            ("tier2", Tier::States, false),
            ("tier2+graph", Tier::States, true),
        ] {
            let setup = Setup {
                decimate: Some(decimate),
                tier,
                learned_edges: learned,
                ..Setup::new(kind)
            };
            let start = std::time::Instant::now();
            let j = run(*bed, seed, &setup).unwrap();
            println!(
                "{} {} seed {seed} {name}: f1 {:.3} p {:.3} r {:.3} det {}/{} right {} false {} delay {:?} ({:.1}s)",
                args[0],
                args[1],
                j.f1.unwrap_or(0.),
                j.precision.unwrap_or(0.),
                j.recall.unwrap_or(0.),
                j.detected,
                j.events,
                j.right,
                j.false_alarms.len(),
                j.delay_s,
                start.elapsed().as_secs_f64()
            );
        }
    }
}
