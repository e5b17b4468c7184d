//! Colours, where there is someone to see them.

use std::fmt::{self, Display};
use std::io::IsTerminal;

use agentd_protocol::ActiveState;
use anstyle::{AnsiColor, Effects, Style as Escape};

/// Whether to colour: on a terminal, unless NO_COLOR is set (<https://no-color.org>) or TERM is `dumb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    colours: bool,
}

/// A text with the escape codes around it, if any.
pub(crate) struct Styled<T>(Escape, T);

impl<T: Display> Display for Styled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.render())?;
        self.1.fmt(f)?;
        write!(f, "{}", self.0.render_reset())
    }
}

impl Style {
    /// No colours.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { colours: false };

    /// As standard output and the environment ask for.
    pub(crate) fn of_stdout() -> Self {
        let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self { colours: !forbidden && !dumb && std::io::stdout().is_terminal() }
    }

    /// Whether there are any.
    pub(crate) const fn is_coloured(self) -> bool {
        self.colours
    }

    fn paint<T>(self, style: Escape, text: T) -> Styled<T> {
        Styled(if self.colours { style } else { Escape::new() }, text)
    }

    /// In the colour of a state: green, red, yellow, or none.
    pub(crate) fn state<T>(self, state: ActiveState, text: T) -> Styled<T> {
        let colour = match state {
            ActiveState::Active | ActiveState::Reloading => AnsiColor::Green,
            ActiveState::Failed => AnsiColor::Red,
            ActiveState::Activating | ActiveState::Deactivating => AnsiColor::Yellow,
            ActiveState::Inactive => return self.paint(Escape::new(), text),
        };
        self.paint(colour.on_default() | Effects::BOLD, text)
    }

    /// What asks for attention.
    pub(crate) fn bad<T>(self, text: T) -> Styled<T> {
        self.paint(AnsiColor::Red.on_default() | Effects::BOLD, text)
    }

    /// What is less important.
    pub(crate) fn warning<T>(self, text: T) -> Styled<T> {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    /// What stands above columns.
    pub(crate) fn header<T>(self, text: T) -> Styled<T> {
        self.paint(Escape::new() | Effects::UNDERLINE, text)
    }

    /// A comment, such as the path above a file.
    pub(crate) fn comment<T>(self, text: T) -> Styled<T> {
        self.paint(AnsiColor::Blue.on_default(), text)
    }

    /// The dot before a unit's name, systemd's shapes.
    pub(crate) const fn dot(state: ActiveState) -> char {
        match state {
            ActiveState::Active | ActiveState::Activating | ActiveState::Deactivating => '●',
            ActiveState::Reloading => '↻',
            ActiveState::Inactive => '○',
            ActiveState::Failed => '×',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_wrap_the_padded_text_and_vanish_when_off() {
        let on = Style { colours: true };
        assert_eq!(format!("{:>3}", on.bad("x")), "\u{1b}[1m\u{1b}[31m  x\u{1b}[0m");
        assert_eq!(format!("{:>3}", Style::PLAIN.bad("x")), "  x");
    }
}
