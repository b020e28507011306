//! Charts as SVG, for light and for dark pages.
//!
//! Numbers are written with one decimal and nothing is drawn from a clock or a random source: the
//! same report gives the same bytes.

use std::fmt::Write as _;

use super::scale::{Scale, short};
use super::{Axis, Bar, Chart, Drawing, Figure, Series};

/// The colours of the page that a chart stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    Light,
    Dark,
}

impl Theme {
    pub(crate) const ALL: [Self; 2] = [Self::Light, Self::Dark];

    /// As part of a file name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    fn page(self) -> &'static str {
        match self {
            Self::Light => "#ffffff",
            Self::Dark => "#0d1117",
        }
    }

    fn ink(self) -> &'static str {
        match self {
            Self::Light => "#1f2328",
            Self::Dark => "#e6edf3",
        }
    }

    fn faint(self) -> &'static str {
        match self {
            Self::Light => "#d0d7de",
            Self::Dark => "#30363d",
        }
    }

    /// Colours that colour-blind people can distinguish.
    fn colours(self) -> [&'static str; 7] {
        match self {
            Self::Light => {
                ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#9a6b00", "#56b4e9", "#555555"]
            }
            Self::Dark => {
                ["#56b4e9", "#e69f00", "#2ecc9b", "#e39ac3", "#f0e442", "#7f9cf5", "#aaaaaa"]
            }
        }
    }
}

/// Width of every picture.
const WIDTH: f64 = 720.0;

/// Room at the left for numbers and at the top for the title.
const LEFT: f64 = 64.0;
const TOP: f64 = 56.0;

/// One chart as a document.
pub(crate) fn draw(chart: &Chart, theme: Theme) -> String {
    let mut sheet = Sheet { body: String::new(), theme, height: 0.0 };
    sheet.text((16.0, 26.0), "start", 15, &chart.title);
    match &chart.drawing {
        Drawing::Lines { x, y, series } => sheet.lines(x, y, series),
        Drawing::Bars { value, bars } => sheet.bars(value, bars),
        Drawing::Matrix { names, values } => sheet.matrix(names, values),
    }
    sheet.finish(&chart.title)
}

struct Sheet {
    body: String,
    theme: Theme,
    height: f64,
}

