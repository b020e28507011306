//! What leaves the screen: the chosen client for the clipboard, a name for a picture.

use super::Model;

/// One line of name, moment and session, then a line for each sensor; nothing while nothing has been
/// measured.
#[must_use]
pub fn text(model: &Model) -> Option<String> {
    let (measured, client) = (model.measured.as_ref()?, model.chosen_client()?);
    let moment = model.moment()?;
    let mut text = format!("{}\t{}\t{}\n", client.name, model.clock.date_time(moment), model.name);
    for (sensor, channel) in client.sensors.iter().zip(client.channels.clone()) {
        let value = measured.history.value_at(channel, moment);
        let value = value.map_or_else(|| "missing".to_owned(), |value| value.to_string());
        text += &format!("{}\t{value}\t{}\n", sensor.name, sensor.unit);
    }
    Some(text)
}

impl Model {
    /// What files of this picture are called: the session and the moment, in letters that every system
    /// takes.
    #[must_use]
    pub fn picture_name(&self) -> String {
        let moment = self.moment().map(|moment| format!("-{}", self.clock.date_time(moment)));
        let name = format!("{}{}", self.name, moment.unwrap_or_default());
        name.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '-' }).collect()
    }
}
