//! Every deviation from the paper, with its reason and where its effect is measured, if it is.

/// Where a deviation's effect is to be seen.
pub(super) enum Effect {
    /// A row of this study: the variant that undoes it.
    Row(&'static str),
    /// Figures that no federation shows, by the name of the deviation.
    Pair(&'static str),
    /// There is nothing to measure, or no part of this study measures it.
    Words(&'static str),
}

/// No part of this study undoes the deviation.
const NOT_MEASURED: &str = "not measured";

pub(super) struct Deviation {
    pub paper: &'static str,
    pub here: &'static str,
    pub why: &'static str,
    pub effect: Effect,
}

const fn deviation(
    paper: &'static str,
    here: &'static str,
    why: &'static str,
    effect: Effect,
) -> Deviation {
    Deviation { paper, here, why, effect }
}

/// In the order of models, training, oracle, data, privacy, inference.
pub(super) const DEVIATIONS: [Deviation; 40] = [
    deviation(
        "φ of width 1",
        "width 16; the -paper sessions have 1",
        "one unit cannot carry two states of nine sensors",
        Effect::Row("φ of width 1"),
    ),
    deviation(
        "one pass over t = 1..T",
        "eight passes; the -paper sessions have one",
        "losses still fall after the first pass",
        Effect::Row("one pass"),
    ),
    deviation(
        "constant step size (theorems 6.10, 6.13)",
        "falling to a fiftieth in the second half; step_size: Constant is an option",
        "single steps are noisy, and the last rows would weigh most",
        Effect::Row("constant step"),
    ),
    deviation(
        "φ without a scale",
        "its output layer begins at a tenth (augment_scale)",
        "an untrained φ moves the state by as much as the state itself",
        Effect::Row("φ not scaled"),
    ),
    deviation(
        "θ − η1 ∇L_a − η2 ∇L_s",
        "Adam on the same sum; optimiser: Sgd is the printed rule",
        "the appendix trains with Adam; η1 and η2 then act as weights",
        Effect::Row("plain gradient descent"),
    ),
    deviation(
        "∇L_a and ∇L_s: how far back in time is not said",
        "one step of φ and of f_s, their memory is a constant; federation: Batched goes through windows",
        "Algorithm 1 updates after every row: earlier rows were seen with other weights",
        Effect::Words(NOT_MEASURED),
    ),
    deviation(
        "EKF update with y as measured",
        "y clipped at 5 standard deviations in the update only",
        "one spike would throw the state for many steps; residuals are not clipped",
        Effect::Row("update not clipped"),
    ),
    deviation(
        "no gradient clipping",
        "gradient norm clipped at 1 when a proprietary model is made",
        "a rare large gradient would undo many steps",
        Effect::Row("gradient not clipped"),
    ),
    deviation(
        "gradient through K",
        "stopped at the gain",
        "through K norms of 10^4 were seen, and no gain in accuracy",
        Effect::Row("gradient through K"),
    ),
    deviation(
        "loss over all L = 20 steps of a window",
        "the first 4 steps are not in the loss",
        "a filter begins without a state",
        Effect::Row("loss over whole windows"),
    ),
    deviation(
        "every step of a run is judged",
        "the first 40 are not, nor are they in thresholds; the effect is on losses",
        "a filter begins without a state",
        Effect::Pair("judged from the first step"),
    ),
    deviation(
        "LSTM memory in the EKF: not said; x = f(x̂) has none",
        "carried beside the state; the effect is of a memory that is emptied at every step",
        "a memory that is emptied predicts worse",
        Effect::Row("no memory"),
    ),
    deviation(
        "F = ∂f/∂x of an LSTM with a memory: not said",
        "at frozen (h, c); the effect is of an EKF whose state is (x, h, c)",
        "the covariance is of the P states alone",
        Effect::Row("memory in the state"),
    ),
    deviation(
        "proprietary models learn from the training rows",
        "those of plant-attack-day come with the program, made from rows of seed 1000; the -paper sessions make their own",
        "a vendor delivers a model that its client cannot train",
        Effect::Words(NOT_MEASURED),
    ),
    deviation(
        "oracle: H at the estimate x̂_o(t − 1)",
        "H at the predicted state, as for the clients",
        "the paper gives two definitions; the clients' one is that of an EKF",
        Effect::Pair("oracle: H at the estimate before"),
    ),
    deviation(
        "oracle: measurement head of width 4",
        "one head of width 32 for each client",
        "four units for 21 sensors would make a bound that clients beat",
        Effect::Pair("oracle: heads of width 4"),
    ),
    deviation(
        "four processes, then P1 to P3",
        "three clients",
        "the appendix drops P4, which has one sensor left",
        Effect::Pair("P4 is a client"),
    ),
    deviation(
        "all physical sensors, 21",
        "18 of them: FT01Z to FT03Z repeat FT01 to FT03; the -paper sessions have 21 (repeated_sensors)",
        "a sensor that repeats another says nothing new, and makes the covariance nearly singular",
        Effect::Pair("repeated sensors"),
    ),
    deviation(
        "control valves are left out",
        "plant-attack-day also watches 8 commands (six valves, a pump, the turbine's speed)",
        "a forced valve is then a surprise at the process that it hits",
        Effect::Words(NOT_MEASURED),
    ),
    deviation(
        "every second",
        "block means of 5 s on the attack day and the normal day; the -paper sessions have every second",
        "evidence is added up over steps, so each should say something new",
        Effect::Pair("every second"),
    ),
    deviation(
        "two equations for a state: x = f(x) + g + noise, and x = A sin + noise + δ",
        "x = f(x)/2 + (A sin + δ)/2 + g + noise",
        "without f nothing moves by itself, without the target an anomaly has no way in",
        Effect::Row("state is the target"),
    ),
    deviation(
        "g_dep as drawn",
        "its W is rescaled until the signal has mean 0 and deviation 1",
        "as drawn it hardly varies: clients would not depend on each other",
        Effect::Row("g_dep as drawn"),
    ),
    deviation(
        "noise N(0, σ_s²) on the sinusoidal target",
        "none",
        "it could not be told from process noise",
        Effect::Words(NOT_MEASURED),
    ),
    deviation(
        "the sinusoidal target has no phase",
        "one for every state, those of a client about a quarter period apart",
        "both states together then tell where in the period a client is",
        Effect::Words(NOT_MEASURED),
    ),
    deviation(
        "W of g_dep and the scale of h_m are learned",
        "W is drawn and has a bias; the scale is 50",
        "the paper does not say from what they learn",
        Effect::Words(NOT_MEASURED),
    ),
    deviation(
        "all else in the generator: not said",
        "the table in stream::twin; noise 0.1, amplitudes of 0.7 to 1.5 for 200 steps each",
        "a plant needs a value for each",
        Effect::Words(NOT_MEASURED),
    ),
    deviation(
        "sensitivity from ‖ΔK‖, L_h, sup ‖r‖ (Theorem 7.1)",
        "a public clip of ±5 standard deviations",
        "a noise scale that depends on the data reveals it, and ‖ΔK‖ needs the oracle",
        Effect::Pair("σ by Theorem 7.1"),
    ),
    deviation(
        "C_g: the largest gradient there is (Theorem 7.2)",
        "a public clip of 1",
        "the largest gradient depends on the data",
        Effect::Pair("σ by Theorem 7.2"),
    ),
    deviation(
        "classic σ for every ε",
        "the least σ that gives (ε, δ); sigma: Classic is the printed one",
        "the printed rule is unproved from ε = 1 on",
        Effect::Pair("classic σ"),
    ),
    deviation(
        "thresholds at percentiles of the training data",
        "of rows that follow it",
        "fitted models make them too low",
        Effect::Row("thresholds of the training rows"),
    ),
    deviation(
        "Σ as estimated",
        "1e-6 added to its diagonal",
        "it stays invertible when a sensor stands still",
        Effect::Row("Σ without a ridge"),
    ),
    deviation(
        "ARL0 on HAI: time to the first false alarm in the training data",
        "time outside events per alarm, on rows that were not learned from; Table 4 has both",
        "a threshold of the training rows fixes their rate of alarms",
        Effect::Pair("first false alarm in training"),
    ),
    deviation(
        "Table 1 for two clients",
        "for M: of the clients with a flag every pair must be a row",
        "the paper says \"any two pair of clients\"",
        Effect::Pair("Table 1 pair by pair"),
    ),
    deviation(
        "how long a verdict holds: not said",
        "an episode is a run of steps with one verdict and one root; its effects may change",
        "an effect that flickers is no new root",
        Effect::Pair("every step by itself"),
    ),
    deviation(
        "root causes from a flag per minute (Table 4)",
        "paper mode looks up the flags of every step; Table 4 has both, and both readings of a minute",
        "Algorithm 2 is of every step, and 60 distances become one flag in a way that is not said",
        Effect::Pair("flags of minutes"),
    ),
    deviation(
        "precision and recall: counting not said",
        "F1 per episode takes named steps up to five apart as one; alarms, ARL0 and ARL1 do not",
        "one anomaly that is named with gaps would count as many episodes",
        Effect::Pair("every run is an episode"),
    ),
    deviation(
        "Fig. 7: the first 1,000 steps of training and test",
        "shares and means of whole ranges; the picture has 400 steps around the first anomaly",
        "figures of whole ranges do not depend on where a picture begins",
        Effect::Words(NOT_MEASURED),
    ),
    deviation(
        "Algorithm 2 gives out a causal network",
        "paper mode prints roots and effects; the learned graph is `study graph` and the influence view",
        "Algorithm 2 does not say how the network follows from flags",
        Effect::Words("no effect on figures"),
    ),
    deviation(
        "anomalies at all clients, yet one root",
        "one client at a time, drawn uniformly",
        "with all of them there is no root to find",
        Effect::Pair("anomalies at all clients"),
    ),
    deviation(
        "Algorithm 1, line 10: ∇(L_m)_c",
        "∇(L_m)_a",
        "θ does not enter L_c: a misprint",
        Effect::Row("∇L_c in line 10"),
    ),
];
