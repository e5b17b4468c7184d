//! Cron expressions, crontab(5).

/// A parsed `Cron` expression.
#[derive(Debug, Clone, PartialEq)]
pub struct CronSpec {}
