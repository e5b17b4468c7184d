//! What agents say: the embedded log, bounded files per unit, written by a thread of its own.
