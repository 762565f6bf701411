//! Workers on a page for people.

use cairn_net::page::Region;
use cairn_net::page::html::{Table, Tone, badge};
use cairn_net::page::text::{bytes, number, span};

use super::{Pause, State, Told, Workers};

/// The parts of the page.
pub fn regions(workers: &Workers) -> Vec<Region> {
    vec![Region { id: "workers", html: table(&workers.told()) }]
}

fn table(all: &[Told]) -> String {
    let columns =
        ["Worker", "What for", "State", "#Rounds", "#Busy", "Progress", "Bound", "#Failed", "Why"];
    let mut table = Table::new("Background work", &columns);
    for told in all {
        let name = match told.of.as_str() {
            "" => told.kind.name.to_string(),
            of => format!("{} {of}", told.kind.name),
        };
        let tone = match told.state {
            State::Working => Tone::Good,
            State::Failed => Tone::Bad,
            State::Paused => Tone::Warn,
            State::Resting | State::Off => Tone::Calm,
        };
        let mut state =
            format!("{} {}", badge(tone, told.state.word()), span(told.since.as_secs()));
        if told.is_paused && told.state == State::Working {
            state.push_str(", then paused");
        }
        let does = match told.kind.pause {
            Pause::Safe => format!("{} It can be paused.", told.kind.does),
            Pause::Never | Pause::By(_) => told.kind.does.to_string(),
        };
        let progress = told.progress.map_or(String::new(), |progress| match progress.of {
            Some(of) => format!("{} of {} {}", number(progress.done), number(of), progress.what),
            None => format!("{} {}", number(progress.done), progress.what),
        });
        let bound =
            told.bytes_per_second.map_or(String::new(), |most| format!("{}/s", bytes(most)));
        table
            .row()
            .text(&name)
            .text(&does)
            .html(&state)
            .figure(&number(told.rounds))
            .figure(&span(told.busy.as_secs()))
            .text(&progress)
            .text(&bound)
            .count(told.failures, Tone::Warn)
            .text(told.last_failure.as_deref().unwrap_or_default());
    }
    table.end("There is none.")
}