impl Sheet {
    fn text(&mut self, (x, y): (f64, f64), anchor: &str, size: u32, text: &str) {
        let (ink, text) = (self.theme.ink(), escaped(text));
        let _ = writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}" fill="{ink}">{text}</text>"#
        );
    }

    fn segment(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.body,
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{colour}"/>"#
        );
    }

    fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str) {
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{fill}"/>"#
        );
    }

    fn lines(&mut self, x: &Axis, y: &Axis, series: &[Series]) {
        let points = || series.iter().flat_map(|s| s.points.iter());
        let scale_x = Scale::between(x, points().map(|p| p.0));
        let scale_y = Scale::over(y, points().map(|p| p.1));
        let (right, bottom) = (WIDTH - 24.0, TOP + 260.0);
        let at_x = |v: f64| scale_x.place(v).map(|p| LEFT + p * (right - LEFT));
        let at_y = |v: f64| scale_y.place(v).map(|p| bottom - p * (bottom - TOP));
        self.text((16.0, 44.0), "start", 12, &y.label);
        for tick in scale_y.ticks() {
            let Some(at) = at_y(tick) else { continue };
            self.segment((LEFT, at), (right, at), self.theme.faint());
            self.text((LEFT - 8.0, at + 4.0), "end", 12, &short(tick));
        }
        for tick in scale_x.ticks() {
            let Some(at) = at_x(tick) else { continue };
            self.segment((at, bottom), (at, bottom + 5.0), self.theme.ink());
            self.text((at, bottom + 20.0), "middle", 12, &short(tick));
        }
        self.text((f64::midpoint(LEFT, right), bottom + 38.0), "middle", 12, &x.label);
        for (s, colour) in series.iter().zip(self.theme.colours().into_iter().cycle()) {
            let places: Vec<_> = s.points.iter().map(|p| Some((at_x(p.0)?, at_y(p.1)?))).collect();
            // What has no place breaks the line.
            for run in places.split(Option::is_none) {
                let run: Vec<String> =
                    run.iter().flatten().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                let _ = writeln!(
                    self.body,
                    r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#,
                    run.join(" ")
                );
            }
            if places.len() <= 24 {
                for (x, y) in places.into_iter().flatten() {
                    let _ = writeln!(
                        self.body,
                        r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{colour}"/>"#
                    );
                }
            }
        }
        self.height = self.legend(bottom + 58.0, series) + 16.0;
    }

    /// Names of series below a chart; where they end.
    fn legend(&mut self, mut y: f64, series: &[Series]) -> f64 {
        let mut x = LEFT;
        for (s, colour) in series.iter().zip(self.theme.colours().into_iter().cycle()) {
            let width = 34.0 + 7.0 * s.name.chars().count() as f64;
            if x > LEFT && x + width > WIDTH {
                (x, y) = (LEFT, y + 20.0);
            }
            self.rectangle((x, y - 9.0), (14.0, 4.0), colour);
            self.text((x + 20.0, y), "start", 12, &s.name);
            x += width;
        }
        y
    }

    fn bars(&mut self, axis: &Axis, bars: &[Bar]) {
        let names = bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0);
        let left = 24.0 + 7.0 * names as f64;
        let right = WIDTH - 110.0;
        let spread = |bar: &Bar| bar.value.map(|v| v.mean + v.std.unwrap_or(0.0));
        let scale = Scale::from_zero(bars.iter().filter_map(spread));
        let at = |v: f64| left + scale.place(v).unwrap_or(0.0) * (right - left);
        self.text((16.0, 44.0), "start", 12, &axis.label);
        let colour = self.theme.colours()[0];
        let mut y = TOP + 4.0;
        for bar in bars {
            self.text((left - 8.0, y + 12.0), "end", 12, &bar.name);
            if let Some(value) = bar.value {
                self.rectangle((left, y), (at(value.mean) - left, 14.0), colour);
                if let Some(std) = value.std {
                    let ends = (at((value.mean - std).max(0.0)), at(value.mean + std));
                    self.segment((ends.0, y + 7.0), (ends.1, y + 7.0), self.theme.ink());
                }
            }
            let value = Figure::Spread(bar.value).to_string();
            self.text((right + 10.0, y + 12.0), "start", 12, &value);
            y += 20.0;
        }
        self.height = y + 16.0;
    }

    fn matrix(&mut self, names: &[String], values: &[f64]) {
        let n = names.len().max(1);
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let left = 24.0 + 7.0 * longest as f64;
        let cell = ((WIDTH - left - 24.0) / n as f64).min(52.0);
        let [negative, positive] = [self.theme.colours()[1], self.theme.colours()[0]];
        for (i, name) in names.iter().enumerate() {
            let along = i as f64 * cell + cell / 2.0;
            self.text((left + along, TOP), "middle", 11, name);
            self.text((left - 8.0, TOP + 8.0 + along + 4.0), "end", 11, name);
        }
        for (i, value) in values.iter().enumerate().filter(|(_, v)| v.is_finite()) {
            let (x, y) = (left + (i % n) as f64 * cell, TOP + 8.0 + (i / n) as f64 * cell);
            let fill = if *value < 0.0 { negative } else { positive };
            let strength = value.abs().min(1.0);
            let _ = writeln!(
                self.body,
                r#"<rect x="{x:.1}" y="{y:.1}" width="{cell:.1}" height="{cell:.1}" fill="{fill}" fill-opacity="{strength:.2}"/>"#
            );
            if cell >= 30.0 {
                let middle = (x + cell / 2.0, y + cell / 2.0 + 4.0);
                self.text(middle, "middle", 11, &format!("{value:.2}"));
            }
        }
        self.height = TOP + 8.0 + n as f64 * cell + 16.0;
    }

    fn finish(self, title: &str) -> String {
        let (height, page, title) = (self.height, self.theme.page(), escaped(title));
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0} {height:.0}" width="{WIDTH:.0}" height="{height:.0}" font-family="sans-serif" role="img">
<title>{title}</title>
<rect width="100%" height="100%" fill="{page}"/>
{}</svg>
"#,
            self.body
        )
    }
}

/// Text that cannot be taken for mark-up.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // XML has no place for other control characters.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
